/* The CPU's kernels for 64-bit ARM. */
#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/float/map.h"
#include "device/cpu/float/vec_neon.h"
#include <string.h>

#define K(name) qn_cpu_##name##_f32_neon
#define MAP(name) qn__cpu_map_##name##_f32_neon
#define KERNELS qn__cpu_kernels_neon
#define ISA_NAME "neon"
#define MM_ROWS 6
#define MM_PANELS 1
#define MM_BLOCK 144u
#define OUT_ROWS 4
#define OUT_PANELS 1
#define OUT_ALONE 4
#define OUT_PIECE 96
#define SPARSE_ROWS 2
#define SPARSE_PANELS 2

static inline vf v_load_bytes(const uint8_t *p) {
    uint32_t four;
    memcpy(&four, p, sizeof four);
    const uint16x8_t wide = vmovl_u8(vcreate_u8(four));
    return vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide)));
}

static inline vf v_rint(vf x) { return vrndnq_f32(x); }

/* Four columns of 4 rows. */
static inline __attribute__((always_inline)) void v_load_quad(const float *p, size_t apart,
                                                              vf r[4]) {
    const vf a = v_load(p), b = v_load(p + apart), c = v_load(p + 2 * apart);
    const vf d = v_load(p + 3 * apart);
    const float64x2_t ab = vreinterpretq_f64_f32(vzip1q_f32(a, b));
    const float64x2_t cd = vreinterpretq_f64_f32(vzip1q_f32(c, d));
    const float64x2_t ab_high = vreinterpretq_f64_f32(vzip2q_f32(a, b));
    const float64x2_t cd_high = vreinterpretq_f64_f32(vzip2q_f32(c, d));
    r[0] = vreinterpretq_f32_f64(vzip1q_f64(ab, cd));
    r[1] = vreinterpretq_f32_f64(vzip2q_f64(ab, cd));
    r[2] = vreinterpretq_f32_f64(vzip1q_f64(ab_high, cd_high));
    r[3] = vreinterpretq_f32_f64(vzip2q_f64(ab_high, cd_high));
}

static inline void v_widen(double *s, vf x, int add) {
    const float64x2_t low = vcvt_f64_f32(vget_low_f32(x)), high = vcvt_high_f64_f32(x);
    vst1q_f64(s, add ? vaddq_f64(vld1q_f64(s), low) : low);
    vst1q_f64(s + 2, add ? vaddq_f64(vld1q_f64(s + 2), high) : high);
}

static inline vf v_round_sums(const double *s) {
    return vcvt_high_f32_f64(vcvt_f32_f64(vld1q_f64(s)), vld1q_f64(s + 2));
}

static inline uint32_t v_nonzero(vf x) {
    const uint32x4_t bits = {1, 2, 4, 8};
    return vaddvq_u32(vandq_u32(vtstq_s32(v_bits(x), v_bits(x)), bits));
}

#define TRANSPOSE_SIDE 2

static inline void v_transpose(const int64_t *from, size_t from_stride, int64_t *to,
                               size_t to_stride) {
    const int64x2_t a = vld1q_s64(from), b = vld1q_s64(from + from_stride);
    vst1q_s64(to, vtrn1q_s64(a, b));
    vst1q_s64(to + to_stride, vtrn2q_s64(a, b));
}

#include "device/cpu/float/table.inc"
