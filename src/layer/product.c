/* To be read together with docs/exactness.md 16.4 and 17.6. A tap outside the input would multiply
 * +0, which changes no chain but for the sign of a zero; it is left out. */
#include "layer/product.h"

#include "layer/window.h"
#include <math.h>

/* The first channel that output channel o reads. */
static uint32_t first_channel(const qn__layer *l, uint32_t o) {
    return l->conv_groups ? o / (l->to.channels / l->conv_groups) * qn__layer_reads(l) : 0;
}

static void forward(const qn__layer *l, const float *parameters, const float *a, float *z) {
    const uint32_t channels = qn__layer_reads(l);
    for (uint32_t o = 0; o < l->out; ++o)
        z[o] = qn__product_bias(l, parameters, o % l->to.channels);
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    do {
        if (!qn__tap_find(l, t, &at))
            continue;
        for (uint32_t o = 0; o < l->to.channels; ++o) {
            const float *w = parameters + qn__layer_matrix(l) + (size_t)o * l->depth + at.weights;
            const float *own = a + at.input + first_channel(l, o);
            float acc = z[at.output + o];
            for (uint32_t c = 0; c < channels; ++c)
                acc = fmaf(own[c], w[c], acc);
            z[at.output + o] = acc;
        }
    } while (qn__tap_next(l, &t));
}

static void backward(const qn__layer *l, const float *parameters, const float *delta, float *e) {
    for (uint32_t k = 0; k < l->in; ++k)
        e[k] = 0.0f;
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    do {
        if (!qn__tap_find(l, t, &at))
            continue;
        for (uint32_t o = 0; o < l->to.channels; ++o) {
            const float *w = parameters + qn__layer_matrix(l) + (size_t)o * l->depth + at.weights;
            float *own = e + at.input + first_channel(l, o);
            for (uint32_t c = 0; c < qn__layer_reads(l); ++c)
                own[c] = fmaf(delta[at.output + o], w[c], own[c]);
        }
    } while (qn__tap_next(l, &t));
}

void qn__plain_zeros(uint64_t count, float *v) {
    for (uint64_t i = 0; i < count; ++i)
        v[i] = v[i] + 0.0f;
}

/* Whether -0 becomes +0 (16.4): always, except for a dense layer with plain inputs. */
static int has_plain_zeros(const qn__layer *l) {
    return l->kind != QN__LAYER_DENSE || l->from.height > 1 || l->from.width > 1;
}

void qn__product_forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                         float *z) {
    if (bits)
        qn__product_intgemm_forward(bits, l, parameters, a, z);
    else
        forward(l, parameters, a, z);
    if (has_plain_zeros(l))
        qn__plain_zeros(l->out, z);
}

void qn__product_backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                          const float *delta, int64_t *sums, float *e) {
    (void)a;
    if (bits)
        qn__product_intgemm_backward(bits, l, parameters, delta, sums, e);
    else
        backward(l, parameters, delta, e);
    if (has_plain_zeros(l))
        qn__plain_zeros(l->in, e);
}

static void add_item(const qn__layer *l, const qn__places *at, const float *a, const float *delta,
                     float *partial) {
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        float *w = partial + (size_t)o * l->depth + at->weights;
        const float *own = a + at->input + first_channel(l, o);
        for (uint32_t c = 0; c < qn__layer_reads(l); ++c)
            w[c] = fmaf(delta[at->output + o], own[c], w[c]);
    }
}

void qn__product_gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                          float *partial) {
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    do {
        if (!qn__tap_find(l, t, &at))
            continue;
        for (uint64_t i = 0; i < items; ++i)
            add_item(l, &at, a + i * l->in, delta + i * l->out, partial);
    } while (qn__tap_next(l, &t));
}

void qn__product_biases(const qn__layer *l, uint64_t items, const float *delta, float *partial) {
    for (uint32_t at = 0; at < l->out && !l->no_biases; ++at)
        for (uint64_t i = 0; i < items; ++i) {
            float *bias = partial + at % l->to.channels;
            *bias = *bias + delta[i * l->out + at];
        }
}

int qn__product_contract(const qn__layer_text *layer) {
    return layer->tied ? 9 : layer->no_biases ? 8 : layer->conv_groups ? 6 : 0;
}

uint64_t qn__product_filed(const qn__layer *l, uint64_t index) {
    const uint64_t channels = qn__layer_reads(l), taps = l->depth / channels;
    const uint64_t o = index / l->depth, k = index % l->depth, tap = k / channels, c = k % channels;
    if (l->kind == QN__LAYER_CONVTRANSPOSE)
        return (c * l->to.channels + o) * taps + (taps - 1 - tap);
    return (o * channels + c) * taps + tap;
}

int qn__product_filed_in_order(const qn__layer *l) {
    return l->depth == 0 || (l->kind != QN__LAYER_CONVTRANSPOSE && l->depth == qn__layer_reads(l));
}

qn__flops qn__product_flops(const qn__layer *layer) {
    const uint64_t flops = 2 * (uint64_t)layer->out * layer->depth;
    return (qn__flops){flops, flops, flops};
}
