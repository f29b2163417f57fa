#include "data/bytes/folder_keys.h"
#include "base/encoding.h"
#include "base/memory.h"
#include "base/text/text.h"
#include <string.h>

/* What Hive and Spark call the folder of rows without a value. */
static const char no_value[] = "__HIVE_DEFAULT_PARTITION__";

static int is_clean(const char *text) {
    for (size_t size; *text; text += size) {
        size = qn__utf8_length(text, strlen(text));
        if (size == 0 || (unsigned char)*text < 0x20 || *text == 0x7F)
            return 0;
    }
    return 1;
}

/* A folder is a key where text stands on the left of its first "=". */
static const char *equals_of(const char *folder, const char *end) {
    const char *equals = memchr(folder, '=', (size_t)(end - folder));
    return equals && equals > folder ? equals : NULL;
}

static qn_status read_key(const char *path, const char *at, const char *equals, const char *end,
                          qn__folder_key *key, qn_error *err) {
    key->name = qn__percent_decode(at, (size_t)(equals - at), err);
    key->value = qn__percent_decode(equals + 1, (size_t)(end - equals - 1), err);
    if (!key->name || !key->value)
        return QN_MEMORY;
    if (strcmp(key->value, no_value) == 0)
        *key->value = '\0';
    if (*key->name && is_clean(key->name) && is_clean(key->value))
        return QN_OK;
    qn__fail(err, QN_INPUT, "the name of a folder is not a column and its value in UTF-8");
    qn__at(err, "%s", path);
    return qn__remedy(err, QN_INPUT, "rename the folder, such as year=2026");
}

qn_status qn__folder_keys_read(const char *path, size_t below, qn__folder_key **keys, size_t *count,
                               qn_error *err) {
    size_t folders = 0;
    for (const char *p = path + below; (p = strchr(p, '/')) != NULL; p++)
        folders++;
    *count = 0;
    *keys = NULL;
    if (folders == 0)
        return QN_OK;
    *keys = qn__alloc(folders, sizeof **keys, err);
    if (!*keys)
        return QN_MEMORY;
    const char *at = path + below;
    for (const char *end; (end = strchr(at, '/')) != NULL; at = end + 1) {
        const char *equals = equals_of(at, end);
        if (!equals)
            continue;
        const qn_status status = read_key(path, at, equals, end, &(*keys)[(*count)++], err);
        if (status != QN_OK)
            return status;
    }
    return QN_OK;
}

void qn__folder_keys_free(qn__folder_key *keys, size_t count) {
    for (size_t i = 0; keys && i < count; i++) {
        qn__free(keys[i].name);
        qn__free(keys[i].value);
    }
    qn__free(keys);
}
