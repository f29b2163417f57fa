/* The kernels of batchnorm, in each instruction set, against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "device/cpu/float/kernels_space_test.h"

/* Sums over pixels of chains over items: of a - shift and its square, or of b and b by a - shift.
 */
static void sums_of(uint32_t items, uint32_t pixels, size_t apart, const float *a,
                    const float *shift, const float *b, float *first, float *second) {
    for (uint32_t c = 0; c < QN__PANEL; ++c) {
        first[c] = second[c] = 0.0f;
        for (uint32_t p = 0; p < pixels; ++p) {
            float one = 0.0f, other = 0.0f;
            for (uint32_t i = 0; i < items; ++i) {
                const size_t at = p * apart + i * QN__PANEL + c;
                const float d = a[at] - shift[c];
                one = one + (b ? b[at] : d);
                other = fmaf(b ? b[at] : d, d, other);
            }
            first[c] = first[c] + one;
            second[c] = second[c] + other;
        }
    }
}

static void check_sums(const qn__cpu_kernels *k, uint32_t items, uint32_t pixels, uint32_t beside) {
    const size_t apart = (items + beside) * QN__PANEL;
    const size_t count = (pixels - 1) * apart + items * QN__PANEL;
    const float *a = guarded_numbers(count, 0), *b = guarded_numbers(count, 0);
    const float *shift = guarded_numbers(QN__PANEL, 0);
    float *first = guarded_numbers(QN__PANEL, 0), *second = guarded_numbers(QN__PANEL, 0);
    float want[2][QN__PANEL];
    snprintf(how, sizeof how, "%u items, %u pixels, %u items beside", items, pixels, beside);
    sums_of(items, pixels, apart, a, shift, NULL, want[0], want[1]);
    k->moments(items, pixels, apart, a, shift, first, second);
    same(k, "moments, the sum", first, want[0], QN__PANEL);
    same(k, "moments, the squares", second, want[1], QN__PANEL);
    sums_of(items, pixels, apart, a, shift, b, want[0], want[1]);
    k->slopes(items, pixels, apart, b, a, shift, first, second);
    same(k, "slopes, the sum", first, want[0], QN__PANEL);
    same(k, "slopes, the products", second, want[1], QN__PANEL);
    release();
}

static void sums_body(const qn__cpu_kernels *k) {
    for (uint32_t items = 1; items < 6; ++items)
        for (uint32_t pixels = 1; pixels < 11; ++pixels)
            check_sums(k, items, pixels, pixels % 3);
}

static void test_sums(void **state) {
    (void)state;
    every_isa(sums_body);
}

static void check_rows(const qn__cpu_kernels *k, uint32_t rows) {
    const size_t count = rows * QN__PANEL;
    float *x = guarded_numbers(count, 0), *y = guarded_numbers(count, 0);
    const float *delta = guarded_numbers(count, 0), *mean = guarded_numbers(QN__PANEL, 0);
    const float *factor = guarded_numbers(QN__PANEL, 0), *bias = guarded_numbers(QN__PANEL, 0);
    const float *slope = guarded_numbers(QN__PANEL, 0);
    float *sums = guarded_numbers(QN__PANEL, 0), *chain = copy_of(sums, QN__PANEL);
    float *want = copy_of(x, count);
    uint32_t largest = 0;
    snprintf(how, sizeof how, "%u rows", rows);
    for (size_t i = 0; i < count; ++i) {
        const size_t c = i % QN__PANEL;
        want[i] = factor[c] * fmaf(-(x[i] - mean[c]), slope[c], delta[i] - bias[c]) + 0.0f;
        chain[c] = chain[c] + want[i];
        const uint32_t bits = bits_of(want[i]) & 0x7fffffffu;
        largest = bits > largest ? bits : largest;
    }
    assert_int_equal(k->normalise_errors(rows, 0, delta, x, mean, factor, bias, slope, NULL, y),
                     largest);
    same(k, "normalise_errors", y, want, count);
    assert_int_equal(k->normalise_errors(rows, 0, delta, x, mean, factor, bias, slope, sums, y),
                     largest);
    same(k, "normalise_errors, with sums", y, want, count);
    same(k, "normalise_errors, the sums", sums, chain, QN__PANEL);
    static const qn__activation activations[] = {QN__ACT_NONE, QN__ACT_RELU, QN__ACT_RELU6};
    for (int form = 0; form < 3; ++form)
        for (int adds = 0; adds < 2; ++adds) {
            uint32_t most = 0;
            snprintf(how, sizeof how, "%u rows, activation %d, sum %d", rows,
                     (int)activations[form], adds);
            for (size_t i = 0; i < count; ++i) {
                const size_t c = i % QN__PANEL;
                want[i] = fmaf(x[i] - mean[c], factor[c], bias[c]) + 0.0f;
                want[i] = adds ? want[i] + delta[i] : want[i];
                want[i] = form > 0 && want[i] <= 0.0f ? 0.0f : want[i];
                want[i] = form > 1 && want[i] > 6.0f ? 6.0f : want[i];
                const uint32_t bits = bits_of(want[i]) & 0x7fffffffu;
                most = bits > most ? bits : most;
            }
            assert_int_equal(k->normalise(rows, 0, x, mean, factor, bias, adds ? delta : NULL,
                                          activations[form], y),
                             most);
            same(k, "normalise", y, want, count);
            memcpy(y, x, count * sizeof *y);
            k->normalise(rows, 0, y, mean, factor, bias, adds ? delta : NULL, activations[form], y);
            same(k, "normalise in place", y, want, count);
            for (size_t i = 0; i < count; ++i)
                assert_true(bits_of(y[i]) != 0x80000000u); /* no zero has a sign */
        }
    release();
}

