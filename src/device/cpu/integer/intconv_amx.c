/* Convolutions of integers by AMX (intconv.h).
 *
 * Each plane is multiplied by itself, four tiles of results at a time: they and the operands take
 * the eight registers, and a step takes a load for each product or little more. Planes are combined
 * when a sum is complete. */
#include "device/cpu/integer/intconv.h"
#include "device/cpu/integer/pack_amx.h"
#include "device/cpu/integer/tiles_amx.h"

enum { TILE_CELLS = WIDE * WIDE };

/* ------------------------------------------------------------------------------------ products */

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

/* ----------------------------------------------------------------------------------- gradients */

/* The rows of a tile: dword j of a row has the four depths that are whole quarters of a pixel's
 * items apart, at most 16. So the items of a pixel are neighbours in a row. `block`: of the 64
 * depths in a pixel. */
INLINE void depth_rows(const int bits, const int whole, const qn__conv_depths *d,
                       const float *const *pixel, uint32_t block, __m512i to[3][WIDE]) {
    const uint32_t span = d->span < STEP ? d->span : STEP, quarter = span / 4;
    const __m512 inverse = _mm512_set1_ps(d->inverse);
    for (uint32_t j = 0, within = 0; j < WIDE; ++j) {
        const float *from = *pixel;
        const uint32_t first = block * STEP + within;
        __m512i u[4], row[3];
        if (++within == quarter) {
            within = 0;
            ++pixel;
        }
        for (uint32_t i = 0; i < 4; ++i) {
            const uint32_t item = first + i * quarter;
            const __mmask16 mask = whole || item < d->items ? 0xffff : 0;
            u[i] =
                quantized(bits, _mm512_maskz_loadu_ps(mask, from + (size_t)item * WIDE), inverse);
        }
        to_digits(bits, u, row);
        to[0][j] = row[0];
        if (bits == 14) {
            to[1][j] = _mm512_add_epi8(row[0], row[1]);
            to[2][j] = row[1];
        }
    }
}

INLINE void pack_depths(const int bits, const int left, const int whole, const qn__conv_depths *d) {
    const uint32_t each = d->span < STEP ? STEP / d->span : 1; /* pixels of a step */
    const uint32_t blocks = d->span < STEP ? 1 : d->span / STEP;
    char *to = d->to;
    for (uint32_t p = 0; p < d->pixels; p += each)
        for (uint32_t b = 0; b < blocks; ++b, to += left ? STEP : TILE) {
            _Alignas(64) __m512i rows[3][WIDE];
            depth_rows(bits, whole, d, d->pixel + p, b, rows);
            for (uint32_t c = 0; c < (bits == 7 ? 1u : 3u); ++c) {
                if (left)
                    transpose_tile((char *)rows[c]);
                for (uint32_t j = 0; j < WIDE; ++j)
                    _mm512_storeu_si512(to + c * d->plane + j * (left ? d->row : 64), rows[c][j]);
            }
        }
}

#define DEPTHS(name, left)                                                                         \
    static void name(const qn__conv_depths *d) {                                                   \
        const int whole = d->items == d->span;                                                     \
        if (d->bits == 7 && whole)                                                                 \
            pack_depths(7, left, 1, d);                                                            \
        else if (d->bits == 7)                                                                     \
            pack_depths(7, left, 0, d);                                                            \
        else if (whole)                                                                            \
            pack_depths(14, left, 1, d);                                                           \
        else                                                                                       \
            pack_depths(14, left, 0, d);                                                           \
    }
DEPTHS(qn_cpu_left_depths_amx, 1)
DEPTHS(qn_cpu_right_depths_amx, 0)

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
                            (((size_t)(r + i) * s->panels + p + k) * s->planes + c) * TILE_CELLS;
                }
                dots_by[panels - 1][rows - 1](&d, 1);
            }
        }
    end_tiles();
}

INLINE void flush_eight(const int planes, size_t at, int32_t *sums, int64_t *exact) {
    const __m256i none = _mm256_setzero_si256();
    const __m256i high = _mm256_loadu_si256((const void *)(sums + at));
    __m512i n = _mm512_cvtepi32_epi64(high);
    _mm256_storeu_si256((void *)(sums + at), none);
    if (planes == 3) {
        int32_t *both = sums + TILE_CELLS + at, *last = both + TILE_CELLS;
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

static void qn_cpu_flush_amx(uint32_t planes, uint32_t tiles, int32_t *sums, int64_t *exact) {
    for (uint32_t t = 0; t < tiles; ++t, sums += planes * TILE_CELLS, exact += TILE_CELLS)
        for (size_t at = 0; at < TILE_CELLS; at += 8)
            if (planes == 3)
                flush_eight(3, at, sums, exact);
            else
                flush_eight(1, at, sums, exact);
}

const qn__intconv qn__intconv_amx = {
    .left_depths = qn_cpu_left_depths_amx,
    .right_depths = qn_cpu_right_depths_amx,
    .add_depths = qn_cpu_add_depths_amx,
    .flush = qn_cpu_flush_amx,
};
