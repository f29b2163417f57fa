/* Products of integers by AMX: tdpbssd multiplies 16 rows of 64 signed bytes with 64 rows of 16
 * and adds to 16 x 16 sums of 32 bits.
 *
 * An integer of B bits is B/7 slices, q = sum of slice[i] * 128^i with every slice from -64 to 64
 * (the highest from -127 to 127 where integers are doubled), and a product of two is the sum of the
 * products of their slices: 1, 4 or 9 tile products, each added to the sums of its power of 128. 32
 * bits hold those up to a depth of LONGEST steps; beyond it they are brought together in 64 bits.
 *
 * A block or a panel is, for each 64 depths, a tile of each slice, the highest first (pack_amx.h).
 *
 * A product of tiles is begun every 16 cycles and ready after 52, so each of the four sums under
 * way is given every fourth. A load takes 8; there is at most one for each product (two where there
 * is one slice). To bring the sums of a tile of results together takes about as long as a few steps
 * of products, in other parts of the core: that is done row by row between the steps of the next
 * tile. */
#include "device/cpu/cpu_integers.h"
#include "device/cpu/pack_amx.h"
#include "device/cpu/pack_bytes_amx.h"

enum {
    CELLS = 256,       /* of a tile of sums */
    PARTS = 5,         /* sums of a tile of results at most */
    LONGEST = 2048,    /* steps: 3 * 64 * 64 * 64 * LONGEST < 2^31, 127 * 127 * 64 * LONGEST too */
    SHORT = 16,        /* steps: (2 * 127 * 64 * 128 + 64 * 64) * 64 * SHORT < 2^31 */
    SHALLOW = 63,      /* steps: 8191 * 8191 * 64 * SHALLOW < 2^24 * 2^14 */
    DOUBLED = 16,      /* steps of doubled integers: SHORT, and 16319^2 * 64 * DOUBLED < 2^38 */
    DOUBLED_21 = 1648, /* (2 * 127 * 64 + 64 * 64) * 64 * DOUBLED_21 < 2^31 */
    FEW = 16,          /* steps that are not worth chunks */
    GROUP = 16,        /* blocks that stay in the second cache while panels pass over them */
    CHUNK = 8,         /* steps of a panel that stay in the first cache; divides LONGEST */
    BLOCKS = 8         /* of a left operand that take turns over a chunk */
};

/* What a tile of results is made of. Behind multiply_7 the parts are to be added; behind the others
 * they count for 128 to the power of 2, 1, 1, 0 and of 4, 3, 2, 1, 0. */
typedef struct sums {
    int32_t part[PARTS][CELLS];
    int64_t whole[CELLS]; /* deeper than LONGEST: all that was added */
} sums;

/* Palette 1: sixteen rows of 64 bytes in all eight tiles. */
static const uint8_t configuration[64] __attribute__((aligned(64))) = {
    [0] = 1,   [16] = 64, [18] = 64, [20] = 64, [22] = 64, [24] = 64,
    [26] = 64, [28] = 64, [30] = 64, [48] = 16, [49] = 16, [50] = 16,
    [51] = 16, [52] = 16, [53] = 16, [54] = 16, [55] = 16};

/* Between these two the thread has tiles; outside of them they are as at the start of the program,
 * and nobody saves them with the thread's registers. What the tiles are loaded from is memory whose
 * use the compiler does not see. */
static void begin_tiles(void) {
    __asm__ volatile("" ::: "memory");
    _tile_loadconfig(configuration);
}
static void end_tiles(void) { _tile_release(); }

INLINE __m512i part_row(const sums *s, uint32_t part, uint32_t row) {
    return _mm512_load_si512(s->part[part] + row * WIDE);
}

INLINE __m512i sum_7(const sums *s, uint32_t row) {
    return _mm512_add_epi32(_mm512_add_epi32(part_row(s, 0, row), part_row(s, 1, row)),
                            _mm512_add_epi32(part_row(s, 2, row), part_row(s, 3, row)));
}

/* high * 2^14 + low, low from 0 to 2^14 - 1. */
INLINE void sum_14(uint32_t steps, const sums *s, uint32_t row, __m512i *high, __m512i *low) {
    const __m512i middle = _mm512_add_epi32(part_row(s, 1, row), part_row(s, 2, row));
    if (steps <= SHORT) {
        const __m512i all = _mm512_add_epi32(_mm512_slli_epi32(middle, 7), part_row(s, 3, row));
        *high = _mm512_add_epi32(part_row(s, 0, row), _mm512_srai_epi32(all, 14));
        *low = _mm512_and_si512(all, _mm512_set1_epi32(0x3fff));
        return;
    }
    const __m512i carried = _mm512_and_si512(middle, _mm512_set1_epi32(127));
    const __m512i rest = _mm512_add_epi32(_mm512_slli_epi32(carried, 7), part_row(s, 3, row));
    *high = _mm512_add_epi32(_mm512_add_epi32(part_row(s, 0, row), _mm512_srai_epi32(middle, 7)),
                             _mm512_srai_epi32(rest, 14));
    *low = _mm512_and_si512(rest, _mm512_set1_epi32(0x3fff));
}

