/* The operations of intgemm.inc for NEON, in addition to vec_neon.h; they are explained there. */
#ifndef QN_DEVICE_CPU_INTEGER_VEC_INT_NEON_H
#define QN_DEVICE_CPU_INTEGER_VEC_INT_NEON_H

#include "device/cpu/float/vec_neon.h"

typedef float64x2_t vd;

static inline vi v_round(vf x) { return vcvtnq_s32_f32(x); }

static inline void vi_transpose(vi x[VL]) {
    int64x2_t pairs[VL];
    for (int i = 0; i < VL; i += 2) {
        pairs[i] = vreinterpretq_s64_s32(vtrn1q_s32(x[i], x[i + 1]));
        pairs[i + 1] = vreinterpretq_s64_s32(vtrn2q_s32(x[i], x[i + 1]));
    }
    for (int i = 0; i < 2; ++i) {
        x[i] = vreinterpretq_s32_s64(vtrn1q_s64(pairs[i], pairs[i + 2]));
        x[i + 2] = vreinterpretq_s32_s64(vtrn2q_s64(pairs[i], pairs[i + 2]));
    }
}

static inline vd vd_zero(void) { return vdupq_n_f64(0.0); }
static inline vd vd_set(double c) { return vdupq_n_f64(c); }
static inline vd vd_load(const double *p) { return vld1q_f64(p); }
static inline void vd_store(double *p, vd a) { vst1q_f64(p, a); }
static inline vd vd_add(vd a, vd b) { return vaddq_f64(a, b); }
static inline vd vd_mul(vd a, vd b) { return vmulq_f64(a, b); }
static inline vd vd_fma(vd a, vd b, vd c) { return vfmaq_f64(c, a, b); }
static inline vd vd_rint(vd a) { return vrndnq_f64(a); }
static inline vd vd_low(vi x) { return vcvtq_f64_s64(vmovl_s32(vget_low_s32(x))); }
static inline vd vd_high(vi x) { return vcvtq_f64_s64(vmovl_high_s32(x)); }
static inline vf v_narrow(vd low, vd high) { return vcvt_high_f32_f64(vcvt_f32_f64(low), high); }

#endif
