#include "data/arrow/pandas_index.h"
#include "base/memory.h"
#include "base/text/json.h"
#include <string.h>

static const char key[] = "pandas";
enum { KEY = sizeof key - 1, LEVELS = 100 };

/* Metadata: the number of pairs, then each pair's key and value, each after its size in bytes. All
 * numbers have 32 bits in the order of the machine. */
static int32_t take_number(const char **at) {
    int32_t number;
    memcpy(&number, *at, sizeof number);
    *at += sizeof number;
    return number;
}

static char *put_bytes(char *to, const void *bytes, size_t size) {
    const int32_t number = (int32_t)size;
    memcpy(to, &number, sizeof number);
    if (size > 0)
        memcpy(to + sizeof number, bytes, size);
    return to + sizeof number + size;
}

qn_status qn__pandas_put(struct ArrowSchema *schema, qn__pile *pile, const void *json, size_t size,
                         qn_error *err) {
    const int32_t one = 1;
    if (size > INT32_MAX) /* the interface cannot hold it */
        return QN_OK;
    char *text = qn__pile_alloc(pile, 3 * sizeof one + KEY + (uint64_t)size, 1, err);
    if (!text)
        return QN_MEMORY;
    memcpy(text, &one, sizeof one);
    put_bytes(put_bytes(text + sizeof one, key, KEY), json, size);
    schema->metadata = text;
    return QN_OK;
}

/* The value of the key; NULL: there is none. */
static const char *find_value(const char *metadata, size_t *size) {
    const int32_t pairs = metadata ? take_number(&metadata) : 0;
    for (int32_t i = 0; i < pairs; i++) {
        const int32_t name_size = take_number(&metadata);
        const char *name = metadata;
        if (name_size < 0)
            return NULL;
        metadata += name_size;
        const int32_t value_size = take_number(&metadata);
        if (value_size < 0)
            return NULL;
        *size = (size_t)value_size;
        if (name_size == KEY && memcmp(name, key, KEY) == 0)
            return metadata;
        metadata += value_size;
    }
    return NULL;
}

/* A range of numbers, which is not a column, has an object in place of a name. */
static int mark(const struct ArrowSchema *schema, const qn__json_node *names, uint8_t *index) {
    int marked = 0;
    for (size_t i = 0; i < qn__json_count(names) && i < LEVELS; i++) {
        const char *name = qn__json_string(qn__json_at(names, i));
        for (int64_t c = 0; name && c < schema->n_children; c++) {
            const char *own = schema->children[c]->name;
            if (own && strcmp(own, name) == 0)
                marked = index[c] = 1;
        }
    }
    return marked;
}

qn_status qn__pandas_index(const struct ArrowSchema *schema, uint8_t **index, qn_error *err) {
    size_t size = 0;
    const char *text = find_value(schema->metadata, &size);
    qn__json *json = NULL;
    qn_error ignored;
    *index = NULL;
    if (!text)
        return QN_OK;
    const qn_status status = qn__json_parse(text, size, &json, &ignored);
    if (status != QN_OK)
        return status == QN_MEMORY ? qn__fail_memory(err, size, 1) : QN_OK;
    const qn__json_node *names = qn__json_get(qn__json_root(json), "index_columns");
    uint8_t *marks = qn__alloc((uint64_t)schema->n_children, 1, err);
    if (marks && qn__json_is_array(names) && mark(schema, names, marks))
        *index = marks;
    else
        qn__free(marks);
    qn__json_free(json);
    return marks ? QN_OK : QN_MEMORY;
}
