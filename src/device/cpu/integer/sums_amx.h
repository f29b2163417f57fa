/* The sums of AMX tiles (intgemm_amx.c describes them): combines them to the exact integers of a
 * tile of results, and stores these as a product or an outer product requires. */
#ifndef QN_DEVICE_CPU_INTEGER_SUMS_AMX_H
#define QN_DEVICE_CPU_INTEGER_SUMS_AMX_H

#include "device/cpu/integer/intgemm.h"
#include "device/cpu/integer/pack_amx.h"

enum {
    CELLS = 256,  /* of a tile of sums */
    PARTS = 5,    /* the most sums of a tile of results */
    SHORTEST = 4, /* steps: 255 * 32767 * 64 * SHORTEST < 2^31 */
    SHORT = 16    /* steps: (2 * 64 * 64 * 128 + 64 * 64) * 64 * SHORT < 2^31; of words
                     32767^2 * 64 * SHORT < 2^24 * 2^16; of bytes 255 * 8191 * 64 * SHORT < 2^31 */
};

/* Steps up to which 32 bits hold the sums: (2 * 128 * 64 + 64 * 64) * 64 * 1024 < 2^31, and for
 * words 2 * 128 * 255 * 64 * 512 < 2^31 - 2^16; those of bytes by digits are smaller. */
INLINE uint32_t longest(int bits) { return bits == WORDS || of_bytes(bits) ? 512 : 1024; }

/* The sums of a tile of results. With 7 bits the parts are added. With 14 and 21 bits they have the
 * weights 128 to the power of 2, 1, 0 and of 4, 3, 2, 1, 0; for words 256 to the power of 2, 1, 0.
 * If the left operand is bytes, there is one part for each digit of the right one. */
typedef struct sums {
    int32_t part[PARTS][CELLS];
    int64_t exact[CELLS]; /* sums over more than longest() steps */
} sums;

/* Tiles of results computed together: as many as have their sums in six of AMX's registers. */
INLINE uint32_t most_tiles(int bits) {
    return of_bytes(bits) ? 6 / digits_of(bits) : bits == 21 ? 1 : 2;
}

/* Sums of bytes by two digits that sum_two can combine. */
INLINE int is_bytes_by_two(int bits) { return of_bytes(bits) && digits_of(bits) == 2; }
INLINE int is_by_two(int bits) { return digits_of(bits) == (of_bytes(bits) ? 3 : 2); }

INLINE __m512i part_row(const sums *s, uint32_t part, uint32_t row) {
    return _mm512_load_si512(s->part[part] + row * WIDE);
}

INLINE __m512i sum_7(const sums *s, uint32_t row) {
    return _mm512_add_epi32(part_row(s, 0, row), part_row(s, 1, row));
}

/* For two digits of this many bits: high * 2^(2 * digit) + low, low from 0 to 2^(2 * digit) - 1. */
INLINE int digit_bits(int bits) {
    return width_of(bits) == WORDS || width_of(bits) == LONGS ? 8 : 7;
}
INLINE void sum_two(const int bits, uint32_t steps, const sums *s, uint32_t row, __m512i *high,
                    __m512i *low) {
    const __m512i middle = part_row(s, 1, row);
    if (bits == 14 && steps <= SHORT) {
        const __m512i all = _mm512_add_epi32(_mm512_slli_epi32(middle, 7), part_row(s, 2, row));
        *high = _mm512_add_epi32(part_row(s, 0, row), _mm512_srai_epi32(all, 14));
        *low = _mm512_and_si512(all, _mm512_set1_epi32(0x3fff));
        return;
    }
    const unsigned digit = (unsigned)digit_bits(bits);
    const __m512i carried = _mm512_and_si512(middle, _mm512_set1_epi32((1 << digit) - 1));
    const __m512i rest = _mm512_add_epi32(_mm512_slli_epi32(carried, digit), part_row(s, 2, row));
    *high =
        _mm512_add_epi32(_mm512_add_epi32(part_row(s, 0, row), _mm512_srai_epi32(middle, digit)),
                         _mm512_srai_epi32(rest, 2 * digit));
    *low = _mm512_and_si512(rest, _mm512_set1_epi32((1 << 2 * digit) - 1));
}

