/* Four lanes of float with NEON (every AArch64). The names are explained in vec_scalar.h and
 * num/elementary.inc.
 *
 * NEON's own minimum and maximum return NaN when either argument is NaN and order -0 below +0.
 * v_min and v_max are therefore a comparison and a selection. 32-bit ARM is not supported: its NEON
 * has neither division nor subnormals. */
#ifndef QN_DEVICE_CPU_FLOAT_VEC_NEON_H
#define QN_DEVICE_CPU_FLOAT_VEC_NEON_H

#include <arm_neon.h>
#include <stdint.h>

#define VL 4

typedef float32x4_t vf;
typedef int32x4_t vi;

static inline vf v_load(const float *p) { return vld1q_f32(p); }
static inline void v_store(float *p, vf a) { vst1q_f32(p, a); }
static inline vi vi_load(const int32_t *p) { return vld1q_s32(p); }
static inline void vi_store(int32_t *p, vi a) { vst1q_s32(p, a); }

static inline vf v_set(float c) { return vdupq_n_f32(c); }
static inline vi vi_set(int32_t c) { return vdupq_n_s32(c); }
static inline vf v_zero(void) { return vdupq_n_f32(0.0f); }

static inline vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
static inline vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
static inline vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
static inline vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
static inline vf v_sqrt(vf a) { return vsqrtq_f32(a); }
static inline vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
static inline vf v_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }

static inline vf v_sel_lt(vf a, vf b, vf x, vf y) { return vbslq_f32(vcltq_f32(a, b), x, y); }
static inline vf v_min(vf a, vf b) { return v_sel_lt(a, b, a, b); }
static inline vf v_max(vf a, vf b) { return v_sel_lt(b, a, a, b); }

static inline vi v_bits(vf a) { return vreinterpretq_s32_f32(a); }
static inline vf v_float(vi i) { return vreinterpretq_f32_s32(i); }
static inline vf v_cvt(vi i) { return vcvtq_f32_s32(i); }

static inline vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
static inline vi vi_sub(vi a, vi b) { return vsubq_s32(a, b); }
static inline vi vi_and(vi a, vi b) { return vandq_s32(a, b); }
static inline vi vi_or(vi a, vi b) { return vorrq_s32(a, b); }
static inline vi vi_max(vi a, vi b) { return vmaxq_s32(a, b); }
/* Macros: the shift count must be an immediate, which a function argument is not without
 * inlining. */
#define vi_shl(i, s) vshlq_n_s32((i), (s))
#define vi_sar(i, s) vshrq_n_s32((i), (s))

#endif
