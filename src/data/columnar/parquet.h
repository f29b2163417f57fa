/* Parquet files: columns in row groups, each a chunk of pages. parquet_footer.c reads the list of
 * columns and chunks, parquet_pages.c the pages of a chunk, parquet_values.c their encodings,
 * parquet.c the file (format/src/main/thrift/parquet.thrift and Encodings.md of Apache Parquet). */
#ifndef QN_DATA_COLUMNAR_PARQUET_H
#define QN_DATA_COLUMNAR_PARQUET_H

#include "data/arrow/arrow_parts.h"
#include "data/bytes/unpack.h"
#include "data/cells/described.h"

typedef enum qn__parquet_type {
    QN__PARQUET_BOOLEAN,
    QN__PARQUET_INT32,
    QN__PARQUET_INT64,
    QN__PARQUET_INT96,
    QN__PARQUET_FLOAT,
    QN__PARQUET_DOUBLE,
    QN__PARQUET_BYTES,
    QN__PARQUET_FIXED
} qn__parquet_type;

/* A column of the table. */
typedef struct qn__parquet_column {
    const char *name;
    const char
        *format; /* of the Arrow C interface; only the beginning for types that are not read */
    const char *extension; /* what the type is called where the format does not say it, or NULL */
    qn__parquet_type type;
    int optional;     /* values may be missing */
    uint32_t width;   /* bytes of a value in memory; 16: a view of a text */
    size_t leaf;      /* its place in the row groups' lists */
    int64_t fixed;    /* bytes of a value of FIXED */
    uint32_t decimal; /* bytes of a decimal in the Arrow stream; 0: not a decimal */
    int readable;     /* 0: the type is refused, so no chunk of it is read */
    /* A list of texts or integers: the format of its elements, which have the type and the width
     * above; else NULL. */
    const char *words;
    int words_optional; /* elements may be missing */
} qn__parquet_column;

/* The values of a column in a row group. */
typedef struct qn__parquet_chunk {
    uint64_t begin, size; /* bytes of the file */
    uint64_t unpacked;    /* bytes of its pages, as the file has it */
    int64_t values;
    int codec;     /* as the file has it */
    int elsewhere; /* in another file, or encrypted */
} qn__parquet_chunk;

typedef struct qn__parquet_footer {
    qn__parquet_column *column;
    size_t columns, leaves;
    size_t groups;
    int64_t *rows;            /* of each group */
    qn__parquet_chunk *chunk; /* [group][leaf] */
    const uint8_t *pandas;    /* the metadata of pandas, in the bytes of the description */
    size_t pandas_size;
} qn__parquet_footer;

/* Reads the description of a file of `file_size` bytes. All memory is the pile's. Fails with
 * QN_INPUT (what and remedy are set) or QN_MEMORY. */
qn_status qn__parquet_read_footer(const uint8_t *bytes, size_t size, uint64_t file_size,
                                  qn__pile *pile, qn__parquet_footer *out, qn_error *err);

/* Finds the description at the end of an open file of `size` bytes and reads it. Nothing else of
 * the file is read. Fails with QN_INPUT, with a place, QN_IO or QN_MEMORY. */
qn_status qn__parquet_find_footer(int file, uint64_t size, const char *path, qn__pile *pile,
                                  qn__parquet_footer *out, qn_error *err);
/* The same as columns that qn__described_release frees. */
qn_status qn__parquet_describe(int file, uint64_t size, const char *path, qn__described *out,
                               qn_error *err);

/* What a thread decodes with. */
typedef struct qn__parquet_thread {
    qn__pile pile; /* values, and the texts that views point into */
    qn__scratch chunk, page, dictionary, numbers;
} qn__parquet_thread;

/* Decodes a chunk, whose bytes are `bytes`, into the buffers of *out, which has `rows` values, and
 * into those of its elements where it is one of lists. All
 * memory is the thread's, views point into `bytes`. `where` (in the chunk) is set with QN_INPUT, as
 * are what and remedy. */
qn_status qn__parquet_read_chunk(const qn__parquet_column *column, const qn__parquet_chunk *chunk,
                                 const uint8_t *bytes, qn__parquet_thread *thread,
                                 struct ArrowArray *out, size_t *where, qn_error *err);

/* ------------------------------------------------------------------ values */

/* A view of a text, as Arrow's utf8_view has it: its length, then all of up to 12 bytes, or the
 * first 4 bytes, the number of a buffer and an offset. */
typedef struct qn__view {
    int32_t size;
    union {
        char inside[12];
        struct {
            char first[4];
            int32_t buffer, offset;
        } out;
    } at;
} qn__view;

/* The bytes of encoded values that are left. */
typedef struct qn__encoded {
    const uint8_t *at, *end;
} qn__encoded;

/* Each decodes `count` values and returns 1; 0: the bytes are corrupt or too few. */

/* Numbers below 2^bits, bits <= 32, in runs and packed groups. */
int qn__decode_runs(qn__encoded *in, unsigned bits, uint32_t *to, uint64_t count);
/* DELTA_BINARY_PACKED; `width` 4 or 8. *count is the capacity of `to` before the call, and the
 * number of values after it. */
int qn__decode_deltas(qn__encoded *in, size_t width, uint8_t *to, uint64_t *count);
/* Decimals: `size` bytes at `from`, the highest first, in two's complement, become `width` bytes
 * with the lowest first. 0: they do not fit. */
int qn__decode_decimal(const uint8_t *from, size_t size, uint8_t *to, size_t width);
/* BYTE_STREAM_SPLIT. */
int qn__decode_split(qn__encoded *in, size_t width, uint8_t *to, uint64_t count);
/* PLAIN texts in buffer number `buffer`, which begins at `base`. */
int qn__decode_texts(qn__encoded *in, const uint8_t *base, int32_t buffer, qn__view *to,
                     uint64_t count);
/* The view of `size` bytes at `text` in the buffer. */
qn__view qn__view_of(const uint8_t *text, size_t size, int32_t buffer, const uint8_t *base);

#endif
