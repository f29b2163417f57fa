/* From the tensors of a request to the items of a model. */
#include "serve/inference/v2_message.h"

#include "base/binary/half.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------------------ one tensor of all
 */

/* A list of as many values as the model has features is one item; of a model of one feature each
 * value is one. */
static qn_status items_of_numbers(const qn__v2_input *in, const qn_model *model,
                                  const qn__body_reader *reader, qn_data **out, qn_error *err) {
    const uint64_t column[2] = {in->shape[0], 1};
    qn__body_tensor tensor = {.type = in->type,
                              .shape = in->shape,
                              .lengths = in->lengths,
                              .values = in->values,
                              .bytes = in->bytes};
    if (in->lengths == 1 && qn_model_inputs(model) == 1) {
        tensor.shape = column;
        tensor.lengths = 2;
    }
    return qn__body_of_tensor(reader, &tensor, out, err);
}

/* Pixels of the files of a request, one after the other. */
typedef struct pictures {
    uint8_t *pixels;
    uint64_t shape[2];
    size_t each;
} pictures;

static qn_status add_picture(pictures *p, uint64_t item, const char *file, size_t size,
                             const qn__body_reader *reader, qn_error *err) {
    qn_data *one = NULL;
    qn_status status = qn__body_read(reader, QN__BODY_IMAGE, file, size, &one, err);
    if (status != QN_OK)
        return status;
    if (!p->pixels) {
        p->each = qn_data_features(one);
        p->shape[1] = p->each;
        p->pixels = qn__alloc(p->shape[0], p->each, err);
    }
    status = p->pixels ? QN_OK : QN_MEMORY;
    if (status == QN_OK && (qn_data_type_of(one) != QN_U8 || qn_data_features(one) != p->each ||
                            !qn_data_item(one, 0)))
        status = qn__fail(err, QN_INPUT, "image %llu of the request has another size",
                          (unsigned long long)item);
    if (status == QN_OK)
        memcpy(p->pixels + item * p->each, qn_data_item(one, 0), p->each);
    qn_data_close(one);
    return status;
}

static qn_status items_of_images(const qn__v2_input *in, const qn__body_reader *reader,
                                 qn_data **out, qn_error *err) {
    pictures p = {.shape = {in->count, 0}};
    size_t at = 0, size;
    qn_status status = QN_OK;
    if (in->count == 1) {
        const char *file = qn__v2_bytes_at(in, &at, &size);
        return qn__body_read(reader, QN__BODY_IMAGE, file, size, out, err);
    }
    for (uint64_t i = 0; i < in->count && status == QN_OK; i++) {
        const char *file = qn__v2_bytes_at(in, &at, &size);
        status = add_picture(&p, i, file, size, reader, err);
    }
    const qn__body_tensor tensor = {.type = "UINT8",
                                    .shape = p.shape,
                                    .lengths = 2,
                                    .values = p.pixels,
                                    .bytes = (size_t)in->count * p.each};
    if (status == QN_OK)
        status = qn__body_of_tensor(reader, &tensor, out, err);
    qn__free(p.pixels);
    return status;
}

static qn_status items_of_texts(const qn__v2_input *in, const qn__body_reader *reader,
                                qn_data **out, qn_error *err) {
    qn__body_text *text = qn__alloc(in->count, sizeof *text, err);
    size_t at = 0;
    if (!text)
        return QN_MEMORY;
    for (uint64_t i = 0; i < in->count; i++)
        text[i].text = qn__v2_bytes_at(in, &at, &text[i].size);
    const qn_status status = qn__body_of_texts(reader, text, in->count, out, err);
    qn__free(text);
    return status;
}

/* -------------------------------------------------------------------------- a tensor of a column
 */

static void add_real(qn__text *row, double value) {
    char number[QN__REAL_TEXT];
    if (!isfinite(value)) {
        qn__text_add(row, "null");
        return;
    }
    qn__real_text(value, number);
    qn__text_add(row, "%s", number);
}

static void add_float(qn__text *row, float value) {
    char number[32];
    if (!isfinite(value)) {
        qn__text_add(row, "null");
        return;
    }
    qn__float_text(value, number);
    qn__text_add(row, "%s", number);
}

static void add_signed(qn__text *row, int64_t value) {
    qn__text_add(row, "%lld", (long long)value);
}

static void add_unsigned(qn__text *row, uint64_t value) {
    qn__text_add(row, "%llu", (unsigned long long)value);
}

static void add_half(qn__text *row, uint16_t value) {
    add_float(row, (float)qn__half_value(value));
}

/* Adds value k of a type as JSON. */
typedef void add_value(qn__text *row, const uint8_t *values, uint64_t k);

