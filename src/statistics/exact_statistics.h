/* Statistics of wide columns from their exact values (docs/exactness.md 18.1). */
#ifndef QN_STATISTICS_EXACT_STATISTICS_H
#define QN_STATISTICS_EXACT_STATISTICS_H

#include "data/table/data.h"
#include "statistics/column_statistics.h"

/* Where histograms go: for each column most_bins + 1 edges, and how many bins it has. */
typedef struct qn__exact_bins {
    double *edges; /* NULL: there are none */
    uint32_t *bins;
    uint32_t most, wanted; /* wanted: what the user said, or 0 */
} qn__exact_bins;

/* Replaces moments, extremes, quantiles and histograms of the wide columns in `numbers`, features x
 * groups. `order` and the task as for qn__columns_describe. Fails with QN_MEMORY. */
qn_status qn__exact_describe(const qn_data *data, const qn__column_task *task,
                             const uint64_t *order, const qn__exact_bins *bins,
                             qn__column_numbers *numbers, qn_error *err);

#endif