INLINE __m512i low_half(__m512i a) { return _mm512_cvtepi32_epi64(_mm512_castsi512_si256(a)); }
INLINE __m512i high_half(__m512i a) {
    return _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(a, 1));
}

/* The exact integers of a row, eight and eight. */
INLINE void whole_row(const int bits, uint32_t steps, const sums *s, uint32_t row, __m512i n[2]) {
    if (steps > LONGEST) {
        n[0] = _mm512_load_si512(s->whole + row * WIDE);
        n[1] = _mm512_load_si512(s->whole + row * WIDE + 8);
    } else if (bits == 7) {
        const __m512i sum = sum_7(s, row);
        n[0] = low_half(sum);
        n[1] = high_half(sum);
    } else if (bits == 14) {
        __m512i high, low;
        sum_14(steps, s, row, &high, &low);
        n[0] = _mm512_add_epi64(_mm512_slli_epi64(low_half(high), 14), low_half(low));
        n[1] = _mm512_add_epi64(_mm512_slli_epi64(high_half(high), 14), high_half(low));
    } else {
        n[0] = n[1] = _mm512_setzero_si512();
        for (uint32_t p = 0; p < PARTS; ++p) {
            const __m512i part = part_row(s, p, row);
            n[0] = _mm512_add_epi64(_mm512_slli_epi64(n[0], 7), low_half(part));
            n[1] = _mm512_add_epi64(_mm512_slli_epi64(n[1], 7), high_half(part));
        }
    }
}

/* The same, rounded once. */
INLINE __m512 float_row(const int bits, uint32_t steps, const sums *s, uint32_t row) {
    if (bits == 7 && steps <= LONGEST)
        return _mm512_cvtepi32_ps(sum_7(s, row));
    if (bits == 14 && steps <= SHALLOW) {
        __m512i high, low;
        sum_14(steps, s, row, &high, &low);
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), _mm512_set1_ps(0x1p14f),
                               _mm512_cvtepi32_ps(low));
    }
    __m512i n[2];
    whole_row(bits, steps, s, row, n);
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtepi64_ps(n[0])),
                              _mm512_cvtepi64_ps(n[1]), 1);
}

/* What the sums of a tile of results are to become, from `row` on. */
typedef struct ending {
    const sums *s;
    uint32_t steps, row, rows;
    const float *factor;         /* of each row, in a product */
    const float *column, *start; /* in a product with column */
    float *c;                    /* of the product; NULL: an outer product */
    qn__whole how;
    double scale;
    void *out; /* of the outer product */
    size_t at; /* cells before this tile's */
} ending;

INLINE void put_product(const int bits, const ending *e, uint32_t r) {
    const __m512 n = float_row(bits, e->steps, e->s, r), own = _mm512_set1_ps(e->factor[r]);
    float *to = e->c + (size_t)r * WIDE;
    if (e->column) {
        const __m512 factor = _mm512_mul_ps(own, _mm512_loadu_ps(e->column));
        _mm512_storeu_ps(to, _mm512_fmadd_ps(n, factor, _mm512_loadu_ps(e->start)));
    } else
        _mm512_storeu_ps(to, _mm512_mul_ps(n, own));
}

/* Without optimisation the intrinsic is a macro that hands on a full mask as a signed number. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
INLINE __m512d nearest(__m512d x) {
    return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#pragma GCC diagnostic pop

INLINE void put_outer(const int bits, const ending *e, uint32_t r) {
    const size_t at = e->at + (size_t)r * WIDE;
    __m512i n[2];
    if (e->how == QN__WHOLE_FLOAT) {
        _mm512_storeu_ps((float *)e->out + at, float_row(bits, e->steps, e->s, r));
        return;
    }
    whole_row(bits, e->steps, e->s, r, n);
    for (size_t i = 0; i < 2; ++i) {
        double *to = (double *)e->out + at + 8 * i;
        if (e->how == QN__WHOLE_INTEGER) {
            _mm512_storeu_si512((int64_t *)e->out + at + 8 * i, n[i]);
            continue;
        }
        const __m512d factor = _mm512_set1_pd(e->scale);
        __m512d v = nearest(_mm512_mul_pd(_mm512_cvtepi64_pd(n[i]), factor));
        if (e->how == QN__WHOLE_ADD)
            v = _mm512_add_pd(v, _mm512_loadu_pd(to));
        _mm512_storeu_pd(to, v);
    }
}

/* The next `count` rows. */
INLINE void end_rows(const int bits, ending *e, uint32_t count) {
    for (; count > 0 && e->row < e->rows; --count, ++e->row) {
        if (e->c)
            put_product(bits, e, e->row);
        else
            put_outer(bits, e, e->row);
    }
}

