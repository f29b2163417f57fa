#include "data/prepare/encode.h"

#include "base/memory.h"
#include "data/cells/match_labels.h"
#include "data/table/wide.h"
#include <stdio.h>
#include <string.h>

/* The items of `data` with other labels or other columns. As long as its columns stay as they are,
 * it is a view, which shares the values. */
static qn_data *begin(const qn_data *data, qn_error *err) {
    qn_data *made = qn__alloc(1, sizeof *made, err);
    if (!made)
        return NULL;
    *made = *data;
    made->late = NULL;
    made->schema = NULL;
    made->labels = NULL;
    made->targets = NULL;
    made->weights = NULL;
    made->weight_name = NULL;
    made->tokenizer = NULL;
    made->note = NULL;
    made->names = NULL;
    made->words = NULL;
    made->window = NULL;
    made->wide = NULL;
    made->kept = NULL;
    made->several = NULL;
    made->mapped = 0;
    made->memory = NULL;
    made->release = qn__free; /* it owns a schema, as a table does */
    return made;
}

/* What the model's columns and labels are in a table. */
typedef struct found {
    uint32_t *column;       /* its columns; NULL: they are the model's */
    int32_t *label;         /* the model's number of each class; NULL: its own */
    qn__label_place *place; /* each of several labels; NULL: they are the model's */
    uint32_t labels;        /* of the model, where `place` is not NULL */
} found;

static qn_status copy_several(const qn_data *data, const found *f, qn_data *made, qn_error *err) {
    if (f->place) {
        made->several = qn__place_labels(data, f->place, f->labels, err);
        return made->several ? QN_OK : QN_MEMORY;
    }
    const qn_status status = qn__several_copy(data, NULL, data->items, &made->several, err);
    const size_t count = made->several && f->label ? (size_t)data->items * made->several->each : 0;
    for (size_t k = 0; k < count; ++k) {
        uint8_t *target = &made->several->target[k];
        *target = *target == QN__NO_TARGET ? QN__NO_TARGET : (uint8_t)f->label[*target];
    }
    return status;
}

static qn_status copy_labels(const qn_data *data, const found *f, qn_data *made, qn_error *err) {
    const size_t items = (size_t)data->items;
    const int32_t *label = f->label;
    const qn_status status = copy_several(data, f, made, err);
    if (status != QN_OK)
        return status;
    if (data->targets) {
        made->targets = qn__alloc(items, sizeof *made->targets, err);
        if (!made->targets)
            return QN_MEMORY;
        memcpy(made->targets, data->targets, items * sizeof *made->targets);
    }
    if (data->weights) {
        made->weights = qn__alloc(items, sizeof *made->weights, err);
        if (!made->weights)
            return QN_MEMORY;
        memcpy(made->weights, data->weights, items * sizeof *made->weights);
    }
    if (data->weight_name && !(made->weight_name = qn__copy_text(data->weight_name, err)))
        return QN_MEMORY;
    if (!data->labels)
        return QN_OK;
    made->labels = qn__alloc(items, sizeof *made->labels, err);
    if (!made->labels)
        return QN_MEMORY;
    for (size_t i = 0; i < items; ++i)
        made->labels[i] = label ? label[data->labels[i]] : data->labels[i];
    return QN_OK;
}

/* The type of the table that these columns alone make: others have no influence. */
static qn_data_type type_of(const qn_data *data, const uint32_t *column, uint32_t features) {
    uint32_t bytes = 0;
    if (qn__element_is_token(data->type))
        return data->type;
    if (data->type == QN_F32)
        while (bytes < features && data->schema->feature[column[bytes]].bytes)
            ++bytes;
    return data->type == QN_F32 && bytes < features ? QN_F32 : QN_U8;
}

/* Whatever a table that another process shares may hold. */
static uint8_t byte_of(float value) {
    return value >= 0.0f && value <= 255.0f ? (uint8_t)value : 0;
}

static void copy_item(const qn_data *data, uint64_t i, const uint32_t *column, qn_data_type type,
                      uint32_t features, void *item) {
    const void *from = qn__data_item(data, i);
    for (uint32_t k = 0; k < features; ++k)
        if (qn__element_is_token(type))
            memcpy((char *)item + k * qn__element_of(type)->size,
                   (const char *)from + column[k] * qn__element_of(type)->size,
                   qn__element_of(type)->size);
        else if (type == QN_F32)
            ((float *)item)[k] = ((const float *)from)[column[k]];
        else if (data->type == QN_F32)
            ((uint8_t *)item)[k] = byte_of(((const float *)from)[column[k]]);
        else
            ((uint8_t *)item)[k] = ((const uint8_t *)from)[column[k]];
}