static void rows_body(const qn__cpu_kernels *k) {
    for (uint32_t rows = 1; rows <= 8; ++rows)
        check_rows(k, rows);
}

static void test_rows(void **state) {
    (void)state;
    every_isa(rows_body);
}

enum { NORMS = 2 };

/* What the other kernels give, one after the other. */
static uint32_t finish_by_parts(const qn__cpu_kernels *k, qn__activation activation, uint32_t rows,
                                const float *side, const float *y, const qn__cpu_slopes norm[NORMS],
                                float *e) {
    const size_t count = (size_t)rows * QN__PANEL;
    for (size_t i = 0; side && i < count; ++i)
        e[i] = e[i] + side[i];
    k->derive(activation, count, y, e);
    for (uint32_t n = 0; n < NORMS; ++n)
        sums_of(rows, 1, 0, norm[n].x, norm[n].mean, e, norm[n].sums, norm[n].sums + QN__PANEL);
    return k->absmax(count, e);
}

static void check_finish(const qn__cpu_kernels *k, qn__activation activation, uint32_t rows,
                         int adds) {
    const size_t count = rows * QN__PANEL;
    const float *y = guarded_numbers(count, 0), *side = guarded_numbers(count, 0);
    const float *before = guarded_numbers(count, 0);
    float *e = guarded_numbers(count, 0), *want = guarded_numbers(count, 0);
    float *sums = guarded_numbers((size_t)2 * NORMS * QN__PANEL, 0), result[2 * NORMS * QN__PANEL];
    qn__cpu_slopes norm[NORMS], other[NORMS];
    for (uint32_t n = 0; n < NORMS; ++n) {
        norm[n] = (qn__cpu_slopes){guarded_numbers(count, 0), guarded_numbers(QN__PANEL, 0),
                                   sums + (size_t)n * 2 * QN__PANEL};
        other[n] = norm[n];
        other[n].sums = result + (size_t)n * 2 * QN__PANEL;
    }
    memcpy(want, before, count * sizeof *want);
    const uint32_t most = finish_by_parts(k, activation, rows, adds ? side : NULL, y, other, want);
    for (uint32_t norms = 0; norms <= NORMS; ++norms) {
        snprintf(how, sizeof how, "activation %d, %u rows, side %d, %u sums", (int)activation, rows,
                 adds, norms);
        memcpy(e, before, count * sizeof *e);
        assert_int_equal(k->finish(activation, rows, adds ? side : NULL, y, norms, norm, e), most);
        same(k, "finish", e, want, count);
        same(k, "finish, the sums", sums, result, (size_t)2 * norms * QN__PANEL);
    }
    release();
}

