/* Labels: numbers, names or quantities. */
#include "data/cells/labels.h"
#include "base/memory.h"
#include "data/cells/commas.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A wider range of labels is sorted, not marked in a table of bits. */
#define MARKED_MAX ((int64_t)1 << 26)

qn_status qn__data_need_schema(qn_data *data, qn_error *err) {
    if (!data->schema)
        data->schema = qn__schema_create(data->features, err);
    return data->schema ? QN_OK : QN_MEMORY;
}

/* Ascending, without duplicates. */
typedef struct values {
    int32_t *value;
    uint64_t count;
} values;

static int compare(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static qn_status sort_values(const qn_data *data, values *out, qn_error *err) {
    out->value = qn__alloc(data->items, sizeof *out->value, err);
    if (!out->value)
        return QN_MEMORY;
    memcpy(out->value, data->labels, (size_t)data->items * sizeof *out->value);
    qsort(out->value, (size_t)data->items, sizeof *out->value, compare);
    for (uint64_t i = 0; i < data->items; ++i)
        if (out->count == 0 || out->value[i] != out->value[out->count - 1])
            out->value[out->count++] = out->value[i];
    return QN_OK;
}

static qn_status mark_values(const qn_data *data, int64_t least, int64_t range, values *out,
                             qn_error *err) {
    uint64_t *mark = qn__alloc((uint64_t)range / 64 + 1, sizeof *mark, err);
    if (!mark)
        return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; ++i) {
        const uint64_t at = (uint64_t)(data->labels[i] - least);
        out->count += !(mark[at / 64] >> at % 64 & 1);
        mark[at / 64] |= (uint64_t)1 << at % 64;
    }
    out->value = qn__alloc(out->count, sizeof *out->value, err);
    for (uint64_t i = 0, at = 0; out->value && at < out->count; ++i)
        if (mark[i / 64] >> i % 64 & 1)
            out->value[at++] = (int32_t)(least + (int64_t)i);
    qn__free(mark);
    return out->value ? QN_OK : QN_MEMORY;
}

static qn_status find_values(const qn_data *data, values *out, qn_error *err) {
    int64_t least = INT32_MAX, greatest = INT32_MIN;
    for (uint64_t i = 0; i < data->items; ++i) {
        least = data->labels[i] < least ? data->labels[i] : least;
        greatest = data->labels[i] > greatest ? data->labels[i] : greatest;
    }
    *out = (values){0};
    return greatest - least < MARKED_MAX ? mark_values(data, least, greatest - least, out, err)
                                         : sort_values(data, out, err);
}

static char *number_text(int32_t value, qn_error *err) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)value);
    return qn__copy_text(text, err);
}

/* The classes are the values, ascending, and labels their places. */
static qn_status name_values(qn_data *data, const values *v, qn_error *err) {
    if (qn__data_need_schema(data, err) != QN_OK)
        return QN_MEMORY;
    qn__schema *schema = data->schema;
    schema->class_name = qn__alloc(v->count, sizeof *schema->class_name, err);
    if (!schema->class_name)
        return QN_MEMORY;
    schema->classes = (uint32_t)v->count;
    schema->target = QN__TARGET_CLASS;
    for (uint64_t i = 0; i < v->count; ++i)
        if (!(schema->class_name[i] = number_text(v->value[i], err)))
            return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; ++i) {
        const int32_t *at =
            bsearch(&data->labels[i], v->value, (size_t)v->count, sizeof *v->value, compare);
        data->labels[i] = (int32_t)(at - v->value);
    }
    return QN_OK;
}

int qn__labels_are_numbered(int64_t least, int64_t greatest, uint64_t count, uint32_t classes) {
    return least >= 0 && (greatest + 1 <= 2 * (int64_t)count || greatest < (int64_t)classes);
}

static qn_status refuse_many(const qn_data *data, uint64_t count, const char *path, qn_error *err) {
    const char *name = data->schema ? data->schema->label : NULL;
    qn__fail(err, QN_INPUT, "the label has %llu different values, and at most %d classes are read",
             (unsigned long long)count, QN__TEXTS_MAX);
    qn__at(err, name ? "%s, column %s" : "%s", path, name);
    return qn__remedy(err, QN_INPUT,
                      "name the column of the classes with `data.label_column`; where the label is "
                      "a quantity, set `data.task` to regress");
}

/* Each value is in so few items that a class could hardly be learned. */
static int are_few(uint64_t items, uint64_t count) {
    return count > QN__LABELS_FEW && items < QN__LABELS_ITEMS * count;
}

