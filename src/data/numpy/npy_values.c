/* The elements of an NPY array as the values of a table (docs/exactness.md 2.1.8). */
#include "base/binary/float_bits.h"
#include "base/binary/half.h"
#include "base/files/mapped_file.h"
#include "base/memory.h"
#include "data/cells/wide_gather.h"
#include "data/numpy/npy_arrays.h"
#include "data/table/missing.h"
#include "data/table/part_reading.h"
#include "data/table/table_space.h"
#include "data/table/token_row.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Elements that are converted at once. */
enum { PIECE = 1 << 14 };

static void swap_bytes(uint8_t *bytes, uint32_t size, size_t count) {
    for (size_t i = 0; i < count; i++, bytes += size)
        for (uint32_t k = 0; k < size / 2; k++) {
            const uint8_t kept = bytes[k];
            bytes[k] = bytes[size - 1 - k];
            bytes[size - 1 - k] = kept;
        }
}

static uint16_t load2(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

static uint32_t load4(const uint8_t *at) { return load2(at) | (uint32_t)load2(at + 2) << 16; }

static uint64_t load8(const uint8_t *at) { return load4(at) | (uint64_t)load4(at + 4) << 32; }

static void load_integers(const qn__npy *a, const uint8_t *at, size_t count, int64_t *to) {
    const int is_signed = a->kind == QN__NPY_INT;
    switch (a->size) {
    case 1:
        for (size_t i = 0; i < count; i++)
            to[i] = is_signed ? (int8_t)at[i] : at[i];
        return;
    case 2:
        for (size_t i = 0; i < count; i++)
            to[i] = is_signed ? (int16_t)load2(at + 2 * i) : load2(at + 2 * i);
        return;
    case 4:
        for (size_t i = 0; i < count; i++)
            to[i] = is_signed ? (int32_t)load4(at + 4 * i) : (int64_t)load4(at + 4 * i);
        return;
    default:
        for (size_t i = 0; i < count; i++)
            to[i] = (int64_t)load8(at + 8 * i);
    }
}

static void load_floats(const qn__npy *a, const uint8_t *at, size_t count, double *to) {
    for (size_t i = 0; i < count; i++, at += a->size) {
        if (a->size == 2) {
            to[i] = qn__half_value(load2(at));
        } else if (a->size == 4) {
            to[i] = (double)qn__float_of_bits(load4(at));
        } else {
            to[i] = qn__double_of_bits(load8(at));
        }
    }
}

/* The file must end here. For a compressed one, this is when its check sum is compared. */
static qn_status check_end(const qn__npy_bytes *in, uint64_t end, qn_error *err) {
    uint8_t beyond;
    size_t got = 0;
    const qn_status status = in->read(in->self, &beyond, 1, &got, err);
    if (status != QN_OK || got == 0)
        return status;
    qn__fail(err, QN_INPUT, "more bytes follow the elements that the NPY header claims");
    return qn__npy_refuse(in, end, "check that the file holds one array and nothing else", err);
}

static qn_status take_piece(const qn__npy_bytes *in, const qn__npy *a, uint64_t first, size_t count,
                            uint8_t *raw, void *numbers, qn__npy_take *take, void *user,
                            qn_error *err) {
    size_t got = 0;
    const qn_status status = in->read(in->self, raw, count * a->size, &got, err);
    if (status != QN_OK)
        return status;
    if (got < count * a->size) {
        qn__fail(err, QN_INPUT, "the file ends inside the elements that its NPY header claims");
        return qn__npy_refuse(in, a->begin + first * a->size + got,
                              "the file seems cut off: write or copy it again", err);
    }
    const int is_text = a->kind == QN__NPY_UNICODE || a->kind == QN__NPY_ASCII;
    if (a->big && a->kind != QN__NPY_ASCII)
        swap_bytes(raw, is_text ? 4 : a->size, is_text ? count * a->size / 4 : count);
    if (is_text)
        return take(user, first, count, raw, err);
    if (a->kind == QN__NPY_FLOAT)
        load_floats(a, raw, count, numbers);
    else
        load_integers(a, raw, count, numbers);
    return take(user, first, count, numbers, err);
}

qn_status qn__npy_each(const qn__npy_bytes *in, const qn__npy *array, qn__npy_take *take,
                       void *user, qn_error *err) {
    const uint64_t count = array->items * array->features;
    const size_t piece = array->size <= 8 ? PIECE : 1 + PIECE / array->size;
    uint8_t *raw = qn__alloc(piece, array->size, err);
    void *numbers = qn__alloc(piece, sizeof(uint64_t), err);
    qn_status status = raw && numbers ? QN_OK : QN_MEMORY;
    for (uint64_t first = 0; first < count && status == QN_OK; first += piece) {
        const size_t now = count - first < piece ? (size_t)(count - first) : piece;
        status = take_piece(in, array, first, now, raw, numbers, take, user, err);
    }
    qn__free(raw);
    qn__free(numbers);
    return status == QN_OK ? check_end(in, array->begin + count * array->size, err) : status;
}

/* ------------------------------------------------------------------ the table */

typedef struct filling {
    const qn__npy_bytes *in;
    const qn__npy *array;
    uint64_t before; /* elements in the arrays before */
    qn_data *data;
    qn__wide_gather gather;
} filling;

static qn_status put_integers(filling *f, uint64_t to, uint64_t step, size_t count,
                              const int64_t *from, qn_error *err) {
    size_t i = 0;
    for (uint8_t *bytes = qn__table_space_values(f->data); f->data->type == QN_U8 && i < count;
         i++) {
        if ((uint64_t)from[i] > 255) {
            const qn_status status = qn__table_space_widen(f->data, f->data->items, err);
            if (status != QN_OK)
                return status;
            break;
        }
        bytes[to + i * step] = (uint8_t)from[i];
    }
    if (i == count)
        return QN_OK;
    const int is_signed = f->array->kind == QN__NPY_INT;
    for (float *floats = qn__table_space_values(f->data); i < count; i++)
        floats[to + i * step] = is_signed ? (float)from[i] : (float)(uint64_t)from[i];
    return QN_OK;
}

/* Integers of at most 16 bits, or others. */
static qn_data_type token_type(const qn__npy *a) {
    return a->size <= 2 ? QN_TOKENS16 : QN_TOKENS32;
}

static qn_status refuse_token(const filling *f, uint64_t element, uint64_t to, int64_t value,
                              qn_error *err) {
    const int is_signed = f->array->kind == QN__NPY_INT;
    char text[24];
    snprintf(text, sizeof text, is_signed ? "%" PRId64 : "%" PRIu64, value);
    qn__fail(err, QN_INPUT,
             "item %" PRIu64 ", position %" PRIu64 " (both from 0) is %s, and not the "
             "number of a token",
             (to - f->before) / f->data->features, to % f->data->features, text);
    return qn__npy_refuse(f->in, f->array->begin + element * f->array->size,
                          "tokens are whole numbers from 0 to 4294967295", err);
}

static qn_status put_tokens(filling *f, uint64_t first, uint64_t to, uint64_t step, size_t count,
                            const int64_t *from, qn_error *err) {
    uint16_t *narrow = qn__table_space_values(f->data);
    uint32_t *wide = qn__table_space_values(f->data);
    for (size_t i = 0; i < count; i++) {
        if (from[i] < 0 || from[i] > UINT32_MAX)
            return refuse_token(f, first + i, to + i * step, from[i], err);
        if (f->data->type == QN_TOKENS16)
            narrow[to + i * step] = (uint16_t)from[i];
        else
            wide[to + i * step] = (uint32_t)from[i];
    }
    return QN_OK;
}

static qn_status refuse_value(const filling *f, uint64_t element, uint64_t to, double value,
                              qn_error *err) {
    qn__fail(err, QN_INPUT,
             isinf(value) ? "item %llu, feature %llu is infinite"
                          : "item %llu, feature %llu (both from 0) is beyond the range of float32",
             (unsigned long long)((to - f->before) / f->data->features),
             (unsigned long long)(to % f->data->features));
    return qn__npy_refuse(f->in, f->array->begin + element * f->array->size,
                          isinf(value) ? "replace infinite values before numpy.save; NaN is read "
                                         "as a missing value"
                                       : "scale the values before numpy.save",
                          err);
}

static qn_status put_floats(filling *f, uint64_t first, uint64_t to, uint64_t step, size_t count,
                            const double *from, qn_error *err) {
    float *floats = qn__table_space_values(f->data);
    for (size_t i = 0; i < count; i++) {
        float value = (float)from[i];
        if (isnan(value)) {
            qn__set_missing(&value);
            f->data->missing = 1;
        } else if (isinf(value)) {
            return refuse_value(f, first + i, to + i * step, from[i], err);
        }
        floats[to + i * step] = value;
    }
    return QN_OK;
}

/* The feature of the element whose index without the first dimension is `rest` in Fortran's order:
 * the same indices in C's order. */
static uint64_t feature_of(const qn__npy *a, uint64_t rest) {
    uint64_t feature = 0, weight = a->features;
    for (uint32_t k = 1; k < a->dimensions; k++) {
        weight /= a->shape[k];
        feature += rest % a->shape[k] * weight;
        rest /= a->shape[k];
    }
    return feature;
}

static qn_status gather_value(filling *f, uint64_t item, uint32_t feature, const void *number,
                              qn_error *err) {
    const qn__npy *a = f->array;
    int64_t whole;
    double real;
    if (!qn__wide_is_open(&f->gather, &f->gather.column[feature]))
        return QN_OK;
    if (a->kind == QN__NPY_FLOAT) {
        memcpy(&real, number, sizeof real);
        return isnan(real) ? QN_OK : qn__wide_gather_real(&f->gather, feature, item, real, err);
    }
    memcpy(&whole, number, sizeof whole);
    if (a->kind == QN__NPY_UINT && whole < 0) /* 2^63 or more */
        whole = INT64_MIN;
    return qn__wide_gather_whole(&f->gather, feature, item, whole, err);
}

/* What may be wide of `count` elements, which are in the matrix already. */
static qn_status gather_values(filling *f, uint64_t to, uint64_t step, size_t count,
                               const uint8_t *from, qn_error *err) {
    const uint64_t features = f->data->features;
    qn_status status = QN_OK;
    if (f->data->type != QN_F32)
        return QN_OK;
    for (size_t i = 0; status == QN_OK && i < count && f->gather.live > 0; i++) {
        const uint64_t at = to + i * step;
        status = gather_value(f, at / features, (uint32_t)(at % features), from + 8 * i, err);
    }
    return status;
}

/* In Fortran's order, a piece has parts of one or more columns. */
static qn_status take_values(void *user, uint64_t first, size_t count, const void *numbers,
                             qn_error *err) {
    filling *f = user;
    const qn__npy *a = f->array;
    qn_status status = QN_OK;
    for (size_t done = 0, now; done < count && status == QN_OK; done += now) {
        const uint64_t at = first + done, item = at % a->items;
        const uint64_t left = a->fortran ? a->items - item : count;
        const uint64_t to =
            f->before + (a->fortran ? item * a->features + feature_of(a, at / a->items) : at);
        const uint64_t step = a->fortran ? a->features : 1;
        now = left < count - done ? (size_t)left : count - done;
        if (qn__element_is_token(f->data->type))
            status = put_tokens(f, at, to, step, now, (const int64_t *)numbers + done, err);
        else if (a->kind == QN__NPY_FLOAT)
            status = put_floats(f, at, to, step, now, (const double *)numbers + done, err);
        else
            status = put_integers(f, to, step, now, (const int64_t *)numbers + done, err);
        if (status == QN_OK)
            status = gather_values(f, to, step, now, (const uint8_t *)numbers + 8 * done, err);
    }
    if (!a->fortran)
        qn__table_space_wrote(f->data, (f->before + first + count) / f->data->features);
    return status;
}

/* Numbers of 8 bytes, and integers of 4, may be more than float32 holds. */
static qn_status begin_gather(filling *f, const qn_data_options *options, qn_error *err) {
    const qn__npy *a = f->array;
    const int real = a->kind == QN__NPY_FLOAT;
    const int wide = !options->tokens && (a->size == 8 || (a->size == 4 && !real));
    const uint32_t columns = wide ? f->data->features : 0;
    const qn_status status =
        qn__wide_gather_begin(&f->gather, f->data, columns, options->expected_rules, err);
    for (uint32_t k = 0; status == QN_OK && k < f->gather.features; k++)
        qn__wide_gather_column(&f->gather, k, real);
    return status == QN_OK && options->keep_doubles ? qn__wide_gather_doubles(&f->gather, err)
                                                    : status;
}

static qn_status check_values(const qn__npy_arrays *arrays, size_t i, const qn__npy_bytes *in,
                              const qn__npy *array, qn_error *err) {
    (void)arrays, (void)i;
    if (array->kind != QN__NPY_UNICODE && array->kind != QN__NPY_ASCII)
        return QN_OK;
    qn__fail(err, QN_INPUT, "the array holds texts, and features are numbers");
    return qn__npy_refuse(in, array->begin, "write a table with texts as CSV", err);
}

static qn_status take_array(void *user, const qn__npy_bytes *in, const qn__npy *array,
                            uint64_t before, qn_error *err) {
    filling *f = user;
    f->in = in;
    f->array = array;
    f->before = before * array->features;
    return qn__npy_each(in, array, take_values, f, err);
}

static qn_status check_tokens(const qn__npy_joined *j, const qn_data_options *options,
                              qn_error *err) {
    const qn__npy *a = &j->first;
    const int whole = a->kind == QN__NPY_INT || a->kind == QN__NPY_UINT;
    if (whole && (a->dimensions == 1 || (a->dimensions == 2 && !options->context)))
        return QN_OK;
    if (!whole)
        qn__fail(err, QN_INPUT, "the array does not hold integers, and tokens are such");
    else if (a->dimensions == 2)
        qn__fail(err, QN_INPUT, "the array has items, and `data.context` cuts one row of tokens");
    else
        qn__fail(err, QN_INPUT, "the array has %u dimensions, and one of tokens has one or two",
                 (unsigned)a->dimensions);
    qn__at(err, "%s", j->arrays->list->file[0].path);
    return qn__remedy(
        err, QN_INPUT,
        a->dimensions == 2 && whole
            ? "leave it out"
            : "write items x positions of uint16 or uint32, or leave `data.tokens` out");
}

static qn_status check_items(const qn__npy_joined *j, qn_data *data, qn_error *err) {
    if (j->items > 0)
        return QN_OK;
    qn__part_is_empty(data->part);
    static const char remedy[] = "give an array with at least one number";
    qn__fail(err, QN_INPUT, "the array holds no items");
    if (j->open)
        return qn__npy_refuse(&j->bytes, j->first.begin, remedy, err);
    qn__at(err, "%s", j->arrays->list->file[0].path);
    return qn__remedy(err, QN_INPUT, remedy);
}

/* A single row of tokens that is larger than memory is used where it lies. */
static int borrow_tokens(const qn__npy_joined *j, qn_data *data) {
    const qn__npy *a = &j->first;
    const qn__source *file = j->open ? j->bytes.plain : NULL;
    return file && a->kind == QN__NPY_UINT && !a->big && a->dimensions == 1 &&
           a->size == qn__element_of(data->type)->size &&
           a->begin + a->items * a->size == j->bytes.size &&
           qn__table_space_borrow(data, qn__source_descriptor(file), qn__source_stamp(file),
                                  a->begin);
}

static int is_borrowed(const qn_data *data) {
    return data->in_file && qn__mapped_file_is_borrowed(data->in_file);
}

static qn_status make_table(const qn__npy_joined *j, const qn_data_options *options, qn_data *data,
                            qn_error *err) {
    const qn__npy *first = &j->first;
    data->items = j->items;
    data->features = (uint32_t)first->features;
    if (options->tokens) {
        data->type = token_type(first);
        snprintf(data->tokens, sizeof data->tokens, "%s", QN__TOKENS_IDS);
        return borrow_tokens(j, data) ? QN_OK : qn__table_space_make(data, err);
    }
    if (first->dimensions == 3 || (first->dimensions == 4 && first->shape[3] == 1)) {
        data->channels = 1;
        data->rows = (uint32_t)first->shape[1];
        data->columns = (uint32_t)first->shape[2];
    }
    data->type = first->kind == QN__NPY_FLOAT ? QN_F32 : QN_U8;
    return qn__table_space_make(data, err);
}

qn_status qn__npy_read_values(const qn__npy_arrays *arrays, const qn_data_options *options,
                              qn_data *data, qn_error *err) {
    qn__npy_joined j;
    qn_status status = qn__npy_joined_begin(arrays, check_values, &j, err);
    if (status != QN_OK)
        return status;
    filling f = {.array = &j.first, .data = data};
    status = check_items(&j, data, err);
    if (status == QN_OK && options->tokens)
        status = check_tokens(&j, options, err);
    if (status == QN_OK)
        status = make_table(&j, options, data, err);
    if (status == QN_OK)
        status = begin_gather(&f, options, err);
    if (status == QN_OK && !is_borrowed(data))
        status = qn__npy_joined_each(&j, take_array, &f, err);
    if (status == QN_OK)
        status = qn__wide_gather_end(&f.gather, err);
    qn__wide_gather_release(&f.gather);
    qn__npy_joined_end(&j);
    const int row = options->tokens && j.first.dimensions == 1;
    if (status == QN_OK && row && (options->labels_path || options->weight))
        status = qn__token_row_refuse_labels(arrays->list->file[0].path, err);
    if (status == QN_OK && row)
        status = qn__token_row_cut(data, qn__token_row_context(options), arrays->list->file[0].path,
                                   err);
    return status;
}