static void finish_body(const qn__cpu_kernels *k) {
    for (int activation = QN__ACT_NONE; activation <= QN__ACT_GELU_TANH; ++activation)
        for (uint32_t rows = 1; rows <= 5; ++rows)
            check_finish(k, (qn__activation)activation, rows, rows % 2);
}

static void test_finish(void **state) {
    (void)state;
    every_isa(finish_body);
}

/* Each item's sums of chains over pixels, as `sums_of`. */
static void item_sums(uint32_t items, uint32_t pixels, size_t apart, const float *a,
                      const float *shift, const float *b, float *first, float *second) {
    for (uint32_t i = 0; i < items * QN__PANEL; ++i) {
        first[i] = second[i] = 0.0f;
        for (uint32_t p = 0; p < pixels; ++p) {
            const size_t at = p * apart + i;
            const float d = a[at] - shift[i];
            first[i] = first[i] + (b ? b[at] : d);
            second[i] = fmaf(b ? b[at] : d, d, second[i]);
        }
    }
}

enum { FEW = 9 };

static void check_item_sums(const qn__cpu_kernels *k, uint32_t items, uint32_t pixels) {
    const size_t rows = (size_t)items * QN__PANEL, apart = rows + QN__PANEL;
    const size_t count = (pixels - 1) * apart + rows;
    const float *a = guarded_numbers(count, 0), *b = guarded_numbers(count, 0);
    const float *shift = guarded_numbers(rows, 0);
    float *first = guarded_numbers(rows, 0), *second = guarded_numbers(rows, 0);
    float want[2][FEW * QN__PANEL];
    snprintf(how, sizeof how, "%u items, %u pixels", items, pixels);
    item_sums(items, pixels, apart, a, shift, NULL, want[0], want[1]);
    k->item_moments(items, pixels, apart, a, shift, first, second);
    same(k, "item_moments, the sum", first, want[0], rows);
    same(k, "item_moments, the squares", second, want[1], rows);
    item_sums(items, pixels, apart, a, shift, b, want[0], want[1]);
    k->item_slopes(items, pixels, apart, b, a, shift, first, second);
    same(k, "item_slopes, the sum", first, want[0], rows);
    same(k, "item_slopes, the products", second, want[1], rows);
    release();
}

static void item_sums_body(const qn__cpu_kernels *k) {
    for (uint32_t items = 1; items <= FEW; ++items)
        for (uint32_t pixels = 1; pixels < 4; ++pixels)
            check_item_sums(k, items, pixels);
}

static void test_item_sums(void **state) {
    (void)state;
    every_isa(item_sums_body);
}

static void check_items(const qn__cpu_kernels *k, uint32_t items) {
    const size_t count = items * QN__PANEL;
    float *x = guarded_numbers(count, 0), *e = guarded_numbers(count, 0);
    const float *delta = guarded_numbers(count, 0), *mean = guarded_numbers(count, 0);
    const float *factor = guarded_numbers(count, 0), *h = guarded_numbers(count, 0);
    const float *slope = guarded_numbers(count, 0), *row = guarded_numbers(QN__PANEL, 0);
    float *want = copy_of(x, count);
    snprintf(how, sizeof how, "%u items", items);
    for (size_t i = 0; i < count; ++i)
        want[i] = factor[i] *
                      fmaf(-(x[i] - mean[i]), slope[i], fmaf(row[i % QN__PANEL], delta[i], -h[i])) +
                  0.0f;
    k->item_errors(items, delta, x, mean, factor, row, h, slope, e);
    same(k, "item_errors", e, want, count);
    for (size_t i = 0; i < count; ++i)
        want[i] = fmaf(x[i] - mean[i], factor[i], row[i % QN__PANEL]) + 0.0f;
    k->item_normalise(items, x, mean, factor, row, x);
    same(k, "item_normalise in place", x, want, count);
    release();
}

static void items_body(const qn__cpu_kernels *k) {
    for (uint32_t items = 1; items <= FEW; ++items)
        check_items(k, items);
}

static void test_items(void **state) {
    (void)state;
    every_isa(items_body);
}

