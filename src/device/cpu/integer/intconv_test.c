/* Convolutions of integers by tiles (intconv.h), by every table that has them: operands and sums
 * must give the exact integers of plain loops over the same values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/cpu_isa.h"
#include "device/cpu/integer/intgemm_space_test.h"

enum { PIXELS = 8, SHIFTS = 3, PANELS = 3, CELLS = P * P, MOST = 128 };

/* Values whose integers have `bits` bits, the largest often among them. */
static float *integers(int bits, size_t count) {
    const int32_t most = (INT32_C(1) << (bits - 1)) - 1;
    float *v = buffer(count * sizeof *v);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t kind = draw() % 4;
        v[i] = (float)(kind == 0   ? most
                       : kind == 1 ? -most
                                   : (int32_t)(draw() % (2 * (uint32_t)most + 1)) - most);
    }
    return v;
}

/* Pixels of panels of 16 channels: [panel][pixel][item][16], and the bits of those that are not 0
 * ([panel][pixel][item]) or NULL. */
typedef struct image {
    uint32_t items, pixels;
    float *v;
    uint16_t *bits;
} image;

static float at(const image *m, uint32_t panel, uint32_t pixel, uint32_t item, uint32_t channel) {
    const size_t row = ((size_t)panel * m->pixels + pixel) * m->items + item;
    return m->bits && !(m->bits[row] >> channel & 1) ? 0.0f : m->v[row * P + channel];
}

static uint16_t *random_bits(size_t count) {
    uint16_t *bits = buffer(count * sizeof *bits);
    for (size_t i = 0; i < count; ++i)
        bits[i] = (uint16_t)draw();
    return bits;
}

static void put_depths(const qn__intconv *conv, int bits, uint32_t span, const image *m,
                       uint32_t panel, char *to, size_t plane, size_t row) {
    const float *pixel[PIXELS + SHIFTS + 1];
    const uint16_t *bits_of[PIXELS + SHIFTS + 1];
    for (uint32_t p = 0; p < m->pixels; ++p) {
        const size_t first = ((size_t)panel * m->pixels + p) * m->items;
        pixel[p] = m->v + first * P;
        bits_of[p] = m->bits ? m->bits + first : NULL;
    }
    const qn__conv_depths d = {.bits = bits,
                               .items = m->items,
                               .span = span,
                               .pixels = m->pixels,
                               .pixel = pixel,
                               .mask = m->bits ? bits_of : NULL,
                               .inverse = 1,
                               .to = to,
                               .plane = plane,
                               .row = row};
    (row ? conv->left_depths : conv->right_depths)(&d);
}

/* Output pixel p reads the input p + shift. */
static int64_t sum_of(const image *in, const image *out, uint32_t shift, uint32_t panel, uint32_t r,
                      uint32_t c) {
    int64_t sum = 0;
    for (uint32_t p = 0; p < PIXELS; ++p)
        for (uint32_t i = 0; i < in->items; ++i)
            sum += (int64_t)at(in, 0, p + shift, i, r) * (int64_t)at(out, panel, p, i, c);
    return sum;
}

static void check_sums(const image *in, const image *out, uint32_t panels, int64_t times,
                       const int64_t *exact) {
    for (uint32_t shift = 0; shift < SHIFTS; ++shift)
        for (uint32_t panel = 0; panel < panels; ++panel)
            for (uint32_t i = 0; i < CELLS; ++i)
                assert_int_equal(exact[((size_t)shift * panels + panel) * CELLS + i],
                                 times * sum_of(in, out, shift, panel, i / P, i % P));
}

/* Woven pictures have the values of the image's channel r: their bytes must be row r of `left`. */
static void check_woven(const qn__intconv *conv, int bits, uint32_t span, const image *m,
                        const char *left, size_t plane, size_t row) {
    const uint32_t blocks = (m->items + P - 1) / P, planes = qn__planes(bits);
    float *v = buffer((size_t)blocks * m->pixels * P * sizeof *v);
    char *to = buffer(planes * row);
    for (uint32_t r = 0; r < P; ++r) {
        for (uint32_t p = 0; p < m->pixels; ++p)
            for (uint32_t i = 0; i < blocks * P; ++i)
                v[((size_t)i / P * m->pixels + p) * P + i % P] =
                    i < m->items ? at(m, 0, p, i, r) : 0.0f;
        conv->woven_depths(&(qn__conv_woven){bits, m->items, span, m->pixels, v, P,
                                             (size_t)m->pixels * P, 1, to, row});
        for (uint32_t c = 0; c < planes; ++c)
            assert_memory_equal(to + c * row, left + c * plane + r * row, row);
    }
    free(v);
    free(to);
}

