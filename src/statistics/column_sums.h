/* Means and covariances of the columns of a data set, for models that need no other sums. */
#ifndef QN_STATISTICS_COLUMN_SUMS_H
#define QN_STATISTICS_COLUMN_SUMS_H

#include "base/error.h"
#include <quern/data.h>
#include <quern/statistics.h>

typedef struct qn__column_sums {
    uint64_t items;
    uint32_t features, columns; /* a column more where there are real labels */
    double *mean;               /* of each column */
    double *covariance;         /* columns x columns; 0 for a single item */
    qn_statistics *from;
} qn__column_sums;

/* `labels`: real labels are required. `threads` and `compute` as in qn_statistics_options; `status`
 * and `err` as in qn__statistics_make. Refuses missing values, columns of categories and data
 * without items with QN_USAGE; or as qn_statistics_make. Then there is nothing to release. */
qn_status qn__column_sums_make(const qn_data *data, int labels, int threads,
                               const qn_compute *compute, qn_status status, qn__column_sums *out,
                               qn_error *err);
void qn__column_sums_release(qn__column_sums *sums);

/* Refuses columns of categories, and columns that are known to lack a value. */
qn_status qn__column_sums_refuse(const qn_data *data, qn_error *err);

qn_status qn__column_sums_check_threads(const char *field, int threads, qn_error *err);

#endif
