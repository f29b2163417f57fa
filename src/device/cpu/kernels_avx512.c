/* The CPU's kernels for x86-64 with AVX-512 (F, DQ, VL, BW). */
#include "device/cpu/cpu_kernels.h"
#include "device/cpu/map.h"
#include "device/cpu/vec_avx512.h"
#include <string.h>

#define K(name) qn_cpu_##name##_f32_avx512
#define MAP(name) qn_cpu_map_##name##_f32_avx512
#define KERNELS qn__cpu_kernels_avx512
#define ISA_NAME "avx512"
#define FIXED qn__cpu_integers_avx512
#define MM_ROWS 12
#define MM_PANELS 2
#define OUT_ROWS 8
#define OUT_PANELS 2

static inline vf v_load_bytes(const uint8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

/* Without optimisation the intrinsic is a macro that hands on a full mask as a signed number. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
static inline vf v_whole(vf x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#pragma GCC diagnostic pop

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

#define TURN 8

/* Pairs of rows make pairs of integers; four such pairs at a time find their columns in two steps
 * over quarters of registers: `even` are the first and third of both, `odd` the others. */
static inline void turn_quarters(const __m512i pair[4], int64_t *to, size_t to_stride) {
    const __m512i even_low = _mm512_shuffle_i64x2(pair[0], pair[1], 0x88);
    const __m512i even_high = _mm512_shuffle_i64x2(pair[2], pair[3], 0x88);
    const __m512i odd_low = _mm512_shuffle_i64x2(pair[0], pair[1], 0xdd);
    const __m512i odd_high = _mm512_shuffle_i64x2(pair[2], pair[3], 0xdd);
    _mm512_storeu_si512(to, _mm512_shuffle_i64x2(even_low, even_high, 0x88));
    _mm512_storeu_si512(to + 2 * to_stride, _mm512_shuffle_i64x2(odd_low, odd_high, 0x88));
    _mm512_storeu_si512(to + 4 * to_stride, _mm512_shuffle_i64x2(even_low, even_high, 0xdd));
    _mm512_storeu_si512(to + 6 * to_stride, _mm512_shuffle_i64x2(odd_low, odd_high, 0xdd));
}

static inline void v_turn(const int64_t *from, size_t from_stride, int64_t *to, size_t to_stride) {
    __m512i even[4], odd[4];
    for (int i = 0; i < 4; ++i) {
        const __m512i a = _mm512_loadu_si512(from + (size_t)(2 * i) * from_stride);
        const __m512i b = _mm512_loadu_si512(from + (size_t)(2 * i + 1) * from_stride);
        even[i] = _mm512_unpacklo_epi64(a, b);
        odd[i] = _mm512_unpackhi_epi64(a, b);
    }
    turn_quarters(even, to, to_stride);
    turn_quarters(odd, to + to_stride, to_stride);
}

#include "device/cpu/table.inc"

/* The same kernels beside products of integers that want more of the processor. */
#if defined(QN_HAVE_VNNI)
TABLE(qn__cpu_kernels_vnni, "vnni", qn__cpu_integers_vnni);
#endif
#if defined(QN_HAVE_AMX)
TABLE(qn__cpu_kernels_amx, "amx", qn__cpu_integers_amx);
#endif