/* For bytes by two digits: high * 2^(7 + digit) + low, high below 2^24 and low from 0 to below
 * 2^15. */
INLINE void sum_bytes(const int bits, const sums *s, uint32_t row, __m512i *high, __m512i *low) {
    const unsigned digit = (unsigned)digit_bits(bits);
    const __m512i last = part_row(s, 1, row);
    const __m512i all = _mm512_add_epi32(part_row(s, 0, row), _mm512_srai_epi32(last, digit));
    const __m512i rest = _mm512_slli_epi32(_mm512_and_si512(all, _mm512_set1_epi32(127)), digit);
    *high = _mm512_srai_epi32(all, 7);
    *low = _mm512_or_si512(rest, _mm512_and_si512(last, _mm512_set1_epi32((1 << digit) - 1)));
}

/* The same for at most SHORTEST steps of words. */
INLINE int is_shortest(int bits, uint32_t steps) {
    return bits == BYTES_WORDS && steps <= SHORTEST;
}
INLINE __m512i sum_shortest(const sums *s, uint32_t row) {
    return _mm512_add_epi32(_mm512_slli_epi32(part_row(s, 0, row), 8), part_row(s, 1, row));
}

/* The same for bytes by longs: high * 2^23 + low, low below 2^23. */
INLINE void sum_longs(uint32_t steps, const sums *s, uint32_t row, __m512i *high, __m512i *low) {
    __m512i above, below;
    sum_two(BYTES_LONGS, steps, s, row, &above, &below);
    const __m512i rest = _mm512_slli_epi32(_mm512_and_si512(above, _mm512_set1_epi32(127)), 16);
    *high = _mm512_srai_epi32(above, 7);
    *low = _mm512_or_si512(rest, below);
}

INLINE __m512i low_half(__m512i a) { return _mm512_cvtepi32_epi64(_mm512_castsi512_si256(a)); }
INLINE __m512i high_half(__m512i a) {
    return _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(a, 1));
}

INLINE __m512d low_doubles(__m512i a) { return _mm512_cvtepi32_pd(_mm512_castsi512_si256(a)); }
INLINE __m512d high_doubles(__m512i a) {
    return _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(a, 1));
}

/* The exact integers of a row, in two vectors of eight. */
INLINE void exact_row(const int bits, uint32_t steps, const sums *s, uint32_t row, __m512i n[2]) {
    if (steps > longest(bits)) {
        n[0] = _mm512_load_si512(s->exact + row * WIDE);
        n[1] = _mm512_load_si512(s->exact + row * WIDE + 8);
    } else if (bits == 7) {
        const __m512i sum = sum_7(s, row);
        n[0] = low_half(sum);
        n[1] = high_half(sum);
    } else if (is_bytes_by_two(bits)) {
        const __m512i high = part_row(s, 0, row), low = part_row(s, 1, row);
        const unsigned by = (unsigned)digit_bits(bits);
        n[0] = _mm512_add_epi64(_mm512_slli_epi64(low_half(high), by), low_half(low));
        n[1] = _mm512_add_epi64(_mm512_slli_epi64(high_half(high), by), high_half(low));
    } else if (is_by_two(bits)) {
        const unsigned by = 2 * (unsigned)digit_bits(bits);
        __m512i high, low;
        sum_two(bits, steps, s, row, &high, &low);
        n[0] = _mm512_add_epi64(_mm512_slli_epi64(low_half(high), by), low_half(low));
        n[1] = _mm512_add_epi64(_mm512_slli_epi64(high_half(high), by), high_half(low));
    } else {
        n[0] = n[1] = _mm512_setzero_si512();
        for (uint32_t p = 0; p < PARTS; ++p) {
            const __m512i part = part_row(s, p, row);
            n[0] = _mm512_add_epi64(_mm512_slli_epi64(n[0], 7), low_half(part));
            n[1] = _mm512_add_epi64(_mm512_slli_epi64(n[1], 7), high_half(part));
        }
    }
}

/* The same as doubles. They hold sums of two digits exactly up to a depth of longest(); otherwise
 * the caller has shown that they do. */
