/* Products of integers by AMX: tdpbssd multiplies 16 rows of 64 signed bytes with 64 rows of 16
 * and adds to 16 x 16 sums of 32 bits.
 *
 * An integer of B bits is B/7 slices, q = sum of slice[i] * 128^i with the highest slice from -128
 * to 127 and every other from -64 to 63, and a product of two is the sum of the products of their
 * slices: 1, 4 or 9 tile products, each added to the sums of its power of 128. 32 bits hold those
 * up to a depth of longest() steps; beyond it they are brought together in 64 bits. A highest slice
 * beyond -64 to 64 is only met where integers are doubled. In sums over items, where that is often
 * asked for, integers of 14 bits are words: two slices to the base 256, the lower from 0 to 255.
 *
 * A block or a panel is, for each 64 depths, a tile of each slice, the highest first (pack_amx.h).
 *
 * A product of tiles is begun every 16 cycles and ready after 52; a load from the first cache takes
 * 8 cycles, from the second one about twice as long, so what a load brings is to be used more than
 * once and mostly to lie in the first cache. Two tiles of results beside one another are under way
 * with the sums of both in six of the eight registers (7 and 14 bits); the other two hold a tile of
 * each operand, and the products come in an order in which one of them changes each time. So a step
 * takes nine loads for its eight products, and six tiles that are not the same. To bring the sums
 * of a tile of results together takes other parts of the core about as long as some steps of
 * products: that is done row by row between the steps of the next tiles. */
#include "device/cpu/cpu_integers.h"
#include "device/cpu/pack_amx.h"
#include "device/cpu/pack_bytes_amx.h"

enum {
    CELLS = 256, /* of a tile of sums */
    PARTS = 5,   /* sums of a tile of results at most */
    SHORT = 16   /* steps: (2 * 64 * 64 * 128 + 64 * 64) * 64 * SHORT < 2^31; of words
                    32767^2 * 64 * SHORT < 2^24 * 2^16 */
};

/* Steps of which 32 bits hold the sums: (2 * 128 * 64 + 64 * 64) * 64 * 1024 < 2^31, and of words
 * 2 * 128 * 255 * 64 * 512 < 2^31 - 2^16. */
INLINE uint32_t longest(int bits) { return bits == WORDS ? 512 : 1024; }

/* What a tile of results is made of. Of 7 bits the parts are to be added, of 14 and 21 they count
 * for 128 to the power of 2, 1, 0 and of 4, 3, 2, 1, 0, and of words for 256 to that of 2, 1, 0. */
typedef struct sums {
    int32_t part[PARTS][CELLS];
    int64_t whole[CELLS]; /* deeper than longest(): all that was added */
} sums;

/* Tiles of results under way at a time. */
INLINE uint32_t most_tiles(int bits) { return bits == 21 ? 1 : 2; }

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
    return _mm512_add_epi32(part_row(s, 0, row), part_row(s, 1, row));
}

/* Of two slices of so many bits: high * 2^(2 * slice) + low, low from 0 to 2^(2 * slice) - 1. */
INLINE int slice_of(int bits) { return bits == WORDS ? 8 : 7; }
INLINE void sum_two(const int bits, uint32_t steps, const sums *s, uint32_t row, __m512i *high,
                    __m512i *low) {
    const __m512i middle = part_row(s, 1, row);
    if (bits == 14 && steps <= SHORT) {
        const __m512i all = _mm512_add_epi32(_mm512_slli_epi32(middle, 7), part_row(s, 2, row));
        *high = _mm512_add_epi32(part_row(s, 0, row), _mm512_srai_epi32(all, 14));
        *low = _mm512_and_si512(all, _mm512_set1_epi32(0x3fff));
        return;
    }
    const unsigned slice = (unsigned)slice_of(bits);
    const __m512i carried = _mm512_and_si512(middle, _mm512_set1_epi32((1 << slice) - 1));
    const __m512i rest = _mm512_add_epi32(_mm512_slli_epi32(carried, slice), part_row(s, 2, row));
    *high =
        _mm512_add_epi32(_mm512_add_epi32(part_row(s, 0, row), _mm512_srai_epi32(middle, slice)),
                         _mm512_srai_epi32(rest, 2 * slice));
    *low = _mm512_and_si512(rest, _mm512_set1_epi32((1 << 2 * slice) - 1));
}