#define ADD(name, type, add)                                                                       \
    static void name(qn__text *row, const uint8_t *values, uint64_t k) {                           \
        type value;                                                                                \
        memcpy(&value, values + k * sizeof value, sizeof value);                                   \
        add(row, value);                                                                           \
    }

ADD(add_u8, uint8_t, add_unsigned)
ADD(add_u16, uint16_t, add_unsigned)
ADD(add_u32, uint32_t, add_unsigned)
ADD(add_u64, uint64_t, add_unsigned)
ADD(add_i8, int8_t, add_signed)
ADD(add_i16, int16_t, add_signed)
ADD(add_i32, int32_t, add_signed)
ADD(add_i64, int64_t, add_signed)
ADD(add_f16, uint16_t, add_half)
ADD(add_f32, float, add_float)
ADD(add_f64, double, add_real)

static const struct {
    const char *type;
    add_value *add;
} columns[] = {{"BOOL", add_u8},    {"UINT8", add_u8}, {"UINT16", add_u16}, {"UINT32", add_u32},
               {"UINT64", add_u64}, {"INT8", add_i8},  {"INT16", add_i16},  {"INT32", add_i32},
               {"INT64", add_i64},  {"FP16", add_f16}, {"FP32", add_f32},   {"FP64", add_f64}};

/* NULL: BYTES. */
static add_value *adder_of(const qn__v2_input *in) {
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        if (strcmp(columns[i].type, in->type) == 0)
            return columns[i].add;
    return NULL;
}

/* The text at `at`, which moves to the next one. */
static void add_text(qn__text *row, const qn__v2_input *in, size_t *at) {
    size_t size;
    const char *text = qn__v2_bytes_at(in, at, &size);
    char *copy = qn__copy_unquoted(text, size, 0, NULL);
    row->failed |= !copy;
    if (copy)
        qn__text_add_json(row, copy);
    qn__free(copy);
}

static qn_status check_columns(const qn__v2_ask *ask, qn_error *err) {
    const uint64_t items = ask->input[0].count;
    for (size_t i = 0; i < ask->inputs; i++)
        if (ask->input[i].count != items || items == 0) {
            qn__fail(err, QN_INPUT, "the input \"%s\" has %llu values, and \"%s\" has %llu",
                     ask->input[i].name, (unsigned long long)ask->input[i].count,
                     ask->input[0].name, (unsigned long long)items);
            return qn__remedy(err, QN_INPUT, "give a value of each column for each item");
        }
    return QN_OK;
}

/* The columns become rows, which are read as those of any other request. */
static qn_status items_of_columns(const qn__v2_ask *ask, const qn__body_reader *reader,
                                  qn_data **out, qn_error *err) {
    qn__text rows = {0};
    qn_status status = check_columns(ask, err);
    size_t *at = status == QN_OK ? qn__alloc(ask->inputs, sizeof *at, err) : NULL;
    if (!at)
        return status == QN_OK ? QN_MEMORY : status;
    for (uint64_t k = 0; k < ask->input[0].count; k++) {
        for (size_t i = 0; i < ask->inputs; i++) {
            qn__text_add(&rows, i ? "," : "{");
            qn__text_add_json(&rows, ask->input[i].name);
            qn__text_add(&rows, ":");
            add_value *add = adder_of(&ask->input[i]);
            if (add)
                add(&rows, ask->input[i].values, k);
            else
                add_text(&rows, &ask->input[i], &at[i]);
        }
        qn__text_add(&rows, "}\n");
    }
    status = rows.failed ? qn__fail_memory(err, rows.size, 1)
                         : qn__body_read(reader, QN__BODY_JSON, rows.data, rows.size, out, err);
    qn__text_release(&rows);
    qn__free(at);
    return status;
}

/* ------------------------------------------------------------------------------------- the choice
 */

static int is_column(const qn_model *model, const char *name) {
    for (uint32_t k = 0; k < qn_model_inputs(model); k++) {
        const char *own = qn_model_feature_name(model, k);
        if (own && strcmp(own, name) == 0)
            return 1;
    }
    return 0;
}

qn_status qn__v2_items(const qn__v2_ask *ask, const qn_model *model, const qn__body_reader *reader,
                       qn_data **out, qn_error *err) {
    const qn__v2_input *in = ask->input;
    *out = NULL;
    if (ask->inputs > 1 || (is_column(model, in->name) && !qn_model_tokens(model)))
        return items_of_columns(ask, reader, out, err);
    if (in->count == 0) {
        qn__fail(err, QN_INPUT, "the input \"%s\" has no values", in->name);
        return qn__remedy(err, QN_INPUT, "send one item or more");
    }
    if (strcmp(in->type, "BYTES") != 0)
        return items_of_numbers(in, model, reader, out, err);
    if (qn_model_tokens(model) || qn_model_text_inputs(model, 0))
        return items_of_texts(in, reader, out, err);
    return items_of_images(in, reader, out, err);
}
