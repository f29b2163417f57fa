/* A table that is read as one part of a whole, whose other parts other ranks read. */
#ifndef QN_DATA_TABLE_PART_READING_H
#define QN_DATA_TABLE_PART_READING_H

#include "base/error.h"
#include <stdint.h>

struct qn__word_table;

typedef struct qn__part_reading {
    void *user;
    /* Collective: adds what all ranks counted for a tokenizer to `counts`. `status` is what this
     * rank's counting gave. Fails on all ranks alike. */
    qn_status (*join)(void *user, struct qn__word_table *counts, qn_status status, qn_error *err);
    uint32_t ranks; /* of this machine, of which each reads a part */
    /* Set while it is read: */
    int is_row;         /* 1: it is one row of tokens, which is not cut into items yet */
    uint64_t documents; /* of the row; 0: of numbers */
    uint32_t before;    /* tokens with which the row begins where documents are before it */
    int is_empty;       /* 1: it was refused because it has no rows, and nothing else */
} qn__part_reading;

/* A reader refuses a table without rows: a part of a whole may be such a table. `part` may be NULL.
 */
static inline void qn__part_is_empty(qn__part_reading *part) {
    if (part)
        part->is_empty = 1;
}

/* As of qn__table_space. */
static inline uint32_t qn__part_ranks(const qn__part_reading *part) {
    return part ? part->ranks : 0;
}

#endif
