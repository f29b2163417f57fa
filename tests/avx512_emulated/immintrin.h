/* Stands in front of the compiler's immintrin.h where AVX-512 is to be emulated: SIMDe does the
 * intrinsics with AVX2 and FMA, each lane rounded as the instruction rounds it. */
#ifndef QN_TESTS_AVX512_EMULATED_IMMINTRIN_H
#define QN_TESTS_AVX512_EMULATED_IMMINTRIN_H

#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

/* What SIMDe 0.7.4 lacks. */
static inline simde__m512 emulated_cvtepi32_ps(simde__m512i a) {
    simde__m512i_private from = simde__m512i_to_private(a);
    simde__m512_private to;
    for (int half = 0; half < 2; ++half)
        to.m256[half] = _mm256_cvtepi32_ps(from.m256i[half]);
    return simde__m512_from_private(to);
}

static inline simde__m512i emulated_cvtepu8_epi32(__m128i a) {
    simde__m512i_private to;
    to.m256i[0] = _mm256_cvtepu8_epi32(a);
    to.m256i[1] = _mm256_cvtepu8_epi32(_mm_srli_si128(a, 8));
    return simde__m512i_from_private(to);
}

static inline simde__m512d emulated_cvtps_pd(__m256 a) {
    simde__m512d_private to;
    to.m256d[0] = _mm256_cvtps_pd(_mm256_castps256_ps128(a));
    to.m256d[1] = _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1));
    return simde__m512d_from_private(to);
}

static inline __m256 emulated_cvtpd_ps(simde__m512d a) {
    const simde__m512d_private x = simde__m512d_to_private(a);
    return _mm256_set_m128(_mm256_cvtpd_ps(x.m256d[1]), _mm256_cvtpd_ps(x.m256d[0]));
}

static inline __m256 emulated_extractf32x8_ps(simde__m512 a, int half) {
    return simde__m512_to_private(a).m256[half];
}

static inline simde__m512i emulated_srai_epi32(simde__m512i a, unsigned shift) {
    simde__m512i_private x = simde__m512i_to_private(a);
    for (int half = 0; half < 2; ++half)
        x.m256i[half] = _mm256_sra_epi32(x.m256i[half], _mm_cvtsi32_si128((int)shift));
    return simde__m512i_from_private(x);
}

static inline simde__m512i emulated_shuffle_i64x2(simde__m512i a, simde__m512i b, int quarters) {
    const simde__m512i_private x = simde__m512i_to_private(a), y = simde__m512i_to_private(b);
    simde__m512i_private to;
    for (int i = 0; i < 4; ++i)
        to.m128i[i] = (i < 2 ? x : y).m128i[quarters >> 2 * i & 3];
    return simde__m512i_from_private(to);
}

static inline simde__m512i emulated_cvtps_epi32(simde__m512 a) {
    const simde__m512_private from = simde__m512_to_private(a);
    simde__m512i_private to;
    for (int half = 0; half < 2; ++half)
        to.m256i[half] = _mm256_cvtps_epi32(from.m256[half]);
    return simde__m512i_from_private(to);
}

static inline simde__m512d emulated_cvtepi32_pd(__m256i a) {
    simde__m512d_private to;
    to.m256d[0] = _mm256_cvtepi32_pd(_mm256_castsi256_si128(a));
    to.m256d[1] = _mm256_cvtepi32_pd(_mm256_extracti128_si256(a, 1));
    return simde__m512d_from_private(to);
}

static inline simde__mmask16 emulated_testn_epi32_mask(simde__m512i a, simde__m512i b) {
    const simde__m512i_private x = simde__m512i_to_private(a), y = simde__m512i_to_private(b);
    simde__mmask16 zeros = 0;
    for (int i = 0; i < 16; ++i)
        zeros |= (simde__mmask16)(((x.i32[i] & y.i32[i]) == 0) << i);
    return zeros;
}

static inline __m256i emulated_cvtpd_epi32(simde__m512d a) {
    const simde__m512d_private x = simde__m512d_to_private(a);
    return _mm256_set_m128i(_mm256_cvtpd_epi32(x.m256d[1]), _mm256_cvtpd_epi32(x.m256d[0]));
}

#undef _mm512_cvtpd_epi32
#define _mm512_cvtpd_epi32(a) emulated_cvtpd_epi32(a)
#undef _mm512_testn_epi32_mask
#define _mm512_testn_epi32_mask(a, b) emulated_testn_epi32_mask(a, b)
#undef _mm512_shuffle_i64x2
#define _mm512_shuffle_i64x2(a, b, quarters) emulated_shuffle_i64x2(a, b, quarters)
#undef _mm512_cvtps_pd
#define _mm512_cvtps_pd(a) emulated_cvtps_pd(a)
#undef _mm512_cvtpd_ps
#define _mm512_cvtpd_ps(a) emulated_cvtpd_ps(a)
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps(a, half) emulated_extractf32x8_ps(a, half)
#undef _mm512_srai_epi32
#define _mm512_srai_epi32(a, shift) emulated_srai_epi32(a, shift)
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps(a) emulated_cvtepi32_ps(a)
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32(a) emulated_cvtepu8_epi32(a)
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32(a) emulated_cvtps_epi32(a)
#undef _mm512_cvtepi32_pd
#define _mm512_cvtepi32_pd(a) emulated_cvtepi32_pd(a)
/* SIMDe 0.7.4 has it, but gives the name to its masked form. */
#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)

#endif