INLINE __m512i low_half(__m512i a) { return _mm512_cvtepi32_epi64(_mm512_castsi512_si256(a)); }
INLINE __m512i high_half(__m512i a) {
    return _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(a, 1));
}

INLINE __m512d low_doubles(__m512i a) { return _mm512_cvtepi32_pd(_mm512_castsi512_si256(a)); }
INLINE __m512d high_doubles(__m512i a) {
    return _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(a, 1));
}

/* The exact integers of a row, eight and eight. */
INLINE void whole_row(const int bits, uint32_t steps, const sums *s, uint32_t row, __m512i n[2]) {
    if (steps > longest(bits)) {
        n[0] = _mm512_load_si512(s->whole + row * WIDE);
        n[1] = _mm512_load_si512(s->whole + row * WIDE + 8);
    } else if (bits == 7) {
        const __m512i sum = sum_7(s, row);
        n[0] = low_half(sum);
        n[1] = high_half(sum);
    } else if (slices_of(bits) == 2) {
        const unsigned by = 2 * (unsigned)slice_of(bits);
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

/* The same as doubles, which hold sums of two slices up to a depth of longest() exactly; others
 * where the caller has shown that they do. */
INLINE void double_row(const int bits, uint32_t steps, const sums *s, uint32_t row, __m512d n[2]) {
    if (slices_of(bits) == 2 && steps <= longest(bits)) {
        const __m512d by = _mm512_set1_pd(1 << 2 * slice_of(bits));
        __m512i high, low;
        sum_two(bits, steps, s, row, &high, &low);
        n[0] = _mm512_fmadd_pd(low_doubles(high), by, low_doubles(low));
        n[1] = _mm512_fmadd_pd(high_doubles(high), by, high_doubles(low));
        return;
    }
    __m512i whole[2];
    whole_row(bits, steps, s, row, whole);
    n[0] = _mm512_cvtepi64_pd(whole[0]);
    n[1] = _mm512_cvtepi64_pd(whole[1]);
}

INLINE __m512 joined(__m256 low, __m256 high) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

/* The same, rounded once. Up to SHORT steps the high part of two slices is below 2^24: it is exact
 * as a float, and so the only rounding is that of the addition. */
INLINE __m512 float_row(const int bits, uint32_t steps, const sums *s, uint32_t row) {
    if (bits == 7 && steps <= longest(bits))
        return _mm512_cvtepi32_ps(sum_7(s, row));
    if (slices_of(bits) == 2 && steps <= SHORT) {
        const __m512 by = _mm512_set1_ps((float)(1 << 2 * slice_of(bits)));
        __m512i high, low;
        sum_two(bits, steps, s, row, &high, &low);
        return _mm512_fmadd_ps(_mm512_cvtepi32_ps(high), by, _mm512_cvtepi32_ps(low));
    }
    if (slices_of(bits) == 2 && steps <= longest(bits)) {
        __m512d n[2];
        double_row(bits, steps, s, row, n);
        return joined(_mm512_cvtpd_ps(n[0]), _mm512_cvtpd_ps(n[1]));
    }
    __m512i n[2];
    whole_row(bits, steps, s, row, n);
    return joined(_mm512_cvtepi64_ps(n[0]), _mm512_cvtepi64_ps(n[1]));
}

/* What becomes of sums: the products of cpu_integers.h with and without column, and what qn__whole
 * names. */
typedef enum shape { FORM_COLUMN, FORM_PLAIN, FORM_FLOAT, FORM_DOUBLE, FORM_INTEGER } shape;

/* A product or an outer product. */
typedef struct job {
    shape form;
    uint32_t rows, steps, panels;
    size_t size; /* bytes of a block or a panel */
    const char *left, *right;
    const float *factor;         /* of each row, in a product */
    const float *column, *start; /* FORM_COLUMN */
    float *c;                    /* of a product */
    size_t c_stride;
    int adds; /* FORM_DOUBLE */
    double scale;
    void *out; /* of an outer product */
} job;

/* One or two tiles of results whose sums are complete; none, when `tiles` is 0. */
typedef struct ending {
    const sums *s;
    uint32_t tiles, block, panel;
} ending;

/* Without optimisation the intrinsic is a macro that hands on a full mask as a signed number. */
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

/* Rows r to end - 1 of a tile. */
INLINE void put_rows(const int bits, const shape form, const uint32_t steps, const job *j,
                     const ending *e, uint32_t tile, uint32_t r, uint32_t end) {
    const sums *s = e->s + tile;
    const uint32_t panel = e->panel + tile;
    const size_t cells = (panel * (j->rows / WIDE) + e->block) * (size_t)CELLS;
    const float *factor = NULL;
    float *c = NULL;
    __m512 column = _mm512_setzero_ps(), start = column;
    if (form == FORM_COLUMN || form == FORM_PLAIN) {
        factor = j->factor + (size_t)e->block * WIDE;
        c = j->c + panel * j->c_stride + (size_t)e->block * CELLS;
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
            whole_row(bits, steps, s, r, n);
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

/* Functions of their own, once for each width: so much code is not to be copied into every loop. */
#define PUT(bits)                                                                                  \
    static __attribute__((noinline)) void put_##bits(const job *j, const ending *e, uint32_t tile, \
                                                     uint32_t r, uint32_t end) {                   \
        if (j->steps <= SHORT)                                                                     \
            put_some(bits, 1, j, e, tile, r, end);                                                 \
        else                                                                                       \
            put_some(bits, j->steps, j, e, tile, r, end);                                          \
    }
PUT(7)
PUT(14)
PUT(WORDS)
PUT(21)

/* Rows `row` to `last` - 1 of the tiles' 16 each, as far as there are such. */
INLINE void end_rows(const int bits, const job *j, const ending *e, uint32_t row, uint32_t last) {
    const uint32_t rows = j->rows - e->block * WIDE;
    while (row < last) {
        const uint32_t tile = row / WIDE, first = tile * WIDE, next = first + WIDE;
        uint32_t end = last - first < rows ? last - first : rows;
        end = end < WIDE ? end : WIDE;
        if (bits == 7)
            put_7(j, e, tile, row - first, end);
        else if (bits == 14)
            put_14(j, e, tile, row - first, end);
        else if (bits == WORDS)
            put_WORDS(j, e, tile, row - first, end);
        else
            put_21(j, e, tile, row - first, end);
        row = last < next ? last : next;
    }
}

INLINE void zero_sums(void) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_zero(4);
    _tile_zero(5);
}

/* The parts of a tile of results in registers: of two of them those of the second stand behind
 * those of the first. */
INLINE void store_sums(const int bits, const int pair, sums *to) {
    _tile_stored(0, to->part[0], 64);
    _tile_stored(1, to->part[1], 64);
    if (bits != 7)
        _tile_stored(2, to->part[2], 64);
    if (bits == 21) {
        _tile_stored(3, to->part[3], 64);
        _tile_stored(4, to->part[4], 64);
    } else if (pair) {
        _tile_stored(3, to[1].part[0], 64);
        _tile_stored(4, to[1].part[1], 64);
        if (bits != 7)
            _tile_stored(5, to[1].part[2], 64);
    }
}

/* One step. A tile of sums is given every fourth product or more seldom, where there are so many;
 * `odd` chooses between two sums of 7 bits. */
INLINE void step_7(const int pair, const int odd, const char *a, const char *b, const char *b2) {
    _tile_loadd(6, a, 64);
    _tile_loadd(7, b, 64);
    if (odd)
        _tile_dpbssd(1, 6, 7);
    else
        _tile_dpbssd(0, 6, 7);
    if (!pair)
        return;
    _tile_loadd(7, b2, 64);
    if (odd)
        _tile_dpbssd(4, 6, 7);
    else
        _tile_dpbssd(3, 6, 7);
}

/* The tiles 6 and 7, to those of a sum; `other` takes bytes without a sign. */
#define DOT(other_too, other, sum)                                                                 \
    do {                                                                                           \
        if (other_too)                                                                             \
            other(sum, 6, 7);                                                                      \
        else                                                                                       \
            _tile_dpbssd(sum, 6, 7);                                                               \
    } while (0)

/* Of two slices: highest, both mixed, lowest. Of words the lower slice has no sign. */
INLINE void step_two(const int bits, const int pair, const char *a, const char *b, const char *b2) {
    const int words = bits == WORDS;
    _tile_loadd(6, a, 64);
    _tile_loadd(7, b, 64);
    _tile_dpbssd(0, 6, 7);
    _tile_loadd(7, b + TILE, 64);
    DOT(words, _tile_dpbsud, 1);
    if (pair) {
        _tile_loadd(7, b2, 64);
        _tile_dpbssd(3, 6, 7);
        _tile_loadd(7, b2 + TILE, 64);
        DOT(words, _tile_dpbsud, 4);
        _tile_loadd(6, a + TILE, 64);
        DOT(words, _tile_dpbuud, 5);
        _tile_loadd(7, b2, 64);
        DOT(words, _tile_dpbusd, 4);
        _tile_loadd(7, b + TILE, 64);
    } else
        _tile_loadd(6, a + TILE, 64);
    DOT(words, _tile_dpbuud, 2);
    _tile_loadd(7, b, 64);
    DOT(words, _tile_dpbusd, 1);
}

/* Three tiles are left for the operands. */
INLINE void step_21(const char *a, const char *b) {
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
}

/* Steps of a block by a panel or a pair of them, longest() at most; 0 at `back`: in their order. */
typedef struct part {
    const char *a, *b;
    const uint32_t *step;
    uint32_t count;
    int back;
} part;

/* The sums of a part. All rows of the tiles before are ended before the sums are stored, which may
 * take the place of theirs. */
INLINE void multiply(const int bits, const int pair, const job *j, const part *p, sums *to,
                     ending *e) {
    const uint32_t rows = e->tiles * WIDE, count = p->count;
    const uint32_t share = count ? (rows + count - 1) / count : 0;
    const char *a = p->a, *b = p->b, *b2 = b + j->size;
    const uint32_t *step = p->back ? p->step + count - 1 : p->step;
    const ptrdiff_t next = p->back ? -1 : 1;
    uint32_t row = 0;
    zero_sums();
    for (uint32_t i = 0; i < count; ++i, step += next) {
        const size_t at = *step * step_size(bits);
        if (bits == 7 && i % 2)
            step_7(pair, 1, a + at, b + at, b2 + at);
        else if (bits == 7)
            step_7(pair, 0, a + at, b + at, b2 + at);
        else if (slices_of(bits) == 2)
            step_two(bits, pair, a + at, b + at, b2 + at);
        else
            step_21(a + at, b + at);
        const uint32_t last = row + share < rows ? row + share : rows;
        end_rows(bits, j, e, row, last);
        row = last;
    }
    end_rows(bits, j, e, row, rows);
    e->tiles = 0;
    store_sums(bits, pair, to);
}

/* The sums of a chunk, added to to->whole unless it is the first. */
INLINE void widen(const int bits, int first, sums *to) {
    for (uint32_t r = 0; r < WIDE; ++r) {
        __m512i n[2], all[2];
        whole_row(bits, longest(bits), to, r, n);
        whole_row(bits, longest(bits) + 1, to, r, all);
        for (int i = 0; i < 2; ++i)
            _mm512_store_si512(to->whole + r * WIDE + 8 * i,
                               first ? n[i] : _mm512_add_epi64(n[i], all[i]));
    }
}

/* Where the next block's sums are made is also where those of the last ones stood. */
INLINE void complete(const int pair, const sums *s, uint32_t block, uint32_t panel, ending *e) {
    e->s = s;
    e->block = block;
    e->panel = panel;
    e->tiles = pair ? 2 : 1;
}

/* The steps of a block from `done` on, longest() of them at most; `at` of its list were taken
 * before. All sums of a block that is deeper move to 64 bits. */
INLINE void add_chunk(const int bits, const int pair, const job *j, uint32_t done, uint32_t *at,
                      part *p, sums *to, ending *e) {
    const filled *list = filled_of(bits, j->steps, p->a);
    const uint32_t left = j->steps - done, more = left < longest(bits) ? left : longest(bits);
    p->step = list->step + *at;
    for (p->count = 0; *at < list->count && list->step[*at] < done + more; ++*at)
        ++p->count;
    multiply(bits, pair, j, p, to, e);
    for (int tile = 0; tile <= pair; ++tile)
        widen(bits, done == 0, to + tile);
}

/* All blocks by a panel or a pair of them. Every second block goes back over the panels, since what
 * it begins with was used last. */
INLINE void blocks_by(const int bits, const int pair, const job *j, uint32_t panel, sums *s,
                      ending *e) {
    part p = {.b = j->right + panel * j->size};
    for (uint32_t block = 0; block * WIDE < j->rows; ++block) {
        p.a = j->left + block * j->size;
        if (j->steps > longest(bits)) {
            uint32_t at = 0;
            for (uint32_t done = 0; done < j->steps; done += longest(bits))
                add_chunk(bits, pair, j, done, &at, &p, s, e);
        } else {
            const filled *list = filled_of(bits, j->steps, p.a);
            p.step = list->step;
            p.count = list->count;
            p.back = block % 2;
            multiply(bits, pair, j, &p, s, e);
        }
        complete(pair, s, block, panel, e);
    }
}

INLINE void run(const int bits, const job *j) {
    _Alignas(64) sums s[2];
    ending e = {.tiles = 0};
    uint32_t panel = 0;
    begin_tiles();
    for (; most_tiles(bits) == 2 && panel + 1 < j->panels; panel += 2)
        blocks_by(bits, 1, j, panel, s, &e);
    for (; panel < j->panels; ++panel)
        blocks_by(bits, 0, j, panel, s, &e);
    end_rows(bits, j, &e, 0, e.tiles * WIDE);
    end_tiles();
}

/* Not inlined: once for each width. */
static __attribute__((noinline)) void run_7(const job *j) { run(7, j); }
static __attribute__((noinline)) void run_14(const job *j) { run(14, j); }
static __attribute__((noinline)) void run_words(const job *j) { run(WORDS, j); }
static __attribute__((noinline)) void run_21(const job *j) { run(21, j); }

static void run_job(int bits, const job *j) {
    if (bits == 7)
        run_7(j);
    else if (bits == 14)
        run_14(j);
    else if (bits == WORDS)
        run_words(j);
    else
        run_21(j);
}

/* Half a step of 14 bits: VNNI, which every processor with AMX has, needs no tiles of zeros and has
 * its sums in registers. Its own operands are of another form, so what packs and what multiplies
 * asks alike. */
static int is_shallow(int bits, uint32_t k) { return bits == 14 && k <= STEP / 2; }

static size_t qn_cpu_size_int_amx(int bits, uint32_t k) {
    if (is_shallow(bits, k))
        return (qn__cpu_integers_vnni.size(bits, k) + 63) / 64 * 64;
    return steps_of(k) * step_size(bits) + filled_size(steps_of(k));
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
    if (is_shallow(bits, k))
        qn__cpu_integers_vnni.left(bits, rows, k, from, stride, times, inverse, to);
    else
        EACH_WIDTH(bits, pack_left, rows, k, from, stride, times, inverse, to);
}

static void qn_cpu_right_int_amx(int bits, uint32_t k, const float *from,
                                 const float inverse[QN__PANEL], void *to) {
    if (is_shallow(bits, k))
        qn__cpu_integers_vnni.right(bits, k, from, inverse, to);
    else
        EACH_WIDTH(bits, pack_right, k, from, inverse, to);
}

static void qn_cpu_right_part_int_amx(int bits, uint32_t k, uint32_t first, uint32_t count,
                                      const float *from, const float inverse[QN__PANEL], void *to) {
    if (is_shallow(bits, k))
        qn__cpu_integers_vnni.right(bits, k, from, inverse, to);
    else
        EACH_WIDTH(bits, pack_right, count, from, inverse,
                   (char *)to + first / STEP * step_size(bits));
}

static void qn_cpu_right_turned_int_amx(int bits, uint32_t columns, uint32_t k, const float *from,
                                        size_t stride, const float *inverse, void *to) {
    if (is_shallow(bits, k))
        qn__cpu_integers_vnni.right_turned(bits, columns, k, from, stride, inverse, to);
    else
        EACH_WIDTH(bits, pack_right_turned, columns, k, from, stride, inverse, to);
}

static void qn_cpu_left_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                      const float *inverse, const uint8_t *doubled,
                                      const float *from, void *to) {
    if (is_shallow(bits, count))
        qn__cpu_integers_vnni.left_items(bits, count, list, inverse, doubled, from, to);
    else
        EACH_ITEM_WIDTH(bits, pack_items, count, list, inverse, doubled, from, 1, to);
}

static void qn_cpu_right_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                       const float *inverse, const uint8_t *doubled,
                                       const float *from, void *to) {
    if (is_shallow(bits, count))
        qn__cpu_integers_vnni.right_items(bits, count, list, inverse, doubled, from, to);
    else
        EACH_ITEM_WIDTH(bits, pack_items, count, list, inverse, doubled, from, 0, to);
}