INLINE void load_sums(const int first, const sums *from) {
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        return;
    }
    _tile_loadd(0, from->part[0], 64);
    _tile_loadd(1, from->part[1], 64);
    _tile_loadd(2, from->part[2], 64);
    _tile_loadd(3, from->part[3], 64);
}

INLINE void store_sums(sums *to) {
    _tile_stored(0, to->part[0], 64);
    _tile_stored(1, to->part[1], 64);
    _tile_stored(2, to->part[2], 64);
    _tile_stored(3, to->part[3], 64);
}

/* Steps of a tile, `by` bytes apart; `share` rows of an earlier one are ended behind each. */
INLINE void steps_7(uint32_t steps, const char *a, const char *b, ptrdiff_t by, ending *e,
                    uint32_t share) {
    for (; steps >= 4; steps -= 4) {
        _tile_loadd(4, a, 64);
        _tile_loadd(5, b, 64);
        _tile_dpbssd(0, 4, 5);
        _tile_loadd(6, a + by, 64);
        _tile_loadd(7, b + by, 64);
        _tile_dpbssd(1, 6, 7);
        _tile_loadd(4, a + 2 * by, 64);
        _tile_loadd(5, b + 2 * by, 64);
        _tile_dpbssd(2, 4, 5);
        _tile_loadd(6, a + 3 * by, 64);
        _tile_loadd(7, b + 3 * by, 64);
        _tile_dpbssd(3, 6, 7);
        a += 4 * by;
        b += 4 * by;
        end_rows(7, e, 4 * share);
    }
    for (; steps > 0; --steps, a += by, b += by) {
        _tile_loadd(4, a, 64);
        _tile_loadd(5, b, 64);
        _tile_dpbssd(0, 4, 5);
        end_rows(7, e, share);
    }
}

INLINE void steps_14(uint32_t steps, const char *a, const char *b, ptrdiff_t by, ending *e,
                     uint32_t share) {
    for (; steps > 0; --steps, a += by, b += by) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(7, b + TILE, 64);
        _tile_dpbssd(1, 4, 7);
        _tile_loadd(5, a + TILE, 64);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
        end_rows(14, e, share);
    }
}

/* Three tiles are left for the operands. */
INLINE void steps_21(uint32_t steps, const char *a, const char *b, ptrdiff_t by, ending *e,
                     uint32_t share) {
    for (; steps > 0; --steps, a += by, b += by) {
        _tile_loadd(5, a, 64);
        _tile_loadd(6, b, 64);
        _tile_dpbssd(0, 5, 6);
        _tile_loadd(7, b + TILE, 64);
        _tile_dpbssd(1, 5, 7);
        _tile_loadd(6, b + 2 * TILE, 64);
        _tile_dpbssd(2, 5, 6);
        _tile_loadd(5, a + TILE, 64);
        _tile_dpbssd(3, 5, 6);
        _tile_dpbssd(2, 5, 7);
        _tile_loadd(6, b, 64);
        _tile_dpbssd(1, 5, 6);
        _tile_loadd(5, a + 2 * TILE, 64);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
        _tile_loadd(7, b + 2 * TILE, 64);
        _tile_dpbssd(4, 5, 7);
        end_rows(21, e, share);
    }
}

/* The sums of `steps` steps, LONGEST at most, added to those of `to` unless these are the first.
 * Every second tile of a panel goes back over it, since what it begins with was used last. */
INLINE void multiply(const int bits, const int first, int back, uint32_t steps, const char *a,
                     const char *b, sums *to, ending *e) {
    const uint32_t share = steps ? (WIDE + steps - 1) / steps : WIDE;
    const ptrdiff_t size = slices_of(bits) * TILE, by = back ? -size : size;
    if (back) {
        a += (steps - 1) * size;
        b += (steps - 1) * size;
    }
    load_sums(first, to);
    if (bits == 7)
        steps_7(steps, a, b, by, e, share);
    else if (bits == 14)
        steps_14(steps, a, b, by, e, share);
    else {
        if (first)
            _tile_zero(4);
        else
            _tile_loadd(4, to->part[4], 64);
        steps_21(steps, a, b, by, e, share);
        _tile_stored(4, to->part[4], 64);
    }
    store_sums(to);
}

