/* Rows of a table in parts, asked for together: one request or few for each rank that has some. */
#ifndef QN_DATA_PARTS_PART_ROWS_H
#define QN_DATA_PARTS_PART_ROWS_H

#include "cluster/items.h"
#include "data/table/remote_rows.h"

typedef struct qn__part_rows {
    qn__items *items;
    const qn_data *local;  /* the part of this rank; NULL: it is empty */
    const uint64_t *first; /* of each rank, and the number of all rows */
    uint32_t ranks, rank;
    uint64_t step, stride; /* bytes from one row to the next, and of a row: array 0 of the items */
} qn__part_rows;

/* As the functions of qn__remote_rows. Rows of this rank's part are copied by `take`. */
qn__asked_rows *qn__part_rows_ask(const qn__part_rows *from, const uint64_t *row,
                                  uint8_t *const *to, uint32_t count, qn_error *err);
qn_status qn__part_rows_take(const qn__part_rows *from, qn__asked_rows *asked, qn_error *err);
void qn__part_rows_drop(const qn__part_rows *from, qn__asked_rows *asked);

#endif
