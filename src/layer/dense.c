/* dense N: every output from all values of the input. */
#include "layer/product.h"

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

const qn__layer_ops qn__dense = {.word = "dense",
                                 .also = "linear fc fullyconnected affine gemm",
                                 .syntax = "dense WIDTH [ACTIVATION] [dropout P]",
                                 .contract = 1,
                                 .parse = parse,
                                 .write = write,
                                 .make = make,
                                 .fan_out = fan_out,
                                 .flops = qn__product_flops,
                                 .forward = qn__product_forward,
                                 .backward = qn__product_backward,
                                 .gradient = qn__product_gradient,
                                 .intgemm_gradient = qn__product_intgemm_gradient};