/* S of 25.30 of a row: `apart` floats between two panels, which are not of this row alone. */
static float rms_sum(uint32_t channels, size_t apart, const float *factor, const float *a,
                     const float *b) {
    float lane[QN__PANEL] = {0}, sum = 0.0f;
    for (uint32_t c = 0; c < channels; ++c) {
        const size_t at = c / QN__PANEL * apart + c % QN__PANEL;
        const float own = factor ? factor[c] * a[at] : a[at];
        lane[c % QN__PANEL] = fmaf(own, b[at], lane[c % QN__PANEL]);
    }
    for (int k = 0; k < QN__PANEL; ++k)
        sum = sum + lane[k];
    return sum;
}

static void check_rms_sums(const qn__cpu_kernels *k, uint32_t rows, uint32_t channels) {
    const uint32_t panels = (channels + QN__PANEL - 1) / QN__PANEL;
    const size_t apart = (size_t)(rows + 1) * QN__PANEL, count = panels * apart;
    const float *a = guarded_numbers(count, 0), *b = guarded_numbers(count, 0);
    const float *factor = guarded_numbers((size_t)panels * QN__PANEL, 0);
    float *sums = guarded_numbers(rows, 0), want[2][FEW];
    snprintf(how, sizeof how, "%u rows, %u channels", rows, channels);
    for (uint32_t i = 0; i < rows; ++i) {
        const size_t at = (size_t)i * QN__PANEL;
        want[0][i] = rms_sum(channels, apart, NULL, a + at, a + at);
        want[1][i] = rms_sum(channels, apart, factor, a + at, b + at);
    }
    k->rms_sums(rows, channels, NULL, a, apart, a, apart, sums);
    same(k, "rms_sums, of squares", sums, want[0], rows);
    k->rms_sums(rows, channels, factor, a, apart, b, apart, sums);
    same(k, "rms_sums, of products", sums, want[1], rows);
    release();
}

static void check_rms_rows(const qn__cpu_kernels *k, uint32_t rows) {
    const size_t count = (size_t)rows * QN__PANEL, apart = count + QN__PANEL;
    float *x = guarded_numbers(2 * apart, 0), *e = guarded_numbers(count, 0);
    float partial[QN__PANEL], sum[QN__PANEL] = {0};
    const float *delta = guarded_numbers(2 * apart, 0), *inverse = guarded_numbers(2 * rows + 1, 0);
    const float *slope = guarded_numbers(rows, 0), *weight = guarded_numbers(QN__PANEL, 0);
    float *want = copy_of(x, count);
    snprintf(how, sizeof how, "%u rows", rows);
    for (size_t i = 0; i < count; ++i) {
        const size_t row = i / QN__PANEL;
        const float own = weight[i % QN__PANEL] * delta[i];
        want[i] = inverse[row] * fmaf(-x[i], slope[row], own) + 0.0f;
    }
    k->rms_errors(rows, delta, x, inverse, slope, weight, e);
    same(k, "rms_errors", e, want, count);
    for (size_t i = 0; i < 2 * count; ++i) {
        const size_t at = i / count * apart + i % count;
        const float own = x[at] * inverse[at / QN__PANEL];
        sum[i % QN__PANEL] = fmaf(delta[at], own, sum[i % QN__PANEL]);
    }
    k->rms_partials(rows, 2, apart, delta, x, inverse, partial);
    same(k, "rms_partials", partial, sum, QN__PANEL);
    for (size_t i = 0; i < count; ++i)
        want[i] = x[i] * inverse[i / QN__PANEL] * weight[i % QN__PANEL] + 0.0f;
    k->rms_normalise(rows, x, inverse, weight, x);
    same(k, "rms_normalise in place", x, want, count);
    release();
}

static void rms_body(const qn__cpu_kernels *k) {
    for (uint32_t rows = 1; rows <= FEW; ++rows) {
        check_rms_rows(k, rows);
        for (uint32_t channels = 1; channels < 50; channels += 5)
            check_rms_sums(k, rows, channels);
    }
}

static void test_rms(void **state) {
    (void)state;
    every_isa(rms_body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),   cmocka_unit_test(test_rows),
        cmocka_unit_test(test_finish), cmocka_unit_test(test_item_sums),
        cmocka_unit_test(test_items),  cmocka_unit_test(test_rms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