/* The inputs have one pixel more than the taps read, so that they fill steps. */
static void gradient(const qn__intconv *conv, int bits, uint32_t items, uint32_t span,
                     uint32_t panels, int masked) {
    const uint32_t planes = qn__planes(bits), wide = PIXELS + SHIFTS + 1;
    const uint32_t steps = PIXELS * span / QN__STEP_DEPTHS;
    const size_t row = (size_t)wide * span, plane = (size_t)steps * QN__TILE_BYTES;
    const size_t tiles = (size_t)SHIFTS * panels * CELLS;
    const size_t errors = (size_t)panels * PIXELS * items;
    const image in = {items, wide, integers(bits, (size_t)wide * items * P), NULL};
    const image out = {items, PIXELS, integers(bits, errors * P),
                       masked ? random_bits(errors) : NULL};
    char *left = buffer(planes * row * P), *right = buffer(panels * planes * plane);
    int32_t *sums = buffer(tiles * planes * sizeof *sums);
    int64_t *exact = buffer(tiles * sizeof *exact);
    size_t offset[PIXELS * MOST / QN__STEP_DEPTHS];
    const char *tap[SHIFTS];
    for (uint32_t s = 0; s < steps; ++s)
        offset[s] = (size_t)s * QN__STEP_DEPTHS;
    for (uint32_t s = 0; s < SHIFTS; ++s)
        tap[s] = left + s * span;
    put_depths(conv, bits, span, &in, 0, left, row * P, row);
    check_woven(conv, bits, span, &in, left, row * P, row);
    for (uint32_t p = 0; p < panels; ++p)
        put_depths(conv, bits, span, &out, p, right + p * planes * plane, plane, 0);
    const qn__conv_sum sum = {planes,  steps, SHIFTS, panels, offset,         tap,
                              row * P, row,   right,  plane,  planes * plane, sums};
    memset(sums, 0, tiles * planes * sizeof *sums);
    memset(exact, 0, tiles * sizeof *exact);
    conv->add_depths(&sum);
    conv->add_depths(&sum);
    conv->flush(planes, SHIFTS * panels, sums, exact);
    conv->add_depths(&sum);
    conv->flush(planes, SHIFTS * panels, sums, exact);
    check_sums(&in, &out, panels, 3, exact);
    free(in.v);
    free(out.v);
    free(out.bits);
    free(left);
    free(right);
    free(sums);
    free(exact);
}

static void gradients(const qn__intconv *conv, int bits) {
    static const uint32_t items[][2] = {{16, 16}, {11, 16}, {32, 32}, {17, 32},
                                        {64, 64}, {33, 64}, {99, 128}};
    for (size_t i = 0; i < sizeof items / sizeof *items; ++i)
        for (int masked = 0; masked < 2; ++masked)
            gradient(conv, bits, items[i][0], items[i][1], 1 + (uint32_t)i % PANELS, masked);
}

enum { TAPS = 3, GROUPS = 4, DEPTH = GROUPS * P, WIDTH = 11, OUTPUTS = WIDTH - TAPS + 1 };

/* A window of TAPS pixels over a row of WIDTH of them, by `panels` panels of weights. */
typedef struct line {
    int bits;
    uint32_t items, panels;
    image in;       /* GROUPS panels */
    float *weights; /* [panel][tap][group][row][column] */
    float *scales;  /* 2^-1 or 1 for each item; then for each column and each channel */
    char *left, *right;
    size_t row, plane, panel;
} line;

static float weight(const line *l, uint32_t panel, uint32_t k, uint32_t column) {
    return l->weights[((size_t)panel * TAPS * DEPTH + k) * P + column];
}

/* The channels' factor makes values of the operands, so that `times` has an effect. */
static int64_t dot(const line *l, uint32_t x, uint32_t item, uint32_t panel, uint32_t column) {
    int64_t sum = 0;
    for (uint32_t k = 0; k < TAPS * DEPTH; ++k) {
        const uint32_t c = k % DEPTH;
        const float v = at(&l->in, c / P, x + k / DEPTH, item, c % P) * l->scales[MOST + c];
        sum += (int64_t)v * (int64_t)weight(l, panel, k, column);
    }
    return sum;
}

