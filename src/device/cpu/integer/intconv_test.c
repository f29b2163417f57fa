/* Convolutions of integers by tiles (intconv.h), by every table that has them: operands and sums
 * must give the exact integers of plain loops over the same values. */
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

/* Pixels of panels of 16 channels: [panel][pixel][item][16]. */
typedef struct image {
    uint32_t items, pixels;
    float *v;
} image;

static float at(const image *m, uint32_t panel, uint32_t pixel, uint32_t item, uint32_t channel) {
    return m->v[(((size_t)panel * m->pixels + pixel) * m->items + item) * P + channel];
}

static void put_depths(const qn__intconv *conv, int bits, uint32_t span, const image *m,
                       uint32_t panel, char *to, size_t plane, size_t row) {
    const float *pixel[PIXELS + SHIFTS + 1];
    for (uint32_t p = 0; p < m->pixels; ++p)
        pixel[p] = m->v + ((size_t)panel * m->pixels + p) * m->items * P;
    const qn__conv_depths d = {.bits = bits,
                               .items = m->items,
                               .span = span,
                               .pixels = m->pixels,
                               .pixel = pixel,
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

/* The inputs have one pixel more than the taps read, so that they fill steps. */
static void gradient(const qn__intconv *conv, int bits, uint32_t items, uint32_t span,
                     uint32_t panels) {
    const uint32_t planes = qn__planes(bits), wide = PIXELS + SHIFTS + 1;
    const uint32_t steps = PIXELS * span / QN__STEP_DEPTHS;
    const size_t row = (size_t)wide * span, plane = (size_t)steps * QN__TILE_BYTES;
    const size_t tiles = (size_t)SHIFTS * panels * CELLS;
    const image in = {items, wide, integers(bits, (size_t)wide * items * P)};
    const image out = {items, PIXELS, integers(bits, (size_t)panels * PIXELS * items * P)};
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
    free(left);
    free(right);
    free(sums);
    free(exact);
}

static void gradients(const qn__intconv *conv, int bits) {
    static const uint32_t items[][2] = {{16, 16}, {11, 16}, {32, 32}, {17, 32},
                                        {64, 64}, {33, 64}, {99, 128}};
    for (size_t i = 0; i < sizeof items / sizeof *items; ++i)
        gradient(conv, bits, items[i][0], items[i][1], 1 + (uint32_t)i % PANELS);
}

static void each_table(void **unused) {
    const qn__cpu_isa *isa;
    (void)unused;
    for (uint32_t i = 0; (isa = qn__cpu_isa_at(i)) != NULL; ++i)
        if (isa->intgemm && isa->here() && isa->intgemm->conv) {
            gradients(isa->intgemm->conv, 7);
            gradients(isa->intgemm->conv, 14);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_table)};
    return cmocka_run_group_tests_name("cpu convolutions of integers", tests, NULL, NULL);
}
