/* upsample N: each pixel becomes NxN pixels of the same value. It is the mean of a window of one
 * pixel: that of the input which the output pixel covers (docs/exactness.md 24.41). With `bilinear`
 * an output is a sum of up to four pixels with weights (24.43). */
#include "layer/pooling.h"
#include "num/blend.h"

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    layer->window = (qn__window){.stride = {1, 1}, .dilation = {1, 1}};
    const qn_status status =
        qn__tokens_pair(tokens, "factor", 1, 255,
                        "a factor is a whole number from 1 to 255: \"upsample 2\", or one for "
                        "rows and one for columns: \"upsample 1x2\"",
                        layer->window.kernel);
    if (status != QN_OK || qn__tokens_ended(tokens) || !qn__tokens_is(tokens, "bilinear"))
        return status;
    layer->fitted = QN__BLENDS;
    qn__tokens_next(tokens);
    return QN_OK;
}

static void write(const qn__layer_text *layer, qn__text *text) {
    const uint32_t *factor = layer->window.kernel;
    qn__text_add(text, " %u", factor[0]);
    if (factor[0] != factor[1])
        qn__text_add(text, "x%u", factor[1]);
    if (layer->fitted == QN__BLENDS)
        qn__text_add(text, " bilinear");
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    const uint32_t *factor = text->window.kernel;
    const uint64_t to[2] = {(uint64_t)factor[0] * from.height, (uint64_t)factor[1] * from.width};
    const qn_status status = qn__window_fit(text, from, to, first, layer, err);
    if (status != QN_OK || text->fitted != QN__BLENDS)
        return status;
    layer->fitted = QN__BLENDS;
    layer->window.kernel[0] = factor[0] > 1 && from.height > 1 ? 2 : 1;
    layer->window.kernel[1] = factor[1] > 1 && from.width > 1 ? 2 : 1;
    return QN_OK;
}

/* The taps of all outputs of one direction: each pixel but the first has a share in so many outputs
 * before it. */
static uint64_t taps(uint32_t size, uint32_t limit) {
    const uint64_t factor = size / limit;
    return size + (limit - 1) * (factor - factor % 2);
}

/* A product and a sum for each tap. */
static qn__flops flops(const qn__layer *l) {
    if (l->fitted != QN__BLENDS)
        return qn__pool_flops(l);
    const uint64_t each =
        2 * taps(l->to.height, l->from.height) * taps(l->to.width, l->from.width) * l->to.channels;
    return (qn__flops){each, each, 0};
}

/* The weight of the input pixel at `input` in an output that reads it. */
static float share(const qn__layer *l, const qn__tap *t, size_t input) {
    const size_t pixel = input / l->from.channels;
    const uint32_t y = (uint32_t)(pixel / l->from.width), x = (uint32_t)(pixel % l->from.width);
    const uint32_t down = qn__blend_weight(t->y, y, l->to.height / l->from.height, l->from.height);
    const uint32_t along = qn__blend_weight(t->x, x, l->to.width / l->from.width, l->from.width);
    return (float)(down * along) * qn__blend_unit(l);
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    if (l->fitted != QN__BLENDS) {
        qn__mean_forward(l, bits, parameters, a, z);
        return;
    }
    for (uint32_t o = 0; o < l->out; ++o)
        z[o] = 0.0f;
    do {
        if (!qn__tap_find(l, t, &at))
            continue;
        const float weight = share(l, &t, at.input);
        for (uint32_t c = 0; c < l->to.channels; ++c) {
            const float part = a[at.input + c] * weight;
            z[at.output + c] = z[at.output + c] + part;
        }
    } while (qn__tap_next(l, &t));
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *sums, float *e) {
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    if (l->fitted != QN__BLENDS) {
        qn__mean_backward(l, bits, parameters, a, delta, sums, e);
        return;
    }
    for (uint32_t k = 0; k < l->in; ++k)
        e[k] = 0.0f;
    do {
        if (!qn__tap_find(l, t, &at))
            continue;
        const float weight = share(l, &t, at.input);
        for (uint32_t c = 0; c < l->to.channels; ++c) {
            const float part = delta[at.output + c] * weight;
            e[at.input + c] = e[at.input + c] + part;
        }
    } while (qn__tap_next(l, &t));
}

const qn__layer_ops qn__upsample = {
    .word = "upsample",
    .also = "upsampling upsampling2d interpolate nearest unpool upsamplingnearest2d "
            "upsamplingbilinear2d resize",
    .syntax = "upsample FACTOR [bilinear]",
    .bare = 1,
    .contract = 8,
    .parse = parse,
    .write = write,
    .make = make,
    .flops = flops,
    .forward = forward,
    .backward = backward};
