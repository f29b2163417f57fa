/* layerscale X: each channel times a factor of its own, which starts as X (Touvron et al. 2021). At
 * the end of a path a small X makes the block nearly its shortcut. Training and predictions are the
 * same. */
#include "layer/normalisation.h"
#include <math.h>

#define USUAL 1e-6f

static qn_status parse_scale(qn__tokens *tokens, qn__layer_text *layer) {
    layer->factor = USUAL;
    if (qn__tokens_ended(tokens) ||
        !qn__parse_float(tokens->text + tokens->at, tokens->size, &layer->factor))
        return QN_OK;
    if (!(layer->factor > 0.0f && layer->factor <= 0x1p16f))
        return qn__tokens_invalid(tokens, "invalid factor",
                                  "give a number above 0, up to 65536: \"layerscale 1e-6\"");
    qn__tokens_next(tokens);
    return QN_OK;
}

static void write_scale(const qn__layer_text *layer, qn__text *text) {
    char number[32];
    qn__float_text(layer->factor, number);
    qn__text_add(text, " %s", number);
}

static qn_status make_scale(const qn__layer_text *text, qn__shape from, uint64_t first,
                            qn__layer *layer, qn_error *err) {
    (void)err;
    *layer = qn__normalisation_make(text, from, first, QN__NORM_BIAS); /* those before it */
    layer->factor = text->factor;
    return QN_OK;
}

/* Factors above 1 came with adapters (25.86). */
static int contract_of_scale(const qn__layer_text *layer) { return layer->factor > 1.0f ? 9 : 0; }

/* to = from times the factor of each channel */
static void scale(const qn__layer *l, const float *parameters, const float *from, float *to) {
    for (uint32_t k = 0; k < l->in; ++k) {
        const float own = from[k] * parameters[l->biases + k % l->from.channels];
        to[k] = own + 0.0f;
    }
}

static void scale_forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                          float *z) {
    (void)bits; /* with integers, too, it is float32 */
    scale(l, parameters, a, z);
}

static void scale_backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                           const float *delta, int64_t *unused, float *e) {
    (void)bits;
    (void)a;
    (void)unused;
    scale(l, parameters, delta, e);
}

static void scale_gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                           float *partial) {
    for (uint32_t k = 0; k < l->in; ++k) {
        float sum = 0.0f, *to = partial + k % l->from.channels;
        for (uint64_t i = 0; i < items; ++i)
            sum = fmaf(delta[i * l->out + k], a[i * l->in + k], sum);
        *to = *to + sum;
    }
}

static void scale_begin(const qn__layer *layer, float *parameters) {
    for (uint32_t c = 0; c < layer->vector; ++c)
        parameters[layer->biases + c] = layer->factor;
}

static const char *const scale_names[] = {"weight"};

const qn__layer_ops qn__layerscale = {.word = "layerscale",
                                      .also = "layer_scale gamma scale",
                                      .syntax = "layerscale [X] [ACTIVATION] [dropout|droppath P]",
                                      .contract = 8,
                                      .contract_of = contract_of_scale,
                                      .parse = parse_scale,
                                      .write = write_scale,
                                      .steps = qn__layer_always_steps,
                                      .make = make_scale,
                                      .flops = qn__normalisation_flops,
                                      .forward = scale_forward,
                                      .backward = scale_backward,
                                      .gradient = scale_gradient,
                                      .begin = scale_begin,
                                      .names = scale_names};