INLINE void double_row(const int bits, uint32_t steps, const sums *s, uint32_t row, __m512d n[2]) {
    if (is_shortest(bits, steps)) {
        const __m512i all = sum_shortest(s, row);
        n[0] = low_doubles(all);
        n[1] = high_doubles(all);
        return;
    }
    if (is_bytes_by_two(bits) && steps <= longest(bits)) {
        const __m512i high = part_row(s, 0, row), low = part_row(s, 1, row);
        const __m512d by = _mm512_set1_pd(1 << digit_bits(bits));
        n[0] = _mm512_fmadd_pd(low_doubles(high), by, low_doubles(low));
        n[1] = _mm512_fmadd_pd(high_doubles(high), by, high_doubles(low));
        return;
    }
    if (is_by_two(bits) && steps <= longest(bits)) {
        const __m512d by = _mm512_set1_pd(1 << 2 * digit_bits(bits));
        __m512i high, low;
        sum_two(bits, steps, s, row, &high, &low);
        n[0] = _mm512_fmadd_pd(low_doubles(high), by, low_doubles(low));
        n[1] = _mm512_fmadd_pd(high_doubles(high), by, high_doubles(low));
        return;
    }
    __m512i exact[2];
    exact_row(bits, steps, s, row, exact);
    n[0] = _mm512_cvtepi64_pd(exact[0]);
    n[1] = _mm512_cvtepi64_pd(exact[1]);
}

INLINE __m512 joined(__m256 low, __m256 high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* The same, rounded once. Up to SHORT steps the high part of two digits is below 2^24: it is exact
 * as a float, so that only the addition rounds. */
INLINE __m512 float_row(const int bits, uint32_t steps, const sums *s, uint32_t row) {
    if (bits == 7 && steps <= longest(bits))
        return _mm512_cvtepi32_ps(sum_7(s, row));
    if (bits == BYTES_14 && steps <= SHORT)
        return _mm512_cvtepi32_ps(
            _mm512_add_epi32(_mm512_slli_epi32(part_row(s, 0, row), 7), part_row(s, 1, row)));
    if (is_shortest(bits, steps))
        return _mm512_cvtepi32_ps(sum_shortest(s, row));
    if (is_bytes_by_two(bits) && steps <= longest(bits)) {
        const __m512 by = _mm512_set1_ps((float)(1 << (7 + digit_bits(bits))));
        __m512i high, low;
        sum_bytes(bits, s, row, &high, &low);
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), by, _mm512_cvtepi32_ps(low));
    }
    if (bits == BYTES_LONGS && steps <= longest(bits)) {
        __m512i high, low;
        sum_longs(steps, s, row, &high, &low);
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(0x1p23f),
                               _mm512_cvtepi32_ps(low));
    }
    if ((bits == 14 || bits == WORDS) && steps <= SHORT) {
        const __m512 by = _mm512_set1_ps((float)(1 << 2 * digit_bits(bits)));
        __m512i high, low;
        sum_two(bits, steps, s, row, &high, &low);
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), by, _mm512_cvtepi32_ps(low));
    }
    if (is_by_two(bits) && steps <= longest(bits)) {
        __m512d n[2];
        double_row(bits, steps, s, row, n);
        return joined(_mm512_cvtpd_ps(n[0]), _mm512_cvtpd_ps(n[1]));
    }
    __m512i n[2];
    exact_row(bits, steps, s, row, n);
    return joined(_mm512_cvtepi64_ps(n[0]), _mm512_cvtepi64_ps(n[1]));
}

/* How sums are stored: the products of intgemm.h with and without column, and the cases of
 * qn__intgemm_out. */
typedef enum shape { FORM_COLUMN, FORM_PLAIN, FORM_FLOAT, FORM_DOUBLE, FORM_INTEGER } shape;

/* A product or an outer product. */
typedef struct job {
    shape form;
    uint32_t rows, steps, panels;
    size_t left_size, size; /* bytes of a block and of a panel */
    const char *left, *right;
    const float *factor;         /* of each row, in a product */
    const float *column, *start; /* FORM_COLUMN */
    float *c;                    /* of a product */
    size_t c_stride;
    int adds; /* FORM_DOUBLE */
    double scale;
    void *out; /* of an outer product */
} job;

