#include "data/write/write_columns.h"
#include "base/memory.h"
#include "data/table/wide.h"
#include "data/write/formats.h"
#include "data/table/kept.h"
#include <stdio.h>
#include <string.h>

#define GROUP_BYTES ((uint64_t)1 << 24)
enum { GROUP_ROWS = 1 << 17 };

const uint32_t qn__written_width[QN__WRITTEN_TYPES] = {1, 4, 8, 4, 8, 4, 4, 8};

/* ------------------------------------------------------------------ types */

/* `bytes`: a reader would take whole numbers for a table of bytes, and it is one of floats. */
static void set_feature(qn__written_column *c, int bytes) {
    const qn_data *data = c->data;
    const uint32_t k = c->feature;
    const qn__feature *feature = data->schema ? &data->schema->feature[k] : NULL;
    const qn__exact exact = qn__wide_kind(data, k);
    c->texts = qn_data_categories(data, k);
    c->zone = feature && feature->zone;
    c->kept = qn__kept_column(data, k);
    c->type = data->type == QN_U8                                ? QN__WRITTEN_U8
              : c->texts > 0                                     ? QN__WRITTEN_TEXT
              : exact == QN__EXACT_WHOLE                         ? QN__WRITTEN_I64
              : exact == QN__EXACT_REAL                          ? QN__WRITTEN_F64
              : exact == QN__EXACT_MOMENT                        ? QN__WRITTEN_MOMENT
              : feature && feature->dates                        ? QN__WRITTEN_DAY
              : c->kept                                          ? QN__WRITTEN_F64
              : !bytes && qn__written_whole(data, k, 0x1p30f, 1) ? QN__WRITTEN_I32
                                                                 : QN__WRITTEN_F32;
    c->whole = c->type == QN__WRITTEN_F32 && qn__written_whole(data, k, QN__WRITTEN_MOST, 0);
}

static void set_label(qn__written_column *c) {
    const qn__target target = qn__data_target(c->data);
    c->texts = target == QN__TARGET_CLASS     ? c->data->schema->classes
               : target == QN__TARGET_SEVERAL ? qn__written_label_texts(c->data, c->feature)
                                              : 0;
    c->type = target == QN__TARGET_REAL ? QN__WRITTEN_F32
              : c->texts > 0            ? QN__WRITTEN_TEXT
                                        : QN__WRITTEN_I32;
}

/* ------------------------------------------------------------------ the list */

static void set_name(qn__written_column *c) {
    const qn_data *data = c->data;
    const uint32_t k = c->feature;
    c->name = c->use == QN__WRITTEN_LABEL    ? qn__written_label_name(data, k, c->made)
              : c->use == QN__WRITTEN_WEIGHT ? data->weight_name
                                             : qn_data_feature_name(data, k);
    if (c->name)
        return;
    if (c->use == QN__WRITTEN_FEATURE && data->channels == 1)
        snprintf(c->made, sizeof c->made, "r%uc%u", k / data->columns, k % data->columns);
    else if (c->use == QN__WRITTEN_FEATURE)
        snprintf(c->made, sizeof c->made, "f%u", k);
    else
        snprintf(c->made, sizeof c->made, "weight");
    c->name = c->made;
}

static void add(qn__written_columns *out, const qn_data *data, qn__written_use use, uint32_t k,
                int bytes) {
    qn__written_column *c = &out->column[out->count++];
    *c = (qn__written_column){.data = data, .use = use, .feature = k, .type = QN__WRITTEN_F32};
    set_name(c);
    if (use == QN__WRITTEN_LABEL)
        set_label(c);
    else if (use == QN__WRITTEN_FEATURE)
        set_feature(c, bytes);
}

