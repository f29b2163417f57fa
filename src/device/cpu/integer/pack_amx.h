/* Operands of integer products for AMX tiles (intgemm_amx.c describes tiles).
 *
 * A row of a tile holds sixteen dwords of four depths each. The order of depths is free as long as
 * both operands have the same. Dword j holds the depths j, 32 + j, 16 + j and 48 + j of the 64 of a
 * step: then shifts alone combine four vectors of floats into one row. This is true for operands
 * whose vectors run along the depth and for those whose vectors run across it.
 *
 * After its tiles a left operand has a list of its steps that are not all zeros; only these are
 * multiplied. That skips margins of images, and everything else that a block of sixteen rows does
 * not use. A right operand of longs has a list of its steps that do not fit words. */
#ifndef QN_DEVICE_CPU_INTEGER_PACK_AMX_H
#define QN_DEVICE_CPU_INTEGER_PACK_AMX_H

#include "device/cpu/float/unroll.h"
#include "device/cpu/integer/intgemm.h"
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STEP = 64,   /* depths of a tile */
    TILE = 1024, /* bytes of one */
    WIDE = 16,   /* rows of a tile, dwords of a row, floats of a vector */
    AHEAD = 2,   /* panels ahead that are prefetched */
    WORDS = 16,  /* used as a width: integers of 16 bits as two digits of 8 */
    LONGS = 24,  /* the same: integers of 24 bits as three digits */

    BYTES_14 = 14 | QN__OF_BYTES, /* a left operand of bytes themselves, for products of 14 bits */
    BYTES_21 = 21 | QN__OF_BYTES,
    BYTES_WORDS = WORDS | QN__OF_BYTES,
    BYTES_LONGS = LONGS | QN__OF_BYTES
};

/* A switch over the widths, so that the called code has them as constants. */
#define EACH_WIDTH(bits, call, ...)                                                                \
    do {                                                                                           \
        if ((bits) == 7)                                                                           \
            call(7, __VA_ARGS__);                                                                  \
        else if ((bits) == 14)                                                                     \
            call(14, __VA_ARGS__);                                                                 \
        else                                                                                       \
            call(21, __VA_ARGS__);                                                                 \
    } while (0)

/* The same for operands of a sum over items. */
#define EACH_ITEM_WIDTH(bits, call, ...)                                                           \
    do {                                                                                           \
        if ((bits)&QN__WIDE)                                                                       \
            call(LONGS, __VA_ARGS__);                                                              \
        else if ((bits) == 7)                                                                      \
            call(7, __VA_ARGS__);                                                                  \
        else if ((bits) == 14)                                                                     \
            call(WORDS, __VA_ARGS__);                                                              \
        else                                                                                       \
            call(21, __VA_ARGS__);                                                                 \
    } while (0)

INLINE uint32_t steps_of(uint32_t k) { return (k + STEP - 1) / STEP; }
INLINE int of_bytes(int bits) { return bits & QN__OF_BYTES; }
INLINE int width_of(int bits) { return bits & ~QN__OF_BYTES; }
INLINE uint32_t digits_of(int bits) { return (uint32_t)width_of(bits) / 7; }
INLINE size_t step_size(int bits) { return (size_t)digits_of(bits) * TILE; }
/* For a left operand: bytes themselves are one digit. */
INLINE size_t left_step_size(int bits) { return of_bytes(bits) ? TILE : step_size(bits); }

/* Steps of a left operand that are not all zeros, in ascending order. */
typedef struct filled {
    uint32_t count, step[];
} filled;

INLINE size_t filled_size(uint32_t steps) {
    return (sizeof(filled) + steps * sizeof(uint32_t) + 63) / 64 * 64;
}
INLINE filled *filled_of(int bits, uint32_t steps, const void *left) {
    return (filled *)((char *)left + steps * left_step_size(bits));
}
INLINE void note(filled *list, uint32_t step, __m512i any) {
    list->step[list->count] = step;
    list->count += _mm512_test_epi32_mask(any, any) != 0;
}

/* The bits of the highest of three digits beyond the sign of the second: none in words. */
INLINE __m512i beyond_words(const __m512i row[3]) {
    const __m512i sign = _mm512_movm_epi8(_mm512_movepi8_mask(row[1]));
    return _mm512_xor_si512(row[0], sign);
}

/* The mask of the remaining lanes below `count`. */
INLINE __mmask16 lanes(uint32_t at, uint32_t count) {
    const uint32_t more = at < count ? count - at : 0;
    return (__mmask16)(more < WIDE ? (1u << more) - 1 : 0xffffu);
}

/* Added to the product with a block's inverse, this leaves an integer in the low bits of the float:
 * the addition rounds to nearest even as rint does. 64 in the lower digits makes them 0 to 127. */
