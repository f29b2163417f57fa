/* Arrays of a run whose rows are with several ranks: who has which rows, and how a rank gets those
 * of others. Rows are counted in the whole array, along its first length. */
#ifndef QN_USERKERNEL_RUN_USER_PART_ROWS_H
#define QN_USERKERNEL_RUN_USER_PART_ROWS_H

#include "cluster/items.h"
#include "data/parts/parts.h"
#include "userkernel/execution/user_array.h"

/* Rows that this process reads without help: a file, or memory of the caller. */
typedef struct qn__rows_here {
    uint64_t first, rows;
    qn__user_array array;
} qn__rows_here;

/* An input whose rows are with several ranks. */
typedef struct qn__part_input {
    uint64_t *first; /* ranks + 1, as in qn_parts; NULL: the input is not in parts */
    uint64_t row;    /* bytes of a row */
    qn__rows_here *here;
    size_t count;
} qn__part_input;

typedef struct qn__part_space {
    qn_parts parts; /* the rows of the index space; `name` is that of the files of each rank */
    qn__part_input input[QN__USER_PARTS];
    /* Of an output the two places that alternate; row 0 of the whole, NULL: it has none. */
    struct {
        const uint8_t *place[2];
        uint64_t row;
    } output[QN__USER_PARTS];
    qn__items *items; /* NULL: this process is alone */
} qn__part_space;

/* An array of a qn__part_space: an input, or a place of an output. */
enum { QN__PART_OUTPUT = QN__USER_PARTS };
static inline uint32_t qn__part_array(uint32_t output, uint32_t place) {
    return QN__PART_OUTPUT + 2 * output + place;
}

typedef struct qn__row_range {
    uint64_t begin, end;
} qn__row_range;

/* Where the rows of rank r begin if `ranks` have equal shares. */
static inline uint64_t qn__part_share(uint64_t rows, uint32_t r, uint32_t ranks) {
    return rows / ranks * r + rows % ranks * r / ranks;
}

/* The rows of this rank. */
qn__row_range qn__part_own_rows(const qn__part_space *space);

/* Begins to answer requests of other ranks, which have agreed to do so. Not collective; a reduction
 * must follow before the first read. */
qn_status qn__part_rows_open(qn__part_space *space, qn_error *err);

/* Copies bytes begin .. end-1 of an array of the whole, from where they are. */
qn_status qn__part_rows_read(const qn__part_space *space, uint32_t array, uint64_t begin,
                             uint64_t end, void *to, qn_error *err);

#endif
