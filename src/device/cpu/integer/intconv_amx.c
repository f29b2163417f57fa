/* Convolutions of integers by AMX (intconv.h).
 *
 * Each plane is multiplied by itself, four tiles of results at a time: they and the operands take
 * the eight registers, and a step takes a load for each product or little more. Planes are combined
 * when a sum is complete. */
#include "device/cpu/integer/intconv.h"
#include "device/cpu/integer/pack_amx.h"
#include "device/cpu/integer/sums_amx.h"
#include "device/cpu/integer/tiles_amx.h"

enum { TOGETHER = 8 }; /* tiles of rows that are multiplied before their sums are combined */

/* ------------------------------------------------------------------------------ tile products */

/* Adds `left` by `panels` tiles, at most four, over all steps to c, or stores them. */
typedef struct dots {
    uint32_t steps;
    const size_t *offset;
    const char *a[4], *b[2];
    size_t row;
    int32_t *c[4];
} dots;

INLINE void begin_sums(const int count, const int adds, const dots *d) {
    if (!adds) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        return;
    }
    _tile_loadd(0, d->c[0], 64);
    if (count > 1)
        _tile_loadd(1, d->c[1], 64);
    if (count > 2)
        _tile_loadd(2, d->c[2], 64);
    if (count > 3)
        _tile_loadd(3, d->c[3], 64);
}

INLINE void end_sums(const int count, const dots *d) {
    _tile_stored(0, d->c[0], 64);
    if (count > 1)
        _tile_stored(1, d->c[1], 64);
    if (count > 2)
        _tile_stored(2, d->c[2], 64);
    if (count > 3)
        _tile_stored(3, d->c[3], 64);
}

INLINE void step_by_one(const int left, const dots *d, size_t at, size_t b) {
    _tile_loadd(6, d->b[0] + b, 64);
    _tile_loadd(4, d->a[0] + at, d->row);
    _tile_dpbssd(0, 4, 6);
    if (left > 1) {
        _tile_loadd(5, d->a[1] + at, d->row);
        _tile_dpbssd(1, 5, 6);
    }
    if (left > 2) {
        _tile_loadd(4, d->a[2] + at, d->row);
        _tile_dpbssd(2, 4, 6);
    }
    if (left > 3) {
        _tile_loadd(5, d->a[3] + at, d->row);
        _tile_dpbssd(3, 5, 6);
    }
}

INLINE void step_by_two(const int left, const dots *d, size_t at, size_t b) {
    _tile_loadd(6, d->b[0] + b, 64);
    _tile_loadd(4, d->a[0] + at, d->row);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, d->b[1] + b, 64);
    _tile_dpbssd(1, 4, 7);
    if (left > 1) {
        _tile_loadd(5, d->a[1] + at, d->row);
        _tile_dpbssd(2, 5, 6);
        _tile_dpbssd(3, 5, 7);
    }
}

INLINE void dots_of(const int left, const int panels, const int adds, const dots *d) {
    begin_sums(left * panels, adds, d);
    for (uint32_t s = 0; s < d->steps; ++s)
        if (panels == 1)
            step_by_one(left, d, d->offset[s], (size_t)s * TILE);
        else
            step_by_two(left, d, d->offset[s], (size_t)s * TILE);
    end_sums(left * panels, d);
}

#define DOTS(left, panels)                                                                         \
    static __attribute__((noinline)) void dots_##left##_##panels(const dots *d, int adds) {        \
        if (adds)                                                                                  \
            dots_of(left, panels, 1, d);                                                           \
        else                                                                                       \
            dots_of(left, panels, 0, d);                                                           \
    }
DOTS(1, 1)
DOTS(2, 1)
DOTS(3, 1)
DOTS(4, 1)
DOTS(1, 2)
DOTS(2, 2)

typedef void dots_function(const dots *d, int adds);
static dots_function *const dots_by[2][4] = {{dots_1_1, dots_2_1, dots_3_1, dots_4_1},
                                             {dots_1_2, dots_2_2, NULL, NULL}};

/* Tiles of rows to multiply at once. A single one would wait for its sums. */
INLINE uint32_t rows_at_once(uint32_t left, uint32_t panels) {
    const uint32_t most = panels == 2 ? 2 : left == 5 ? 3 : 4;
    return left < most ? left : most;
}