static void pack_line(const qn__intconv *conv, const line *l, int back) {
    const float ones[P] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (uint32_t x = 0; x < WIDTH; ++x) {
        qn__conv_rows rows = {.bits = l->bits,
                              .items = l->items,
                              .inverse = l->scales,
                              .to = l->left + x * DEPTH,
                              .row = l->row,
                              .plane = l->plane};
        for (uint32_t g = 0; g < GROUPS; ++g) {
            const size_t first = ((size_t)g * WIDTH + x) * l->items;
            rows.from[g] = l->in.v + first * P;
            rows.mask[g] = l->in.bits ? l->in.bits + first : NULL;
            rows.times[g] = l->scales + MOST + g * P;
        }
        conv->rows(&rows);
    }
    for (uint32_t s = 0; s < TAPS * l->panels; ++s) {
        const uint32_t panel = s / TAPS, tap = s % TAPS;
        const float *group[GROUPS], *inverse[GROUPS] = {ones, ones, ones, ones};
        float turned[GROUPS][CELLS];
        char *to = l->right + panel * l->panel + (size_t)tap * QN__TILE_BYTES;
        for (uint32_t g = 0; g < GROUPS; ++g) {
            group[g] = l->weights + ((size_t)s * DEPTH + g * P) * P;
            for (uint32_t i = 0; i < CELLS; ++i)
                turned[g][i] = group[g][i % P * P + i / P];
            group[g] = back ? turned[g] : group[g];
        }
        if (back)
            conv->weights_back(l->bits, group, inverse, to, TAPS * (size_t)QN__TILE_BYTES);
        else
            conv->weights(l->bits, group, ones, to, TAPS * (size_t)QN__TILE_BYTES);
    }
}

static void check_line(const qn__intconv *conv, const line *l, int back) {
    const size_t stride = (size_t)OUTPUTS * l->items * P, offset[TAPS] = {0, DEPTH, 2 * DEPTH};
    float *c = buffer(l->panels * stride * sizeof *c), column[PANELS * P], start[PANELS * P];
    qn__conv_tile tile[OUTPUTS * MOST / P];
    uint32_t tiles = 0;
    for (uint32_t i = 0; i < PANELS * P; ++i) {
        column[i] = ldexpf(1, -(int)(i % 5));
        start[i] = (float)i - 20;
    }
    for (uint32_t x = 0; x < OUTPUTS; ++x)
        for (uint32_t i = 0; i < l->items; i += P)
            tile[tiles++] = (qn__conv_tile){l->left + x * DEPTH + i * l->row, l->scales + i,
                                            c + ((size_t)x * l->items + i) * P,
                                            l->items - i < P ? l->items - i : P};
    conv->product(&(qn__conv_product){l->bits, TAPS, tiles, l->panels, offset, tile, l->row,
                                      l->plane, l->right, TAPS * (size_t)QN__TILE_BYTES, l->panel,
                                      back ? NULL : column, back ? NULL : start, stride});
    for (uint32_t p = 0; p < l->panels; ++p)
        for (uint32_t i = 0; i < OUTPUTS * l->items; ++i)
            for (uint32_t o = 0; o < P; ++o) {
                const float n = (float)dot(l, i / l->items, i % l->items, p, o);
                const float factor = l->scales[i % l->items];
                const float wanted =
                    back ? n * factor
                         : fmaf(n, factor * column[p * P + o], start[p * P + o]) + 0.0f;
                assert_memory_equal(c + p * stride + (size_t)i * P + o, &wanted, sizeof wanted);
            }
    free(c);
}

static void products(const qn__intconv *conv, int bits, uint32_t items, uint32_t panels) {
    const uint32_t planes = qn__planes(bits);
    line l = {.bits = bits, .items = items, .panels = panels, .row = WIDTH * DEPTH + 64};
    l.plane = (items + P - 1) / P * P * l.row;
    l.panel = planes * TAPS * (size_t)QN__TILE_BYTES;
    l.in = (image){items, WIDTH, integers(bits, (size_t)GROUPS * WIDTH * items * P), NULL};
    l.weights = integers(bits, (size_t)panels * TAPS * DEPTH * P);
    l.scales = buffer((MOST + DEPTH) * sizeof *l.scales);
    l.left = buffer(planes * l.plane);
    l.right = buffer(panels * l.panel);
    for (uint32_t i = 0; i < MOST + DEPTH; ++i)
        l.scales[i] = i < MOST || i % 3 ? 1.0f : -1.0f;
    for (int back = 0; back < 2; ++back) {
        l.in.bits = back ? random_bits((size_t)GROUPS * WIDTH * items) : NULL;
        pack_line(conv, &l, back);
        check_line(conv, &l, back);
    }
    free(l.in.v);
    free(l.in.bits);
    free(l.weights);
    free(l.scales);
    free(l.left);
    free(l.right);
}

enum { WINDOW = 4, ROWS = 5, MOST_GRAINS = 8 };

/* Outputs of a convolution, few values so that many are alike: what the kernels of the two layers
 * make of them, plain C. An error of 1 shows which tap gets it. */
