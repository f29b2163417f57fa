/* To be read together with docs/exactness.md 15, 17.12 and 25.24. */
#include "layer/product.h"

#include "layer/window.h"
#include "num/intgemm_reference.h"
#include <string.h>

/* t of the block of weights of channel o. */
static int32_t weight_exponent(int bits, const qn__layer *l, const float *parameters, uint32_t o) {
    return qn__block_exponent(
        bits, qn__absmax(l->depth, parameters + qn__layer_matrix(l) + (size_t)o * l->depth, 1));
}

static int64_t dot(uint32_t count, const float *a, float a_inverse, const float *b,
                   float b_inverse) {
    int64_t n = 0;
    for (uint32_t i = 0; i < count; ++i)
        n += (int64_t)qn__quantize(a[i], a_inverse) * qn__quantize(b[i], b_inverse);
    return n;
}

/* N of one output: channel o of the pixel (t.y, t.x). */
static int64_t output_of(const qn__layer *l, qn__tap t, const float *weights, float inverse,
                         const float *a, float a_inverse) {
    int64_t n = 0;
    qn__places at;
    for (t.ky = 0; t.ky < l->window.kernel[0]; ++t.ky)
        for (t.kx = 0; t.kx < l->window.kernel[1]; ++t.kx)
            if (qn__tap_find(l, t, &at))
                n += dot(l->from.channels, a + at.input, a_inverse, weights + at.weights, inverse);
    return n;
}

void qn__product_intgemm_forward(int bits, const qn__layer *l, const float *parameters,
                                 const float *a, float *z) {
    const int each = qn__layer_has_position_blocks(l);
    const uint32_t size = each ? l->from.channels : l->in; /* of a block of inputs */
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        const float *w = parameters + qn__layer_matrix(l) + (size_t)o * l->depth;
        const int32_t tw = weight_exponent(bits, l, parameters, o);
        qn__tap t = {0, 0, 0, 0};
        int32_t ta = 0;
        for (uint32_t at = o; at < l->out; at += l->to.channels) {
            if (at == o || each)
                ta = qn__block_exponent(bits, qn__absmax(size, a + at / l->to.channels * size, 1));
            const int64_t n = output_of(l, t, w, qn__block_inverse(tw), a, qn__block_inverse(ta));
            z[at] = fmaf((float)n, qn__block_factor(ta) * qn__block_factor(tw),
                         qn__product_bias(l, parameters, o));
            if (++t.x == l->to.width) {
                t.x = 0;
                ++t.y;
            }
        }
    }
}

/* The exponent of the errors of an item, or of `count` values of one of its positions, each times
 * the factor of its channel's weights. */
static int32_t error_exponent(int bits, const qn__layer *l, const float *parameters, uint32_t count,
                              const float *delta) {
    uint32_t absmax = 0;
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        const float factor = qn__block_factor(weight_exponent(bits, l, parameters, o));
        for (uint32_t at = o; at < count; at += l->to.channels) {
            const float c = delta[at] * factor;
            const uint32_t own = qn__absmax(1, &c, 1);
            absmax = own > absmax ? own : absmax;
        }
    }
    return qn__block_exponent(bits, absmax);
}

/* 25.24: each position by itself. */
static void position_backward(int bits, const qn__layer *l, const float *parameters,
                              const float *delta, int64_t *sums, float *e) {
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    do {
        qn__tap_find(l, t, &at);
        const float *d = delta + at.output;
        const int32_t tc = error_exponent(bits, l, parameters, l->to.channels, d);
        memset(sums, 0, l->from.channels * sizeof *sums);
        for (uint32_t o = 0; o < l->to.channels; ++o) {
            const float *w = parameters + l->weights + (size_t)o * l->depth;
            const int32_t tw = weight_exponent(bits, l, parameters, o);
            const int64_t c = qn__quantize(d[o] * qn__block_factor(tw), qn__block_inverse(tc));
            for (uint32_t k = 0; k < l->from.channels; ++k)
                sums[k] += c * qn__quantize(w[k], qn__block_inverse(tw));
        }
        for (uint32_t k = 0; k < l->from.channels; ++k)
            e[at.input + k] = (float)sums[k] * qn__block_factor(tc);
    } while (qn__tap_next(l, &t));
}

void qn__product_intgemm_backward(int bits, const qn__layer *l, const float *parameters,
                                  const float *delta, int64_t *sums, float *e) {
    if (qn__layer_has_position_blocks(l)) {
        position_backward(bits, l, parameters, delta, sums, e);
        return;
    }
    const int32_t tc = error_exponent(bits, l, parameters, l->out, delta);
    memset(sums, 0, l->in * sizeof *sums);
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        const float *w = parameters + qn__layer_matrix(l) + (size_t)o * l->depth;
        const int32_t tw = weight_exponent(bits, l, parameters, o);
        const float factor = qn__block_factor(tw), inverse = qn__block_inverse(tw);
        qn__tap t = {0, 0, 0, 0};
        qn__places at;
        do {
            if (!qn__tap_find(l, t, &at))
                continue;
            const int64_t c = qn__quantize(delta[at.output + o] * factor, qn__block_inverse(tc));
            for (uint32_t k = 0; k < l->from.channels; ++k)
                sums[at.input + k] += c * qn__quantize(w[at.weights + k], inverse);
        } while (qn__tap_next(l, &t));
    }
    for (uint32_t k = 0; k < l->in; ++k)
        e[k] = (float)sums[k] * qn__block_factor(tc);
}

/* N of the weight of channel o, tap (t.ky, t.kx) and input channel k. */
static int64_t weight_of(const qn__layer *l, qn__tap t, uint64_t items, const float *a,
                         float a_inverse, uint32_t k, const float *d, float d_inverse, uint32_t o) {
    int64_t n = 0;
    qn__places at;
    for (t.y = 0; t.y < l->to.height; ++t.y)
        for (t.x = 0; t.x < l->to.width; ++t.x)
            for (uint64_t i = 0; i < items && qn__tap_find(l, t, &at); ++i)
                n += (int64_t)qn__quantize(d[i * l->out + at.output + o], d_inverse) *
                     qn__quantize(a[i * l->in + at.input + k], a_inverse);
    return n;
}

int qn__product_intgemm_gradient(int bits, const qn__layer *l, uint64_t items, const float *a,
                                 const float *d, float limit, int64_t *to) {
    const int32_t ta = qn__block_exponent(bits, qn__absmax(items * l->in, a, 1));
    const int32_t td = qn__block_exponent(bits, qn__absmax(items * l->out, d, 1));
    if (ta == QN__NOT_FINITE || td == QN__NOT_FINITE)
        return 0;
    for (uint32_t o = 0; o < l->to.channels; ++o)
        for (uint32_t k = 0; k < l->depth; ++k) {
            const uint32_t tap = k / l->from.channels, width = l->window.kernel[1];
            const int64_t n =
                weight_of(l, (qn__tap){0, 0, tap / width, tap % width}, items, a,
                          qn__block_inverse(ta), k % l->from.channels, d, qn__block_inverse(td), o);
            if (!qn__intgemm_units(n, (int64_t)ta + td, limit, to + (size_t)o * l->depth + k))
                return 0;
        }
    return 1;
}
