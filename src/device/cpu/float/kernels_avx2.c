/* The CPU's kernels for x86-64 with AVX2 and FMA. */
#include "device/cpu/float/cpu_kernels.h"
#include "device/cpu/float/map.h"
#include "device/cpu/float/vec_avx2.h"
#include <string.h>

#define K(name) qn_cpu_##name##_f32_avx2
#define MAP(name) qn__cpu_map_##name##_f32_avx2
#define KERNELS qn__cpu_kernels_avx2
#define ISA_NAME "avx2"
#define MM_ROWS 6
#define MM_PANELS 1
#define MM_BLOCK 144u
#define OUT_ROWS 6
#define OUT_PANELS 1
#define OUT_ALONE 6
#define OUT_PIECE 96
#define SPARSE_ROWS 2
#define SPARSE_PANELS 2

static inline vf v_load_bytes(const uint8_t *p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline vf v_rint(vf x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* Four columns of 8 rows: 4 x 4 floats are transposed within 128 bits. */
static inline __m256 v_rows_apart(const float *p, size_t apart) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)),
                                _mm_loadu_ps(p + 4 * apart), 1);
}

static inline __attribute__((always_inline)) void v_load_quad(const float *p, size_t apart,
                                                              vf r[4]) {
    const __m256 a = v_rows_apart(p, apart), b = v_rows_apart(p + apart, apart);
    const __m256 c = v_rows_apart(p + 2 * apart, apart), d = v_rows_apart(p + 3 * apart, apart);
    const __m256d ab = _mm256_castps_pd(_mm256_unpacklo_ps(a, b));
    const __m256d cd = _mm256_castps_pd(_mm256_unpacklo_ps(c, d));
    const __m256d ab_high = _mm256_castps_pd(_mm256_unpackhi_ps(a, b));
    const __m256d cd_high = _mm256_castps_pd(_mm256_unpackhi_ps(c, d));
    r[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd));
    r[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd));
    r[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(ab_high, cd_high));
    r[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(ab_high, cd_high));
}

static inline void v_widen(double *s, vf x, int add) {
    const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
    const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
    _mm256_storeu_pd(s, add ? _mm256_add_pd(_mm256_loadu_pd(s), low) : low);
    _mm256_storeu_pd(s + 4, add ? _mm256_add_pd(_mm256_loadu_pd(s + 4), high) : high);
}

static inline vf v_round_sums(const double *s) {
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(s + 4)),
                           _mm256_cvtpd_ps(_mm256_loadu_pd(s)));
}

static inline uint32_t v_nonzero(vf x) {
    const __m256i zero = _mm256_cmpeq_epi32(v_bits(x), _mm256_setzero_si256());
    return ~(uint32_t)_mm256_movemask_ps(v_float(zero)) & 0xffu;
}

#define TRANSPOSE_SIDE 4

static inline __m256i load_4(const int64_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void store_4(int64_t *p, __m256i x) { _mm256_storeu_si256((__m256i *)p, x); }

static inline void v_transpose(const int64_t *from, size_t from_stride, int64_t *to,
                               size_t to_stride) {
    const __m256i a = load_4(from), b = load_4(from + from_stride);
    const __m256i c = load_4(from + 2 * from_stride), d = load_4(from + 3 * from_stride);
    const __m256i ab_even = _mm256_unpacklo_epi64(a, b), ab_odd = _mm256_unpackhi_epi64(a, b);
    const __m256i cd_even = _mm256_unpacklo_epi64(c, d), cd_odd = _mm256_unpackhi_epi64(c, d);
    store_4(to, _mm256_permute2x128_si256(ab_even, cd_even, 0x20));
    store_4(to + to_stride, _mm256_permute2x128_si256(ab_odd, cd_odd, 0x20));
    store_4(to + 2 * to_stride, _mm256_permute2x128_si256(ab_even, cd_even, 0x31));
    store_4(to + 3 * to_stride, _mm256_permute2x128_si256(ab_odd, cd_odd, 0x31));
}

#include "device/cpu/float/table.inc"
