/* Packed words by AVX-512: a permutation of 64 bytes packs or unpacks eight words. The bytes are
 * those of packed_words.c. */
#include "cluster/reduction/packed_words_wide.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <stdint.h>

#define QN_WITH_BYTES __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi")))

enum { HALF = 8, WORD = 8, MOST_SHIFT = 63 };

/* Lists of 64 bytes, from f(w, 0) to f(w, 63). */
#define EIGHT(f, w, b)                                                                             \
    f(w, b), f(w, b + 1), f(w, b + 2), f(w, b + 3), f(w, b + 4), f(w, b + 5), f(w, b + 6),         \
        f(w, b + 7)
#define ALL(f, w)                                                                                  \
    {                                                                                              \
        EIGHT(f, w, 0), EIGHT(f, w, 8), EIGHT(f, w, 16), EIGHT(f, w, 24), EIGHT(f, w, 32),         \
            EIGHT(f, w, 40), EIGHT(f, w, 48), EIGHT(f, w, 56)                                      \
    }
#define WIDTHS(f)                                                                                  \
    { ALL(f, 1), ALL(f, 2), ALL(f, 3), ALL(f, 4), ALL(f, 5), ALL(f, 6), ALL(f, 7), ALL(f, 8) }

/* The byte of the words that is byte b of words of w bytes; where none is, any. */
#define TO_BYTES(w, b) ((b) / (w)*WORD + (b) % (w)) % 64
/* The byte of words of w bytes that is byte b of the words, at their upper end; where none is,
 * any. */
#define TO_WORDS(w, b) ((b) / WORD * (w) + ((b) % WORD + (w)) % WORD) % 64

static const unsigned char to_bytes[8][64] = WIDTHS(TO_BYTES);
static const unsigned char to_words[8][64] = WIDTHS(TO_WORDS);

int qn__words_wide_here(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi");
}

QN_WITH_BYTES static inline __m512i load(const void *from) { return _mm512_loadu_si512(from); }

QN_WITH_BYTES size_t qn__words_pack_wide(const int64_t *from, size_t groups, unsigned char *to) {
    unsigned char *const begin = to;
    for (; groups > 0; --groups, from += QN__WORDS_GROUP) {
        const __m512i a = load(from), b = load(from + HALF);
        const __m512i c = _mm512_or_si512(_mm512_xor_si512(a, _mm512_slli_epi64(a, 1)),
                                          _mm512_xor_si512(b, _mm512_slli_epi64(b, 1)));
        const uint64_t any = (uint64_t)_mm512_reduce_or_epi64(_mm512_or_si512(a, b));
        const uint64_t changes = (uint64_t)_mm512_reduce_or_epi64(c);
        to[0] = to[1] = 0;
        if (any != 0) {
            const int shift = __builtin_ctzll(any), bits = 64 - __builtin_clzll(changes) - shift;
            const size_t width = (size_t)(bits + 7) / 8;
            const __m512i place = load(to_bytes[width - 1]);
            const __m128i by = _mm_cvtsi32_si128(shift);
            to[0] = (unsigned char)width;
            to[1] = (unsigned char)shift;
            _mm512_storeu_si512(to + 2, _mm512_permutexvar_epi8(place, _mm512_srl_epi64(a, by)));
            _mm512_storeu_si512(to + 2 + HALF * width,
                                _mm512_permutexvar_epi8(place, _mm512_srl_epi64(b, by)));
            to += QN__WORDS_GROUP * width;
        }
        to += 2;
    }
    return (size_t)(to - begin);
}

QN_WITH_BYTES static inline void give(__m512i words, int adds, int64_t *to) {
    _mm512_storeu_si512(to, adds ? _mm512_add_epi64(words, load(to)) : words);
}

QN_WITH_BYTES size_t qn__words_unpack_wide(qn__packed_words *p, size_t groups, int adds,
                                           int64_t *to) {
    size_t done = 0;
    for (; done < groups && p->left >= QN__WORDS_WIDE && p->at[0] <= WORD && p->at[1] <= MOST_SHIFT;
         ++done, to += QN__WORDS_GROUP) {
        const size_t width = p->at[0], size = 2 + QN__WORDS_GROUP * width;
        __m512i a = _mm512_setzero_si512(), b = a;
        if (width > 0) {
            const __m512i place = load(to_words[width - 1]);
            const __m128i unused = _mm_cvtsi32_si128(64 - 8 * (int)width);
            const __m128i by = _mm_cvtsi32_si128(p->at[1]);
            a = _mm512_permutexvar_epi8(place, load(p->at + 2));
            b = _mm512_permutexvar_epi8(place, load(p->at + 2 + HALF * width));
            a = _mm512_sll_epi64(_mm512_sra_epi64(a, unused), by);
            b = _mm512_sll_epi64(_mm512_sra_epi64(b, unused), by);
        }
        give(a, adds, to);
        give(b, adds, to + HALF);
        p->at += size;
        p->left -= size;
    }
    return done;
}

#else

int qn__words_wide_here(void) { return 0; }

size_t qn__words_pack_wide(const int64_t *from, size_t groups, unsigned char *to) {
    (void)from, (void)groups, (void)to;
    return 0;
}

size_t qn__words_unpack_wide(qn__packed_words *p, size_t groups, int adds, int64_t *to) {
    (void)p, (void)groups, (void)adds, (void)to;
    return 0;
}

#endif
