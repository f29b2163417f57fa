/* Tensors as items: any type of the Open Inference Protocol becomes bytes, floats or tokens, as the
 * model takes them. */
#include "base/binary/half.h"
#include "base/memory.h"
#include "model/formats/model.h"
#include "serve/batch/body_state.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A type: its bytes, and value k as a double. */
typedef struct tensor_type {
    const char *name;
    size_t size;
    int whole; /* 1: integers */
    double (*value)(const uint8_t *values, size_t k);
} tensor_type;

#define VALUE_OF(name, type)                                                                       \
    static double name(const uint8_t *values, size_t k) {                                          \
        type value;                                                                                \
        memcpy(&value, values + k * sizeof value, sizeof value);                                   \
        return (double)value;                                                                      \
    }

VALUE_OF(u8, uint8_t)
VALUE_OF(u16, uint16_t)
VALUE_OF(u32, uint32_t)
VALUE_OF(u64, uint64_t)
VALUE_OF(i8, int8_t)
VALUE_OF(i16, int16_t)
VALUE_OF(i32, int32_t)
VALUE_OF(i64, int64_t)
VALUE_OF(f32, float)
VALUE_OF(f64, double)

static double f16(const uint8_t *values, size_t k) {
    uint16_t half;
    memcpy(&half, values + k * sizeof half, sizeof half);
    return qn__half_value(half);
}

static const tensor_type types[] = {
    {"BOOL", 1, 1, u8},    {"UINT8", 1, 1, u8}, {"UINT16", 2, 1, u16}, {"UINT32", 4, 1, u32},
    {"UINT64", 8, 1, u64}, {"INT8", 1, 1, i8},  {"INT16", 2, 1, i16},  {"INT32", 4, 1, i32},
    {"INT64", 8, 1, i64},  {"FP16", 2, 0, f16}, {"FP32", 4, 0, f32},   {"FP64", 8, 0, f64}};

static const tensor_type *type_of(const char *name) {
    for (size_t k = 0; k < sizeof types / sizeof *types; ++k)
        if (strcmp(types[k].name, name) == 0)
            return &types[k];
    return NULL;
}

/* What is read, and what it becomes. */
typedef struct conversion {
    const tensor_type *from;
    const uint8_t *values;
    uint64_t items;
    size_t each;         /* values of an item */
    uint32_t features;   /* of the model */
    uint32_t vocabulary; /* of a model of tokens; 0: of another */
    qn_data_type to;
} conversion;

/* ---------------------------------------------------------------------------------------- shapes
 */

