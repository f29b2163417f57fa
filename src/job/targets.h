/* Real labels: scaled for the network, and back (docs/exactness.md 5.3). */
#ifndef QN_JOB_TARGETS_H
#define QN_JOB_TARGETS_H

#include "data/table/data.h"

/* The labels of `set` as the network learns them, in *out, which the caller frees: the bits of
 * floats, as a feed has them. Fails with QN_INPUT when one is too far from the mean for a float, or
 * with QN_MEMORY; *out is then NULL. */
qn_status qn__targets_scale(const qn_data *set, float mean, float deviation, int32_t **out,
                            qn_error *err);

/* Outputs become predictions, in place. QN_NUMERIC names the first item whose prediction is not
 * finite. */
qn_status qn__targets_predict(float *outputs, uint64_t items, float mean, float deviation,
                              qn_error *err);

/* Mean absolute error, root of the mean squared error, and 1 - the squared errors over those of the
 * mean label (NaN where all labels are equal). */
typedef struct qn__target_errors {
    double mae, rmse, r2;
} qn__target_errors;

/* From exact sums, each result rounded once (docs/exactness.md 19.6), so that it does not depend on
 * the order of the items. A NaN is not a prediction, and its item does not count. An item counts
 * counts[i] times; NULL: once. NaN for no items. */
qn__target_errors qn__targets_compare(const float *targets, const float *predictions,
                                      const uint64_t *counts, uint64_t items);

#endif