/* The three planes of 14 bits from the two digits; 7 bits have one. */
INLINE void put_planes(const int bits, const __m512i row[3], char *to, size_t plane) {
    _mm512_storeu_si512(to, row[0]);
    if (bits == 7)
        return;
    _mm512_storeu_si512(to + plane, _mm512_add_epi8(row[0], row[1]));
    _mm512_storeu_si512(to + 2 * plane, row[1]);
}

/* ------------------------------------------------------------------------------------ operands */

static const float one[1] = {1};

/* A dword of a line has a depth of each group of 16, in the order of `to_digits`. */
INLINE void pack_rows(const int bits, const int scaled, const int masked, const qn__conv_rows *r) {
    __m512 times[4];
    char *to = r->to;
    for (int g = 0; g < 4; ++g)
        times[g] = scaled ? _mm512_loadu_ps(r->times[g]) : _mm512_setzero_ps();
    for (uint32_t i = 0; i < r->items; ++i, to += r->row) {
        const __m512 inverse = _mm512_set1_ps(r->inverse[i]);
        __m512i u[4], row[3];
        for (int g = 0; g < 4; ++g) {
            const __mmask16 mask = masked ? r->mask[g][i] : 0xffff;
            const __m512 v = _mm512_maskz_loadu_ps(mask, r->from[g] + (size_t)i * WIDE);
            u[g] = quantized(bits, scaled ? _mm512_mul_ps(v, times[g]) : v, inverse);
        }
        to_digits(bits, u, row);
        put_planes(bits, row, to, r->plane);
    }
}

INLINE void pack_rows_of(const int bits, const qn__conv_rows *r) {
    if (r->times[0] && r->mask[0])
        pack_rows(bits, 1, 1, r);
    else if (r->times[0])
        pack_rows(bits, 1, 0, r);
    else if (r->mask[0])
        pack_rows(bits, 0, 1, r);
    else
        pack_rows(bits, 0, 0, r);
}

static void qn_cpu_rows_amx(const qn__conv_rows *r) {
    if (r->bits == 7)
        pack_rows_of(7, r);
    else
        pack_rows_of(14, r);
}

INLINE void pack_weights(const int bits, const float *const group[4], const float *inverse,
                         char *to, size_t plane) {
    const __m512 columns = _mm512_loadu_ps(inverse);
    for (size_t j = 0; j < WIDE; ++j, to += STEP) {
        __m512i u[4], row[3];
        for (int g = 0; g < 4; ++g)
            u[g] = quantized(bits, _mm512_loadu_ps(group[g] + j * WIDE), columns);
        to_digits(bits, u, row);
        put_planes(bits, row, to, plane);
    }
}

static void qn_cpu_weights_amx(int bits, const float *const group[4], const float *inverse,
                               char *to, size_t plane) {
    if (bits == 7)
        pack_weights(7, group, inverse, to, plane);
    else
        pack_weights(14, group, inverse, to, plane);
}

/* Rows of depths, as of a left operand, then transposed. */
static void qn_cpu_weights_back_amx(int bits, const float *const group[4],
                                    const float *const inverse[4], char *to, size_t plane) {
    for (size_t r = 0; r < WIDE; ++r) {
        /* Each depth has its own inverse, which is a power of two: so is its product with 1. */
        qn__conv_rows row = {
            .bits = bits, .items = 1, .inverse = one, .to = to + r * STEP, .plane = plane};
        for (int g = 0; g < 4; ++g) {
            row.from[g] = group[g] + r * WIDE;
            row.times[g] = inverse[g];
        }
        qn_cpu_rows_amx(&row);
    }
    for (size_t c = 0; c < qn__planes(bits); ++c)
        transpose_tile(to + c * plane);
}

/* ------------------------------------------------------------------------------------ products */

/* The integers of a row as floats, rounded once. The sum of the digits' products becomes the mixed
 * products first. */
INLINE __m512 result_row(const int bits, const uint32_t steps, sums *s, uint32_t row) {
    if (bits == 7)
        return _mm512_cvtepi32_ps(part_row(s, 0, row));
    const __m512i others = _mm512_add_epi32(part_row(s, 0, row), part_row(s, 2, row));
    _mm512_store_si512(s->part[1] + row * WIDE, _mm512_sub_epi32(part_row(s, 1, row), others));
    return float_row(14, steps, s, row);
}

