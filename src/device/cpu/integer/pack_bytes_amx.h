/* Operands of integer products for AMX tiles from bytes (intgemm.h): the integers of 64 bytes at a
 * time are looked up in tables. */
#ifndef QN_DEVICE_CPU_INTEGER_PACK_BYTES_AMX_H
#define QN_DEVICE_CPU_INTEGER_PACK_BYTES_AMX_H

#include "device/cpu/integer/intgemm.h"
#include "device/cpu/integer/pack_amx.h"

/* The digits of all 256 bytes; four registers for each digit. */
typedef struct looked_up {
    __m512i of[3][4];
} looked_up;

INLINE looked_up look_up_in(const int bits, const int8_t digit[3][256]) {
    looked_up l;
    for (uint32_t s = 0; s < digits_of(bits); ++s)
        for (int i = 0; i < 4; ++i)
            l.of[s][i] = _mm512_load_si512(digit[s] + 64 * i);
    return l;
}

/* The rows of all digits from a row of bytes. A register holds 64 digits, so the two highest bits
 * of a byte select one of four registers. */
INLINE void look_up(const int bits, const looked_up *l, __m512i v, __m512i row[3]) {
    const __mmask64 upper = _mm512_movepi8_mask(v);
    const __mmask64 odd = _mm512_movepi8_mask(_mm512_add_epi8(v, v));
    for (uint32_t s = 0; s < digits_of(bits); ++s) {
        const __m512i *of = l->of[s];
        __m512i low = _mm512_permutexvar_epi8(v, of[0]), high = _mm512_permutexvar_epi8(v, of[2]);
        low = _mm512_mask_permutexvar_epi8(low, odd, v, of[1]);
        high = _mm512_mask_permutexvar_epi8(high, odd, v, of[3]);
        row[s] = _mm512_mask_blend_epi8(upper, low, high);
    }
}

/* From four rows of sixteen bytes: byte j of each forms dword j. */
#define FOUR_ROWS(j) j, 16 + j, 32 + j, 48 + j
#define FOUR_TIMES(each, j) each(j), each(j + 1), each(j + 2), each(j + 3)
_Alignas(64) static const uint8_t by_dword_at[64] = {
    FOUR_TIMES(FOUR_ROWS, 0), FOUR_TIMES(FOUR_ROWS, 4), FOUR_TIMES(FOUR_ROWS, 8),
    FOUR_TIMES(FOUR_ROWS, 12)};
INLINE __m512i by_dword(void) { return _mm512_load_si512(by_dword_at); }

/* Which of 64 consecutive depths is in each byte of a row (pack_amx.h). */
#define FOUR_DEPTHS(j) j, 32 + j, 16 + j, 48 + j
_Alignas(64) static const uint8_t depth_at[64] = {
    FOUR_TIMES(FOUR_DEPTHS, 0), FOUR_TIMES(FOUR_DEPTHS, 4), FOUR_TIMES(FOUR_DEPTHS, 8),
    FOUR_TIMES(FOUR_DEPTHS, 12)};
INLINE __m512i order_of_depths(void) { return _mm512_load_si512(depth_at); }

INLINE __mmask64 bytes_below(uint32_t at, uint32_t count) {
    const uint32_t more = count - at;
    return more < STEP ? (UINT64_C(1) << more) - 1 : ~UINT64_C(0);
}

/* Rows of a batch mostly have equal exponents, so that the tables are rarely loaded. */
INLINE void pack_left_bytes(const int bits, uint32_t rows, uint32_t k, const uint8_t *const *from,
                            const float *inverse, const qn__cpu_digits *digits, char *to) {
    const uint32_t steps = steps_of(k);
    const __m512i order = order_of_depths();
    const __m512i none[3] = {_mm512_setzero_si512(), _mm512_setzero_si512(),
                             _mm512_setzero_si512()};
    filled *list = filled_of(bits, steps, to);
    uint32_t block = qn__cpu_digits_at(digits, inverse[0]);
    looked_up l = look_up_in(bits, digits->digit[block]);
    list->count = 0;
    for (uint32_t i = 0; i < steps; ++i, to += step_size(bits)) {
        const __mmask64 there = bytes_below(i * STEP, k);
        __m512i any = _mm512_setzero_si512();
        for (uint32_t r = 0; r < WIDE; ++r) {
            __m512i row[3];
            if (r >= rows) {
                put_row(bits, none, to + (size_t)r * 64);
                continue;
            }
            const uint32_t own = qn__cpu_digits_at(digits, inverse[r]);
            const __m512i v = _mm512_maskz_loadu_epi8(there, from[r] + i * STEP);
            if (own != block)
                l = look_up_in(bits, digits->digit[own]);
            block = own;
            look_up(bits, &l, _mm512_permutexvar_epi8(order, v), row);
            put_row(bits, row, to + (size_t)r * 64);
            any = _mm512_or_si512(any, v);
        }
        note(list, i, any);
    }
}

