/* product { A | B }: the product of two paths of layers from the same input, number by number. A
 * path that ends with one pixel is spread over all pixels of the other: with `globalpool` in it
 * this is squeeze-and-excitation (Hu, Shen and Sun 2018). The kind is the layer at the end of the
 * block. */
#include "layer/join.h"
#include "layer/product.h"
#include <math.h>

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    (void)err;
    *layer = qn__join_make(text, from, first);
    return QN_OK;
}

static uint32_t pixels(qn__shape shape) { return shape.height * shape.width; }

static int factors_meet(qn__layer *l) {
    const qn__shape a = l->from, b = l->second;
    l->to = pixels(b) > 1 ? b : a;
    l->out = qn__shape_volume(l->to);
    return a.channels == b.channels &&
           (qn__join_same_pixels(a, b) || pixels(a) == 1 || pixels(b) == 1);
}

/* Backward both factors get a product, one that was spread also a sum. */
static qn__flops flops(const qn__layer *l) {
    const uint64_t sums = pixels(l->from) == pixels(l->second) ? 0 : l->out;
    return (qn__flops){.forward = l->out, .backward = 2 * (uint64_t)l->out + sums};
}

/* The factor of output k in values of this shape. */
static uint32_t factor_of(const qn__layer *l, qn__shape shape, uint32_t k) {
    return pixels(shape) == pixels(l->to) ? k : k % l->to.channels;
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)bits;
    (void)parameters;
    for (uint32_t k = 0; k < l->out; ++k)
        z[k] = a[factor_of(l, l->from, k)];
}

/* 24.31 */
static void join(const qn__layer *l, const float *b, float *z) {
    for (uint32_t k = 0; k < l->out; ++k)
        z[k] = z[k] * b[factor_of(l, l->second, k)];
    qn__plain_zeros(l->out, z);
}

/* The error of the factor of this shape, by the other one. */
static void error_of(const qn__layer *l, qn__shape own, const float *other, qn__shape shape,
                     const float *delta, float *e) {
    const uint32_t values = qn__shape_volume(own);
    const int spread = pixels(own) < pixels(l->to);
    for (uint32_t k = 0; k < values; ++k)
        e[k] = 0.0f;
    for (uint32_t k = 0; k < l->out; ++k) {
        const float factor = other[factor_of(l, shape, k)];
        float *to = &e[factor_of(l, own, k)];
        *to = spread ? fmaf(delta[k], factor, *to) : delta[k] * factor;
    }
    qn__plain_zeros(values, e);
}

static void backward_both(const qn__layer *l, const float *a, const float *b, const float *delta,
                          float *e, float *f) {
    error_of(l, l->from, b, l->second, delta, e);
    error_of(l, l->second, a, l->from, delta, f);
}

const qn__layer_ops qn__multiply = {
    .word = "product",
    .also = "multiply mul gate squeezeexcitation squeezeexcite se scse",
    .syntax = "product { LAYERS [| LAYERS] } [ACTIVATION] [dropout|droppath P]",
    .block = 1,
    .contract = 8,
    .verb = "a product block multiplies",
    .fit = "both paths must have the same channels, and the same pixels or one of them a single "
           "pixel: "
           "\"product { globalpool; conv 8 1x1 relu; conv 32 1x1 sigmoid }\"",
    .steps = qn__layer_always_steps,
    .make = make,
    .meet = factors_meet,
    .flops = flops,
    .forward = forward,
    .join = join,
    .backward_both = backward_both};