INLINE void put_tile(const int bits, const uint32_t steps, const qn__conv_product *p,
                     const qn__conv_tile *tile, uint32_t panel, sums *s) {
    float *c = tile->c + panel * p->c_stride;
    if (!p->column) {
        for (uint32_t r = 0; r < tile->rows; ++r)
            _mm512_storeu_ps(c + r * WIDE, _mm512_mul_ps(result_row(bits, steps, s, r),
                                                         _mm512_set1_ps(tile->factor[r])));
        return;
    }
    const __m512 column = _mm512_loadu_ps(p->column + (size_t)panel * WIDE);
    const __m512 start = _mm512_loadu_ps(p->start + (size_t)panel * WIDE);
    for (uint32_t r = 0; r < tile->rows; ++r) {
        const __m512 own = _mm512_mul_ps(_mm512_set1_ps(tile->factor[r]), column);
        const __m512 z = _mm512_fmadd_ps(result_row(bits, steps, s, r), own, start);
        _mm512_storeu_ps(c + r * WIDE, _mm512_add_ps(z, _mm512_setzero_ps()));
    }
}

/* Tiles of rows from `tile` on by panels from `panel` on: their sums, plane by plane, so that a
 * plane of the weights stays in the L1 cache, and the rows that neighbours share. Then the results.
 */
INLINE void multiply_tiles(const int bits, const qn__conv_product *p, uint32_t tile, uint32_t tiles,
                           uint32_t panel, uint32_t panels, sums *s) {
    for (uint32_t plane = 0; plane < (bits == 7 ? 1u : 3u); ++plane) {
        dots d = {.steps = p->steps, .offset = p->offset, .row = p->left_row};
        for (uint32_t k = 0; k < panels; ++k)
            d.b[k] = p->right + (panel + k) * p->panel + plane * p->plane;
        for (uint32_t t = 0, count; t < tiles; t += count) {
            count = rows_at_once(tiles - t, panels);
            for (uint32_t i = 0; i < count; ++i) {
                d.a[i] = p->tile[tile + t + i].left + plane * p->left_plane;
                for (uint32_t k = 0; k < panels; ++k)
                    d.c[i * panels + k] = s[(t + i) * panels + k].part[plane];
            }
            dots_by[panels - 1][count - 1](&d, 0);
        }
    }
    for (uint32_t t = 0; t < tiles; ++t)
        for (uint32_t k = 0; k < panels; ++k, ++s)
            if (p->steps <= SHORT)
                put_tile(bits, SHORT, p, p->tile + tile + t, panel + k, s);
            else
                put_tile(bits, p->steps, p, p->tile + tile + t, panel + k, s);
}

INLINE void multiply_all(const int bits, const qn__conv_product *p) {
    _Alignas(64) sums s[2 * TOGETHER];
    for (uint32_t panel = 0, panels; panel < p->panels; panel += panels) {
        panels = p->panels - panel > 1 ? 2 : 1;
        for (uint32_t tile = 0, tiles; tile < p->tiles; tile += tiles) {
            tiles = p->tiles - tile < TOGETHER ? p->tiles - tile : TOGETHER;
            multiply_tiles(bits, p, tile, tiles, panel, panels, s);
        }
    }
}

static void qn_cpu_product_amx(const qn__conv_product *p) {
    begin_tiles();
    if (p->bits == 7)
        multiply_all(7, p);
    else
        multiply_all(14, p);
    end_tiles();
}

/* ----------------------------------------------------------------------------------- gradients */

/* The rows of a tile: dword j of a row has the four depths that are whole quarters of a pixel's
 * items apart, at most 16. So the items of a pixel are neighbours in a row. `block`: of the 64
 * depths in a pixel. */
