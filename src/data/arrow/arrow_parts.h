/* Memory and structs from which readers of typed files build an Arrow C stream. */
#ifndef QN_DATA_ARROW_ARROW_PARTS_H
#define QN_DATA_ARROW_ARROW_PARTS_H

#include "base/error.h"
#include <quern/arrow.h>
#include <stddef.h>

/* A block of memory. Large ones are separate pages, so that releasing them returns the memory to
 * the system. */
typedef struct qn__block {
    void *memory;
    size_t bytes; /* of pages; 0: the memory is qn__alloc's */
} qn__block;

/* Memory that lives as long as a stream or a portion of it, released all at once. */
typedef struct qn__pile {
    qn__block *block;
    size_t blocks, capacity;
    uint64_t bytes; /* of all blocks */
    uint8_t *slab;  /* the rest of a large block, cut for several */
    size_t left;
} qn__pile;
/* As qn__alloc. The block is the pile's. */
void *qn__pile_alloc(qn__pile *pile, uint64_t count, uint64_t size, qn_error *err);
/* A copy of `size` bytes as a text. */
char *qn__pile_text(qn__pile *pile, const void *bytes, size_t size, qn_error *err);
void qn__pile_release(qn__pile *pile);

/* A block of memory that is used again and grows as needed. Begins as {0}. */
typedef struct qn__scratch {
    qn__block block;
    uint64_t size;
} qn__scratch;
/* count x size bytes of any content, in place of those before. NULL as qn__alloc. */
void *qn__scratch_need(qn__scratch *scratch, uint64_t count, uint64_t size, qn_error *err);
void qn__scratch_release(qn__scratch *scratch);

/* A type of a column; the texts are the caller's and outlive the stream. */
typedef struct qn__column_type {
    const char *name, *format;
    const char *values;    /* the format of the values of a dictionary; NULL: it is none */
    const char *words;     /* the format of the elements of a list; NULL: it has no such element */
    const char *extension; /* the name of its extension type, below 256 bytes; NULL: it has none */
} qn__column_type;

/* Makes the schema of a table in the pile. */
qn_status qn__parts_schema(qn__pile *pile, const qn__column_type *type, uint64_t columns,
                           struct ArrowSchema *out, qn_error *err);
/* Makes a part of a table in the pile: columns of `rows` values without buffers, with space for
 * QN__PART_BUFFERS of them each. */
enum { QN__PART_BUFFERS = 3 };
qn_status qn__parts_array(qn__pile *pile, uint64_t columns, int64_t rows, struct ArrowArray *out,
                          qn_error *err);

/* Gives a list its elements, `count` values without buffers. */
qn_status qn__parts_list(qn__pile *pile, int64_t count, struct ArrowArray *list, qn_error *err);

/* The memory that a file of `size` bytes may demand: QN_INPUT where `rows` rows of the wanted
 * columns, 8 bytes a value, are more than 64 MiB and 32,768 times the size. */
qn_status qn__parts_check_rows(double rows, const uint8_t *wanted, uint64_t columns, uint64_t size,
                               const char *path, qn_error *err);

/* The memory that a portion of a table (arrow_table.h) may take; one part may take more. `bytes`:
 * what all of them take. */
uint64_t qn__parts_portion(double bytes);

/* QN_MEMORY where `what` of a file takes more bytes than are available. A control group would kill
 * the process in place of refusing them. */
qn_status qn__parts_check_memory(double bytes, const char *what, const char *path, qn_error *err);

/* QN_UNSUPPORTED on a big-endian processor: values are used in place, as they are in the file. */
qn_status qn__parts_need_little_endian(const char *path, qn_error *err);

#endif