/* The sums of the steps up to `done` move to to->whole. */
INLINE void widen(const int bits, const int first, sums *to) {
    for (uint32_t r = 0; r < WIDE; ++r) {
        __m512i n[2], all[2];
        whole_row(bits, LONGEST, to, r, n);
        whole_row(bits, LONGEST + 1, to, r, all);
        for (int i = 0; i < 2; ++i)
            _mm512_store_si512(to->whole + r * WIDE + 8 * i,
                               first ? n[i] : _mm512_add_epi64(n[i], all[i]));
    }
}

/* Steps `done` to `done + more` of a tile. The rows of an earlier tile are ended before its sums
 * may be written over. */
INLINE void add_chunk(const int bits, uint32_t steps, uint32_t done, uint32_t more, const char *a,
                      const char *b, sums *to, ending *none) {
    const size_t skip = (size_t)done * slices_of(bits) * TILE;
    if (done % LONGEST == 0)
        multiply(bits, 1, 0, more, a + skip, b + skip, to, none);
    else
        multiply(bits, 0, 0, more, a + skip, b + skip, to, none);
    if (steps > LONGEST && (done + more == steps || (done + more) % LONGEST == 0))
        widen(bits, done < LONGEST, to);
}

/* Where the tile of a block and a panel goes. */
INLINE ending product_ending(uint32_t rows, uint32_t steps, const sums *s, uint32_t block,
                             uint32_t panel, const float *row, const float *column,
                             const float *start, float *c, size_t c_stride) {
    const uint32_t first = block * WIDE;
    return (ending){.s = s,
                    .steps = steps,
                    .rows = rows - first < WIDE ? rows - first : WIDE,
                    .factor = row + first,
                    .column = column ? column + panel * WIDE : NULL,
                    .start = column ? start + panel * WIDE : NULL,
                    .c = c + panel * c_stride + (size_t)first * WIDE};
}

INLINE void product(const int bits, uint32_t rows, uint32_t k, const char *left, uint32_t panels,
                    const char *right, const float *row, const float *column, const float *start,
                    float *c, size_t c_stride) {
    const uint32_t steps = steps_of(k), blocks = (rows + WIDE - 1) / WIDE;
    const size_t size = (size_t)steps * slices_of(bits) * TILE;
    _Alignas(64) sums s[BLOCKS];
    ending last = {0};
    for (uint32_t b0 = 0; steps <= FEW && b0 < blocks; b0 += GROUP)
        for (uint32_t p = 0; p < panels; ++p)
            for (uint32_t b = b0; b < blocks && b < b0 + GROUP; ++b) {
                sums *to = s + b % 2;
                multiply(bits, 1, b % 2, steps, left + b * size, right + p * size, to, &last);
                last = product_ending(rows, steps, to, b, p, row, column, start, c, c_stride);
            }
    for (uint32_t b0 = 0; steps > FEW && b0 < blocks; b0 += BLOCKS)
        for (uint32_t p = 0; p < panels; ++p)
            for (uint32_t done = 0; done < steps; done += CHUNK)
                for (uint32_t b = b0; b < blocks && b < b0 + BLOCKS; ++b) {
                    const uint32_t more = steps - done < CHUNK ? steps - done : CHUNK;
                    sums *to = s + b - b0;
                    add_chunk(bits, steps, done, more, left + b * size, right + p * size, to,
                              &last);
                    if (done + more == steps)
                        last =
                            product_ending(rows, steps, to, b, p, row, column, start, c, c_stride);
                }
    end_rows(bits, &last, WIDE);
}

INLINE void outer(const int bits, uint32_t k, const char *left, uint32_t panels, const char *right,
                  qn__whole how, double factor, void *out) {
    const uint32_t steps = steps_of(k);
    const size_t size = (size_t)steps * slices_of(bits) * TILE;
    _Alignas(64) sums s[2];
    ending last = {0};
    for (uint32_t p = 0; p < panels; ++p) {
        sums *to = s + p % 2;
        if (steps <= LONGEST)
            multiply(bits, 1, 0, steps, left, right + p * size, to, &last);
        else
            for (uint32_t done = 0; done < steps; done += LONGEST)
                add_chunk(bits, steps, done, steps - done < LONGEST ? steps - done : LONGEST, left,
                          right + p * size, to, &last);
        last = (ending){.s = to,
                        .steps = steps,
                        .rows = WIDE,
                        .how = how,
                        .scale = factor,
                        .out = out,
                        .at = (size_t)p * CELLS};
    }
    end_rows(bits, &last, WIDE);
}

