/* The operations of intgemm.inc for AVX-512, in addition to vec_avx512.h; they are explained there.
 * A file with a better vi_dot defines VI_DOT. */
#ifndef QN_DEVICE_CPU_INTEGER_VEC_INT_AVX512_H
#define QN_DEVICE_CPU_INTEGER_VEC_INT_AVX512_H

#include "device/cpu/float/vec_avx512.h"

typedef __m512d vd;

static inline vi v_round(vf x) { return _mm512_cvtps_epi32(x); }

/* Four vectors of four quarters each, transposed: to[i] holds quarter i of each. */
static inline void transpose_quarters(const vi x[4], vi *to, int stride) {
    const vi low = _mm512_shuffle_i64x2(x[0], x[1], 0x44);
    const vi high = _mm512_shuffle_i64x2(x[0], x[1], 0xee);
    const vi low_2 = _mm512_shuffle_i64x2(x[2], x[3], 0x44);
    const vi high_2 = _mm512_shuffle_i64x2(x[2], x[3], 0xee);
    to[0] = _mm512_shuffle_i64x2(low, low_2, 0x88);
    to[stride] = _mm512_shuffle_i64x2(low, low_2, 0xdd);
    to[2 * stride] = _mm512_shuffle_i64x2(high, high_2, 0x88);
    to[3 * stride] = _mm512_shuffle_i64x2(high, high_2, 0xdd);
}

static inline void vi_transpose(vi x[VL]) {
    vi pairs[VL], column[4][4]; /* [i][g]: from rows 4g..4g+3 the columns i, i+4, i+8, i+12 */
    for (int i = 0; i < VL; i += 2) {
        pairs[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (int g = 0; g < 4; ++g)
        for (int j = 0; j < 2; ++j) {
            const vi a = pairs[4 * g + j], b = pairs[4 * g + 2 + j];
            column[2 * j][g] = _mm512_unpacklo_epi64(a, b);
            column[2 * j + 1][g] = _mm512_unpackhi_epi64(a, b);
        }
    for (int i = 0; i < 4; ++i)
        transpose_quarters(column[i], x + i, 4);
}

static inline vd vd_zero(void) { return _mm512_setzero_pd(); }
static inline vd vd_set(double c) { return _mm512_set1_pd(c); }
static inline vd vd_load(const double *p) { return _mm512_loadu_pd(p); }
static inline void vd_store(double *p, vd a) { _mm512_storeu_pd(p, a); }
static inline vd vd_add(vd a, vd b) { return _mm512_add_pd(a, b); }
static inline vd vd_mul(vd a, vd b) { return _mm512_mul_pd(a, b); }
static inline vd vd_fma(vd a, vd b, vd c) { return _mm512_fmadd_pd(a, b, c); }
/* Without optimisation the intrinsic is a macro that passes a full mask as a signed number. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
static inline vd vd_rint(vd a) {
    return _mm512_roundscale_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#pragma GCC diagnostic pop
static inline vd vd_low(vi x) { return _mm512_cvtepi32_pd(_mm512_castsi512_si256(x)); }
static inline vd vd_high(vi x) { return _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(x, 1)); }
static inline vf v_narrow(vd low, vd high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high),
                              1);
}

/* Pairs of 16-bit integers: the first is in the low half of each lane. */
typedef vi va;
static inline va va_load(const int32_t *a, uint32_t r) { return _mm512_set1_epi32(a[r]); }
static inline vi vb_load(const int32_t *p) { return vi_load(p); }
static inline vi vi_pair(vi a, vi b) {
    return vi_or(vi_and(a, vi_set(0xffff)), _mm512_slli_epi32(b, 16));
}
static inline vi vi_squares(vi x) { return _mm512_madd_epi16(x, x); }
#ifndef VI_DOT
#define VI_DOT(acc, a, b) _mm512_add_epi32((acc), _mm512_madd_epi16((a), (b)))
#endif
static inline vi vi_dot(vi acc, va a, vi b) { return VI_DOT(acc, a, b); }

#endif
