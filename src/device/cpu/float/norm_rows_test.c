/* The kernels of layernorm channels, in each instruction set, against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/float/kernels_space_test.h"

enum { MOST_ROWS = 9 };

/* S of 17.9, of a row's numbers v, which are in the order of channels. */
static float total_of(uint32_t channels, const float *v) {
    float lane[QN__PANEL] = {0}, sum = 0.0f;
    for (uint32_t c = 0; c < channels; ++c)
        lane[c % QN__PANEL] = lane[c % QN__PANEL] + v[c];
    for (int k = 0; k < QN__PANEL; ++k)
        sum = sum + lane[k];
    return sum;
}

/* Two sums of row i: of x - shift and its square, or with errors those of row_slopes. */
static void sums_of(uint32_t i, uint32_t channels, size_t stride, const float *x, float shift,
                    const float *delta, const float *weight, float *first, float *second) {
    float one[64], two[64];
    for (uint32_t c = 0; c < channels; ++c) {
        const size_t at = c / QN__PANEL * stride + i * QN__PANEL + c % QN__PANEL;
        const float d = x[at] - shift;
        one[c] = delta ? weight[c] * delta[at] : d;
        two[c] = delta ? weight[c] * (delta[at] * d) : d * d;
    }
    *first = total_of(channels, one);
    *second = total_of(channels, two);
}

static void check_sums(const qn__cpu_kernels *k, uint32_t rows, uint32_t channels) {
    const uint32_t panels = (channels + QN__PANEL - 1) / QN__PANEL;
    const size_t stride = (rows + 1) * QN__PANEL, count = panels * stride;
    const float *x = guarded_numbers(count, 0), *delta = guarded_numbers(count, 0);
    const float *shift = guarded_numbers(rows, 0);
    const float *weight = guarded_numbers((size_t)panels * QN__PANEL, 0);
    float *first = guarded_numbers(rows, 0), *second = guarded_numbers(rows, 0);
    float want[4][MOST_ROWS], plain[MOST_ROWS], none;
    snprintf(how, sizeof how, "%u rows, %u channels", rows, channels);
    for (uint32_t i = 0; i < rows; ++i) {
        sums_of(i, channels, stride, x, 0.0f, NULL, NULL, &plain[i], &none);
        sums_of(i, channels, stride, x, shift[i], NULL, NULL, &want[0][i], &want[1][i]);
        sums_of(i, channels, stride, x, shift[i], delta, weight, &want[2][i], &want[3][i]);
    }
    k->row_moments(rows, channels, x, stride, NULL, first, second);
    same(k, "row_moments, without a shift", first, plain, rows);
    k->row_moments(rows, channels, x, stride, shift, first, second);
    same(k, "row_moments, the sum", first, want[0], rows);
    same(k, "row_moments, the squares", second, want[1], rows);
    k->row_slopes(rows, channels, weight, delta, stride, x, stride, shift, first, second);
    same(k, "row_slopes, the sum", first, want[2], rows);
    same(k, "row_slopes, the products", second, want[3], rows);
    release();
}

static void check_panel(const qn__cpu_kernels *k, uint32_t rows) {
    const size_t count = rows * QN__PANEL;
    float *x = guarded_numbers(count, 0), *e = guarded_numbers(count, 0);
    const float *delta = guarded_numbers(count, 0), *weight = guarded_numbers(QN__PANEL, 0);
    const float *bias = guarded_numbers(QN__PANEL, 0), *mean = guarded_numbers(rows, 0);
    const float *inverse = guarded_numbers(rows, 0), *h = guarded_numbers(rows, 0);
    const float *slope = guarded_numbers(rows, 0);
    float *want = copy_of(x, count);
    snprintf(how, sizeof how, "%u rows", rows);
    for (size_t i = 0; i < count; ++i) {
        const size_t r = i / QN__PANEL, c = i % QN__PANEL;
        const float own = fmaf(weight[c], delta[i], 0.0f - h[r]);
        want[i] = inverse[r] * fmaf(-(x[i] - mean[r]), slope[r], own) + 0.0f;
    }
    k->row_errors(rows, delta, x, mean, inverse, weight, h, slope, e);
    same(k, "row_errors", e, want, count);
    for (size_t i = 0; i < count; ++i) {
        const size_t r = i / QN__PANEL, c = i % QN__PANEL;
        want[i] = fmaf(x[i] - mean[r], weight[c] * inverse[r], bias[c]) + 0.0f;
    }
    k->row_normalise(rows, x, mean, inverse, weight, bias, x);
    same(k, "row_normalise in place", x, want, count);
    for (size_t i = 0; i < count; ++i)
        assert_true(bits_of(x[i]) != 0x80000000u); /* no zero has a sign */
    release();
}

static void check_partials(const qn__cpu_kernels *k, uint32_t items, uint32_t grain,
                           uint32_t pixels) {
    const uint32_t beside = items + 2; /* items of a pixel; all but `items` of other calls */
    const uint32_t grains = (items - 1) / grain + 1;
    const size_t apart = (size_t)beside * QN__PANEL, count = (pixels - 1) * apart;
    const float *x = guarded_numbers(count + items * QN__PANEL, 0);
    const float *delta = guarded_numbers(count + items * QN__PANEL, 0);
    const float *mean = guarded_numbers((pixels - 1) * beside + items, 0);
    const float *inverse = guarded_numbers((pixels - 1) * beside + items, 0);
    const size_t all = (size_t)grains * QN__PANEL;
    float *weight = guarded_numbers(all, 0), *bias = guarded_numbers(all, 0);
    float want[2][MOST_ROWS * QN__PANEL] = {{0}};
    snprintf(how, sizeof how, "%u items, grains of %u, %u pixels", items, grain, pixels);
    for (uint32_t p = 0; p < pixels; ++p)
        for (uint32_t i = 0; i < items; ++i)
            for (uint32_t c = 0; c < QN__PANEL; ++c) {
                const uint32_t row = p * beside + i, to = i / grain * QN__PANEL + c;
                const size_t at = (size_t)row * QN__PANEL + c;
                const float product = delta[at] * (x[at] - mean[row]);
                want[0][to] = want[0][to] + product * inverse[row];
                want[1][to] = want[1][to] + delta[at];
            }
    k->row_partials(items, grain, pixels, apart, delta, x, mean, inverse, weight, bias);
    same(k, "row_partials of the weight", weight, want[0], all);
    same(k, "row_partials of the bias", bias, want[1], all);
    release();
}

static void body(const qn__cpu_kernels *k) {
    for (uint32_t rows = 1; rows <= MOST_ROWS; ++rows) {
        for (uint32_t channels = 1; channels < 50; channels += 5)
            check_sums(k, rows, channels);
        check_panel(k, rows);
        check_partials(k, rows, rows, 1 + rows % 3);
        check_partials(k, rows, 1 + rows / 6, 1 + rows % 3);
    }
}

static void test_rows(void **state) {
    (void)state;
    every_isa(body);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
