/* What the pooling layers share; functions are those of qn__layer_ops. */
#ifndef QN_LAYER_POOLING_H
#define QN_LAYER_POOLING_H

#include "layer/window.h"

/* "maxpool 3 stride 2 pad 1 ceil": without a stride, windows do not overlap. `uncounted` is a word
 * of avgpool alone. Or "maxpool to 7x7". */
qn_status qn__pool_parse(qn__tokens *tokens, qn__layer_text *layer);
void qn__pool_write(const qn__layer_text *layer, qn__text *text);
int qn__pool_contract(const qn__layer_text *layer);
qn_status qn__pool_make(const qn__layer_text *text, qn__shape from, uint64_t first,
                        qn__layer *layer, qn_error *err);

/* The cost: each window reads each of its values once. */
qn__flops qn__pool_flops(const qn__layer *layer);

/* 16.6, 24.21: r, the share of a pixel in the mean of the output pixel (y, x). */
float qn__pool_share(const qn__layer *layer, uint32_t y, uint32_t x);

/* 16.6: means of windows. */
void qn__mean_forward(const qn__layer *layer, int bits, const float *parameters, const float *a,
                      float *z);
void qn__mean_backward(const qn__layer *layer, int bits, const float *parameters, const float *a,
                       const float *delta, int64_t *sums, float *e);

#endif