/* Up to three tiles of results with complete sums, of neighbouring panels, or of blocks if the left
 * operand is bytes; none when `tiles` is 0. */
typedef struct ending {
    const sums *s;
    uint32_t tiles, block, panel;
} ending;

/* Without optimisation the intrinsic is a macro that passes a full mask as a signed number. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
INLINE __m512d nearest(__m512d x) {
    return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#pragma GCC diagnostic pop

INLINE void put_doubles(const job *j, const __m512d n[2], double *to) {
    const __m512d factor = _mm512_set1_pd(j->scale);
    for (size_t i = 0; i < 2; ++i, to += 8) {
        __m512d v = _mm512_mul_pd(n[i], factor);
        if (j->scale < 1)
            v = nearest(v);
        if (j->adds)
            v = _mm512_add_pd(v, _mm512_loadu_pd(to));
        _mm512_storeu_pd(to, v);
    }
}

/* Stores rows r to end - 1 of a tile. */
INLINE void put_rows(const int bits, const shape form, const uint32_t steps, const job *j,
                     const ending *e, uint32_t tile, uint32_t r, uint32_t end) {
    const sums *s = e->s + tile;
    const uint32_t panel = e->panel + (of_bytes(bits) ? 0 : tile);
    const uint32_t block = e->block + (of_bytes(bits) ? tile : 0);
    const size_t cells = (panel * (j->rows / WIDE) + block) * (size_t)CELLS;
    const float *factor = NULL;
    float *c = NULL;
    __m512 column = _mm512_setzero_ps(), start = column;
    if (form == FORM_COLUMN || form == FORM_PLAIN) {
        factor = j->factor + (size_t)block * WIDE;
        c = j->c + panel * j->c_stride + (size_t)block * CELLS;
    }
    if (form == FORM_COLUMN) {
        column = _mm512_loadu_ps(j->column + (size_t)panel * WIDE);
        start = _mm512_loadu_ps(j->start + (size_t)panel * WIDE);
    }
    for (; r < end; ++r) {
        const size_t row = (size_t)r * WIDE, to = cells + row;
        __m512i n[2];
        __m512d d[2];
        __m512 own;
        switch (form) {
        case FORM_COLUMN:
            own = _mm512_mul_ps(_mm512_set1_ps(factor[r]), column);
            _mm512_storeu_ps(c + row, _mm512_fmadd_ps(float_row(bits, steps, s, r), own, start));
            break;
        case FORM_PLAIN:
            own = _mm512_set1_ps(factor[r]);
            _mm512_storeu_ps(c + row, _mm512_mul_ps(float_row(bits, steps, s, r), own));
            break;
        case FORM_FLOAT:
            _mm512_storeu_ps((float *)j->out + to, float_row(bits, steps, s, r));
            break;
        case FORM_DOUBLE:
            double_row(bits, steps, s, r, d);
            put_doubles(j, d, (double *)j->out + to);
            break;
        case FORM_INTEGER:
            exact_row(bits, steps, s, r, n);
            _mm512_storeu_si512((int64_t *)j->out + to, n[0]);
            _mm512_storeu_si512((int64_t *)j->out + to + 8, n[1]);
        }
    }
}

INLINE void put_some(const int bits, const uint32_t steps, const job *j, const ending *e,
                     uint32_t tile, uint32_t r, uint32_t end) {
    if (j->form == FORM_COLUMN)
        put_rows(bits, FORM_COLUMN, steps, j, e, tile, r, end);
    else if (j->form == FORM_PLAIN)
        put_rows(bits, FORM_PLAIN, steps, j, e, tile, r, end);
    else if (j->form == FORM_FLOAT)
        put_rows(bits, FORM_FLOAT, steps, j, e, tile, r, end);
    else if (j->form == FORM_DOUBLE)
        put_rows(bits, FORM_DOUBLE, steps, j, e, tile, r, end);
    else
        put_rows(bits, FORM_INTEGER, steps, j, e, tile, r, end);
}

#endif
