/* dense N: every output from all values of the input. */
#include "layer/layer.h"
#include "layer/product.h"
#include "num/intgemm_reference.h"

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    return qn__tokens_count(tokens, "width", QN__MAX_WIDTH,
                            "a width is a whole number from 1 to 16777216: \"dense 500 tanh\"",
                            &layer->out);
}

static void write(const qn__layer_text *layer, qn__text *text) {
    qn__text_add(text, " %u", layer->out);
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    (void)err;
    *layer = qn__layer_dense(from, text->out, text->activation, first);
    return QN_OK;
}

static uint64_t fan_out(const qn__layer *l) { return l->out; }

static int has_pixels(const qn__layer *l) { return l->from.height > 1 || l->from.width > 1; }

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    if (bits)
        qn__intgemm_forward(bits, l, parameters, a, z);
    else
        qn__product_forward(l, parameters, a, z);
    if (has_pixels(l))
        qn__plain_zeros(l->out, z);
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *sums, float *e) {
    (void)a;
    if (bits)
        qn__intgemm_backward(bits, l, parameters, delta, sums, e);
    else
        qn__product_backward(l, parameters, delta, e);
    if (has_pixels(l))
        qn__plain_zeros(l->in, e);
}

const qn__layer_ops qn__dense = {.word = "dense",
                                 .also = "linear fc fullyconnected affine gemm",
                                 .syntax = "dense WIDTH [ACTIVATION] [dropout P]",
                                 .contract = 1,
                                 .parse = parse,
                                 .write = write,
                                 .make = make,
                                 .fan_out = fan_out,
                                 .flops = qn__product_flops,
                                 .forward = forward,
                                 .backward = backward,
                                 .gradient = qn__product_gradient,
                                 .intgemm_gradient = qn__intgemm_gradient};
