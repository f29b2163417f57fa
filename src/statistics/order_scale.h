/* Scaling by the order of a feature's values: by its extremes, or by its quartiles. */
#ifndef QN_STATISTICS_ORDER_SCALE_H
#define QN_STATISTICS_ORDER_SCALE_H

#include "data/table/data.h"
#include "num/program.h"

/* For QN__SCALE_MINMAX and QN__SCALE_ROBUST: what is subtracted from each feature and what it is
 * divided by, as qn__scale_fit has mean and deviation (docs/exactness.md 17.16). None of the values
 * is missing. `weights` are those of the items, one of them above 0; NULL: all count. `threads` >=
 * 1. Fails with QN_INPUT when the width of a feature is beyond float32. */
qn_status qn__order_scale_fit(qn__scale scale, const qn_data *train, const float *weights,
                              int threads, float *shift, float *width, qn_error *err);

#endif
