/* Eight lanes of float with AVX2 and FMA (x86-64 from Haswell and Zen on). The names are explained
 * in vec_scalar.h and num/elementary.inc.
 *
 * minps and maxps return the second argument when either is NaN and when both are zeros. a < b ? a
 * : b does the same, so they implement v_min and v_max. */
#ifndef QN_DEVICE_CPU_FLOAT_VEC_AVX2_H
#define QN_DEVICE_CPU_FLOAT_VEC_AVX2_H

#include <immintrin.h>
#include <stdint.h>

#define VL 8

typedef __m256 vf;
typedef __m256i vi;

static inline vf v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
static inline vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void vi_store(int32_t *p, vi a) { _mm256_storeu_si256((__m256i *)p, a); }

static inline vf v_set(float c) { return _mm256_set1_ps(c); }
static inline vi vi_set(int32_t c) { return _mm256_set1_epi32(c); }
static inline vf v_zero(void) { return _mm256_setzero_ps(); }

static inline vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf v_sqrt(vf a) { return _mm256_sqrt_ps(a); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }

static inline vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf v_sel_lt(vf a, vf b, vf x, vf y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

static inline vi v_bits(vf a) { return _mm256_castps_si256(a); }
static inline vf v_float(vi i) { return _mm256_castsi256_ps(i); }
static inline vf v_cvt(vi i) { return _mm256_cvtepi32_ps(i); }

static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
static inline vi vi_max(vi a, vi b) { return _mm256_max_epi32(a, b); }
/* Macros: the shift count must be an immediate, which a function argument is not without
 * inlining. */
#define vi_shl(i, s) _mm256_slli_epi32((i), (s))
#define vi_sar(i, s) _mm256_srai_epi32((i), (s))

#endif
