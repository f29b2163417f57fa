/* The CPU's kernels for x86-64 with AVX-512 (F, DQ, VL, BW). */
#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/float/map.h"
#include "device/cpu/float/vec_avx512.h"
#include <string.h>

#define K(name) qn_cpu_##name##_f32_avx512
#define MAP(name) qn__cpu_map_##name##_f32_avx512
#define KERNELS qn__cpu_kernels_avx512
#define ISA_NAME "avx512"
#define MM_ROWS 12
#define MM_PANELS 2
#define MM_BLOCK 432u
#define SLIDE_ROWS 8
#define OUT_ROWS 8
#define OUT_PANELS 3
#define OUT_ALONE 16
#define OUT_PIECE 1024
#define SPARSE_ROWS 4
#define SPARSE_PANELS 2

static inline vf v_load_bytes(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

/* Without optimisation the intrinsic is a macro that passes a full mask as a signed number. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
static inline vf v_rint(vf x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#pragma GCC diagnostic pop

/* Four columns of 16 rows: 4 x 4 floats are transposed within 128 bits. */
static inline __m512 v_rows_apart(const float *p, size_t apart) {
    __m512 x = _mm512_castps128_ps512(_mm_loadu_ps(p));
    x = _mm512_insertf32x4(x, _mm_loadu_ps(p + 4 * apart), 1);
    x = _mm512_insertf32x4(x, _mm_loadu_ps(p + 8 * apart), 2);
    return _mm512_insertf32x4(x, _mm_loadu_ps(p + 12 * apart), 3);
}

static inline __attribute__((always_inline)) void v_load_quad(const float *p, size_t apart,
                                                              vf r[4]) {
    const __m512 a = v_rows_apart(p, apart), b = v_rows_apart(p + apart, apart);
    const __m512 c = v_rows_apart(p + 2 * apart, apart), d = v_rows_apart(p + 3 * apart, apart);
    const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
    const __m512d cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
    const __m512d ab_high = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    const __m512d cd_high = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    r[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
    r[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
    r[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(ab_high, cd_high));
    r[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(ab_high, cd_high));
}

static inline void v_widen(double *s, vf x, int add) {
    const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(x));
    const __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
    _mm512_storeu_pd(s, add ? _mm512_add_pd(_mm512_loadu_pd(s), low) : low);
    _mm512_storeu_pd(s + 8, add ? _mm512_add_pd(_mm512_loadu_pd(s + 8), high) : high);
}

static inline vf v_round_sums(const double *s) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(_mm512_loadu_pd(s))),
                              _mm512_cvtpd_ps(_mm512_loadu_pd(s + 8)), 1);
}

static inline uint32_t v_nonzero(vf x) { return _mm512_test_epi32_mask(v_bits(x), v_bits(x)); }

#define V_SUBNORMAL 1

/* Lanes that hold a subnormal number. */
static inline __mmask16 v_subnormal(vf x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __mmask16 low = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7f800000));
    return _mm512_mask_test_epi32_mask(low, bits, _mm512_set1_epi32(0x007fffff));
}

/* RN(mu * x) of subnormal x: x is an integer times 2^-149, so the product is exact in double and
 * the conversion to float rounds once. */
static inline vf times_subnormal(vf mu, vf x) {
    const __m512i bits = _mm512_castps_si512(x), sign = _mm512_set1_epi32((int)0x80000000u);
    const __m512i whole = _mm512_andnot_si512(sign, bits);
    const __m512d by = _mm512_cvtps_pd(_mm512_castps512_ps256(mu)); /* all lanes are equal */
    const __m512d low = _mm512_cvtepi32_pd(_mm512_castsi512_si256(whole));
    const __m512d high = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(whole, 1));
    const __m512i product =
        _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtpd_epi32(_mm512_mul_pd(low, by))),
                           _mm512_cvtpd_epi32(_mm512_mul_pd(high, by)), 1);
    return _mm512_castsi512_ps(_mm512_or_si512(product, _mm512_and_si512(sign, bits)));
}

