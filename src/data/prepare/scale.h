/* Scaling: what is subtracted from each feature and what it is divided by, fitted to training
 * items. Standardisation takes exact sums (scale_moments.c); `minmax` and `robust` take the order
 * of a feature's values (scale_order.c). */
#ifndef QN_DATA_PREPARE_SCALE_H
#define QN_DATA_PREPARE_SCALE_H

#include "data/table/data.h"
#include "num/program.h"

/* Mean and deviation of each feature, rounded once from the exact real number (docs/exactness.md
 * 5.2). `weights` are those of the items, one of them above 0; NULL: all are 1. `mean` and
 * `deviation` hold `features` floats; a constant feature's deviation is +0. `threads` >= 1. */
qn_status qn__scale_fit(const qn_data *train, const float *weights, int threads, float *mean,
                        float *deviation, qn_error *err);

/* A callback that is told of the items first .. end-1 while they are in memory during a pass over
 * the data. Several threads call it, once for each item. */
typedef struct qn__item_listener {
    void (*hear)(void *context, uint64_t first, uint64_t end);
    void *context;
} qn__item_listener;

/* The same of groups of `width` neighbouring features, such as the pixels of a channel (17.11).
 * `width` divides their number; `mean` and `deviation` hold a number for each group. `listener` may
 * be NULL. */
qn_status qn__scale_fit_groups(const qn_data *train, uint32_t width, const float *weights,
                               int threads, const qn__item_listener *listener, float *mean,
                               float *deviation, qn_error *err);

/* Bytes that this takes until it returns. */
uint64_t qn__scale_fit_bytes(const qn_data *train, uint32_t width, int threads);

/* The same for QN__SCALE_MINMAX and QN__SCALE_ROBUST (17.16): by the extremes of each feature, or
 * by its quartiles. None of the values is missing. Fails with QN_INPUT when the width of a feature
 * is beyond float32. */
qn_status qn__scale_fit_order(qn__scale scale, const qn_data *train, const float *weights,
                              int threads, float *shift, float *width, qn_error *err);

#endif