INLINE void depth_rows(const int bits, const int whole, const int masked, const qn__conv_depths *d,
                       uint32_t p, size_t ahead, uint32_t block, char *to, size_t plane) {
    const uint32_t span = d->span < STEP ? d->span : STEP, quarter = span / 4;
    const __m512 inverse = _mm512_set1_ps(d->inverse);
    for (uint32_t j = 0, within = 0; j < WIDE; ++j) {
        const float *from = d->pixel[p], *next = d->pixel[p + ahead];
        const uint16_t *bits_of = masked ? d->mask[p] : NULL;
        const uint32_t first = block * STEP + within;
        __m512i u[4], row[3];
        if (++within == quarter) {
            within = 0;
            ++p;
        }
        for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t item = first + i * quarter;
            _mm_prefetch((const char *)(next + (size_t)item * WIDE), _MM_HINT_T0);
            const int there = whole || item < d->items;
            const __mmask16 mask = !there ? 0 : masked ? bits_of[item] : 0xffff;
            u[i] =
                quantized(bits, _mm512_maskz_loadu_ps(mask, from + (size_t)item * WIDE), inverse);
        }
        to_digits(bits, u, row);
        put_planes(bits, row, to + (size_t)j * 64, plane);
    }
}

/* The pixels of the next step are prefetched: only the items of a grain follow one another. */
INLINE void pack_depths(const int bits, const int left, const int whole, const int masked,
                        const qn__conv_depths *d) {
    const uint32_t each = d->span < STEP ? STEP / d->span : 1; /* pixels of a step */
    const uint32_t blocks = d->span < STEP ? 1 : d->span / STEP;
    char *to = d->to;
    for (uint32_t p = 0; p < d->pixels; p += each) {
        const size_t ahead = p + 2 * each <= d->pixels ? each : 0;
        for (uint32_t b = 0; b < blocks; ++b, to += left ? STEP : TILE) {
            _Alignas(64) __m512i rows[3][WIDE];
            if (!left) {
                depth_rows(bits, whole, masked, d, p, ahead, b, to, d->plane);
                continue;
            }
            depth_rows(bits, whole, 0, d, p, ahead, b, (char *)rows, sizeof rows[0]);
            for (uint32_t c = 0; c < (bits == 7 ? 1u : 3u); ++c) {
                transpose_tile((char *)rows[c]);
                for (uint32_t j = 0; j < WIDE; ++j)
                    _mm512_storeu_si512(to + c * d->plane + j * d->row, rows[c][j]);
            }
        }
    }
}

INLINE void pack_depths_of(const int left, const int masked, const qn__conv_depths *d) {
    const int whole = d->items == d->span;
    if (d->bits == 7 && whole)
        pack_depths(7, left, 1, masked, d);
    else if (d->bits == 7)
        pack_depths(7, left, 0, masked, d);
    else if (whole)
        pack_depths(14, left, 1, masked, d);
    else
        pack_depths(14, left, 0, masked, d);
}

static void qn_cpu_left_depths_amx(const qn__conv_depths *d) { pack_depths_of(1, 0, d); }

static void qn_cpu_right_depths_amx(const qn__conv_depths *d) {
    if (d->mask)
        pack_depths_of(0, 1, d);
    else
        pack_depths_of(0, 0, d);
}

/* Sixteen items of a pixel, or zeros. */
INLINE __m512i woven_vector(const int bits, const qn__conv_woven *w, uint32_t pixel,
                            uint32_t block) {
    const __mmask16 mask = pixel < w->pixels && block * WIDE < w->items ? 0xffff : 0;
    const float *from = w->from + (mask ? pixel * w->pixel + block * w->block : 0);
    return quantized(bits, _mm512_maskz_loadu_ps(mask, from), _mm512_set1_ps(w->inverse));
}

INLINE __m512i low_halves(__m512i a, __m512i b) { return _mm512_shuffle_i64x2(a, b, 0x44); }
INLINE __m512i high_halves(__m512i a, __m512i b) { return _mm512_shuffle_i64x2(a, b, 0xee); }

/* The quarters of a step from pixel `pixel` on, in the order of depth_rows. */
INLINE void woven_step(const int bits, const uint32_t span, const qn__conv_woven *w, uint32_t pixel,
                       uint32_t block, __m512i u[4]) {
    __m512i v[4];
    for (uint32_t i = 0; i < 4; ++i)
        v[i] = span == 16   ? woven_vector(bits, w, pixel + i, 0)
               : span == 32 ? woven_vector(bits, w, pixel + i % 2, i / 2)
                            : woven_vector(bits, w, pixel, block * 4 + i);
    for (int i = 0; i < 4; i += 2) {
        u[i] = span > 32 ? v[i] : low_halves(v[i], v[i + 1]);
        u[i + 1] = span > 32 ? v[i + 1] : high_halves(v[i], v[i + 1]);
    }
    if (span != 16)
        return;
    /* Now u[0] has the first two quarters of the items of pixels 0 and 1, u[2] of pixels 2 and 3,
     * u[1] and u[3] the others. */
    const __m512i first = u[0], last = u[1];
    u[0] = _mm512_shuffle_i64x2(first, u[2], 0x88);
    u[1] = _mm512_shuffle_i64x2(first, u[2], 0xdd);
    const __m512i others = u[3];
    u[2] = _mm512_shuffle_i64x2(last, others, 0x88);
    u[3] = _mm512_shuffle_i64x2(last, others, 0xdd);
}