static void add_shape(char *text, size_t size, const uint64_t *length, uint32_t lengths) {
    size_t used = (size_t)snprintf(text, size, "[");
    for (uint32_t k = 0; k < lengths && used < size; ++k)
        used += (size_t)snprintf(text + used, size - used, "%s%llu", k ? ", " : "",
                                 (unsigned long long)length[k]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}

static qn__shape picture_of(const qn_model *m) {
    const qn__shape none = {0};
    return m->kind == &qn__network_kind ? qn__recipe_input(qn__model_recipe_of(m)) : none;
}

static qn_status refuse_shape(const qn_model *m, const qn__body_tensor *t, qn_error *err) {
    char shape[160];
    const qn__shape p = picture_of(m);
    add_shape(shape, sizeof shape, t->shape, t->lengths);
    qn__fail(err, QN_MISMATCH, "the tensor has the shape %s, and an item has %u values", shape,
             m->features);
    if (p.height * p.width > 1)
        return qn__remedy(err, QN_MISMATCH,
                          "send [items, %u, %u, %u] (channels, rows, columns) or [items, %u]",
                          p.channels, p.height, p.width, m->features);
    return qn__remedy(err, QN_MISMATCH, "send [items, %u]", m->features);
}

/* Whether the lengths after the first are those of the picture that an item is. */
static int is_picture(const qn__shape *p, const uint64_t *length, uint32_t lengths) {
    const uint32_t want[3] = {p->channels, p->height, p->width};
    const uint32_t skip = p->channels == 1 && lengths == 2 ? 1 : 0;
    if (lengths + skip != 3)
        return 0;
    for (uint32_t k = 0; k < lengths; ++k)
        if (length[k] != want[k + skip])
            return 0;
    return 1;
}

/* Sets items and values of an item. */
static qn_status read_shape(const qn_model *m, const qn__body_tensor *t, conversion *c,
                            qn_error *err) {
    const qn__shape p = picture_of(m);
    uint64_t each = 1;
    if (t->lengths < 1 || t->shape[0] == 0)
        return refuse_shape(m, t, err);
    for (uint32_t k = 1; k < t->lengths; ++k)
        if (__builtin_mul_overflow(each, t->shape[k], &each) || each > UINT32_MAX)
            return refuse_shape(m, t, err);
    const int fits = c->vocabulary ? each > 0 && each <= m->features : each == m->features;
    if (!fits ||
        (t->lengths > 2 && p.height * p.width > 1 && !is_picture(&p, t->shape + 1, t->lengths - 1)))
        return refuse_shape(m, t, err);
    c->items = t->shape[0];
    c->each = (size_t)each;
    if (c->items <= SIZE_MAX / 8 / each && t->bytes == c->items * each * c->from->size)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the tensor has %zu bytes, which are not those of its shape", t->bytes);
    return qn__remedy(err, QN_INPUT, "send %zu bytes for each value", c->from->size);
}

/* ---------------------------------------------------------------------------------------- values
 */

static int are_bytes(const conversion *c) {
    for (size_t k = 0; c->from->value != u8 && k < c->items * c->each; ++k) {
        const double v = c->from->value(c->values, k);
        if (!(v >= 0 && v <= 255 && v == floor(v)))
            return 0;
    }
    return 1;
}

/* Whole numbers from 0 to 255 are bytes, as in files of arrays. */
static qn_data_type choose_type(const qn_model *m, const conversion *c) {
    const int needs =
        m->kind == &qn__network_kind && qn__recipe_needs_bytes(qn__model_recipe_of(m));
    if (c->vocabulary)
        return c->vocabulary < UINT16_MAX ? QN_TOKENS16 : QN_TOKENS32;
    return (c->from->whole || needs) && are_bytes(c) ? QN_U8 : QN_F32;
}

static void put(const conversion *c, uint64_t item, void *to) {
    const size_t first = (size_t)item * c->each;
    const int same =
        c->to == QN_U8 ? c->from->value == u8 : c->to == QN_F32 && c->from->value == f32;
    if (same) { /* images have many values */
        memcpy(to, c->values + first * c->from->size, c->features * c->from->size);
        return;
    }
    for (size_t k = 0; k < c->features; ++k) {
        const double v = k < c->each ? c->from->value(c->values, first + k) : UINT32_MAX;
        switch (c->to) {
        case QN_U8:
            ((uint8_t *)to)[k] = (uint8_t)v;
            break;
        case QN_F32:
            ((float *)to)[k] = (float)v;
            break;
        case QN_TOKENS16:
            ((uint16_t *)to)[k] = k < c->each ? (uint16_t)v : UINT16_MAX;
            break;
        case QN_TOKENS32:
            ((uint32_t *)to)[k] = (uint32_t)v;
            break;
        }
    }
}

/* Numbers of tokens beyond the vocabulary would lose their upper bits. */
static qn_status check_tokens(const conversion *c, qn_error *err) {
    for (size_t k = 0; c->vocabulary && k < c->items * c->each; ++k) {
        const double v = c->from->value(c->values, k);
        if (v >= 0 && v < c->vocabulary && v == floor(v))
            continue;
        qn__fail(err, QN_INPUT, "%.17g is not the number of a token", v);
        qn__at(err, "item %llu, value %llu (from 0)", (unsigned long long)(k / c->each),
               (unsigned long long)(k % c->each));
        return qn__remedy(err, QN_INPUT, "give whole numbers from 0 to %u", c->vocabulary - 1);
    }
    return QN_OK;
}

/* The table of values that were allocated, which it owns; after a failure they are freed. */
static qn_status take_items(const conversion *c, void *values, qn_data **out, qn_error *err) {
    qn_data_arrays arrays;
    qn_data_arrays_init(&arrays);
    arrays.type = c->to;
    arrays.items = c->items;
    arrays.features = c->features;
    arrays.values = values;
    arrays.missing = c->to == QN_F32;
    const qn_status status = qn__data_take(&arrays, out, err);
    if (status != QN_OK)
        qn__free(values);
    return status;
}

static qn_status make_items(const conversion *c, qn_data **out, qn_error *err) {
    const size_t stride = qn__element_stride((unsigned)c->to, c->features);
    uint8_t *values = qn__alloc(c->items, stride, err);
    if (!values)
        return QN_MEMORY;
    for (uint64_t i = 0; i < c->items; ++i)
        put(c, i, values + (size_t)i * stride);
    return take_items(c, values, out, err);
}

static qn_status refuse_tensor_type(const qn__body_tensor *t, qn_error *err) {
    qn__fail(err, QN_UNSUPPORTED, "a tensor of the type \"%.40s\" holds no numbers", t->type);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "send BOOL, UINT8 to UINT64, INT8 to INT64, FP16, FP32 or FP64");
}

