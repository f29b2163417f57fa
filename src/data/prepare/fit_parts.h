/* Fits of a table whose rows are with several ranks: each rank looks at its own, and what it found
 * is added. The numbers are those of a process that looks at all rows.
 *
 * All ranks call these together. Where a rank has ended they fail with QN_IO on all others; these
 * can then fit all rows by themselves, because some rank reads the lost part again. */
#ifndef QN_DATA_PREPARE_FIT_PARTS_H
#define QN_DATA_PREPARE_FIT_PARTS_H

#include "data/parts/parts.h"
#include "data/table/data.h"

/* The items of a table, or of a view of it, whose rows this rank has. */
typedef struct qn__own_items {
    const qn_parts *parts;
    qn_data items;        /* neighbours in the table; there may be none. Not for qn_data_close */
    uint64_t from;        /* the first of them in the table */
    const float *weights; /* of them; NULL: all are 1 */
} qn__own_items;

/* 0: all rows of `data` are here. */
int qn__own_items_of(const qn_data *data, const float *weights, qn__own_items *out);

/* Means of the present values of each column; of those without any, and of categories, +0. */
qn_status qn__parts_means(const qn__own_items *own, float *mean, qn_error *err);

/* The numbers before and after each quartile of a column, and its extremes, of present values whose
 * items have weights above 0. */
typedef struct qn__column_order {
    uint64_t count; /* of such values; 0: the numbers mean nothing */
    float least, greatest;
    float quartile[3][2]; /* the number of the rank below its place, and the next one */
} qn__column_order;

/* `order` has a place for each column. `quartiles` 0: their numbers are not found. */
qn_status qn__parts_order(const qn__own_items *own, int quartiles, qn__column_order *order,
                          qn_error *err);

#endif