/* The caller releases *out with qn__free(out->column). */
static qn_status columns_of(const qn_data *data, qn__written_columns *out, qn_error *err) {
    const int bytes = qn__looks_like_bytes(data);
    const uint32_t labels = qn__written_labels(data);
    uint64_t width = 1;
    *out = (qn__written_columns){.rows = data->items};
    out->column = qn__alloc((uint64_t)data->features + labels + 1, sizeof *out->column, err);
    if (!out->column)
        return QN_MEMORY;
    for (uint32_t k = 0; k < labels; k++)
        add(out, data, QN__WRITTEN_LABEL, k, 0);
    for (uint32_t k = 0; k < data->features; k++)
        add(out, data, QN__WRITTEN_FEATURE, k, bytes);
    if (data->weights)
        add(out, data, QN__WRITTEN_WEIGHT, 0, 0);
    for (uint32_t i = 0; i < out->count; i++)
        width += qn__written_width[out->column[i].type];
    out->group = GROUP_BYTES / width;
    out->group = out->group > GROUP_ROWS ? GROUP_ROWS : out->group < 64 ? 64 : out->group;
    return QN_OK;
}

qn_status qn__written_columns_give(const qn_data *data, qn__columns_writer *write, const char *path,
                                   qn__writer_batch *batch, qn_error *err) {
    qn__written_columns columns;
    qn_status status = columns_of(data, &columns, err);
    if (status == QN_OK)
        status = write(&columns, path, batch, err);
    qn__free(columns.column);
    return status;
}

const char *qn__written_text(const qn__written_column *column, uint32_t number) {
    if (column->use == QN__WRITTEN_FEATURE)
        return qn_data_category(column->data, column->feature, number);
    return column->data->several ? qn__written_label_text(column->data, column->feature, number)
                                 : qn_data_class_name(column->data, number);
}

/* ------------------------------------------------------------------ values */

/* A value on its way into the buffer. */
typedef union value {
    uint8_t u8;
    int32_t i32;
    int64_t i64;
    uint32_t u32;
    float f32;
    double f64;
} value;

/* 0: it is missing. */
static int take_wide(const qn__written_column *c, uint64_t item, value *out) {
    const qn_data *data = c->data;
    const uint64_t row = qn__data_row(data, item);
    if (c->kept) {
        out->f64 = qn__kept_value(data, c->kept, item);
        return out->f64 == out->f64;
    }
    const qn__wide_value exact = qn__wide_column(data, c->feature)[row];
    if (c->type == QN__WRITTEN_F64) {
        out->f64 = exact.real;
        return exact.real == exact.real;
    }
    out->i64 = exact.whole;
    return exact.whole != QN__WIDE_MISSING;
}

static int take_feature(const qn__written_column *c, uint64_t item, value *out) {
    const float *floats = qn__data_item(c->data, item);
    if (c->type == QN__WRITTEN_U8) {
        out->u8 = ((const uint8_t *)floats)[c->feature];
        return 1;
    }
    if (qn__written_width[c->type] == 8)
        return take_wide(c, item, out);
    const float number = floats[c->feature];
    if (number != number)
        return 0;
    if (c->type == QN__WRITTEN_F32)
        out->f32 = number;
    else if (c->type == QN__WRITTEN_TEXT)
        out->u32 = (uint32_t)number;
    else
        out->i32 = (int32_t)number;
    return 1;
}

/* One of several labels; a target that does not count is missing. */
static int take_label(const qn__written_column *c, uint64_t item, value *out) {
    const uint8_t target = qn__several_of(c->data, item)[c->feature];
    out->i32 = target;
    return target != QN__NO_TARGET;
}

static int take(const qn__written_column *c, uint64_t item, value *out) {
    if (c->use == QN__WRITTEN_FEATURE)
        return take_feature(c, item, out);
    if (c->use == QN__WRITTEN_LABEL && c->data->several)
        return take_label(c, item, out);
    if (c->use == QN__WRITTEN_WEIGHT)
        out->f32 = c->data->weights[item];
    else if (c->type == QN__WRITTEN_F32)
        out->f32 = c->data->targets[item];
    else
        out->i32 = c->data->labels[item];
    return 1;
}

uint64_t qn__written_fill(const qn__written_column *column, uint64_t first, uint64_t count,
                          void *values, uint8_t *valid) {
    const size_t width = qn__written_width[column->type];
    uint64_t missing = 0;
    memset(valid, 0, (size_t)count / 8 + 1);
    for (uint64_t i = 0; i < count; i++) {
        value v = {.i64 = 0};
        if (take(column, first + i, &v)) {
            valid[i / 8] |= (uint8_t)(1 << i % 8);
        } else {
            v.i64 = 0;
            missing++;
        }
        memcpy((uint8_t *)values + i * width, &v, width);
    }
    return missing;
}
