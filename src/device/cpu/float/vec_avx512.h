/* Sixteen lanes of float with AVX-512 (F, VL, BW and DQ). The names are explained in vec_scalar.h
 * and num/elementary.inc; for v_min and v_max see also vec_avx2.h. */
#ifndef QN_DEVICE_CPU_FLOAT_VEC_AVX512_H
#define QN_DEVICE_CPU_FLOAT_VEC_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#define VL 16

typedef __m512 vf;
typedef __m512i vi;

static inline vf v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void v_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
static inline void vi_store(int32_t *p, vi a) { _mm512_storeu_si512(p, a); }

static inline vf v_set(float c) { return _mm512_set1_ps(c); }
static inline vi vi_set(int32_t c) { return _mm512_set1_epi32(c); }
static inline vf v_zero(void) { return _mm512_setzero_ps(); }

static inline vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf v_sqrt(vf a) { return _mm512_sqrt_ps(a); }
static inline vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }

static inline vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf v_sel_lt(vf a, vf b, vf x, vf y) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

static inline vi v_bits(vf a) { return _mm512_castps_si512(a); }
static inline vf v_float(vi i) { return _mm512_castsi512_ps(i); }
static inline vf v_cvt(vi i) { return _mm512_cvtepi32_ps(i); }

static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
static inline vi vi_max(vi a, vi b) { return _mm512_max_epi32(a, b); }
/* Macros: the shift count must be an immediate, which a function argument is not without
 * inlining. */
#define vi_shl(i, s) _mm512_slli_epi32((i), (s))
#define vi_sar(i, s) _mm512_srai_epi32((i), (s))

#endif
