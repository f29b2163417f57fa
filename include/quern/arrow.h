/* Tables from other programs' memory, by the Arrow C Data and C Stream interfaces. These are a
 * stable binary interface of three structs, without a library: pandas, polars, pyarrow, DuckDB and
 * others fill them. The structs are those of the Apache Arrow specification; where another header
 * has defined them already, those definitions are used. */
#ifndef QUERN_ARROW_H
#define QUERN_ARROW_H

#include <quern/data.h>
#include <quern/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

/* Bits of ArrowSchema.flags. */
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

/* The type of a column. A table has the format "+s" and a child for each column. */
struct ArrowSchema {
    const char *format; /* such as "i", int32 */
    const char *name;   /* may be NULL */
    const char *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children;
    struct ArrowSchema
        *dictionary; /* of a dictionary-encoded column: the type of the dictionary's values */
    void (*release)(struct ArrowSchema *); /* NULL: it is released */
    void *private_data;
};

/* The values of a column. With children: a batch of rows of a table, one child a column. */
struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};
#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/* A table in batches of rows. get_schema and get_next return 0 or an errno. A batch whose `release`
 * is NULL marks the end. */
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};
#endif

/* Makes a data set from a table, batch by batch (docs/exactness.md 2.1.9). A column holds booleans,
 * integers of 8 to 64 bits, floats of 16 to 64 bits, texts (utf8, large_utf8, utf8_view), or texts
 * in a dictionary; a column of texts is a category. A null is a missing value. Values are copied,
 * so the program may change its memory afterwards. Batches are released as soon as they have 65,536
 * rows together, before the next one is asked for.
 *
 * `options` may be NULL, and says which column is the label and which are read, as for CSV; its
 * members labels_path and header are QN_USAGE. qn_data_format is "arrow".
 *
 * The stream is released in any case, also after a failure; `stream` itself stays the caller's. On
 * success *out is owned by the caller, for qn_data_close. Fails with QN_USAGE (options), QN_INPUT
 * (another type of column, an infinite value, a missing label; `where` has column and item; an
 * error of the stream) or QN_MEMORY. */
QN_API qn_status qn_data_from_arrow(struct ArrowArrayStream *stream, const qn_data_options *options,
                                    qn_data **out, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
