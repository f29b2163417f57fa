/* position learned: a parameter of each channel at each position is added, which tells where a
 * position is. Positions are the pixels of any picture. The text of this row begins that of the
 * kinds `sinusoid` and `rotary`, too. */
#include "layer/embedding.h"
#include "layer/layer.h"
#include "layer/turned.h"
#include <string.h>

/* The word after "position" says which of three kinds it is. */
static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    static const char *const help =
        "write \"position learned\", \"position sinusoid\" or \"position rotary HEADS\"";
    if (qn__tokens_ended(tokens))
        return qn__tokens_fail(tokens, tokens->at, "the kind of the positions is missing", help);
    if (qn__tokens_is(tokens, "sinusoid"))
        layer->kind = QN__LAYER_SINUSOID;
    else if (qn__tokens_is(tokens, "rotary"))
        layer->kind = QN__LAYER_ROTARY;
    else if (!qn__tokens_is(tokens, "learned"))
        return qn__tokens_invalid(tokens, "invalid kind of positions", help);
    qn__tokens_next(tokens);
    return layer->kind == QN__LAYER_ROTARY ? qn__rotary_words(tokens, layer) : QN_OK;
}

static void write(const qn__layer_text *layer, qn__text *text) {
    (void)layer;
    qn__text_add(text, " learned");
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    const uint32_t values = qn__shape_volume(from);
    (void)err;
    *layer = (qn__layer){.kind = text->kind,
                         .from = from,
                         .to = from,
                         .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                         .in = values,
                         .out = values,
                         .activation = text->activation,
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first,
                         .vectors = 1,
                         .vector = values};
    return QN_OK;
}

static qn__flops flops(const qn__layer *layer) {
    return (qn__flops){layer->in, layer->in, layer->in};
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)bits;
    for (uint32_t k = 0; k < l->in; ++k)
        z[k] = a[k] + parameters[l->biases + k];
}

static void gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                     float *partial) {
    (void)a;
    for (uint64_t i = 0; i < items; ++i, delta += l->out)
        for (uint32_t k = 0; k < l->out; ++k)
            partial[k] = partial[k] + delta[k];
}

static float bound(const qn__layer *layer) {
    (void)layer;
    return QN__EMBEDDING_BOUND;
}

static const char *const names[] = {"weight"};

const qn__layer_ops qn__position = {.word = "position",
                                    .also = "wpe positional pos_embedding",
                                    .syntax = "position learned [ACTIVATION] [dropout|droppath P]",
                                    .contract = 9,
                                    .parse = parse,
                                    .write = write,
                                    .steps = qn__layer_always_steps,
                                    .make = make,
                                    .flops = flops,
                                    .forward = forward,
                                    .backward = qn__layer_same_errors,
                                    .gradient = gradient,
                                    .bound = bound,
                                    .names = names};
