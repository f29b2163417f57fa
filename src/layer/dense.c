/* dense N [nobias]: every output from all values of the input. */
#include "layer/product.h"

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    const qn_status status = qn__tokens_count(
        tokens, "width", QN__MAX_WIDTH,
        "a width is a whole number from 1 to 16777216: \"dense 500 tanh\"", &layer->out);
    layer->no_biases = status == QN_OK && qn__tokens_is(tokens, "nobias");
    if (layer->no_biases)
        qn__tokens_next(tokens);
    return status;
}

static void write(const qn__layer_text *layer, qn__text *text) {
    qn__text_add(text, layer->no_biases ? " %u nobias" : " %u", layer->out);
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    (void)err;
    *layer = qn__layer_dense(from, text->out, text->activation, first);
    layer->no_biases = text->no_biases;
    return QN_OK;
}

static uint64_t fan_out(const qn__layer *l) { return l->out; }

const qn__layer_ops qn__dense = {.word = "dense",
                                 .also = "linear fc fullyconnected affine gemm",
                                 .syntax = "dense WIDTH [nobias] [ACTIVATION] [dropout|droppath P]",
                                 .contract = 1,
                                 .reads_features = 1,
                                 .contract_of = qn__product_contract,
                                 .parse = parse,
                                 .write = write,
                                 .make = make,
                                 .fan_out = fan_out,
                                 .flops = qn__product_flops,
                                 .forward = qn__product_forward,
                                 .backward = qn__product_backward,
                                 .gradient = qn__product_gradient,
                                 .intgemm_gradient = qn__product_intgemm_gradient};
