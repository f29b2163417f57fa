/* Statistics of wide columns from their exact values (docs/exactness.md 18.1). */
#ifndef QN_JOB_EXACT_STATISTICS_H
#define QN_JOB_EXACT_STATISTICS_H

#include "data/data.h"
#include "job/column_statistics.h"

/* Replaces moments, extremes and quantiles of the wide columns in `numbers`, features x groups.
 * `order` and the task as for qn__columns_describe. Fails with QN_MEMORY. */
qn_status qn__exact_describe(const qn_data *data, const qn__column_task *task,
                             const uint64_t *order, qn__column_numbers *numbers, qn_error *err);

#endif