void qn__labels_doubt_numbers(qn_data *data, const qn_data_options *options, uint64_t items,
                              uint64_t count, int64_t greatest) {
    const int said = options->task && strcmp(options->task, "auto") != 0;
    data->label_values = count;
    if (count > QN__LABELS_CLEAR && !said)
        data->doubt = QN__DOUBT_MANY;
    else if (are_few(items, count) && !said && greatest >= (int64_t)options->classes)
        data->doubt = QN__DOUBT_FEW;
}

static qn_status take_numbers(qn_data *data, const qn_data_options *options, const char *path,
                              qn_error *err) {
    values v;
    qn_status status = find_values(data, &v, err);
    if (status != QN_OK) {
        qn__free(v.value);
        return status;
    }
    qn__labels_doubt_numbers(data, options, data->items, v.count, v.value[v.count - 1]);
    if (!qn__labels_are_numbered(v.value[0], v.value[v.count - 1], v.count, options->classes))
        status = v.count > QN__TEXTS_MAX ? refuse_many(data, v.count, path, err)
                                         : name_values(data, &v, err);
    else if (data->schema)
        data->schema->target = QN__TARGET_INDEX;
    qn__free(v.value);
    return status;
}

static qn_status take_targets(qn_data *data, qn_error *err) {
    if (qn__data_need_schema(data, err) != QN_OK)
        return QN_MEMORY;
    data->targets = qn__alloc(data->items, sizeof *data->targets, err);
    if (!data->targets)
        return QN_MEMORY;
    for (uint64_t i = 0; i < data->items; ++i)
        data->targets[i] = (float)data->labels[i];
    qn__free(data->labels);
    data->labels = NULL;
    data->schema->target = QN__TARGET_REAL;
    return QN_OK;
}

/* A class whose name may be a number with a decimal comma, where all may be numbers; or NULL. */
static const char *comma_class(const qn_data *data) {
    if (!data->schema || data->schema->target != QN__TARGET_CLASS)
        return NULL;
    return qn__comma_example(
        &(qn__feature){.categories = data->schema->classes, .category = data->schema->class_name});
}

qn_status qn__labels_settle(qn_data *data, const qn_data_options *options, int asks,
                            const char *path, qn_error *err) {
    qn_data_options own = *options;
    if (own.task && strcmp(own.task, "auto") == 0)
        own.task = NULL;
    if (!data->labels)
        return QN_OK;
    qn_status status = QN_OK;
    if (!data->schema || data->schema->target != QN__TARGET_CLASS) {
        if (own.task && strcmp(own.task, "regress") == 0)
            return take_targets(data, err);
        if (!asks)
            return QN_OK;
        status = take_numbers(data, &own, path, err);
    } else {
        qn__labels_doubt_names(data, &own);
    }
    qn__labels_doubt_each(data, data->items);
    return status;
}

void qn__labels_doubt_each(qn_data *data, uint64_t items) {
    if (data->label_values == items && items > QN__LABELS_CLEAR && !data->doubt)
        data->doubt = QN__DOUBT_ID;
}

void qn__labels_doubt_names(qn_data *data, const qn_data_options *options) {
    const int said = options->task && strcmp(options->task, "auto") != 0;
    data->label_values = data->schema->classes;
    if (!said && comma_class(data))
        data->doubt = QN__DOUBT_COMMA;
}

qn_status qn__labels_check(const qn_data *data, qn_error *err) {
    const char *name = data->schema && data->schema->label ? data->schema->label : "";
    char shown[80];
    snprintf(shown, sizeof shown, *name ? "label \"%.64s\"" : "label", name);
    if (data->doubt == QN__DOUBT_COMMA && comma_class(data)) {
        qn__fail(err, QN_INPUT, "the %s holds texts such as \"%.40s\", which may be numbers", shown,
                 comma_class(data));
        return qn__remedy(err, QN_INPUT,
                          "write numbers with a decimal point and no other mark; where they are "
                          "classes, set `data.task` to classify");
    }
    if (data->doubt == QN__DOUBT_MANY || data->doubt == QN__DOUBT_FEW) {
        qn__fail(err, QN_INPUT,
                 "the %s has %llu different whole numbers%s, which may be classes or a quantity",
                 shown, (unsigned long long)data->label_values,
                 data->doubt == QN__DOUBT_FEW ? " in few items each" : "");
        return qn__remedy(err, QN_INPUT,
                          "set `data.task` to classify or to regress, or name another column with "
                          "`data.label_column`");
    }
    if (data->doubt == QN__DOUBT_ID) {
        qn__fail(
            err, QN_INPUT,
            "the %s is different in each of the %llu items, so it is an identifier and not a class",
            shown, (unsigned long long)data->items);
        return qn__remedy(err, QN_INPUT,
                          "name the column of the classes with `data.label_column`, and leave this "
                          "one out with `data.drop`");
    }
    return QN_OK;
}
