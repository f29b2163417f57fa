/* The operations of intgemm.inc for AVX2, in addition to vec_avx2.h; they are explained there. */
#ifndef QN_DEVICE_CPU_INTEGER_VEC_INT_AVX2_H
#define QN_DEVICE_CPU_INTEGER_VEC_INT_AVX2_H

#include "device/cpu/float/vec_avx2.h"

typedef __m256d vd;

static inline vi v_round(vf x) { return _mm256_cvtps_epi32(x); }

static inline void vi_transpose(vi x[VL]) {
    vi pairs[VL], fours[VL];
    for (int i = 0; i < VL; i += 2) {
        pairs[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (int i = 0; i < VL; i += 4)
        for (int j = 0; j < 2; ++j) {
            fours[i + 2 * j] = _mm256_unpacklo_epi64(pairs[i + j], pairs[i + 2 + j]);
            fours[i + 2 * j + 1] = _mm256_unpackhi_epi64(pairs[i + j], pairs[i + 2 + j]);
        }
    for (int i = 0; i < 4; ++i) {
        x[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
        x[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
    }
}

static inline vd vd_zero(void) { return _mm256_setzero_pd(); }
static inline vd vd_set(double c) { return _mm256_set1_pd(c); }
static inline vd vd_load(const double *p) { return _mm256_loadu_pd(p); }
static inline void vd_store(double *p, vd a) { _mm256_storeu_pd(p, a); }
static inline vd vd_add(vd a, vd b) { return _mm256_add_pd(a, b); }
static inline vd vd_mul(vd a, vd b) { return _mm256_mul_pd(a, b); }
static inline vd vd_fma(vd a, vd b, vd c) { return _mm256_fmadd_pd(a, b, c); }
static inline vd vd_rint(vd a) {
    return _mm256_round_pd(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vd vd_low(vi x) { return _mm256_cvtepi32_pd(_mm256_castsi256_si128(x)); }
static inline vd vd_high(vi x) { return _mm256_cvtepi32_pd(_mm256_extracti128_si256(x, 1)); }
static inline vf v_narrow(vd low, vd high) {
    return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

/* Pairs of 16-bit integers: the first is in the low half of each lane. */
typedef vi va;
static inline va va_load(const int32_t *a, uint32_t r) { return _mm256_set1_epi32(a[r]); }
/* GCC would otherwise read it from memory again for each row. */
static inline vi vb_load(const int32_t *p) {
    vi b = vi_load(p);
    __asm__("" : "+x"(b));
    return b;
}
static inline vi vi_pair(vi a, vi b) {
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
}
static inline vi vi_squares(vi x) { return _mm256_madd_epi16(x, x); }
static inline vi vi_dot(vi acc, va a, vi b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}

#endif
