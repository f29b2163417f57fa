/* To be read together with docs/exactness.md 15, like reference.c. */
#include "num/intgemm_reference.h"

#include <string.h>

uint32_t qn__absmax(uint64_t count, const float *v, uint64_t stride) {
    uint32_t absmax = 0;
    for (uint64_t i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, v + i * stride, sizeof bits);
        bits &= 0x7fffffffu;
        absmax = bits > absmax ? bits : absmax;
    }
    return absmax;
}

int qn__intgemm_units(int64_t n, int64_t s, float limit, int64_t *units) {
    const int64_t bound = ilogbf(limit) - s; /* |n| must be below 2^bound */
    const uint64_t size = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    if (n == 0 || s < -63) {
        *units = 0; /* |n| is below 2^63, so n * 2^s is below 1/2 */
        return 1;
    }
    if (bound < 0 || (bound < 64 && size >> bound != 0))
        return 0;
    if (s >= 0) {
        *units = n * (INT64_C(1) << s);
        return 1;
    }
    /* The quotient, rounded down, and the remainder, which is not negative. */
    const uint64_t unit = UINT64_C(1) << -s, half = unit >> 1, rest = (uint64_t)n & (unit - 1);
    const int64_t whole = n >> -s;
    *units = whole + (rest > half || (rest == half && (whole & 1)));
    return 1;
}

/* t of the block of weights of output o. */
static int32_t row_exponent(int bits, const qn__layer *l, const float *parameters, uint32_t o) {
    const float *w = parameters + l->weights + (size_t)o * l->in;
    return qn__block_exponent(bits, qn__absmax(l->in, w, 1));
}

void qn__intgemm_forward(int bits, const qn__layer *l, const float *parameters, const float *a,
                         float *z) {
    const int32_t ta = qn__block_exponent(bits, qn__absmax(l->in, a, 1));
    for (uint32_t o = 0; o < l->out; ++o) {
        const float *w = parameters + l->weights + (size_t)o * l->in;
        const int32_t tw = row_exponent(bits, l, parameters, o);
        const float factor = qn__block_factor(ta) * qn__block_factor(tw);
        int64_t n = 0;
        for (uint32_t k = 0; k < l->in; ++k)
            n += (int64_t)qn__quantize(a[k], qn__block_inverse(ta)) *
                 qn__quantize(w[k], qn__block_inverse(tw));
        z[o] = fmaf((float)n, factor, parameters[l->biases + o]);
    }
}

void qn__intgemm_backward(int bits, const qn__layer *l, const float *parameters, const float *delta,
                          int64_t *sums, float *e) {
    uint32_t absmax = 0;
    for (uint32_t o = 0; o < l->out; ++o) {
        const float d = delta[o] * qn__block_factor(row_exponent(bits, l, parameters, o));
        const uint32_t own = qn__absmax(1, &d, 1);
        absmax = own > absmax ? own : absmax;
    }
    const int32_t td = qn__block_exponent(bits, absmax);
    memset(sums, 0, l->in * sizeof *sums);
    for (uint32_t o = 0; o < l->out; ++o) {
        const float *w = parameters + l->weights + (size_t)o * l->in;
        const int32_t tw = row_exponent(bits, l, parameters, o);
        const int64_t d = qn__quantize(delta[o] * qn__block_factor(tw), qn__block_inverse(td));
        for (uint32_t k = 0; k < l->in; ++k)
            sums[k] += d * qn__quantize(w[k], qn__block_inverse(tw));
    }
    for (uint32_t k = 0; k < l->in; ++k)
        e[k] = (float)sums[k] * qn__block_factor(td);
}

int qn__intgemm_gradient(int bits, const qn__layer *l, uint64_t items, const float *a,
                         const float *d, float limit, int64_t *to) {
    const int32_t ta = qn__block_exponent(bits, qn__absmax(items * l->in, a, 1));
    const int32_t td = qn__block_exponent(bits, qn__absmax(items * l->out, d, 1));
    if (ta == QN__NOT_FINITE || td == QN__NOT_FINITE)
        return 0;
    for (uint32_t o = 0; o < l->out; ++o)
        for (uint32_t k = 0; k < l->in; ++k) {
            int64_t n = 0;
            for (uint64_t i = 0; i < items; ++i)
                n += (int64_t)qn__quantize(d[i * l->out + o], qn__block_inverse(td)) *
                     qn__quantize(a[i * l->in + k], qn__block_inverse(ta));
            if (!qn__intgemm_units(n, (int64_t)ta + td, limit, to + (size_t)o * l->in + k))
                return 0;
        }
    return 1;
}
