/* Integer products for 64-bit ARM: smlal. */
#include "device/cpu/integer/intgemm.h"
#include "device/cpu/integer/vec_int_neon.h"
#include <string.h>

#define K(name) qn_cpu_##name##_int_neon
#define INTGEMM qn__intgemm_neon
#define INT_NAME "neon"
#define INT_ROWS 4
#define INT_PANELS 1
#define GROUP 2

/* Lanes of four rows or columns are grouped: the four integers of the first k, then those of the
 * second, since smlal multiplies adjacent lanes and does not add them. */
typedef struct va {
    int16x4_t first;
    int16x8_t second;
} va;

static inline va va_load(const int32_t *a, uint32_t r) {
    const int16_t *p = (const int16_t *)(a + r / 4 * 4) + r % 4;
    return (va){vld1_dup_s16(p), vld1q_dup_s16(p + 4)};
}

static inline vi vi_pair(vi a, vi b) {
    return vreinterpretq_s32_s16(vuzp1q_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)));
}

static inline vi vb_load(const int32_t *p) { return vi_load(p); }

static inline vi vi_squares(vi x) {
    const int16x8_t two = vreinterpretq_s16_s32(x);
    return vmlal_high_s16(vmull_s16(vget_low_s16(two), vget_low_s16(two)), two, two);
}

static inline vi vi_dot(vi acc, va a, vi b) {
    const int16x8_t two = vreinterpretq_s16_s32(b);
    return vmlal_high_s16(vmlal_s16(acc, vget_low_s16(two), a.first), two, a.second);
}

#include "device/cpu/integer/intgemm_tile.inc"

#include "device/cpu/integer/intgemm_pairs.inc"

#include "device/cpu/integer/intgemm.inc"