/* The 16 bytes of depth t. */
INLINE __m128i bytes_of_item(uint32_t t, uint32_t count, const uint32_t *list, const uint8_t *from,
                             size_t block) {
    if (t >= count)
        return _mm_setzero_si128();
    const uint8_t *at = from + list[t] / WIDE * block + list[t] % WIDE * WIDE;
    return _mm_loadu_si128((const __m128i *)(const void *)at);
}

/* 64 depths of 16 bytes each as 16 rows of 64, at `to`. Returns the bits that any of them has. */
INLINE __m512i transpose_bytes(uint32_t at, uint32_t count, const uint32_t *list,
                               const uint8_t *from, size_t block, char *to) {
    const __m512i order = by_dword();
    __m512i any = _mm512_setzero_si512();
    for (uint32_t j = 0; j < WIDE; ++j) {
        const uint32_t t = at + j;
        __m512i four = _mm512_castsi128_si512(bytes_of_item(t, count, list, from, block));
        four = _mm512_inserti32x4(four, bytes_of_item(t + 32, count, list, from, block), 1);
        four = _mm512_inserti32x4(four, bytes_of_item(t + 16, count, list, from, block), 2);
        four = _mm512_inserti32x4(four, bytes_of_item(t + 48, count, list, from, block), 3);
        _mm512_store_si512(to + (size_t)j * 64, _mm512_permutexvar_epi8(order, four));
        any = _mm512_or_si512(any, four);
    }
    transpose_tile(to);
    return any;
}

/* The exponents of the inverses of 64 depths, in the order of a row; 0 after the last. */
INLINE __m512i exponents_of_depths(uint32_t at, uint32_t count, const float *inverse) {
    __m512i u[4];
    for (uint32_t i = 0; i < 4; ++i) {
        const __mmask16 own = lanes(at + i * WIDE, count);
        const __m512 x =
            own ? _mm512_maskz_loadu_ps(own, inverse + at + i * WIDE) : _mm512_setzero_ps();
        u[i] = _mm512_srli_epi32(_mm512_castps_si512(x), 23);
    }
    return bytes(halves(u[0], u[1]), halves(u[2], u[3]));
}

/* The table of each of those depths: four times the number of the block in the digits, plus the
 * number of doublings. */
INLINE __m512i places_of_depths(uint32_t at, uint32_t count, const qn__cpu_digits *digits,
                                __m512i exponents, const uint8_t *doubled) {
    const __m512i block = _mm512_subs_epu8(_mm512_set1_epi8((char)digits->first), exponents);
    const __m512i twofold = _mm512_add_epi8(block, block);
    __m512i times = _mm512_setzero_si512();
    if (doubled)
        times = _mm512_maskz_loadu_epi8(bytes_below(at, count), doubled + at);
    return _mm512_add_epi8(_mm512_add_epi8(twofold, twofold),
                           _mm512_permutexvar_epi8(order_of_depths(), times));
}

/* Depths of a step with the same table are looked up together: nearly always all of them. */
INLINE void pack_items_bytes(const int bits, uint32_t count, const uint32_t *list,
                             const float *inverse, const uint8_t *doubled,
                             const qn__cpu_digits *digits, const uint8_t *from, size_t block,
                             char *to) {
    _Alignas(64) char transposed[TILE];
    _Alignas(64) uint8_t place[64];
    const uint32_t steps = steps_of(count);
    filled *noted = filled_of(bits, steps, to);
    noted->count = 0;
    for (uint32_t i = 0; i < steps; ++i, to += step_size(bits)) {
        const uint32_t at = i * STEP;
        const __m512i exponents = exponents_of_depths(at, count, inverse);
        const __m512i places = places_of_depths(at, count, digits, exponents, doubled);
        uint64_t left = _mm512_test_epi8_mask(exponents, exponents);
        _mm512_store_si512(place, places);
        note(noted, i, transpose_bytes(at, count, list, from, block, transposed));
        for (int first = 1; left; first = 0) {
            const uint8_t p = place[__builtin_ctzll(left)];
            const uint64_t alike =
                _mm512_mask_cmpeq_epi8_mask(left, places, _mm512_set1_epi8((char)p));
            const looked_up l = look_up_in(bits, digits->item_digit[p / 4][p % 4]);
            left &= ~alike;
            for (uint32_t r = 0; r < WIDE; ++r) {
                __m512i row[3];
                look_up(bits, &l, _mm512_load_si512(transposed + (size_t)r * 64), row);
                for (uint32_t s = 0; s < digits_of(bits); ++s) {
                    char *own = to + (size_t)s * TILE + (size_t)r * 64;
                    const __m512i before = first ? _mm512_setzero_si512() : _mm512_load_si512(own);
                    _mm512_store_si512(own, _mm512_mask_mov_epi8(before, alike, row[s]));
                }
            }
        }
    }
}

/* ------------------------------------------------------------------------------ bytes
 * themselves */