INLINE __m512 magic(int bits) {
    return _mm512_set1_ps(0x1.8p23f + (bits == 14 ? 64 : bits == 21 ? 8256 : 0));
}
INLINE __m512i quantized(const int bits, __m512 v, __m512 inverse) {
    const __m512i u = _mm512_castps_si512(_mm512_fmadd_ps(v, inverse, magic(bits)));
    return bits == LONGS ? _mm512_sub_epi32(u, _mm512_castps_si512(magic(bits))) : u;
}
INLINE __m512i quantized_zero(const int bits) {
    return bits == LONGS ? _mm512_setzero_si512() : _mm512_castps_si512(magic(bits));
}

/* The same for q doubled `times` more times. Bits above the highest digit are ignored. */
INLINE __m512i doubled_by(const int bits, __m512i u, uint32_t times) {
    const __m512i offset = _mm512_set1_epi32(bits == 14 ? 64 : bits == 21 ? 8256 : 0);
    u = _mm512_sllv_epi32(_mm512_sub_epi32(u, offset), _mm512_set1_epi32((int32_t)times));
    return _mm512_add_epi32(u, offset);
}

/* b where the mask has ones, otherwise a. */
INLINE __m512i choose(uint32_t mask, __m512i b, __m512i a) {
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32((int32_t)mask), b, a, 0xca);
}

/* The low halves of two, and the low bytes of two pairs of halves. */
INLINE __m512i halves(__m512i a, __m512i b) {
    return choose(0xffff0000u, _mm512_slli_epi32(b, 16), a);
}
INLINE __m512i bytes(__m512i ab, __m512i cd) {
    return choose(0xff00ff00u, _mm512_slli_epi32(cd, 8), ab);
}

/* Converts a digit of 0 to 127 to -64 to 63. */
INLINE __m512i centred(__m512i digit) {
    return _mm512_sub_epi8(_mm512_and_si512(digit, _mm512_set1_epi8(127)), _mm512_set1_epi8(64));
}

/* The rows of all digits, highest first, from four vectors that `quantized` gave. */
INLINE void to_digits(const int bits, const __m512i u[4], __m512i row[3]) {
    const __m512i low = halves(u[0], u[1]), high = halves(u[2], u[3]);
    if (bits == 7) {
        row[0] = bytes(low, high);
        return;
    }
    if (bits == WORDS) {
        row[0] = choose(0xff00ff00u, high, _mm512_srli_epi32(low, 8));
        row[1] = bytes(low, high);
        return;
    }
    if (bits == LONGS) {
        const __m512i above = choose(0xffff0000u, u[1], _mm512_srli_epi32(u[0], 16));
        row[0] = bytes(above, choose(0xffff0000u, u[3], _mm512_srli_epi32(u[2], 16)));
        row[1] = choose(0xff00ff00u, high, _mm512_srli_epi32(low, 8));
        row[2] = bytes(low, high);
        return;
    }
    /* The seven bits above the lowest; of two digits, the eight that are left. */
    const __m512i second =
        choose(0xff00ff00u, _mm512_slli_epi32(high, 1), _mm512_srli_epi32(low, 7));
    if (bits == 14) {
        row[0] = second;
        row[1] = centred(bytes(low, high));
        return;
    }
    const __m512i above =
        choose(0xffff0000u, _mm512_slli_epi32(u[1], 2), _mm512_srli_epi32(u[0], 14));
    const __m512i more =
        choose(0xffff0000u, _mm512_slli_epi32(u[3], 2), _mm512_srli_epi32(u[2], 14));
    row[0] = bytes(above, more);
    row[1] = centred(second);
    row[2] = centred(bytes(low, high));
}

INLINE void put_row(const int bits, const __m512i row[3], char *to) {
    for (uint32_t s = 0; s < digits_of(bits); ++s)
        _mm512_store_si512(to + (size_t)s * TILE, row[s]);
}

