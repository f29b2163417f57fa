/* Integer products for 64-bit ARM with the dot product of bytes: sdot. i7 is a byte. i14 is two
 * bytes, high * 128 + low with low from -64 to 63, and their sum is stored as a third. Three
 * products of bytes, high * high, low * low and sum * sum, replace four (Karatsuba). */
#include "device/cpu/integer/intgemm.h"
#include "device/cpu/integer/vec_int_neon.h"
#include <string.h>

#define K(name) qn_cpu_##name##_int_dotprod
#define INTGEMM qn__intgemm_dotprod
#define INT_NAME "dotprod"
#define INT_ROWS 4
#define INT_PANELS 1
#define GROUP 4

typedef int8x16_t va;

static inline va va_load(const int32_t *a, uint32_t r) {
    return vreinterpretq_s8_s32(vdupq_n_s32(a[r]));
}

static inline vi vb_load(const int32_t *p) { return vi_load(p); }

static inline vi vi_dot(vi acc, va a, vi b) { return vdotq_s32(acc, a, vreinterpretq_s8_s32(b)); }

/* The low bytes of four integers. */
static inline vi four_bytes(vi a, vi b, vi c, vi d) {
    return vsliq_n_s32(vsliq_n_s32(vsliq_n_s32(a, b, 8), c, 16), d, 24);
}

#include "device/cpu/integer/intgemm_tile.inc"

/* Lanes of the bytes of one kind (high, low or sum): a plane. */
static inline size_t K(plane)(uint32_t k) { return ((size_t)k + 3) / 4 * QN__PANEL; }

static inline size_t K(value_lanes)(int bits, uint32_t k) {
    return K(plane)(k) * (bits == 7 ? 1 : 3);
}

static size_t K(narrow_size)(int bits, uint32_t k) {
    return K(value_lanes)(bits, k) * sizeof(int32_t);
}

/* A byte can hold a doubled integer of 7 bits, but not a doubled sum of both bytes of 14 bits. */
static inline int K(narrow_doublings)(int bits, uint32_t k) {
    (void)k;
    return bits == 7 ? 1 : 0;
}

/* No state is needed while packing. */
typedef struct K(tally) {
    char none;
} K(tally);

static inline void K(plan)(K(tally) *tally, uint32_t k, const uint8_t *doubled) {
    (void)tally;
    (void)k;
    (void)doubled;
}

static inline void K(put_end)(int bits, uint32_t k, const int32_t *to, const K(tally) *tally) {
    (void)bits;
    (void)k;
    (void)to;
    (void)tally;
}

static inline void K(note_zeros)(uint32_t k, const int32_t *to) {
    (void)k;
    (void)to;
}

static inline void K(put)(int bits, const vi q[GROUP], uint32_t k, uint32_t t, uint32_t lane,
                          int32_t *to, const K(tally) *tally) {
    const size_t plane = K(plane)(k);
    vi high[GROUP], low[GROUP];
    (void)tally;
    to += (size_t)t / GROUP * QN__PANEL + lane;
    if (bits == 7) {
        vi_store(to, four_bytes(q[0], q[1], q[2], q[3]));
        return;
    }
    for (int i = 0; i < GROUP; ++i) {
        high[i] = vi_sar(vi_add(q[i], vi_set(64)), 7);
        low[i] = vi_sub(q[i], vi_shl(high[i], 7));
    }
    vi_store(to, four_bytes(high[0], high[1], high[2], high[3]));
    vi_store(to + plane, four_bytes(low[0], low[1], low[2], low[3]));
    for (int i = 0; i < GROUP; ++i)
        high[i] = vi_add(high[i], low[i]);
    vi_store(to + 2 * plane, four_bytes(high[0], high[1], high[2], high[3]));
}

/* N = hh * 2^14 + mid * 2^7 + ll, where mid = ss - hh - ll, in the form of K(WIDE): the low parts
 * of hh and mid, below 2^16, are added to ll. */
static inline void K(join)(vi hh, vi ll, vi ss, int32_t *high, int32_t *low) {
    const vi mid = vi_sub(vi_sub(ss, hh), ll);
    const vi rest =
        vi_add(vi_shl(vi_and(hh, vi_set(3)), 14), vi_add(vi_shl(vi_and(mid, vi_set(511)), 7), ll));
    vi_store(high, vi_add(vi_add(vi_sar(hh, 2), vi_sar(mid, 9)), vi_sar(rest, 16)));
    vi_store(low, vi_and(rest, vi_set(0xffff)));
}

/* A lane can hold the products of K(chunk) bytes. */
static void K(narrow)(int bits, uint32_t rows, uint32_t panels, uint32_t k, uint32_t t, uint32_t n,
                      const int32_t *a, const int32_t *b, K(sums) *s) {
    const size_t plane = K(plane)(k), skip = (size_t)t / 4 * QN__PANEL;
    const size_t b_stride = bits == 7 ? plane : 3 * plane;
    const uint32_t groups = (n + 3) / 4;
    K(sums) l, m;
    K(tiles)(rows, panels, NULL, groups, groups, a + skip, b + skip, b_stride, s);
    if (bits == 7)
        return;
    a += skip + plane;
    b += skip + plane;
    K(tiles)(rows, panels, NULL, groups, groups, a, b, b_stride, &l);
    K(tiles)(rows, panels, NULL, groups, groups, a + plane, b + plane, b_stride, &m);
    s->kind = K(WIDE);
    for (uint32_t r = 0; r < rows; ++r)
        for (int v = 0; v < NV; ++v) {
            const size_t i = K(at)(0, r, v);
            K(join)
            (vi_load(s->low + i), vi_load(l.low + i), vi_load(m.low + i), s->high + i, s->low + i);
        }
}

#include "device/cpu/integer/intgemm.inc"
