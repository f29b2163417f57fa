/* Packed words by AVX-512: a permutation of bytes packs or unpacks the eight words of a group. The
 * bytes are those of packed_words.c. */
#include "cluster/reduction/packed_words_wide.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>

#define QN_WITH_BYTES __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")))

enum { GROUP = QN__WORDS_GROUP, HEAD = QN__WORDS_HEAD, WORD = 8, WIDTHS = 65, NO_BYTE = 0x80 };

/* For words of so many bits, which follow one another without gaps. A byte has bits of at most two
 * words: of one of the even and one of the odd ones. */
static struct {
    unsigned char even[GROUP * WORD]; /* the byte of the words that each byte begins as */
    unsigned char odd[GROUP * WORD];
    unsigned char word[GROUP * WORD]; /* the byte that each byte of the words begins as */
    unsigned char by[GROUP];          /* the first bit of each word in its first byte */
} place[WIDTHS];

static void fill(void) {
    for (uint32_t bits = 0; bits < WIDTHS; ++bits) {
        for (uint32_t b = 0; b < GROUP * WORD; ++b) {
            place[bits].even[b] = place[bits].odd[b] = NO_BYTE;
            place[bits].word[b] = (unsigned char)((b / WORD * bits / 8 + b % WORD) % 64);
        }
        for (uint32_t i = 0; i < GROUP; ++i) {
            const uint32_t begin = i * bits / 8, end = ((i + 1) * bits + 7) / 8;
            place[bits].by[i] = (unsigned char)(i * bits % 8);
            for (uint32_t b = begin; b < end && b - begin < WORD; ++b)
                (i % 2 ? place[bits].odd : place[bits].even)[b] =
                    (unsigned char)(i * WORD + b - begin);
        }
    }
}

int qn__words_wide_here(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill);
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi");
}

QN_WITH_BYTES static inline __m512i load(const void *from) { return _mm512_loadu_si512(from); }

QN_WITH_BYTES static inline __m512i first_bits(uint32_t bits) {
    return _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)place[bits].by));
}

/* The bytes of `from` at these places; 0 where there is NO_BYTE. */
QN_WITH_BYTES static inline __m512i bytes_at(const unsigned char *places, __m512i from) {
    const __m512i at = load(places);
    return _mm512_maskz_permutexvar_epi8(~_mm512_movepi8_mask(at), at, from);
}

QN_WITH_BYTES static inline void put_group(__m512i word, uint32_t bits, unsigned char *to) {
    word = _mm512_and_si512(word, _mm512_set1_epi64((int64_t)(UINT64_MAX >> (64 - bits))));
    word = _mm512_sllv_epi64(word, first_bits(bits));
    _mm512_storeu_si512(
        to, _mm512_or_si512(bytes_at(place[bits].even, word), bytes_at(place[bits].odd, word)));
}

