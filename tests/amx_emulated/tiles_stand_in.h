/* AMX's tiles on machines without AMX (CMake option QUERN_AMX): included before the sources named
 * *_amx.c in place of the compiler's intrinsics.
 *
 *     emulated   a tile is an array of the thread, and products are right
 *     idle       instructions do nothing, and a stored tile has fixed numbers. Results are wrong. A
 *                profile of such a build shows what surrounds the products.
 *
 * All tiles have 16 rows of 64 bytes, as tiles_amx.h sets them. */
#ifndef QN_TESTS_AMX_EMULATED_TILES_STAND_IN_H
#define QN_TESTS_AMX_EMULATED_TILES_STAND_IN_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbusd
#undef _tile_dpbuud

enum { QN_TILE_ROWS = 16 };

#if defined(QN_AMX_IDLE)

#define _tile_loadconfig(configuration) ((void)(configuration))
#define _tile_release() ((void)0)
#define _tile_zero(tile) ((void)0)
#define _tile_loadd(tile, from, stride) ((void)(from), (void)(stride))
#define _tile_stored(tile, to, stride) qn_tile_store(to, stride)
#define _tile_dpbssd(sums, a, b) ((void)0)
#define _tile_dpbsud(sums, a, b) ((void)0)
#define _tile_dpbusd(sums, a, b) ((void)0)
#define _tile_dpbuud(sums, a, b) ((void)0)

static inline __attribute__((always_inline)) void qn_tile_store(void *to, size_t stride) {
    const __m512i sums = _mm512_setr_epi32(3, -5, 7, -2, 1, -4, 6, -8, 2, -3, 5, -7, 8, -6, 4, -1);
    for (size_t row = 0; row < QN_TILE_ROWS; ++row)
        _mm512_storeu_si512((char *)to + row * stride, sums);
}

#else

#define _tile_loadconfig(configuration) ((void)(configuration))
#define _tile_release() ((void)0)
#define _tile_zero(tile) qn_tile_clear(tile)
#define _tile_loadd(tile, from, stride) qn_tile_load(tile, from, stride)
#define _tile_stored(tile, to, stride) qn_tile_store(tile, to, stride)
#define _tile_dpbssd(sums, a, b) qn_tile_multiply(sums, a, b, 1, 1)
#define _tile_dpbsud(sums, a, b) qn_tile_multiply(sums, a, b, 1, 0)
#define _tile_dpbusd(sums, a, b) qn_tile_multiply(sums, a, b, 0, 1)
#define _tile_dpbuud(sums, a, b) qn_tile_multiply(sums, a, b, 0, 0)

static __thread __m512i qn_tile[8][QN_TILE_ROWS];

static inline void qn_tile_clear(int tile) {
    for (int row = 0; row < QN_TILE_ROWS; ++row)
        qn_tile[tile][row] = _mm512_setzero_si512();
}

static inline void qn_tile_load(int tile, const void *from, size_t stride) {
    for (size_t row = 0; row < QN_TILE_ROWS; ++row)
        qn_tile[tile][row] = _mm512_loadu_si512((const char *)from + row * stride);
}

static inline void qn_tile_store(int tile, void *to, size_t stride) {
    for (size_t row = 0; row < QN_TILE_ROWS; ++row)
        _mm512_storeu_si512((char *)to + row * stride, qn_tile[tile][row]);
}

/* The even and the odd bytes of all dwords as 16 bits, of which pairs are multiplied and added. */
static inline __m512i qn_tile_even(__m512i bytes, int has_sign) {
    const __m512i high = _mm512_slli_epi16(bytes, 8);
    return has_sign ? _mm512_srai_epi16(high, 8) : _mm512_srli_epi16(high, 8);
}
static inline __m512i qn_tile_odd(__m512i bytes, int has_sign) {
    return has_sign ? _mm512_srai_epi16(bytes, 8) : _mm512_srli_epi16(bytes, 8);
}

static inline void qn_tile_multiply(int sums, int a, int b, int a_has_sign, int b_has_sign) {
    __m512i even[QN_TILE_ROWS], odd[QN_TILE_ROWS];
    for (int k = 0; k < QN_TILE_ROWS; ++k) {
        even[k] = qn_tile_even(qn_tile[b][k], b_has_sign);
        odd[k] = qn_tile_odd(qn_tile[b][k], b_has_sign);
    }
    for (int row = 0; row < QN_TILE_ROWS; ++row) {
        const int32_t *dword = (const int32_t *)&qn_tile[a][row];
        __m512i sum = qn_tile[sums][row];
        for (int k = 0; k < QN_TILE_ROWS; ++k) {
            const __m512i own = _mm512_set1_epi32(dword[k]);
            sum = _mm512_add_epi32(
                sum, _mm512_add_epi32(_mm512_madd_epi16(qn_tile_even(own, a_has_sign), even[k]),
                                      _mm512_madd_epi16(qn_tile_odd(own, a_has_sign), odd[k])));
        }
        qn_tile[sums][row] = sum;
    }
}

#endif

#endif