INLINE void pack_woven(const int bits, const uint32_t span, const qn__conv_woven *w) {
    const uint32_t each = span < STEP ? STEP / span : 1, blocks = span < STEP ? 1 : w->span / STEP;
    char *to = w->to;
    for (uint32_t p = 0; p < w->pixels; p += each)
        for (uint32_t b = 0; b < blocks; ++b, to += STEP) {
            __m512i u[4], row[3];
            woven_step(bits, span, w, p, b, u);
            to_digits(bits, u, row);
            put_planes(bits, row, to, w->plane);
        }
}

INLINE void pack_woven_by(const int bits, const qn__conv_woven *w) {
    if (w->span == 16)
        pack_woven(bits, 16, w);
    else if (w->span == 32)
        pack_woven(bits, 32, w);
    else
        pack_woven(bits, STEP, w);
}

static void qn_cpu_woven_depths_amx(const qn__conv_woven *w) {
    if (w->bits == 7)
        pack_woven_by(7, w);
    else
        pack_woven_by(14, w);
}

static void qn_cpu_add_depths_amx(const qn__conv_sum *s) {
    begin_tiles();
    for (uint32_t c = 0; c < s->planes; ++c)
        for (uint32_t p = 0, panels; p < s->panels; p += panels) {
            panels = s->panels - p > 1 ? 2 : 1;
            for (uint32_t r = 0, rows; r < s->rows; r += rows) {
                dots d = {.steps = s->steps, .offset = s->offset, .row = s->left_row};
                rows = rows_at_once(s->rows - r, panels);
                for (uint32_t i = 0; i < panels; ++i)
                    d.b[i] = s->right + c * s->right_plane + (p + i) * s->right_panel;
                for (uint32_t i = 0; i < rows; ++i) {
                    d.a[i] = s->left[r + i] + c * s->left_plane;
                    for (uint32_t k = 0; k < panels; ++k)
                        d.c[i * panels + k] =
                            s->sums +
                            (((size_t)(r + i) * s->panels + p + k) * s->planes + c) * CELLS;
                }
                dots_by[panels - 1][rows - 1](&d, 1);
            }
        }
    end_tiles();
}

/* -------------------------------------------------------------------------------------- pools */

INLINE void pool_of(const int relu, const uint32_t taps, const qn__conv_pool *p) {
    for (size_t i = 0; i < p->rows; ++i) {
        __m512 z = _mm512_add_ps(_mm512_setzero_ps(), _mm512_loadu_ps(p->x[0] + i * WIDE));
        for (uint32_t t = 1; t < taps; ++t) /* of two numbers the second, if they are not ordered */
            z = _mm512_max_ps(_mm512_loadu_ps(p->x[t] + i * WIDE), z);
        const __mmask16 above = _mm512_cmp_ps_mask(z, _mm512_setzero_ps(), _CMP_NLE_UQ);
        z = relu ? _mm512_maskz_mov_ps(above, z) : _mm512_add_ps(z, _mm512_setzero_ps());
        _mm512_storeu_ps(p->y + i * WIDE, z);
        __mmask16 left = relu ? _mm512_cmp_ps_mask(_mm512_setzero_ps(), z, _CMP_LT_OQ) : 0xffff;
        for (uint32_t t = 0; t < taps; ++t) {
            const __m512 own = _mm512_loadu_ps(p->x[t] + i * WIDE);
            const __mmask16 below = _mm512_cmp_ps_mask(own, z, _CMP_LT_OQ);
            const __mmask16 equal = relu ? _mm512_cmp_ps_mask(own, z, _CMP_GE_OQ)
                                         : _mm512_cmp_ps_mask(own, z, _CMP_NLT_UQ);
            p->mask[t][i] = (uint16_t)(left & equal);
            left = (__mmask16)(left & below);
        }
    }
}

