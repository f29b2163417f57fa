/* Writing arrays of NumPy: NPY files, and NPZ archives of them that are not compressed. */
#include "base/digest/crc32.h"
#include "base/memory.h"
#include "data/numpy/npy.h"
#include "data/table/kept.h"
#include "data/table/wide.h"
#include "data/write/formats.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_CAPACITY = 256, ALIGNMENT = 64, ZIP_HEAD = 30, ZIP_ENTRY = 46, ZIP_END = 22 };

/* The bytes of an array go here one after the other: into a file, or into a check sum. */
typedef struct sink {
    qn__writer *writer; /* NULL: only the sum is wanted */
    uint32_t sum;
    uint64_t size;
} sink;

static qn_status put(sink *to, const void *bytes, size_t size, qn_error *err) {
    to->size += size;
    if (to->writer)
        return qn__writer_add(to->writer, bytes, size, err);
    to->sum = qn__crc32(to->sum, bytes, size);
    return QN_OK;
}

/* ------------------------------------------------------------------ the arrays of a data set */

typedef qn_status array(const qn_data *data, sink *to, qn_error *err);

/* The header of version 1, filled up with blanks: the elements begin at a multiple of 64 bytes. */
static qn_status put_header(const char *type, const char *shape, sink *to, qn_error *err) {
    char text[HEADER_CAPACITY] = "\x93NUMPY\x01";
    const int used =
        snprintf(text + 10, sizeof text - 10,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    const size_t size = (10 + (size_t)used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    text[8] = (char)((size - 10) & 0xff);
    text[9] = (char)((size - 10) >> 8);
    memset(text + 10 + used, ' ', size - 10 - (size_t)used);
    text[size - 1] = '\n';
    return put(to, text, size, err);
}

static int has_exact(const qn_data *data) {
    for (uint32_t k = 0; data->wide && k < data->features; k++)
        if (qn_data_whole(data, k) || qn_data_real(data, k))
            return 1;
    return data->kept != NULL;
}

/* Whether integers are to be written: a number is beyond those of binary64, and all are whole. */
static int needs_integers(const qn_data *data) {
    int beyond = 0;
    if (data->kept)
        return 0;
    for (uint32_t k = 0; k < data->features; k++) {
        const int64_t *whole = qn_data_whole(data, k);
        for (uint64_t i = 0; i < data->items; i++) {
            const float near = ((const float *)qn__data_item(data, i))[k];
            if (!whole && (near != rintf(near) || !(fabsf(near) < 0x1p63f)))
                return 0;
            if (whole && whole[qn__data_row(data, i)] == QN__WIDE_MISSING)
                return 0;
            beyond |= whole && llabs(whole[qn__data_row(data, i)]) > INT64_C(1) << 53;
        }
    }
    return beyond;
}

/* A row of elements of 8 bytes, which hold what float32 cannot. */
static void fill_row(const qn_data *data, uint64_t i, int integers, uint64_t *row) {
    for (uint32_t k = 0; k < data->features; k++) {
        const float near = ((const float *)qn__data_item(data, i))[k];
        const int64_t *whole = qn_data_whole(data, k);
        const double *real = qn_data_real(data, k);
        const uint32_t kept = qn__kept_column(data, k);
        const uint64_t at = qn__data_row(data, i);
        const int64_t integer = whole ? whole[at] : integers ? (int64_t)near : 0;
        const int is_exact = whole && integer != QN__WIDE_MISSING;
        const double number = kept       ? qn__kept_value(data, kept, i)
                              : real     ? real[at]
                              : is_exact ? (double)integer
                                         : (double)near;
        if (integers)
            memcpy(&row[k], &integer, sizeof integer);
        else
            memcpy(&row[k], &number, sizeof number);
    }
}

static qn_status put_wide(const qn_data *data, int integers, sink *to, qn_error *err) {
    uint64_t *row = qn__alloc(data->features, sizeof *row, err);
    qn_status status = row ? QN_OK : QN_MEMORY;
    for (uint64_t i = 0; i < data->items && status == QN_OK; i++) {
        fill_row(data, i, integers, row);
        status = put(to, row, data->features * sizeof *row, err);
    }
    qn__free(row);
    return status;
}

/* Items x features; images as items x rows x columns, with the channels before where there are
 * some. */
static qn_status put_values(const qn_data *data, sink *to, qn_error *err) {
    char shape[96];
    const unsigned long long items = data->items;
    const unsigned rows = data->rows, columns = data->columns, channels = data->channels;
    if (channels > 1)
        snprintf(shape, sizeof shape, "%llu, %u, %u, %u", items, channels, rows, columns);
    else if (rows)
        snprintf(shape, sizeof shape, "%llu, %u, %u", items, rows, columns);
    else
        snprintf(shape, sizeof shape, "%llu, %u", items, (unsigned)data->features);
    const int exact = has_exact(data), integers = exact && needs_integers(data);
    static const char *const types[] = {
        [QN_U8] = "|u1", [QN_F32] = "<f4", [QN_TOKENS16] = "<u2", [QN_TOKENS32] = "<u4"};
    qn_status status = put_header(integers ? "<i8"
                                  : exact  ? "<f8"
                                           : types[data->type],
                                  shape, to, err);
    if (status == QN_OK && exact)
        return put_wide(data, integers, to, err);
    for (uint64_t i = 0; i < data->items && status == QN_OK; i++)
        status = put(to, qn__data_item(data, i), qn__data_stride(data), err);
    return status;
}

static qn_status put_numbers(const void *numbers, const char *type, uint64_t items, sink *to,
                             qn_error *err) {
    char shape[32];
    snprintf(shape, sizeof shape, "%llu,", (unsigned long long)items);
    const qn_status status = put_header(type, shape, to, err);
    return status == QN_OK ? put(to, numbers, (size_t)items * 4, err) : status;
}

/* Characters of well-formed UTF-8, as 32-bit numbers; returns how many. */
static uint32_t unpack(const char *text, uint8_t *to) {
    uint32_t count = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at; count++) {
        const int more = *at >= 0xF0 ? 3 : *at >= 0xE0 ? 2 : *at >= 0xC0;
        uint32_t c = more ? *at & (0x3Fu >> more) : *at;
        at++;
        for (int i = 0; i < more; i++)
            c = c << 6 | (*at++ & 0x3Fu);
        for (int i = 0; to && i < 4; i++)
            to[4 * count + (uint32_t)i] = (uint8_t)(c >> (8 * i));
    }
    return count;
}

/* The name of each item's class, in elements as wide as the longest name. */
static qn_status put_texts(const qn_data *data, sink *to, qn_error *err) {
    uint32_t widest = 1;
    char type[24], shape[32];
    for (uint32_t k = 0; k < data->schema->classes; k++) {
        const uint32_t width = unpack(data->schema->class_name[k], NULL);
        widest = width > widest ? width : widest;
    }
    snprintf(type, sizeof type, "<U%u", (unsigned)widest);
    snprintf(shape, sizeof shape, "%llu,", (unsigned long long)data->items);
    uint8_t *element = qn__alloc(widest, 4, err);
    qn_status status = element ? put_header(type, shape, to, err) : QN_MEMORY;
    for (uint64_t i = 0; i < data->items && status == QN_OK; i++) {
        memset(element, 0, (size_t)widest * 4);
        unpack(data->schema->class_name[data->labels[i]], element);
        status = put(to, element, (size_t)widest * 4, err);
    }
    qn__free(element);
    return status;
}

/* Items x labels, or items x rows x columns: bytes, of which 255 does not count. */
static qn_status put_several(const qn_data *data, sink *to, qn_error *err) {
    const qn__several *several = data->several;
    const unsigned long long items = data->items;
    char shape[64];
    if (several->height)
        snprintf(shape, sizeof shape, "%llu, %u, %u", items, (unsigned)several->height,
                 (unsigned)several->width);
    else
        snprintf(shape, sizeof shape, "%llu, %u", items, (unsigned)several->each);
    qn_status status = put_header("|u1", shape, to, err);
    for (uint64_t i = 0; i < data->items && status == QN_OK; i++)
        status = put(to, qn__several_of(data, i), several->each, err);
    return status;
}

static qn_status put_labels(const qn_data *data, sink *to, qn_error *err) {
    if (data->several)
        return put_several(data, to, err);
    if (data->targets)
        return put_numbers(data->targets, "<f4", data->items, to, err);
    if (qn__data_target(data) == QN__TARGET_CLASS)
        return put_texts(data, to, err);
    return put_numbers(data->labels, "<i4", data->items, to, err);
}

static qn_status put_weights(const qn_data *data, sink *to, qn_error *err) {
    return put_numbers(data->weights, "<f4", data->items, to, err);
}

/* ------------------------------------------------------------------ NPY */

static qn_status build(const qn_data *data, const char *path, array *part, qn__writer **out,
                       qn_error *err) {
    const qn_status status = qn__writer_create(path, out, err);
    sink to = {.writer = *out};
    return status == QN_OK ? part(data, &to, err) : status;
}

static qn_status write_npy(const qn_data *data, const char *path, const char *labels_path,
                           qn__writer_batch *batch, qn_error *err) {
    qn__writer *values = NULL, *labels = NULL;
    qn_status status = build(data, path, put_values, &values, err);
    if (status == QN_OK && labels_path)
        status = build(data, labels_path, put_labels, &labels, err);
    /* Both are complete before the first is renamed. */
    status = qn__writer_finish(values, batch, status, err);
    return labels ? qn__writer_finish(labels, batch, status, err) : status;
}

/* ------------------------------------------------------------------ NPZ */

typedef struct entry {
    const char *name;
    array *part;
    uint32_t sum, size, at;
} entry;

static uint8_t *put_little(uint8_t *to, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        *to++ = (uint8_t)(value >> (8 * i));
    return to;
}

/* What the head of an entry and its row in the list have in common. The time is the earliest that
 * ZIP has: the file depends on the data alone. */
static uint8_t *put_common(uint8_t *to, const entry *e) {
    to = put_little(to, 20, 2);         /* version needed */
    to = put_little(to, 0, 2);          /* flags */
    to = put_little(to, 0, 2);          /* stored */
    to = put_little(to, 0x00210000, 4); /* 1980-01-01 */
    to = put_little(to, e->sum, 4);
    to = put_little(to, e->size, 4); /* stored bytes */
    to = put_little(to, e->size, 4); /* and those of the file */
    to = put_little(to, (uint32_t)strlen(e->name), 2);
    return put_little(to, 0, 2); /* no extra field */
}

static qn_status put_entry(const qn_data *data, entry *e, sink *to, qn_error *err) {
    uint8_t head[ZIP_HEAD] = "PK\3\4";
    e->at = (uint32_t)to->size;
    put_common(head + 4, e);
    qn_status status = put(to, head, sizeof head, err);
    if (status == QN_OK)
        status = put(to, e->name, strlen(e->name), err);
    return status == QN_OK ? e->part(data, to, err) : status;
}

static qn_status put_list(const entry *entries, uint32_t count, sink *to, qn_error *err) {
    const uint64_t begin = to->size;
    uint8_t end[ZIP_END] = "PK\5\6";
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < count && status == QN_OK; i++) {
        uint8_t row[ZIP_ENTRY] = "PK\1\2\x14";
        put_common(row + 6, &entries[i]);
        put_little(row + 42, entries[i].at, 4);
        status = put(to, row, sizeof row, err);
        if (status == QN_OK)
            status = put(to, entries[i].name, strlen(entries[i].name), err);
    }
    put_little(end + 8, count, 2);
    put_little(end + 10, count, 2);
    put_little(end + 12, (uint32_t)(to->size - begin), 4);
    put_little(end + 16, (uint32_t)begin, 4);
    return status == QN_OK ? put(to, end, sizeof end, err) : status;
}