qn_status qn__body_of_tensor(const qn__body_reader *reader, const qn__body_tensor *tensor,
                             qn_data **out, qn_error *err) {
    const qn_model *m = reader->model;
    conversion c = {.from = type_of(tensor->type),
                    .values = tensor->values,
                    .features = m->features,
                    .vocabulary = m->kind == &qn__network_kind
                                      ? qn__recipe_vocabulary(qn__model_recipe_of(m))
                                      : 0};
    *out = NULL;
    if (!c.from)
        return refuse_tensor_type(tensor, err);
    qn_status status = read_shape(m, tensor, &c, err);
    if (status == QN_OK)
        status = check_tokens(&c, err);
    if (status != QN_OK)
        return status;
    c.to = choose_type(m, &c);
    return make_items(&c, out, err);
}

/* ----------------------------------------------------------------------------------- tokens alone
 */

static qn_status check_list(const conversion *c, const qn__text_prompt *list, uint64_t item,
                            qn_error *err) {
    if (list->count > c->features) {
        qn__fail(err, QN_INPUT, "it has %u tokens, and an item has %u", list->count, c->features);
        qn__at(err, "item %llu", (unsigned long long)item);
        return qn__remedy(err, QN_INPUT, "send fewer tokens");
    }
    for (uint32_t k = 0; k < list->count; ++k)
        if (list->tokens[k] >= c->vocabulary) {
            qn__fail(err, QN_INPUT, "%u is not the number of a token", list->tokens[k]);
            qn__at(err, "item %llu, value %u (from 0)", (unsigned long long)item, k);
            return qn__remedy(err, QN_INPUT, "give whole numbers from 0 to %u", c->vocabulary - 1);
        }
    return QN_OK;
}

/* After the last token there is what is not one. */
static void put_tokens(const conversion *c, const qn__text_prompt *list, void *to) {
    for (uint32_t k = 0; k < c->features; ++k) {
        const uint32_t token = k < list->count ? list->tokens[k] : UINT32_MAX;
        if (c->to == QN_TOKENS16)
            ((uint16_t *)to)[k] = (uint16_t)token;
        else
            ((uint32_t *)to)[k] = token;
    }
}

qn_status qn__body_of_tokens(const qn__body_reader *reader, const qn__text_prompt *list,
                             uint64_t count, qn_data **out, qn_error *err) {
    const qn_model *m = reader->model;
    conversion c = {.from = type_of("UINT32"),
                    .items = count,
                    .features = m->features,
                    .vocabulary = qn__recipe_vocabulary(qn__model_recipe_of(m))};
    c.to = choose_type(m, &c);
    const size_t stride = qn__element_stride((unsigned)c.to, c.features);
    qn_status status = QN_OK;
    *out = NULL;
    uint8_t *values = qn__alloc(count, stride, err);
    if (!values)
        return QN_MEMORY;
    for (uint64_t i = 0; status == QN_OK && i < count; ++i) {
        status = check_list(&c, &list[i], i, err);
        if (status == QN_OK)
            put_tokens(&c, &list[i], values + (size_t)i * stride);
    }
    if (status == QN_OK)
        return take_items(&c, values, out, err);
    qn__free(values);
    return status;
}