/* The highest slice may be as large as 127; two slices of 14 bits are those of a word. */
static int32_t qn_cpu_largest_int_amx(int bits, uint32_t k) {
    (void)k;
    return bits == 7 ? 127 : bits == 14 ? INT16_MAX : (127 * 128 + 63) * 128 + 63;
}

static void qn_cpu_greatest_bytes_int_amx(uint32_t rows, uint32_t k, const uint8_t *const *from,
                                          uint8_t *greatest) {
    greatest_of_bytes(rows, k, from, greatest);
}

/* For what VNNI is given as integers, one behind the other. */
#define FOUR(x) x, x, x, x
static const float ones[WIDE * 2] = {FOUR(1), FOUR(1), FOUR(1), FOUR(1),
                                     FOUR(1), FOUR(1), FOUR(1), FOUR(1)};
static const uint32_t in_order[WIDE * 2] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                            11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                            22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static void qn_cpu_left_bytes_int_amx(int bits, uint32_t rows, uint32_t k,
                                      const uint8_t *const *from, const float *inverse,
                                      const qn__cpu_digits *digits, void *to) {
    if (is_shallow(bits, k)) {
        float whole[STEP / 2 * WIDE];
        wholes_of_rows(rows, k, from, inverse, digits, whole);
        qn__cpu_integers_vnni.left(bits, rows, k, whole, WIDE * WIDE, NULL, ones, to);
    } else
        EACH_WIDTH(bits, pack_left_bytes, rows, k, from, inverse, digits, to);
}