/* Sizes and check sums stand before the bytes, so these are gone through once before. */
static qn_status measure(const qn_data *data, entry *entries, uint32_t count, qn_error *err) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < count; i++) {
        sink to = {.writer = NULL};
        const qn_status status = entries[i].part(data, &to, err);
        if (status != QN_OK)
            return status;
        all += to.size + HEADER_CAPACITY;
        entries[i].sum = to.sum;
        entries[i].size = (uint32_t)to.size;
        if (all > UINT32_MAX) {
            qn__fail(err, QN_INPUT, "an NPZ file is written up to 4 GiB, and the arrays are more");
            return qn__remedy(err, QN_INPUT, "write the values and the labels as two NPY files");
        }
    }
    return QN_OK;
}

static qn_status write_npz(const qn_data *data, const char *path, const char *labels_path,
                           qn__writer_batch *batch, qn_error *err) {
    (void)labels_path;
    entry entries[3] = {{.name = "x.npy", .part = put_values}};
    uint32_t count = 1;
    if (qn__data_labelled(data))
        entries[count++] = (entry){.name = "y.npy", .part = put_labels};
    if (data->weights)
        entries[count++] = (entry){.name = "weight.npy", .part = put_weights};
    sink to = {.writer = NULL};
    qn_status status = measure(data, entries, count, err);
    if (status == QN_OK)
        status = qn__writer_create(path, &to.writer, err);
    if (status != QN_OK)
        return status;
    for (uint32_t i = 0; i < count && status == QN_OK; i++)
        status = put_entry(data, &entries[i], &to, err);
    if (status == QN_OK)
        status = put_list(entries, count, &to, err);
    return qn__writer_finish(to.writer, batch, status, err);
}

const qn__format qn__npy_format = {.name = "npy",
                                   .shown = "NPY",
                                   .about = "an array of NumPy; the labels are a second one",
                                   .endings = {".npy"},
                                   .labels_apart = 1,
                                   .tokens = 1,
                                   .several = 1,
                                   .masks = 1,
                                   .counts = 1,
                                   .write = write_npy};

const qn__format qn__npz_format = {.name = "npz",
                                   .shown = "NPZ",
                                   .about = "the arrays x, y (labels) and weight in one file",
                                   .endings = {".npz"},
                                   .weights = 1,
                                   .tokens = 1,
                                   .several = 1,
                                   .masks = 1,
                                   .counts = 1,
                                   .write = write_npz};
