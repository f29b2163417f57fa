/* Missing values of a table: counted, left out, or filled with a number that is fitted to a column.
 *
 * Columns are those of the table, before encoding. A missing value is any NaN. A table of bytes, or
 * with qn_data.missing 0, has none. */
#ifndef QN_DATA_PREPARE_FILL_H
#define QN_DATA_PREPARE_FILL_H

#include "data/table/data.h"
#include "data/table/missing.h"

/* What becomes of missing numbers; docs/exactness.md 2.5. In the second to fourth rule a missing
 * category gives 0 for all categories. */
typedef enum qn__missing {
    QN__MISSING_ERROR,  /* none is allowed */
    QN__MISSING_MEAN,   /* the mean of the present values of the training items */
    QN__MISSING_MEDIAN, /* their median */
    QN__MISSING_ZERO,   /* +0 */
    QN__MISSING_DROP    /* the items are left out */
} qn__missing;

/* Where a table lacks values. */
typedef struct qn__missing_counts {
    uint64_t values, items;   /* missing values; items that lack one or more */
    uint32_t columns;         /* that lack one or more */
    uint32_t feature;         /* of the first missing value, in the order of the items */
    uint64_t item, in_column; /* its item; how many that column lacks */
} qn__missing_counts;

/* 1 when a value is missing. */
int qn__has_missing(const qn_data *data);

/* Counts missing values. Fails with QN_MEMORY. */
qn_status qn__missing_count(const qn_data *data, qn__missing_counts *out, qn_error *err);

/* A view of the items without a missing value, in ascending order; it needs `all` alive and is
 * closed with qn_data_close. *out is NULL when all are. Fails with QN_INPUT when no item is
 * complete, QN_MEMORY. */
qn_status qn__complete_items(const qn_data *all, qn_data **out, qn_error *err);

/* Fits the numbers that replace missing values: the exact mean, rounded once, or the median of the
 * present values of each column; weighted by the weights of the items (NULL: all are 1). `fill`
 * holds `features` floats; a column of categories, one without any value, and a fitted zero give
 * +0. `rule`: QN__MISSING_MEAN or _MEDIAN. `threads` >= 1. Fails with QN_MEMORY, QN_USAGE
 * (threads). */
qn_status qn__fill_fit(const qn_data *train, const float *weights, qn__missing rule, int threads,
                       float *fill, qn_error *err);

#endif