INLINE void pack_raw(const int bits, uint32_t rows, uint32_t k, const uint8_t *const *from,
                     char *to) {
    const uint32_t steps = steps_of(k);
    const __m512i order = order_of_depths();
    filled *list = filled_of(bits, steps, to);
    list->count = 0;
    for (uint32_t i = 0; i < steps; ++i, to += TILE) {
        const __mmask64 there = bytes_below(i * STEP, k);
        __m512i any = _mm512_setzero_si512();
        for (uint32_t r = 0; r < WIDE; ++r) {
            __m512i v = _mm512_setzero_si512();
            if (r < rows)
                v = _mm512_maskz_loadu_epi8(there, from[r] + i * STEP);
            _mm512_store_si512(to + (size_t)r * 64, _mm512_permutexvar_epi8(order, v));
            any = _mm512_or_si512(any, v);
        }
        note(list, i, any);
    }
}

INLINE void pack_raw_items(const int bits, uint32_t count, const uint32_t *list,
                           const uint8_t *from, size_t block, char *to) {
    const uint32_t steps = steps_of(count);
    filled *noted = filled_of(bits, steps, to);
    noted->count = 0;
    for (uint32_t i = 0; i < steps; ++i, to += TILE)
        note(noted, i, transpose_bytes(i * STEP, count, list, from, block, to));
}

/* ------------------------------------------------------------------ at most half a step of
 * bytes */

INLINE void raw_floats(__m128i bytes_16, float *to) {
    _mm512_storeu_ps(to, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes_16)));
}

INLINE void raw_floats_of_items(uint32_t count, const uint32_t *list, const uint8_t *from,
                                size_t block, float *to) {
    for (uint32_t t = 0; t < count; ++t)
        raw_floats(bytes_of_item(t, count, list, from, block), to + (size_t)t * WIDE);
}

INLINE void raw_floats_of_rows(uint32_t rows, uint32_t k, const uint8_t *const *from, float *to) {
    for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t at = 0; at < k; at += WIDE)
            raw_floats(_mm_maskz_loadu_epi8(lanes(at, k), from[r] + at),
                       to + (at / WIDE * WIDE + (size_t)r) * WIDE);
}

/* The integers of 16 bytes, as floats. */
INLINE void floats(const looked_up *l, __m128i bytes_16, float *to) {
    __m512i row[3];
    look_up(14, l, _mm512_zextsi128_si512(bytes_16), row);
    const __m512i high = _mm512_cvtepi8_epi32(_mm512_castsi512_si128(row[0]));
    const __m512i low = _mm512_cvtepi8_epi32(_mm512_castsi512_si128(row[1]));
    const __m512i all = _mm512_add_epi32(_mm512_slli_epi32(high, 7), low);
    _mm512_storeu_ps(to, _mm512_cvtepi32_ps(all));
}

/* The integers of 14 bits of items as a panel of 16 floats each, in the order of the list. */
INLINE void floats_of_items(uint32_t count, const uint32_t *list, const float *inverse,
                            const qn__cpu_digits *digits, const uint8_t *from, size_t block,
                            float *to) {
    uint32_t at = qn__cpu_digits_at(digits, inverse[0]);
    looked_up l = look_up_in(14, digits->digit[at]);
    for (uint32_t t = 0; t < count; ++t) {
        const uint32_t own = qn__cpu_digits_at(digits, inverse[t]);
        if (own != at)
            l = look_up_in(14, digits->digit[own]);
        at = own;
        floats(&l, bytes_of_item(t, count, list, from, block), to + (size_t)t * WIDE);
    }
}

/* The same of rows of at most half a step of bytes, as two panels of 16 rows. */
INLINE void floats_of_rows(uint32_t rows, uint32_t k, const uint8_t *const *from,
                           const float *inverse, const qn__cpu_digits *digits, float *to) {
    for (uint32_t r = 0; r < rows; ++r) {
        const looked_up l = look_up_in(14, digits->digit[qn__cpu_digits_at(digits, inverse[r])]);
        for (uint32_t at = 0; at < k; at += WIDE) {
            const __mmask16 there = lanes(at, k);
            floats(&l, _mm_maskz_loadu_epi8(there, from[r] + at),
                   to + (at / WIDE * WIDE + (size_t)r) * WIDE);
        }
    }
}

INLINE void absmax_of_bytes(uint32_t rows, uint32_t k, const uint8_t *const *from,
                            uint8_t *absmax) {
    for (uint32_t r = 0; r < rows; ++r) {
        __m512i most = _mm512_setzero_si512();
        for (uint32_t at = 0; at < k; at += STEP)
            most = _mm512_max_epu8(most, _mm512_maskz_loadu_epi8(bytes_below(at, k), from[r] + at));
        const __m256i half =
            _mm256_max_epu8(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
        __m128i last =
            _mm_max_epu8(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
        /* The minimum of eight 16-bit values, each the smaller complement of a pair. */
        last = _mm_xor_si128(last, _mm_set1_epi8(-1));
        last = _mm_min_epu8(last, _mm_srli_epi16(last, 8));
        absmax[r] =
            (uint8_t)~_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_and_si128(last, _mm_set1_epi16(255))));
    }
}

#endif
