/* Rows of a table whose values lie on other ranks. An index into `values` gets them too, but page
 * by page; who knows which rows are needed next asks for them together. */
#ifndef QN_DATA_TABLE_REMOTE_ROWS_H
#define QN_DATA_TABLE_REMOTE_ROWS_H

#include "data/table/data.h"

/* Rows that were asked for. */
typedef struct qn__asked_rows qn__asked_rows;

typedef struct qn__remote_rows {
    const uint8_t *values;        /* of the table */
    int partial;                  /* 1: not all values are kept here at a time */
    uint64_t kept;                /* bytes of values that are kept at most */
    const struct qn_parts *parts; /* of all rows (data/parts/parts.h) */
    void *user;
    /* Asks for the values of rows of the table, without waiting. `row` and `to` are copied: row[i]
     * goes to to[i], when qn__remote_rows.take is called. NULL if out of memory. */
    qn__asked_rows *(*ask)(void *user, const uint64_t *row, uint8_t *const *to, uint32_t count,
                           qn_error *err);
    /* Waits for them, copies them and frees `asked`. Fails with QN_IO if a rank is gone, and its
     * rows with it, or QN_MEMORY. */
    qn_status (*take)(void *user, qn__asked_rows *asked, qn_error *err);
    void (*drop)(void *user, qn__asked_rows *asked); /* frees, without waiting; accepts NULL */
    /* Nobody needs the values that are kept for some time. */
    void (*forget)(void *user);
    /* Fails if rows could not be got since the table was opened. */
    qn_status (*check)(void *user, qn_error *err);
} qn__remote_rows;

/* Of a table or a view of it; NULL where the values are here. A matrix that was made from a table
 * copies its members, but has values of its own. */
static inline const qn__remote_rows *qn__data_remote(const qn_data *data) {
    return data->remote && data->remote->values == data->values ? data->remote : NULL;
}

#endif
