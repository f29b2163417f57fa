/* The text of a recipe (docs/exactness.md 11.1). */
#include "base/memory.h"
#include "layer/axes.h"
#include "model/recipe/option_rows.h"

static void add_float(qn__text *text, float value) {
    char number[32];
    qn__float_text(value, number);
    qn__text_add(text, "%s", number);
}

static void add_shape(qn__text *text, const qn__shape *s) {
    char shape[QN__SHAPE_TEXT];
    qn__text_add(text, "\"%s\"", s->channels ? qn__shape_text(*s, shape) : "");
}

static void add_network(qn__text *text, const qn__network *network) {
    qn__text_add(text, "\"");
    qn__network_text(network, text);
    qn__text_add(text, "\"");
}

static void add_text(qn__text *text, const char *value, const char *none) {
    if (value)
        qn__text_add_json(text, value);
    else
        qn__text_add(text, "%s", none);
}

static void add_value(const qn__option *o, const void *at, qn__text *text) {
    switch (o->form) {
    case QN__FORM_COUNT:
    case QN__FORM_FLAG:
        qn__text_add(text, "%u", *(const uint32_t *)at);
        break;
    case QN__FORM_LONG:
        qn__text_add(text, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case QN__FORM_FLOAT:
        add_float(text, *(const float *)at);
        break;
    case QN__FORM_NAME:
        qn__text_add(text, "\"%s\"", qn__table_name(o->table, *(const int *)at));
        break;
    case QN__FORM_TEXT:
        add_text(text, *(char *const *)at, "\"\"");
        break;
    case QN__FORM_MAYBE:
        add_text(text, *(char *const *)at, "null");
        break;
    case QN__FORM_DIGEST:
        qn__text_add(text, "\"%s\"", (const char *)at);
        break;
    case QN__FORM_NETWORK:
        add_network(text, at);
        break;
    case QN__FORM_TABLE: {
        const qn__schema *table = *(qn__schema *const *)at;
        qn__schema_add_json(qn__schema_is_trivial(table) ? NULL : table, text);
        break;
    }
    case QN__FORM_SHAPE:
        add_shape(text, at);
    }
}

/* The keys in the order of 11.1, which is that of the rows. */
static void add_members(const qn__recipe *r, qn__text *text) {
    const char *before = "{";
    for (const qn__option *o = qn__options; o->key; ++o) {
        if (o->contract > r->contract || (o->contract >= 6 && !qn__option_set(o, r)))
            continue;
        qn__text_add(text, "%s\"%s\":", before, o->key);
        add_value(o, qn__option_in(o, r), text);
        before = ",";
    }
    qn__text_add(text, "}");
}

qn_status qn__recipe_json(const qn__recipe *recipe, char **out, qn_error *err) {
    qn__text text = {0};
    *out = NULL;
    add_members(recipe, &text);
    const size_t size = text.failed ? 0 : text.size;
    *out = qn__text_take(&text, err);
    if (!*out || size <= QN__RECIPE_LONGEST)
        return *out ? QN_OK : QN_MEMORY;
    qn__free(*out);
    *out = NULL;
    return qn__recipe_refuse(err, "`data.path`", "give the columns and the classes shorter names",
                             qn__fail(err, QN_USAGE,
                                      "the names in the data take %zu bytes; at most %zu can be "
                                      "kept in a model",
                                      size, QN__RECIPE_LONGEST));
}