/* A momentum update for 16 velocities *s of which some are subnormal: v = fma(mu, v, g), w =
 * fma(-rate, v, w), with the usual results. Velocities of weights without gradient (such as those
 * of an always black pixel) become subnormal and stay so. An fma with a subnormal operand is about
 * a hundred times slower. This function computes such lanes without an fma. That is possible if g
 * is +0 or so large that mu * v is less than half of its last place. The same must be true of w and
 * rate * v. Otherwise it returns 0 and changes nothing. 0 < mu < 1. */
static __attribute__((noinline)) int v_momentum_subnormal(vf mu, vf rate, vf g, float *s,
                                                          float *w) {
    const __m512 before = _mm512_loadu_ps(s), x = _mm512_loadu_ps(w);
    const __mmask16 small = v_subnormal(before);
    const __mmask16 large = _mm512_cmp_ps_mask(_mm512_abs_ps(g), v_set(0x1p-100f), _CMP_GE_OQ);
    const __mmask16 none = _mm512_testn_epi32_mask(v_bits(g), v_bits(g));
    const __mmask16 idle = small & none;
    if ((small & (__mmask16) ~(large | none)) != 0 ||
        _mm512_cmp_ps_mask(rate, v_set(0x1p20f), _CMP_LT_OQ) != 0xffff)
        return 0;
    const __m512 rest = _mm512_fmadd_ps(mu, _mm512_mask_mov_ps(before, small, v_zero()), g);
    const __m512 after = _mm512_mask_mov_ps(rest, idle, times_subnormal(mu, before));
    const __mmask16 left = v_subnormal(after);
    const __mmask16 heavy = _mm512_cmp_ps_mask(_mm512_abs_ps(x), v_set(0x1p-80f), _CMP_GE_OQ);
    if ((left & (__mmask16)~heavy) != 0)
        return 0;
    _mm512_storeu_ps(s, after);
    _mm512_storeu_ps(w, _mm512_fnmadd_ps(rate, _mm512_mask_mov_ps(after, left, v_zero()), x));
    return 1;
}

#define TRANSPOSE_SIDE 8

/* Pairs of rows are interleaved to pairs of integers. Two shuffles of 128-bit quarters then put
 * four pairs in their columns: `even` holds the first and third of both, `odd` the others. */
static inline void transpose_quarters(const __m512i pair[4], int64_t *to, size_t to_stride) {
    const __m512i even_low = _mm512_shuffle_i64x2(pair[0], pair[1], 0x88);
    const __m512i even_high = _mm512_shuffle_i64x2(pair[2], pair[3], 0x88);
    const __m512i odd_low = _mm512_shuffle_i64x2(pair[0], pair[1], 0xdd);
    const __m512i odd_high = _mm512_shuffle_i64x2(pair[2], pair[3], 0xdd);
    _mm512_storeu_si512(to, _mm512_shuffle_i64x2(even_low, even_high, 0x88));
    _mm512_storeu_si512(to + 2 * to_stride, _mm512_shuffle_i64x2(odd_low, odd_high, 0x88));
    _mm512_storeu_si512(to + 4 * to_stride, _mm512_shuffle_i64x2(even_low, even_high, 0xdd));
    _mm512_storeu_si512(to + 6 * to_stride, _mm512_shuffle_i64x2(odd_low, odd_high, 0xdd));
}

static inline void v_transpose(const int64_t *from, size_t from_stride, int64_t *to,
                               size_t to_stride) {
    __m512i even[4], odd[4];
    for (int i = 0; i < 4; ++i) {
        const __m512i a = _mm512_loadu_si512(from + (size_t)(2 * i) * from_stride);
        const __m512i b = _mm512_loadu_si512(from + (size_t)(2 * i + 1) * from_stride);
        even[i] = _mm512_unpacklo_epi64(a, b);
        odd[i] = _mm512_unpackhi_epi64(a, b);
    }
    transpose_quarters(even, to, to_stride);
    transpose_quarters(odd, to + to_stride, to_stride);
}

#include "device/cpu/float/table.inc"