static size_t qn_cpu_size_int_amx(int bits, uint32_t k) {
    return (size_t)steps_of(k) * slices_of(bits) * TILE;
}

static void qn_cpu_greatest_int_amx(uint32_t rows, uint32_t k, const float *from, size_t stride,
                                    const float *times, uint32_t *greatest) {
    if (times)
        greatest_of(rows, k, from, stride, times, greatest);
    else
        greatest_of(rows, k, from, stride, NULL, greatest);
}

static void qn_cpu_left_int_amx(int bits, uint32_t rows, uint32_t k, const float *from,
                                size_t stride, const float *times, const float *inverse, void *to) {
    EACH_WIDTH(bits, pack_left, rows, k, from, stride, times, inverse, to);
}

static void qn_cpu_right_int_amx(int bits, uint32_t k, const float *from,
                                 const float inverse[QN__PANEL], void *to) {
    EACH_WIDTH(bits, pack_right, k, from, inverse, to);
}

static void qn_cpu_right_turned_int_amx(int bits, uint32_t columns, uint32_t k, const float *from,
                                        size_t stride, const float *inverse, void *to) {
    EACH_WIDTH(bits, pack_right_turned, columns, k, from, stride, inverse, to);
}

static void qn_cpu_left_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                      const float *inverse, const uint8_t *doubled,
                                      const float *from, void *to) {
    EACH_WIDTH(bits, pack_items, count, list, inverse, doubled, from, 1, to);
}

static void qn_cpu_right_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                       const float *inverse, const uint8_t *doubled,
                                       const float *from, void *to) {
    EACH_WIDTH(bits, pack_items, count, list, inverse, doubled, from, 0, to);
}

/* Twice as large an integer makes its highest slice as large as 127. */
static int32_t qn_cpu_largest_int_amx(int bits, uint32_t k) {
    if (bits == 7)
        return 127;
    if (bits == 14)
        return steps_of(k) <= DOUBLED ? 127 * 128 + 63 : 8191;
    return steps_of(k) <= DOUBLED_21 ? (127 * 128 + 63) * 128 + 63 : 1048575;
}

static void qn_cpu_greatest_bytes_int_amx(uint32_t rows, uint32_t k, const uint8_t *const *from,
                                          uint8_t *greatest) {
    greatest_of_bytes(rows, k, from, greatest);
}

static void qn_cpu_left_bytes_int_amx(int bits, uint32_t rows, uint32_t k,
                                      const uint8_t *const *from, const float *inverse,
                                      const qn__cpu_digits *digits, void *to) {
    EACH_WIDTH(bits, pack_left_bytes, rows, k, from, inverse, digits, to);
}

static void qn_cpu_left_bytes_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                            const float *inverse, const uint8_t *doubled,
                                            const qn__cpu_digits *digits, const uint8_t *from,
                                            size_t block, void *to) {
    EACH_WIDTH(bits, pack_items_bytes, count, list, inverse, doubled, digits, from, block, to);
}

static void qn_cpu_product_int_amx(int bits, uint32_t rows, uint32_t k, const void *left,
                                   uint32_t panels, const void *right, const float *row,
                                   const float *column, const float *start, float *c,
                                   size_t c_stride) {
    begin_tiles();
    EACH_WIDTH(bits, product, rows, k, left, panels, right, row, column, start, c, c_stride);
    end_tiles();
}

static void qn_cpu_outer_int_amx(int bits, uint32_t k, const void *left, uint32_t panels,
                                 const void *right, qn__whole how, double factor, void *out) {
    begin_tiles();
    EACH_WIDTH(bits, outer, k, left, panels, right, how, factor, out);
    end_tiles();
}

const qn__cpu_integers qn__cpu_integers_amx = {
    .name = "amx",
    .size = qn_cpu_size_int_amx,
    .greatest = qn_cpu_greatest_int_amx,
    .left = qn_cpu_left_int_amx,
    .right = qn_cpu_right_int_amx,
    .right_turned = qn_cpu_right_turned_int_amx,
    .left_items = qn_cpu_left_items_int_amx,
    .right_items = qn_cpu_right_items_int_amx,
    .largest = qn_cpu_largest_int_amx,
    .greatest_bytes = qn_cpu_greatest_bytes_int_amx,
    .left_bytes = qn_cpu_left_bytes_int_amx,
    .left_bytes_items = qn_cpu_left_bytes_items_int_amx,
    .product = qn_cpu_product_int_amx,
    .outer = qn_cpu_outer_int_amx,
};
