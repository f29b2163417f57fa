/* Sums of a block by AVX2: eight floats at a time, the integers at even places and those at odd
 * places as four numbers of 64 bits each. */
#include "num/moments_block.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define QN_WITH_AVX2 __attribute__((target("avx2")))

/* Sums of four integers at a time. A term t with the sign s, 0 or -1, is (t ^ s) - s; the last part
 * is the same for all terms of an integer, so it is added at the end. */
typedef struct lanes {
    __m256i first, second[2], third[3], signs;
} lanes;

/* Integers in the low halves, and the signs as masks. */
QN_WITH_AVX2 static inline void add_four(lanes *l, __m256i x, __m256i sign) {
    const __m256i low_half = _mm256_set1_epi64x(0xFFFFFFFF);
    const __m256i square = _mm256_mul_epu32(x, x), upper = _mm256_srli_epi64(square, 32);
    const __m256i low = _mm256_mul_epu32(square, x), high = _mm256_mul_epu32(upper, x);
    const __m256i digit[3] = {
        _mm256_and_si256(low, low_half),
        _mm256_add_epi64(_mm256_srli_epi64(low, 32), _mm256_and_si256(high, low_half)),
        _mm256_srli_epi64(high, 32)};
    l->signs = _mm256_sub_epi64(l->signs, sign);
    l->first = _mm256_add_epi64(l->first, _mm256_xor_si256(_mm256_and_si256(x, low_half), sign));
    l->second[0] = _mm256_add_epi64(l->second[0], _mm256_and_si256(square, low_half));
    l->second[1] = _mm256_add_epi64(l->second[1], upper);
    for (int d = 0; d < 3; d++)
        l->third[d] = _mm256_add_epi64(l->third[d], _mm256_xor_si256(digit[d], sign));
}

QN_WITH_AVX2 static int64_t sum_of(__m256i four) {
    int64_t each[4];
    memcpy(each, &four, sizeof each);
    return each[0] + each[1] + each[2] + each[3];
}

QN_WITH_AVX2 static void add_lanes(qn__moment_group *g, const lanes *l) {
    const int64_t signs = sum_of(l->signs);
    g->first += sum_of(l->first) + signs;
    for (int d = 0; d < 2; d++)
        g->second[d] += (uint64_t)sum_of(l->second[d]);
    for (int d = 0; d < 3; d++)
        g->third[d] += sum_of(l->third[d]) + signs;
}

/* A shift by 32 and more, of an exponent below `least`, gives 0. */
QN_WITH_AVX2 size_t qn__moment_add_avx2(qn__moment_group *g, const float *values, size_t count,
                                        uint32_t least, uint8_t *outside) {
    const __m256i mantissa = _mm256_set1_epi32(0x7FFFFF), one = _mm256_set1_epi32(0x800000),
                  exponent = _mm256_set1_epi32(0xFF), from = _mm256_set1_epi32((int)least);
    lanes l;
    memset(&l, 0, sizeof l);
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)(values + i));
        const __m256i shift =
            _mm256_sub_epi32(_mm256_and_si256(_mm256_srli_epi32(bits, 23), exponent), from);
        const __m256i x =
            _mm256_sllv_epi32(_mm256_or_si256(_mm256_and_si256(bits, mantissa), one), shift);
        const __m256i sign = _mm256_srai_epi32(bits, 31);
        outside[i / 8] = (uint8_t)_mm256_movemask_ps(_mm256_castsi256_ps(shift));
        add_four(&l, x, _mm256_shuffle_epi32(sign, 0xA0));
        add_four(&l, _mm256_srli_epi64(x, 32), _mm256_shuffle_epi32(sign, 0xF5));
    }
    add_lanes(g, &l);
    return i;
}

int qn__moment_avx2_here(void) { return __builtin_cpu_supports("avx2") != 0; }

#else

size_t qn__moment_add_avx2(qn__moment_group *g, const float *values, size_t count, uint32_t least,
                           uint8_t *outside) {
    (void)g, (void)values, (void)count, (void)least, (void)outside;
    return 0;
}

int qn__moment_avx2_here(void) { return 0; }

#endif