static void qn_cpu_pool_amx(const qn__conv_pool *p) {
    if (p->relu && p->taps == 4)
        pool_of(1, 4, p);
    else if (p->relu)
        pool_of(1, p->taps, p);
    else
        pool_of(0, p->taps, p);
}

enum { CHAINS = 4 }; /* of additions at a time */

/* The chains of `chains` grains of `grain` items, the first at item `first`. */
INLINE void picked_chains(const uint32_t chains, uint32_t grain, const qn__conv_picked *p,
                          uint32_t first, float *partial) {
    const uint32_t windows = p->width / p->across;
    __m512 sum[CHAINS];
    for (uint32_t g = 0; g < chains; ++g)
        sum[g] = _mm512_setzero_ps();
    const uint16_t *mask = p->mask + first;
    for (uint32_t y = 0; y < p->height; ++y)
        for (uint32_t x = 0; x < p->width; ++x, mask += p->items) {
            const size_t window = (size_t)(y / p->down) * windows + x / p->across;
            const float *d = p->error + (window * p->items + first) * WIDE;
            for (uint32_t i = 0; i < grain; ++i)
                for (uint32_t g = 0; g < chains; ++g) {
                    const size_t item = g * grain + i;
                    sum[g] =
                        _mm512_add_ps(sum[g], _mm512_maskz_loadu_ps(mask[item], d + item * WIDE));
                }
        }
    for (uint32_t g = 0; g < chains; ++g)
        _mm512_storeu_ps(partial + g * WIDE, sum[g]);
}

static void qn_cpu_picked_partials_amx(const qn__conv_picked *p, uint32_t count, uint32_t grain,
                                       float *partial) {
    uint32_t first = 0;
    for (; (count - first) / CHAINS >= grain; first += CHAINS * grain, partial += CHAINS * WIDE)
        picked_chains(CHAINS, grain, p, first, partial);
    for (; first < count; first += grain, partial += WIDE)
        picked_chains(1, count - first < grain ? count - first : grain, p, first, partial);
}

/* --------------------------------------------------------------------------------------- sums */

INLINE void flush_eight(const int planes, size_t at, int32_t *held, int64_t *exact) {
    const __m256i none = _mm256_setzero_si256();
    const __m256i high = _mm256_loadu_si256((const void *)(held + at));
    __m512i n = _mm512_cvtepi32_epi64(high);
    _mm256_storeu_si256((void *)(held + at), none);
    if (planes == 3) {
        int32_t *both = held + CELLS + at, *last = both + CELLS;
        const __m256i low = _mm256_loadu_si256((const void *)last);
        const __m256i all = _mm256_loadu_si256((const void *)both);
        const __m256i middle = _mm256_sub_epi32(_mm256_sub_epi32(all, high), low);
        n = _mm512_add_epi64(_mm512_slli_epi64(n, 7), _mm512_cvtepi32_epi64(middle));
        n = _mm512_add_epi64(_mm512_slli_epi64(n, 7), _mm512_cvtepi32_epi64(low));
        _mm256_storeu_si256((void *)both, none);
        _mm256_storeu_si256((void *)last, none);
    }
    _mm512_storeu_si512(exact + at, _mm512_add_epi64(_mm512_loadu_si512(exact + at), n));
}

static void qn_cpu_flush_amx(uint32_t planes, uint32_t tiles, int32_t *held, int64_t *exact) {
    for (uint32_t t = 0; t < tiles; ++t, held += planes * CELLS, exact += CELLS)
        for (size_t at = 0; at < CELLS; at += 8)
            if (planes == 3)
                flush_eight(3, at, held, exact);
            else
                flush_eight(1, at, held, exact);
}

const qn__intconv qn__intconv_amx = {
    .rows = qn_cpu_rows_amx,
    .weights = qn_cpu_weights_amx,
    .weights_back = qn_cpu_weights_back_amx,
    .product = qn_cpu_product_amx,
    .left_depths = qn_cpu_left_depths_amx,
    .right_depths = qn_cpu_right_depths_amx,
    .woven_depths = qn_cpu_woven_depths_amx,
    .add_depths = qn_cpu_add_depths_amx,
    .pool = qn_cpu_pool_amx,
    .picked_partials = qn_cpu_picked_partials_amx,
    .flush = qn_cpu_flush_amx,
};
