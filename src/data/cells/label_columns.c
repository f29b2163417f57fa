#include "data/cells/label_columns.h"

#include "base/memory.h"
#include "data/cells/cell.h"
#include "data/cells/labels.h"
#include "data/table/drop_columns.h"
#include "data/table/missing.h"
#include <stdio.h>
#include <string.h>

/* A note names this many labels. */
enum { NAMED = 5 };

/* A column on its way. */
typedef struct taking {
    qn_data *data;
    const char *path;
    int known;        /* 1: read for a model, which knows the texts */
    uint32_t label;   /* its number */
    uint32_t feature; /* its place among the features */
    uint64_t missing; /* values of all labels */
} taking;

static qn_status refuse(const taking *t, uint64_t item, const char *remedy, qn_error *err) {
    char shown[64];
    qn__cell_show_text(t->data->schema->class_name[t->label], shown);
    qn__at(err, "%s, item %llu (from 0), column %s", t->path, (unsigned long long)item, shown);
    return qn__remedy(err, QN_INPUT, "%s", remedy);
}

/* The first item with a value from `least` on; that of a column of texts is the number of one. */
static uint64_t first_from(const taking *t, double least) {
    uint64_t i = 0;
    while (i + 1 < t->data->items && !(qn__data_number(t->data, i, t->feature) >= least))
        i++;
    return i;
}

/* Texts that come in pairs: where a column has one of them alone, the other is known. */
static const char *const pairs[][2] = {
    {"false", "true"}, {"False", "True"}, {"FALSE", "TRUE"}, {"no", "yes"}, {"No", "Yes"},
    {"NO", "YES"},     {"f", "t"},        {"F", "T"},        {"n", "y"},    {"N", "Y"}};

static const char *const *pair_of(const char *text) {
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(text, pairs[i][0]) == 0 || strcmp(text, pairs[i][1]) == 0)
            return pairs[i];
    return NULL;
}

int qn__label_text_value(const char *text) {
    const char *const *pair = pair_of(text);
    return pair ? strcmp(text, pair[1]) == 0 : -1;
}

static qn_status refuse_texts(const taking *t, const qn__feature *f, qn_error *err) {
    char shown[64];
    qn__cell_show_text(f->category[f->categories == 1 ? 0 : 2], shown);
    if (f->categories == 1) {
        qn__fail(err, QN_INPUT,
                 "the only text in the column of a label is \"%s\", which may be 0 "
                 "or 1",
                 shown);
        return refuse(t, first_from(t, 0), "write 0 and 1, or leave the column out of the labels",
                      err);
    }
    qn__fail(err, QN_INPUT, "the column of a label has %u different texts, such as \"%s\"",
             f->categories, shown);
    return refuse(t, first_from(t, 2),
                  "a label among several is 0 or 1, or one of two texts; a column with more "
                  "classes must be the only label",
                  err);
}

/* Which text is 0 and which is 1. Where there is one alone that a model must know, the other one is
 * NULL. */
static qn_status take_texts(const taking *t, const qn__feature *f, qn_error *err) {
    char **to = t->data->schema->label_value + 2 * (size_t)t->label;
    const char *const *pair = f->categories == 1 && !t->known ? pair_of(f->category[0]) : NULL;
    if (f->categories > 2 || (f->categories == 1 && !pair && !t->known))
        return refuse_texts(t, f, err);
    const char *zero = pair ? pair[0] : f->category[0];
    const char *one = pair ? pair[1] : f->categories > 1 ? f->category[1] : NULL;
    if (!(to[0] = qn__copy_text(zero, err)) || (one && !(to[1] = qn__copy_text(one, err))))
        return QN_MEMORY;
    return QN_OK;
}

static qn_status refuse_value(const taking *t, uint64_t item, double value, qn_error *err) {
    qn__fail(err, QN_INPUT, "the value of a label is %.9g, which is neither 0 nor 1", value);
    return refuse(t, item,
                  "a label among several is 0 or 1, or one of two texts; a value that is not known "
                  "is an empty cell; to predict numbers, train a model for each",
                  err);
}

static qn_status take_values(taking *t, const qn__feature *f, qn_error *err) {
    qn__several *several = t->data->several;
    uint8_t *to = several->target + t->label;
    const int ones = f->categories == 1 && !t->known && qn__label_text_value(f->category[0]) == 1;
    for (uint64_t i = 0; i < t->data->items; i++, to += several->each) {
        const double value = qn__data_number(t->data, i, t->feature);
        if (qn__is_missing((float)value)) {
            *to = QN__NO_TARGET;
            t->missing++;
        } else if (value == 0 || value == 1) {
            *to = (uint8_t)(ones ? 1 : value);
        } else {
            return refuse_value(t, i, value, err);
        }
    }
    return QN_OK;
}

/* The name of a column, or its number in the file where it has none. */
static char *name_of(const qn_data *data, uint64_t column, uint32_t feature, qn_error *err) {
    char number[24];
    snprintf(number, sizeof number, "%llu", (unsigned long long)column + 1);
    const char *name = data->schema->feature[feature].name;
    return qn__copy_text(name ? name : number, err);
}

