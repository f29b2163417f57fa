/* Arrow IPC, the messages of a table: its types, batches of rows and dictionaries
 * (format/Columnar.rst of Apache Arrow). ipc_schema.c reads types, ipc_batch.c batches, ipc.c the
 * files. */
#ifndef QN_DATA_COLUMNAR_IPC_H
#define QN_DATA_COLUMNAR_IPC_H

#include "base/system/threads.h"
#include "data/arrow/arrow_parts.h"
#include "data/bytes/source.h"
#include "data/columnar/flat.h"

/* The layout of a type's values in their buffers. */
typedef struct qn__ipc_type {
    const char *format; /* of the Arrow C interface */
    int buffers;        /* of a node of this type */
    int views;          /* further buffers, as many as each batch says */
    uint64_t bits;      /* of a value in buffer 1; 0: it is not read */
    size_t offsets;     /* bytes of an offset into buffer 2, or a list; 0: there are none */
} qn__ipc_type;

typedef struct qn__ipc_column {
    qn__ipc_type type;   /* of the indices, where it has a dictionary */
    qn__ipc_type values; /* of the dictionary */
    int64_t dictionary;  /* its number */
    int has_dictionary;
    size_t first, nodes; /* in the list of all types */
    const char *words;   /* the format of the elements of a list, the node after it; or NULL */
    const char *name;
    const char *extension; /* the name of its extension type; NULL: it has none */
} qn__ipc_column;

typedef struct qn__ipc_schema {
    qn__ipc_column *column;
    size_t columns;
    qn__ipc_type *node; /* of all columns and what is nested in them, in the order of batches */
    size_t nodes, capacity;
    const uint8_t *pandas; /* its metadata, in the bytes of the message; NULL: none */
    size_t pandas_size;
} qn__ipc_schema;

/* Where a message was found. */
typedef struct qn__ipc_message {
    size_t at;                 /* byte of the file */
    qn__flat flat;             /* its description */
    int version;               /* 4: V5 */
    int kind;                  /* of the header: below */
    size_t header;             /* place of its table */
    size_t body_at, body_size; /* bytes of the file */
    const uint8_t *body;       /* these, once they are read */
} qn__ipc_message;

enum { QN__IPC_SCHEMA = 1, QN__IPC_DICTIONARY = 2, QN__IPC_BATCH = 3 };

/* Reads the FlatBuffers table at the place `schema` of `flat`. All memory is the pile's. Fails with
 * QN_INPUT (what and remedy are set) or QN_MEMORY. */
qn_status qn__ipc_read_schema(qn__flat *flat, size_t schema, int version, qn__pile *pile,
                              qn__ipc_schema *out, qn_error *err);

/* The rows of the batch `message`. Fails with QN_INPUT. */
qn_status qn__ipc_batch_rows(const qn__ipc_message *message, int64_t *rows, qn_error *err);

/* Threads that unpack buffers, and the memory of each. */
typedef struct qn__ipc_threads {
    qn__pool *pool;
    qn__pile *pile;
} qn__ipc_threads;

/* The columns of a batch, of which only those with wanted[column] get buffers. `dictionary` has the
 * values of each column, or is NULL: none have. `threads` may be NULL: the caller alone. */
qn_status qn__ipc_read_batch(const qn__ipc_message *message, size_t batch,
                             const qn__ipc_schema *schema, const uint8_t *wanted,
                             struct ArrowArray **dictionary, const qn__ipc_threads *threads,
                             qn__pile *pile, struct ArrowArray *out, qn_error *err);

#endif
