#include "model/recipe/class_weight.h"

#include "base/memory.h"
#include "base/text/text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A message names this many classes. */
enum { NAMED = 5 };

int qn__class_weight_is_balanced(const char *text) { return strcmp(text, "balanced") == 0; }

static int is_blank(char c) { return c == ' ' || c == '\t'; }

/* ------------------------------------------------------------------------------------- entries */

/* One NAME=NUMBER. Both are parts of the text. */
typedef struct entry {
    const char *name, *number;
    size_t name_size, number_size;
    int quoted;
} entry;

static qn_status refuse(const char *text, size_t size, const char *what, qn_error *err) {
    qn__fail(err, QN_USAGE, "the class weight \"%.*s\" %s", size < 60 ? (int)size : 60, text, what);
    qn__at(err, "`train.class_weight`");
    return qn__remedy(err, QN_USAGE,
                      "write balanced, or CLASS=NUMBER for each class, separated by commas");
}

static void trim(const char **text, size_t *size) {
    while (*size > 0 && is_blank(**text)) {
        ++*text;
        --*size;
    }
    while (*size > 0 && is_blank((*text)[*size - 1]))
        --*size;
}

/* The end of the entry at `at`: a comma outside quotes, or the text's end. */
static const char *entry_end(const char *at) {
    int quoted = 0;
    for (; *at && (quoted || *at != ','); ++at)
        quoted ^= *at == '"';
    return at;
}

/* The `=` after the name: the last one outside quotes. */
static const char *find_equals(const char *at, const char *end) {
    const char *found = NULL;
    int quoted = 0;
    for (const char *p = at; p < end; ++p) {
        quoted ^= *p == '"';
        if (*p == '=' && !quoted)
            found = p;
    }
    return found;
}

static qn_status read_entry(const char *at, const char *end, entry *e, qn_error *err) {
    const char *equals = find_equals(at, end);
    if (!equals)
        return refuse(at, (size_t)(end - at), "is not CLASS=NUMBER", err);
    *e = (entry){.name = at,
                 .name_size = (size_t)(equals - at),
                 .number = equals + 1,
                 .number_size = (size_t)(end - equals - 1)};
    trim(&e->name, &e->name_size);
    trim(&e->number, &e->number_size);
    if (e->name_size > 1 && *e->name == '"' && e->name[e->name_size - 1] == '"') {
        e->quoted = 1;
        e->name += 1;
        e->name_size -= 2;
    }
    return QN_OK;
}

/* ------------------------------------------------------------------------------------- classes */

static const char *name_of(const qn__class_names *names, uint32_t i, char number[16]) {
    if (names->table && names->table->target == QN__TARGET_CLASS)
        return i < names->table->classes ? names->table->class_name[i] : "";
    snprintf(number, 16, "%u", i);
    return number;
}

/* names->classes where no class has the name. */
static uint32_t find_class(const qn__class_names *names, const char *name) {
    char number[16];
    uint64_t value;
    uint32_t i = 0;
    if (!names->table || names->table->target != QN__TARGET_CLASS)
        return qn__parse_u64(name, strlen(name), &value) && value < names->classes ? (uint32_t)value
                                                                                   : names->classes;
    while (i < names->classes && strcmp(name_of(names, i, number), name) != 0)
        ++i;
    return i;
}

static qn_status refuse_class(const qn__class_names *names, const char *name, qn_error *err) {
    char list[320] = "", number[16];
    for (uint32_t i = 0; i < names->classes && i < NAMED; ++i)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%.48s", i ? ", " : "",
                 name_of(names, i, number));
    qn__fail(err, QN_USAGE, "a weight is given for the class \"%.60s\", which is not there", name);
    qn__at(err, "`train.class_weight`");
    return qn__remedy(err, QN_USAGE, "the classes are %s%s", list,
                      names->classes > NAMED ? " and others" : "");
}

static qn_status take_entry(const entry *e, const qn__class_names *names, uint8_t *given,
                            float *weight, qn_error *err) {
    float value;
    char *name;
    if (!qn__parse_float(e->number, e->number_size, &value) || !isfinite(value) || value < 0)
        return refuse(e->number, e->number_size, "is not a finite number from 0", err);
    if (!(name = qn__copy_unquoted(e->name, e->name_size, e->quoted, err)))
        return QN_MEMORY;
    const uint32_t at = find_class(names, name);
    qn_status status = QN_OK;
    if (at == names->classes)
        status = refuse_class(names, name, err);
    else if (given[at])
        status = refuse(e->name, e->name_size, "is given twice", err);
    qn__free(name);
    if (status != QN_OK)
        return status;
    given[at] = 1;
    weight[at] = value == 0.0f ? 0.0f : value;
    return QN_OK;
}

qn_status qn__class_weight_read(const char *text, const qn__class_names *names, float *weight,
                                qn_error *err) {
    uint8_t *given = qn__alloc(names->classes, 1, err);
    qn_status status = given ? QN_OK : QN_MEMORY;
    for (uint32_t i = 0; i < names->classes; ++i)
        weight[i] = 1.0f;
    for (const char *at = text; status == QN_OK;) {
        const char *end = entry_end(at);
        entry e = {.name = NULL};
        status = read_entry(at, end, &e, err);
        if (status == QN_OK)
            status = take_entry(&e, names, given, weight, err);
        if (*end == '\0')
            break;
        at = end + 1;
    }
    qn__free(given);
    return status;
}

/* ---------------------------------------------------------------------------------------- text */

static void add_name(qn__text *text, const char *name) {
    const size_t size = strlen(name);
    const int plain =
        size > 0 && !strpbrk(name, ",\"") && !is_blank(name[0]) && !is_blank(name[size - 1]);
    if (plain) {
        qn__text_add(text, "%s", name);
        return;
    }
    qn__text_add(text, "\"");
    for (; *name; ++name)
        qn__text_add(text, "%s%c", *name == '"' ? "\"" : "", *name);
    qn__text_add(text, "\"");
}

static char *write_weights(const qn__class_names *names, const float *weight, qn_error *err) {
    qn__text text = {0};
    char number[32];
    for (uint32_t i = 0; i < names->classes; ++i) {
        if (weight[i] == 1.0f)
            continue;
        qn__text_add(&text, "%s", text.size > 0 ? "," : "");
        add_name(&text, name_of(names, i, number));
        qn__float_text(weight[i], number);
        qn__text_add(&text, "=%s", number);
    }
    return qn__text_take(&text, err);
}

qn_status qn__class_weight_tidy(const char *text, const qn__class_names *names, char **out,
                                qn_error *err) {
    *out = NULL;
    if (!text)
        return QN_OK;
    if (qn__class_weight_is_balanced(text)) {
        *out = qn__copy_text(text, err);
        return *out ? QN_OK : QN_MEMORY;
    }
    float *weight = qn__alloc(names->classes, sizeof *weight, err);
    qn_status status = weight ? qn__class_weight_read(text, names, weight, err) : QN_MEMORY;
    if (status == QN_OK && !(*out = write_weights(names, weight, err)))
        status = QN_MEMORY;
    qn__free(weight);
    if (*out && **out == '\0') {
        qn__free(*out);
        *out = NULL;
    }
    return status;
}