static qn_status take_column(taking *t, uint64_t column, qn_error *err) {
    qn__schema *schema = t->data->schema;
    const qn__feature *f = &schema->feature[t->feature];
    if (!(schema->class_name[t->label] = name_of(t->data, column, t->feature, err)))
        return QN_MEMORY;
    if (f->dates) {
        qn__fail(err, QN_INPUT, "the column of a label has dates");
        return refuse(t, 0, "leave it out of the labels", err);
    }
    const qn_status status = f->categories > 0 ? take_texts(t, f, err) : QN_OK;
    return status == QN_OK ? take_values(t, f, err) : status;
}

/* Names with a comma or a quote are in quotes. */
char *qn__label_list(char *const *name, uint32_t count, qn_error *err) {
    qn__text text = {0};
    for (uint32_t k = 0; k < count; k++) {
        const size_t size = strlen(name[k]);
        const int quoted = size == 0 || strpbrk(name[k], ",\"\r\n") || strchr(" \t", *name[k]) ||
                           strchr(" \t", name[k][size - 1]);
        qn__text_add(&text, k ? ",%s" : "%s", quoted ? "\"" : "");
        for (const char *at = name[k]; *at; at++)
            qn__text_add(&text, quoted && *at == '"' ? "\"%c" : "%c", *at);
        qn__text_add(&text, "%s", quoted ? "\"" : "");
    }
    return qn__text_take(&text, err);
}

/* Space for the labels and their names. */
static qn_status make_space(qn_data *data, uint32_t labels, qn_error *err) {
    if (qn__data_need_schema(data, err) != QN_OK)
        return QN_MEMORY;
    qn__schema *schema = data->schema;
    int texts = 0;
    for (uint32_t k = 0; k < labels; k++)
        texts |= schema->feature[data->label_columns->at[k].feature].categories > 0;
    data->several = qn__several_create(data->items, labels, 0, 0, err);
    schema->class_name = qn__alloc(labels, sizeof *schema->class_name, err);
    schema->classes = schema->class_name ? labels : 0;
    schema->target = QN__TARGET_SEVERAL;
    if (!data->several || !schema->class_name)
        return QN_MEMORY;
    if (texts)
        schema->label_value = qn__alloc(2 * (uint64_t)labels, sizeof *schema->label_value, err);
    return !texts || schema->label_value ? QN_OK : QN_MEMORY;
}

static qn_status drop_features(qn_data *data, qn_error *err) {
    uint8_t *drop = qn__alloc(data->features, 1, err);
    if (!drop)
        return QN_MEMORY;
    for (uint32_t k = 0; k < data->label_columns->count; k++)
        drop[data->label_columns->at[k].feature] = 1;
    qn__data_drop_columns(data, drop);
    qn__free(drop);
    return QN_OK;
}

/* What people may want to know of the labels. */
static qn_status note(const taking *t, qn_error *err) {
    const qn__schema *schema = t->data->schema;
    qn__text text = {0};
    uint32_t texts = 0;
    for (uint32_t k = 0; schema->label_value && !t->known && k < schema->classes; k++) {
        char *const *value = schema->label_value + 2 * (size_t)k;
        if (!value[0] || !value[1])
            continue;
        if (texts++ < NAMED)
            qn__text_add(&text, "%sin %.60s \"%.40s\" is 1, \"%.40s\" is 0", texts > 1 ? "; " : "",
                         schema->class_name[k], value[1], value[0]);
    }
    if (texts > NAMED)
        qn__text_add(&text, "; %u more labels have texts", texts - NAMED);
    if (t->missing > 0)
        qn__text_add(&text, "%s%llu value%s of labels %s missing; the others of these items count",
                     texts ? "\n" : "", (unsigned long long)t->missing, t->missing > 1 ? "s" : "",
                     t->missing > 1 ? "are" : "is");
    const qn_status status = text.failed ? qn__fail_memory(err, text.size, 1)
                             : text.data ? qn__data_add_note(t->data, text.data, err)
                                         : QN_OK;
    qn__text_release(&text);
    return status;
}

qn_status qn__label_columns_take(qn_data *data, const qn_data_options *options, const char *path,
                                 qn_error *err) {
    const qn__label_columns *columns = data->label_columns;
    if (!columns)
        return QN_OK;
    taking t = {.data = data, .path = path, .known = options->expected_label != NULL};
    qn_status status = make_space(data, columns->count, err);
    for (; status == QN_OK && t.label < columns->count; t.label++) {
        t.feature = columns->at[t.label].feature;
        status = take_column(&t, columns->at[t.label].column, err);
    }
    qn__schema *schema = data->schema;
    if (status == QN_OK &&
        !(schema->label = qn__label_list(schema->class_name, schema->classes, err)))
        status = QN_MEMORY;
    if (status == QN_OK)
        status = drop_features(data, err);
    qn__free(data->label_columns);
    data->label_columns = NULL;
    return status == QN_OK ? note(&t, err) : status;
}
