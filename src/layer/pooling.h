/* What the pooling layers share; functions are those of qn__layer_ops. */
#ifndef QN_LAYER_POOLING_H
#define QN_LAYER_POOLING_H

#include "layer/window.h"

/* "maxpool 2 stride 2": without a stride, windows do not overlap. */
qn_status qn__pool_parse(qn__tokens *tokens, qn__layer_text *layer);
void qn__pool_write(const qn__layer_text *layer, qn__text *text);
qn_status qn__pool_make(const qn__layer_text *text, qn__shape from, uint64_t first,
                        qn__layer *layer, qn_error *err);

/* The cost: each window reads each of its values once. */
qn__flops qn__pool_flops(const qn__layer *layer);

/* 16.6: means of windows. */
void qn__mean_forward(const qn__layer *layer, int bits, const float *parameters, const float *a,
                      float *z);
void qn__mean_backward(const qn__layer *layer, int bits, const float *parameters, const float *a,
                       const float *delta, int64_t *sums, float *e);

#endif