/* Values of its own: feature k of an item is column[k] of the table. */
static qn_status copy_columns(const qn__fitting *to, const qn_data *data, const uint32_t *column,
                              qn_data *made, qn_error *err) {
    const uint32_t features = to->features;
    made->features = features;
    made->context = 0;
    made->type = type_of(data, column, features);
    made->channels = made->rows = made->columns = 0;
    const size_t stride = qn__data_stride(made), items = (size_t)data->items;
    if (stride > 0 && items > (SIZE_MAX - QN__DATA_MARGIN) / stride)
        return qn__fail_memory(err, items, stride);
    made->memory = qn__alloc(items * stride + QN__DATA_MARGIN, 1, err);
    made->values = made->memory;
    made->values_digest = NULL;
    made->in_file = NULL;
    if (!made->memory)
        return QN_MEMORY;
    for (size_t i = 0; i < items; ++i)
        copy_item(data, i, column, made->type, features, (uint8_t *)made->memory + i * stride);
    return QN_OK;
}

/* 1 + where column `comma` - 1 of the table has come to; 0: nowhere. */
static uint32_t place_of(uint32_t comma, const uint32_t *column, uint32_t features) {
    uint32_t k = 0;
    while (k < features && column[k] + 1 != comma)
        ++k;
    return k < features ? k + 1 : 0;
}

/* Whether a table for the model keeps exact values in the place of its feature k. */
static int keeps_exact(const qn__fitting *to, uint32_t k, qn__exact exact) {
    const qn__feature *known = to->schema && k < to->features ? &to->schema->feature[k] : NULL;
    return known && (exact == QN__EXACT_MOMENT ? known->dates != 0 : known->exact != 0);
}

/* The model's classes, and the columns of the table: it has categories of its own. */
static qn_status join_schemas(const qn__fitting *to, const qn_data *data, const uint32_t *column,
                              qn_data *made, qn_error *err) {
    if (!to->schema && !data->schema)
        return QN_OK;
    made->schema = qn__schema_join(to->schema, data->schema, column, made->features, err);
    for (uint32_t k = 0; made->schema && k < made->features; ++k)
        if (!keeps_exact(to, k, made->schema->feature[k].exact))
            made->schema->feature[k].exact = QN__EXACT_NONE;
    return made->schema ? QN_OK : QN_MEMORY;
}

static qn_status make(const qn__fitting *to, const qn_data *data, const found *f, qn_data **out,
                      qn_error *err) {
    const uint32_t *column = f->column;
    qn_data *made = begin(data, err);
    qn_status status = made ? QN_OK : QN_MEMORY;
    if (status == QN_OK && column)
        status = copy_columns(to, data, column, made, err);
    if (status == QN_OK && column)
        made->comma = place_of(data->comma, column, made->features);
    if (status == QN_OK)
        status = join_schemas(to, data, column, made, err);
    if (status == QN_OK)
        status = qn__wide_copy(data, NULL, column, made, err);
    if (status == QN_OK)
        status = copy_labels(data, f, made, err);
    if (status == QN_OK)
        qn__data_finish(made, NULL);
    if (status == QN_OK)
        *out = made;
    else
        qn_data_close(made);
    return status;
}

/* Whether a column of the table is wide that is not wide in the model. */
static int has_other_exact(const qn__fitting *to, const qn_data *data, const uint32_t *column) {
    const uint32_t features = column ? to->features : data->features;
    if (features != to->features) /* which is refused later */
        return 0;
    for (uint32_t k = 0; data->wide && k < features; ++k) {
        const qn__exact exact = data->schema->feature[column ? column[k] : k].exact;
        if (exact != QN__EXACT_NONE && !keeps_exact(to, k, exact))
            return 1;
    }
    return 0;
}

/* What is said of labels that the model cannot know. */
static qn_status tell_unknown(const qn__fitting *to, const qn_data *data, const int32_t *label,
                              qn__unknown unknown, qn_error *err) {
    char names[320], text[512];
    const uint64_t items = label ? qn__unknown_classes(data, label, names, sizeof names) : 0;
    if (items == 0)
        return QN_OK;
    if (unknown == QN__UNKNOWN_REFUSED || data->several) {
        qn__fail(err, QN_MISMATCH, "%s has labels that the model is not trained on: %s", to->what,
                 names);
        return qn__remedy(err, QN_MISMATCH,
                          "leave these items out, or name the column of the labels with "
                          "`data.label_column`");
    }
    snprintf(text, sizeof text,
             "labels that the model is not trained on count as wrong: %s (%llu of %llu items)",
             names, (unsigned long long)items, (unsigned long long)data->items);
    if (to->note)
        to->note(to->user, text);
    return QN_OK;
}

qn_status qn__encode(const qn__fitting *to, const qn_data *data, qn__unknown unknown,
                     qn_data **made, qn_error *err) {
    found f = {.labels = to->schema ? to->schema->classes : 0};
    *made = NULL;
    qn_status status = qn__match_columns(to, data, &f.column, err);
    /* Targets of pixels and positions are numbers of classes; those of words have names. */
    if (status == QN_OK && !(data->several && !data->words))
        status = qn__match_classes(to, data, &f.label, err);
    if (status == QN_OK)
        status = qn__match_labels(to, data, &f.place, err);
    if (status == QN_OK)
        status = tell_unknown(to, data, f.label, unknown, err);
    if (status == QN_OK && (f.column || f.label || f.place || has_other_exact(to, data, f.column)))
        status = make(to, data, &f, made, err);
    qn__free(f.column);
    qn__free(f.label);
    qn__free(f.place);
    return status;
}
