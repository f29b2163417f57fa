/* To be read together with docs/exactness.md 15, 17.12 and 25.24. */
#include "layer/product.h"

#include "layer/window.h"
#include "num/intgemm_reference.h"
#include "num/window_blocks.h"
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

/* t of the block of all that the pixel (t.y, t.x) of an output reads. */
static int32_t window_exponent(int bits, const qn__layer *l, qn__tap t, const float *a) {
    uint32_t absmax = 0;
    qn__places at;
    for (t.ky = 0; t.ky < l->window.kernel[0]; ++t.ky)
        for (t.kx = 0; t.kx < l->window.kernel[1]; ++t.kx)
            if (qn__tap_find(l, t, &at)) {
                const uint32_t own = qn__absmax(l->from.channels, a + at.input, 1);
                absmax = own > absmax ? own : absmax;
            }
    return qn__block_exponent(bits, absmax);
}

void qn__product_intgemm_forward(int bits, const qn__layer *l, const float *parameters,
                                 const float *a, float *z) {
    const int each = qn__layer_has_window_blocks(l);
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        const float *w = parameters + qn__layer_matrix(l) + (size_t)o * l->depth;
        const int32_t tw = weight_exponent(bits, l, parameters, o);
        qn__tap t = {0, 0, 0, 0};
        int32_t ta = each ? 0 : qn__block_exponent(bits, qn__absmax(l->in, a, 1));
        for (uint32_t at = o; at < l->out; at += l->to.channels) {
            if (each)
                ta = window_exponent(bits, l, t, a);
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

/* The exponent of the errors of an item, each times the factor of its channel's weights. */
static int32_t error_exponent(int bits, const qn__layer *l, const float *parameters,
                              const float *delta) {
    uint32_t absmax = 0;
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        const float factor = qn__block_factor(weight_exponent(bits, l, parameters, o));
        for (uint32_t at = o; at < l->out; at += l->to.channels) {
            const float c = delta[at] * factor;
            const uint32_t own = qn__absmax(1, &c, 1);
            absmax = own > absmax ? own : absmax;
        }
    }
    return qn__block_exponent(bits, absmax);
}

/* A pixel of the input, from its first value on: the absmax of its block of errors. */
static uint32_t absmax_at(const float *e) {
    uint32_t bits;
    memcpy(&bits, e, sizeof bits);
    return bits;
}

/* Puts these absmax into `e`. */
static void find_error_blocks(int bits, const qn__layer *l, const float *parameters,
                              const float *delta, float *e) {
    memset(e, 0, l->in * sizeof *e);
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        const float factor = qn__block_factor(weight_exponent(bits, l, parameters, o));
        qn__tap t = {0, 0, 0, 0};
        qn__places at;
        do {
            if (!qn__tap_find(l, t, &at))
                continue;
            const float c = delta[at.output + o] * factor;
            const uint32_t own = qn__absmax(1, &c, 1);
            if (own > absmax_at(e + at.input))
                memcpy(e + at.input, &own, sizeof own);
        } while (qn__tap_next(l, &t));
    }
}

/* 25.24: a block for each pixel of the input. */
static void position_backward(int bits, const qn__layer *l, const float *parameters,
                              const float *delta, int64_t *sums, float *e) {
    const uint32_t channels = l->from.channels;
    find_error_blocks(bits, l, parameters, delta, e);
    memset(sums, 0, l->in * sizeof *sums);
    for (uint32_t o = 0; o < l->to.channels; ++o) {
        const float *w = parameters + qn__layer_matrix(l) + (size_t)o * l->depth;
        const int32_t tw = weight_exponent(bits, l, parameters, o);
        qn__tap t = {0, 0, 0, 0};
        qn__places at;
        do {
            if (!qn__tap_find(l, t, &at))
                continue;
            const int32_t tc = qn__block_exponent(bits, absmax_at(e + at.input));
            const int64_t c =
                qn__quantize(delta[at.output + o] * qn__block_factor(tw), qn__block_inverse(tc));
            for (uint32_t k = 0; k < channels; ++k)
                sums[at.input + k] += c * qn__quantize(w[at.weights + k], qn__block_inverse(tw));
        } while (qn__tap_next(l, &t));
    }
    for (uint32_t p = 0; p < l->in; p += channels) {
        const float factor = qn__block_factor(qn__block_exponent(bits, absmax_at(e + p)));
        for (uint32_t k = p; k < p + channels; ++k)
            e[k] = (float)sums[k] * factor;
    }
}

void qn__product_intgemm_backward(int bits, const qn__layer *l, const float *parameters,
                                  const float *delta, int64_t *sums, float *e) {
    if (qn__layer_has_window_blocks(l)) {
        position_backward(bits, l, parameters, delta, sums, e);
        return;
    }
    const int32_t tc = error_exponent(bits, l, parameters, delta);
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