/* 16 x 16 dwords at `at`, 64 bytes a row, transposed. */
INLINE void transpose_tile(char *at) {
    __m512i a[WIDE], b[WIDE];
    for (int i = 0; i < WIDE; ++i)
        a[i] = _mm512_load_si512(at + (size_t)i * 64);
    for (int i = 0; i < WIDE; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    /* For rows 4g to 4g + 3: column 4q + i is in quarter q of a[4g + i]. */
    for (int i = 0; i < WIDE; i += 4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    for (int i = 0; i < 4; ++i) {
        const __m512i even_low = _mm512_shuffle_i32x4(a[i], a[4 + i], 0x88);
        const __m512i odd_low = _mm512_shuffle_i32x4(a[i], a[4 + i], 0xdd);
        const __m512i even_high = _mm512_shuffle_i32x4(a[8 + i], a[12 + i], 0x88);
        const __m512i odd_high = _mm512_shuffle_i32x4(a[8 + i], a[12 + i], 0xdd);
        _mm512_store_si512(at + (size_t)i * 64, _mm512_shuffle_i32x4(even_low, even_high, 0x88));
        _mm512_store_si512(at + (size_t)(4 + i) * 64,
                           _mm512_shuffle_i32x4(odd_low, odd_high, 0x88));
        _mm512_store_si512(at + (size_t)(8 + i) * 64,
                           _mm512_shuffle_i32x4(even_low, even_high, 0xdd));
        _mm512_store_si512(at + (size_t)(12 + i) * 64,
                           _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd));
    }
}
INLINE void transpose_tiles(const int bits, char *to) {
    for (uint32_t s = 0; s < digits_of(bits); ++s)
        transpose_tile(to + (size_t)s * TILE);
}

INLINE __m512i either(const int bits, __m512i any, const __m512i row[3]) {
    for (uint32_t s = 0; s < digits_of(bits); ++s)
        any = _mm512_or_si512(any, row[s]);
    return any;
}

/* The rows of a step from an array whose vectors run along the depth: `rows` of them, others 0.
 * `inverse` has one value for each row. If `along` is not NULL, it has one value for each depth
 * instead. Returns the OR of the rows' bits. */
INLINE __m512i pack_along(const int bits, uint32_t rows, uint32_t at, uint32_t k, const float *from,
                          const size_t *blocks, const float *times, const float *inverse,
                          const float *along, char *to) {
    __m512 factor[4], shared[4];
    __mmask16 mask[4];
    const float *own[4];
    __m512i any = _mm512_setzero_si512();
    for (uint32_t i = 0; i < 4; ++i) {
        mask[i] = lanes(at + i * WIDE, k);
        const uint32_t t = at + i * WIDE;
        /* Depths after the last block are masked. */
        own[i] = from + blocks[(t < k ? t : at) / WIDE];
        factor[i] = times ? _mm512_maskz_loadu_ps(mask[i], times + t) : _mm512_setzero_ps();
        shared[i] = along ? _mm512_maskz_loadu_ps(mask[i], along + t) : _mm512_setzero_ps();
    }
    for (uint32_t r = 0; r < rows; ++r, to += 64) {
        __m512i u[4], row[3];
        for (uint32_t i = 0; i < 4; ++i) {
            __m512 v = _mm512_maskz_loadu_ps(mask[i], own[i] + (size_t)r * WIDE);
            if (times)
                v = _mm512_mul_ps(v, factor[i]);
            u[i] = quantized(bits, v, along ? shared[i] : _mm512_set1_ps(inverse[r]));
        }
        to_digits(bits, u, row);
        put_row(bits, row, to);
        any = either(bits, any, row);
    }
    const __m512i none[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(),
                             _mm512_setzero_si512()};
    for (uint32_t r = rows; r < WIDE; ++r, to += 64)
        put_row(bits, none, to);
    return any;
}

INLINE void pack_left(const int bits, uint32_t rows, uint32_t k, const float *from,
                      const size_t *blocks, const float *times, const float *inverse, char *to) {
    const uint32_t steps = steps_of(k);
    filled *list = filled_of(bits, steps, to);
    list->count = 0;
    for (uint32_t i = 0; i < steps; ++i, to += step_size(bits)) {
        const __m512i any =
            times ? pack_along(bits, rows, i * STEP, k, from, blocks, times, inverse, NULL, to)
                  : pack_along(bits, rows, i * STEP, k, from, blocks, NULL, inverse, NULL, to);
        note(list, i, any);
    }
}

INLINE void pack_right_transposed(const int bits, uint32_t columns, uint32_t k, const float *from,
                                  const size_t *blocks, const float *inverse, char *to) {
    for (uint32_t at = 0; at < k; at += STEP, to += step_size(bits)) {
        pack_along(bits, columns, at, k, from, blocks, NULL, NULL, inverse, to);
        transpose_tiles(bits, to);
    }
}

/* Vectors across the depth: depth t is the row t of a panel, or the row list[t]. `across` is the
 * inverse of each column. If it is NULL, depth t has inverse[t] and is doubled doubled[t] times.
 * With a list the rows of the next step are prefetched: another core may have written them. Returns
 * the OR of the rows' bits; for longs, of the bits that do not fit words. */
INLINE __m512i pack_across(const int bits, const int whole, uint32_t at, uint32_t k,
                           const uint32_t *list, const float *inverse, const __m512 *across,
                           const uint8_t *doubled, const float *from, char *to) {
    const size_t ahead = k - at >= 2 * STEP ? STEP : 0;
    __m512i any = _mm512_setzero_si512();
    for (size_t j = 0; j < WIDE; ++j, to += 64) {
        const size_t first = at + j;
        const uint32_t *own = list ? list + first : NULL, *next = list ? own + ahead : NULL;
        __m512i u[4], row[3];
        for (uint32_t i = 0; i < 4 * WIDE; i += WIDE) {
            __m512i *to_u = u + i / WIDE;
            *to_u = quantized_zero(bits);
            if (!whole && first + i >= k)
                continue;
            if (list)
                _mm_prefetch((const char *)(from + (size_t)next[i] * WIDE), _MM_HINT_T0);
            *to_u = quantized(bits, _mm512_loadu_ps(from + (list ? own[i] : first + i) * WIDE),
                              across ? *across : _mm512_set1_ps(inverse[first + i]));
            if (doubled)
                *to_u = doubled_by(bits, *to_u, doubled[first + i]);
        }
        to_digits(bits, u, row);
        put_row(bits, row, to);
        any = bits == LONGS ? _mm512_or_si512(any, beyond_words(row)) : either(bits, any, row);
    }
    return any;
}

INLINE void pack_right(const int bits, uint32_t k, const float *from, const float *inverse,
                       char *to) {
    const __m512 across = _mm512_loadu_ps(inverse);
    uint32_t at = 0;
    for (; at + STEP <= k; at += STEP, to += step_size(bits))
        pack_across(bits, 1, at, k, NULL, NULL, &across, NULL, from, to);
    if (at < k)
        pack_across(bits, 0, at, k, NULL, NULL, &across, NULL, from, to);
}

INLINE __m512i pack_item_step(const int bits, uint32_t at, uint32_t count, const uint32_t *items,
                              const float *inverse, const uint8_t *doubled, const float *from,
                              char *to) {
    const int whole = at + STEP <= count;
    if (whole && doubled)
        return pack_across(bits, 1, at, count, items, inverse, NULL, doubled, from, to);
    if (whole)
        return pack_across(bits, 1, at, count, items, inverse, NULL, NULL, from, to);
    return pack_across(bits, 0, at, count, items, inverse, NULL, doubled, from, to);
}

/* An operand of a sum over items. A left one is transposed and has its list, as longs have
 * theirs. */
INLINE void pack_items(const int bits, uint32_t count, const uint32_t *items, const float *inverse,
                       const uint8_t *doubled, const float *from, const int left, char *to) {
    const uint32_t steps = steps_of(count);
    filled *list = filled_of(bits, steps, to);
    if (left || bits == LONGS)
        list->count = 0;
    for (uint32_t i = 0; i < steps; ++i, to += step_size(bits)) {
        const __m512i any =
            pack_item_step(bits, i * STEP, count, items, inverse, doubled, from, to);
        if (left)
            transpose_tiles(bits, to);
        if (left || bits == LONGS)
            note(list, i, any);
    }
}

/* A left operand of 16 rows whose depths are rows of a panel. */
INLINE void pack_left_across(const int bits, uint32_t k, const uint32_t *depths, const float *from,
                             const float *inverse, char *to) {
    const __m512 across = _mm512_loadu_ps(inverse);
    const uint32_t steps = steps_of(k);
    filled *list = filled_of(bits, steps, to);
    list->count = 0;
    for (uint32_t i = 0; i < steps; ++i, to += step_size(bits)) {
        const __m512i any =
            pack_across(bits, 0, i * STEP, k, depths, NULL, &across, NULL, from, to);
        transpose_tiles(bits, to);
        note(list, i, any);
    }
}

/* The largest of the bits of |v| in each of `rows` rows. */
INLINE void absmax_of(uint32_t rows, uint32_t k, const float *from, const size_t *blocks,
                      const float *times, uint32_t *absmax) {
    const __m512i size = _mm512_set1_epi32(0x7fffffff);
    __m512i most[WIDE];
    for (uint32_t r = 0; r < rows; ++r)
        most[r] = _mm512_setzero_si512();
    for (uint32_t c = 0; c < k; c += WIDE) {
        const __mmask16 mask = lanes(c, k);
        const float *own = from + blocks[c / WIDE];
        const float *ahead = from + blocks[(c + AHEAD * WIDE < k ? c + AHEAD * WIDE : c) / WIDE];
        const __m512 factor = times ? _mm512_maskz_loadu_ps(mask, times + c) : _mm512_setzero_ps();
        for (uint32_t r = 0; r < rows; ++r) {
            __m512 v = _mm512_maskz_loadu_ps(mask, own + (size_t)r * WIDE);
            _mm_prefetch((const char *)(ahead + (size_t)r * WIDE), _MM_HINT_T0);
            if (times)
                v = _mm512_mul_ps(v, factor);
            most[r] = _mm512_max_epu32(most[r], _mm512_and_si512(_mm512_castps_si512(v), size));
        }
    }
    for (uint32_t r = 0; r < rows; ++r)
        absmax[r] = _mm512_reduce_max_epu32(most[r]);
}

#endif