static void qn_cpu_left_bytes_items_int_amx(int bits, uint32_t count, const uint32_t *list,
                                            const float *inverse, const uint8_t *doubled,
                                            const qn__cpu_digits *digits, const uint8_t *from,
                                            size_t block, void *to) {
    if (is_shallow(bits, count)) {
        float whole[STEP / 2 * WIDE];
        wholes_of_items(count, list, inverse, digits, from, block, whole);
        qn__cpu_integers_vnni.left_items(bits, count, in_order, ones, doubled, whole, to);
    } else
        EACH_ITEM_WIDTH(bits, pack_items_bytes, count, list, inverse, doubled, digits, from, block,
                        to);
}

static void qn_cpu_product_int_amx(int bits, uint32_t rows, uint32_t k, const void *left,
                                   uint32_t panels, const void *right, const float *row,
                                   const float *column, const float *start, float *c,
                                   size_t c_stride) {
    if (is_shallow(bits, k)) {
        qn__cpu_integers_vnni.product(bits, rows, k, left, panels, right, row, column, start, c,
                                      c_stride);
        return;
    }
    const job j = {.form = column ? FORM_COLUMN : FORM_PLAIN,
                   .rows = rows,
                   .steps = steps_of(k),
                   .panels = panels,
                   .size = qn_cpu_size_int_amx(bits, k),
                   .left = left,
                   .right = right,
                   .factor = row,
                   .column = column,
                   .start = start,
                   .c = c,
                   .c_stride = c_stride};
    run_job(bits, &j);
}

