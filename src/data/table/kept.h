/* Doubles of columns that are not wide (wide.h), kept for writing the table
 * (qn_data_options.keep_doubles). The digest, models and all else take their floats.
 *
 * The float nearest to a kept value is the one of the matrix, so that a file with these doubles has
 * the digest of the table. */
#ifndef QN_DATA_TABLE_KEPT_H
#define QN_DATA_TABLE_KEPT_H

#include "data/table/wide.h"

typedef struct qn__kept {
    uint32_t columns;
    uint32_t *feature;      /* of each column, ascending */
    qn__wide_value **value; /* of each, `real` by the row of the table; NULL: all are floats */
} qn__kept;

/* Columns without features and values. NULL if out of memory. */
qn__kept *qn__kept_create(uint32_t columns, qn_error *err);
void qn__kept_free(qn__kept *kept); /* accepts NULL */

/* 1 + the index of feature k among the kept columns; 0: it is not kept, or is wide. */
uint32_t qn__kept_column(const qn_data *data, uint32_t k);

/* The value of item i in column `column` - 1; NaN where it is missing. */
double qn__kept_value(const qn_data *data, uint32_t column, uint64_t i);

/* Makes `values`, from qn__alloc, those of column `j` of data->kept, which is feature k: one for
 * each item of a table. NULL: its floats are. */
void qn__kept_put(const qn_data *data, uint32_t j, uint32_t k, qn__wide_value *values);

#endif
