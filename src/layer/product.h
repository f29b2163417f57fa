/* Products of a layer with a window, as plain loops: what dense layers and convolutions share
 * (docs/exactness.md 6.3, 8.4, 8.6), and those of integers (17.12). Arguments are those of
 * qn__layer_ops. With `bits` the first two are those of integers. */
#ifndef QN_LAYER_PRODUCT_H
#define QN_LAYER_PRODUCT_H

#include "layer/layer.h"

void qn__product_forward(const qn__layer *layer, int bits, const float *parameters, const float *a,
                         float *z);
void qn__product_backward(const qn__layer *layer, int bits, const float *parameters, const float *a,
                          const float *delta, int64_t *sums, float *e);
void qn__product_gradient(const qn__layer *layer, uint64_t items, const float *a,
                          const float *delta, float *partial);

void qn__product_intgemm_forward(int bits, const qn__layer *layer, const float *parameters,
                                 const float *a, float *z);
void qn__product_intgemm_backward(int bits, const qn__layer *layer, const float *parameters,
                                  const float *delta, int64_t *sums, float *e);
int qn__product_intgemm_gradient(int bits, const qn__layer *layer, uint64_t items, const float *a,
                                 const float *d, float limit, int64_t *to);

/* The bias of a channel; 24.12. */
static inline float qn__product_bias(const qn__layer *layer, const float *parameters,
                                     uint32_t channel) {
    return layer->no_biases ? 0.0f : parameters[layer->biases + channel];
}

/* 8.6: adds the chains of a grain's biases to partial[to.channels]: pixels in their order, the
 * items of each in theirs. */
void qn__product_biases(const qn__layer *layer, uint64_t items, const float *delta, float *partial);

/* The cost: each output is a chain of `depth` products, in each of the three passes. */
qn__flops qn__product_flops(const qn__layer *layer);

/* The version of the contract that the words of such a layer need. */
int qn__product_contract(const qn__layer_text *layer);

/* Where weight `index` of the layer's is in a model file (16.9, 24.42): there the taps of a window
 * are the innermost, here the channels are. */
uint64_t qn__product_filed(const qn__layer *layer, uint64_t index);
/* Whether that is the same place for all of them. */
int qn__product_filed_in_order(const qn__layer *layer);

/* 16.4: -0 becomes +0. */
void qn__plain_zeros(uint64_t count, float *v);

#endif