static void qn_cpu_outer_int_amx(int bits, uint32_t k, uint32_t blocks, const void *left,
                                 uint32_t panels, const void *right, qn__whole how, double factor,
                                 void *out) {
    if (is_shallow(bits, k)) {
        qn__cpu_integers_vnni.outer(bits, k, blocks, left, panels, right, how, factor, out);
        return;
    }
    const job j = {.form = how == QN__WHOLE_FLOAT     ? FORM_FLOAT
                           : how == QN__WHOLE_INTEGER ? FORM_INTEGER
                                                      : FORM_DOUBLE,
                   .rows = blocks * WIDE,
                   .steps = steps_of(k),
                   .panels = panels,
                   .size = qn_cpu_size_int_amx(bits, k),
                   .left = left,
                   .right = right,
                   .adds = how == QN__WHOLE_ADD,
                   .scale = factor,
                   .out = out};
    run_job(bits == 14 ? WORDS : bits, &j);
}

const qn__cpu_integers qn__cpu_integers_amx = {
    .name = "amx",
    .size = qn_cpu_size_int_amx,
    .greatest = qn_cpu_greatest_int_amx,
    .left = qn_cpu_left_int_amx,
    .right = qn_cpu_right_int_amx,
    .right_part = qn_cpu_right_part_int_amx,
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