static void check_pool(const qn__intconv *conv, int relu, uint32_t taps) {
    enum { FLOATS = ROWS * P };
    const qn__cpu_kernels *plain = &qn__cpu_kernels_scalar;
    const qn__activation activation = relu ? QN__ACT_RELU : QN__ACT_NONE;
    float x[WINDOW * FLOATS], after[WINDOW * FLOATS], y[FLOATS], wanted[FLOATS], d[FLOATS];
    float e[WINDOW * FLOATS] = {0};
    uint16_t bits[WINDOW * ROWS];
    size_t tap[WINDOW];
    qn__conv_pool p = {.rows = ROWS, .taps = taps, .relu = relu, .y = y};
    for (uint32_t i = 0; i < WINDOW * FLOATS; ++i) {
        x[i] = draw() % 8 ? (float)(draw() % 5) - 3 : draw() % 2 ? -0.0f : NAN;
        after[i] = x[i] + 0.0f;
    }
    for (uint32_t i = 0; i < FLOATS; ++i)
        d[i] = 1;
    for (uint32_t t = 0; t < taps; ++t) {
        tap[t] = (size_t)t * FLOATS;
        p.x[t] = x + tap[t];
        p.mask[t] = bits + (size_t)t * ROWS;
    }
    conv->pool(&p);
    plain->activate(activation, taps * (size_t)FLOATS, after);
    plain->pool(1, FLOATS, taps, tap, 0, after, 0, wanted);
    plain->pick(1, FLOATS, 0, taps, tap, 0, after, wanted, d, e);
    plain->derive(activation, taps * (size_t)FLOATS, after, e);
    for (uint32_t i = 0; i < FLOATS; ++i)
        assert_true(memcmp(y + i, wanted + i, sizeof *y) == 0 || (isnan(y[i]) && isnan(wanted[i])));
    for (uint32_t i = 0; i < taps * (uint32_t)FLOATS; ++i)
        assert_int_equal(bits[i / P] >> i % P & 1, e[i] != 0);
}

/* Chains of additions over all pixels, of errors that are written out. */
static void check_partials(const qn__intconv *conv, uint32_t items, uint32_t grain) {
    const qn__conv_picked shape = {.width = 6, .height = 4, .across = 3, .down = 2, .items = items};
    const uint32_t pixels = shape.width * shape.height, windows = pixels / 6;
    float *v = integers(14, (size_t)windows * items * P), found[MOST_GRAINS * P];
    float *all = buffer((size_t)pixels * items * P * sizeof *all), wanted[MOST_GRAINS * P];
    uint16_t *bits = random_bits((size_t)pixels * items);
    qn__conv_picked p = shape;
    p.error = v;
    p.mask = bits;
    for (uint32_t i = 0; i < pixels * items * P; ++i) {
        const uint32_t row = i / P, pixel = row / items;
        const uint32_t window = pixel / shape.width / 2 * 2 + pixel % shape.width / 3;
        const float own = v[((size_t)window * items + row % items) * P + i % P] / 3;
        all[i] = bits[row] >> i % P & 1 ? own : 0.0f;
    }
    for (uint32_t i = 0; i < windows * items * P; ++i)
        v[i] /= 3;
    conv->picked_partials(&p, items, grain, found);
    qn__cpu_kernels_scalar.bias_partials(items, grain, pixels, (size_t)items * P, all, wanted);
    assert_memory_equal(found, wanted, ((items - 1) / grain + 1) * P * sizeof *found);
    free(v);
    free(all);
    free(bits);
}

static void pools(const qn__intconv *conv) {
    for (uint32_t taps = 1; taps <= WINDOW; ++taps)
        for (int relu = 0; relu < 2; ++relu)
            check_pool(conv, relu, taps);
    check_partials(conv, 1, 1);
    check_partials(conv, 37, 5);
    check_partials(conv, 19, 16);
}

static void each_table(void **unused) {
    const qn__cpu_isa *isa;
    (void)unused;
    for (uint32_t i = 0; (isa = qn__cpu_isa_at(i)) != NULL; ++i)
        if (isa->intgemm && isa->here() && isa->intgemm->conv) {
            pools(isa->intgemm->conv);
            for (int bits = 7; bits <= 14; bits += 7) {
                gradients(isa->intgemm->conv, bits);
                products(isa->intgemm->conv, bits, 16, 1);
                products(isa->intgemm->conv, bits, 19, 2);
                products(isa->intgemm->conv, bits, 32, 3);
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_table)};
    return cmocka_run_group_tests_name("cpu convolutions of integers", tests, NULL, NULL);
}