/* The nearest floats of words, as packed_words.c has them. 0: one of them is too large. */
QN_WITH_BYTES static inline int as_floats(__m512i word, __m512i *field, uint32_t *bits,
                                          uint32_t *base) {
    const __m256 nearest =
        _mm512_cvt_roundepi64_ps(word, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m512i all = _mm512_cvtepu32_epi64(_mm256_castps_si256(nearest));
    const __m512i size = _mm512_and_si512(all, _mm512_set1_epi64(INT32_MAX));
    const __mmask8 some = _mm512_test_epi64_mask(size, size);
    /* A bit for each exponent, from that of 1 on, which is 127. The lowest one gives the base, the
     * highest one the bits. */
    const __m512i exponent = _mm512_sub_epi64(_mm512_srli_epi64(size, 23), _mm512_set1_epi64(127));
    const uint64_t exponents = (uint64_t)_mm512_reduce_or_epi64(
        _mm512_maskz_sllv_epi64(some, _mm512_set1_epi64(1), exponent));
    if (exponents >> 63)
        return 0;
    const uint32_t lowest = (uint32_t)__builtin_ctzll(exponents);
    const uint32_t highest = 63 - (uint32_t)__builtin_clzll(exponents);
    *base = 126 + lowest;
    *bits = 24 + 32 - (uint32_t)__builtin_clz(highest - lowest + 1);
    const uint64_t begin = (uint64_t)*base << 23;
    const __m512i sign =
        _mm512_sll_epi64(_mm512_srli_epi64(all, 31), _mm_cvtsi32_si128((int)*bits - 1));
    *field = _mm512_maskz_or_epi64(some, sign,
                                   _mm512_sub_epi64(size, _mm512_set1_epi64((int64_t)begin)));
    return 1;
}

/* The bits that any of eight words has, of two groups at once. */
QN_WITH_BYTES static inline void any_bits(__m512i a, __m512i b, uint64_t *in_a, uint64_t *in_b) {
    const __m512i four = _mm512_or_si512(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
    const __m256i two =
        _mm256_or_si256(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
    const __m128i one = _mm_or_si128(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
    *in_a = (uint64_t)_mm_cvtsi128_si64(one);
    *in_b = (uint64_t)_mm_extract_epi64(one, 1);
}

QN_WITH_BYTES size_t qn__words_pack_wide(const int64_t *from, size_t groups, int rounds,
                                         unsigned char *to) {
    unsigned char *const begin = to;
    for (; groups > 0; --groups, from += GROUP) {
        const __m512i word = load(from);
        const __m512i change = _mm512_xor_si512(word, _mm512_slli_epi64(word, 1));
        uint64_t any, changes;
        uint32_t float_bits, base;
        __m512i field;
        any_bits(word, change, &any, &changes);
        if (any == 0) {
            to[0] = to[1] = 0;
            to += HEAD;
            continue;
        }
        const uint32_t shift = (uint32_t)__builtin_ctzll(any);
        uint32_t bits = qn__words_bits(64 - (uint32_t)__builtin_clzll(changes) - shift);
        if (rounds && bits > QN__WORDS_FLOAT_LEAST && as_floats(word, &field, &float_bits, &base) &&
            float_bits < bits) {
            bits = float_bits;
            to[0] = (unsigned char)(QN__WORDS_FLOATS + bits);
            to[1] = (unsigned char)base;
        } else {
            field = _mm512_srlv_epi64(word, _mm512_set1_epi64(shift));
            to[0] = (unsigned char)bits;
            to[1] = (unsigned char)shift;
        }
        put_group(field, bits, to + HEAD);
        to += HEAD + bits;
    }
    return (size_t)(to - begin);
}

/* The words of a group of floats. 0: one of them is too large. */
QN_WITH_BYTES static inline int from_floats(__m512i word, uint32_t bits, uint32_t base,
                                            __m512i *to) {
    const __m128i to_sign = _mm_cvtsi32_si128((int)bits - 1);
    const __m512i all = _mm512_set1_epi64(-1), begin = _mm512_set1_epi64((int64_t)base << 23);
    const __m512i field =
        _mm512_and_si512(word, _mm512_srl_epi64(all, _mm_cvtsi32_si128(64 - (int)bits)));
    const __m512i sign = _mm512_srl_epi64(field, to_sign);
    const __m512i above = _mm512_andnot_si512(_mm512_sll_epi64(all, to_sign), field);
    const __m512i size = _mm512_maskz_add_epi64(_mm512_test_epi64_mask(above, above), above, begin);
    const __m512i together = _mm512_or_si512(size, _mm512_slli_epi64(sign, 31));
    *to = _mm512_cvtps_epi64(_mm256_castsi256_ps(_mm512_cvtepi64_epi32(together)));
    return !_mm512_cmpge_epu64_mask(size, _mm512_set1_epi64(QN__WORDS_TOO_LARGE));
}

QN_WITH_BYTES size_t qn__words_unpack_wide(qn__packed_words *p, size_t groups, int adds,
                                           int64_t *to) {
    size_t done = 0;
    for (; done < groups && p->left >= QN__WORDS_WIDE && qn__words_is_head(p->at);
         ++done, to += GROUP) {
        const uint32_t bits = qn__words_bits_of(p->at);
        __m512i word = _mm512_setzero_si512();
        if (bits > 0) {
            word = _mm512_permutexvar_epi8(load(place[bits].word), load(p->at + HEAD));
            word = _mm512_srlv_epi64(word, first_bits(bits));
        }
        if (p->at[0] > QN__WORDS_FLOATS) {
            if (!from_floats(word, bits, p->at[1], &word))
                break;
        } else if (bits > 0) {
            const __m128i unused = _mm_cvtsi32_si128(64 - (int)bits);
            word = _mm512_sra_epi64(_mm512_sll_epi64(word, unused), unused);
            word = _mm512_sll_epi64(word, _mm_cvtsi32_si128(p->at[1]));
        }
        _mm512_storeu_si512(to, adds ? _mm512_add_epi64(word, load(to)) : word);
        p->at += HEAD + bits;
        p->left -= HEAD + bits;
    }
    return done;
}

#else

int qn__words_wide_here(void) { return 0; }

size_t qn__words_pack_wide(const int64_t *from, size_t groups, int rounds, unsigned char *to) {
    (void)from, (void)groups, (void)rounds, (void)to;
    return 0;
}

size_t qn__words_unpack_wide(qn__packed_words *p, size_t groups, int adds, int64_t *to) {
    (void)p, (void)groups, (void)adds, (void)to;
    return 0;
}

#endif
