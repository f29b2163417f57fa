/* Columns of numbers of a portion of an Arrow table, converted many at a time and by all threads.
 * Other columns are left to qn__arrow_each, which also finds the first value that has to be
 * refused. */
#ifndef QN_DATA_ARROW_ARROW_NUMBERS_H
#define QN_DATA_ARROW_ARROW_NUMBERS_H

#include "data/arrow/arrow_table.h"
#include "data/cells/wide_gather.h"

/* A feature that is a column of numbers. */
typedef struct qn__arrow_number {
    uint64_t column;
    uint32_t feature;
    int not_bytes; /* 1: floats, or some value is missing or no whole number from 0 to 255, so far
                    */
} qn__arrow_number;

/* 1 when the column can be read here: numbers, with a buffer in each part. */
int qn__arrow_is_plain(const qn__arrow_table *table, uint64_t column);

/* Sets `not_bytes` of each of `count` columns that has a value that is not a byte. `pool` may be
 * NULL: the caller alone. */
void qn__arrow_find_not_bytes(const qn__arrow_table *table, qn__arrow_number *number,
                              uint32_t count, qn__pool *pool);

/* Writes the values of the columns into those of data, whose type they fit; a missing one is a NaN,
 * and data->missing says so. 0: a value is infinite as a float; the values in data are then
 * incomplete. */
int qn__arrow_put_numbers(const qn__arrow_table *table, const qn__arrow_number *number,
                          uint32_t count, qn_data *data, qn__pool *pool);

/* 1 for a column whose values may be wide; *real: they are of binary64. */
int qn__arrow_may_be_wide(const qn__arrow_table *table, uint64_t column, int *real);

/* Tells `gather` of the values of this portion, which are in the matrix of `data` already. */
qn_status qn__arrow_gather(const qn__arrow_table *table, const qn__arrow_number *number,
                           uint32_t count, qn__wide_gather *gather, qn__pool *pool, qn_error *err);

#endif
