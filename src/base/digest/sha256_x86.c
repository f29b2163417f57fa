/* SHA-256 by the SHA extensions of x86-64 (Intel SDM volume 1, chapter on SHA): sha256rnds2 does
 * two rounds, sha256msg1 and sha256msg2 four words of the schedule. */
#include "base/digest/sha256_blocks.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

int qn__sha256_x86_here(void) {
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
        return 0;
    const int ssse3 = (ecx & bit_SSSE3) != 0, sse41 = (ecx & bit_SSE4_1) != 0;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        return 0;
    return ssse3 && sse41 && (ebx >> 29 & 1);
}

/* The instructions take the state in two registers, (a b e f) and (c d g h), highest word first.
 * The words of a block are in four registers, of which w[i % 4] is replaced by the words 16 further
 * on. */
__attribute__((target("sha,ssse3,sse4.1"))) static void one_block(__m128i *abef, __m128i *cdgh,
                                                                  const uint8_t *bytes) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    const __m128i abef_before = *abef, cdgh_before = *cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; i++)
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(bytes + 16 * i)), swap);

#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        const __m128i now = w[i & 3];
        const __m128i sum =
            _mm_add_epi32(now, _mm_loadu_si128((const __m128i *)(qn__sha256_constants + 4 * i)));
        *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, sum);
        *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(sum, 0x0e));
        if (i < 12) {
            const __m128i next = w[(i + 1) & 3], last = w[(i + 3) & 3];
            const __m128i seventh = _mm_alignr_epi8(last, w[(i + 2) & 3], 4);
            w[i & 3] =
                _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, next), seventh), last);
        }
    }
    *abef = _mm_add_epi32(*abef, abef_before);
    *cdgh = _mm_add_epi32(*cdgh, cdgh_before);
}

__attribute__((target("sha,ssse3,sse4.1"))) void
qn__sha256_blocks_x86(uint32_t state[8], const uint8_t *bytes, size_t count) {
    __m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
    __m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
    for (size_t i = 0; i < count; i++)
        one_block(&abef, &cdgh, bytes + 64 * i);

    state[0] = (uint32_t)_mm_extract_epi32(abef, 3),
    state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
    state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3),
    state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
    state[4] = (uint32_t)_mm_extract_epi32(abef, 1),
    state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
    state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1),
    state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}

#else

int qn__sha256_x86_here(void) { return 0; }

void qn__sha256_blocks_x86(uint32_t state[8], const uint8_t *bytes, size_t count) {
    (void)state, (void)bytes, (void)count;
}

#endif
