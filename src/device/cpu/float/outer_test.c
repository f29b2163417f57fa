/* The kernels of partial gradients and of pooling against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/float/kernels_space_test.h"
#include <stdlib.h>

/* ---- partial gradients */

/* The expected results of `nonzero` for each item, in plain loops. */
static const uint16_t *masks_of(const float *a, uint32_t items) {
    uint16_t *some = guard(items * sizeof *some);
    for (uint32_t i = 0; i < items; ++i) {
        some[i] = 0;
        for (uint32_t t = 0; t < 16; ++t)
            if (bits_of(a[i * 16 + t]) != 0)
                some[i] = (uint16_t)(some[i] | 1u << t);
    }
    return some;
}

/* Makes all but `density` of 100 values +0; every fifth item altogether. */
static void thin_out(float *a, uint32_t items, uint32_t density) {
    for (uint32_t i = 0; i < items * 16; ++i)
        if (word() % 100 >= density || (density < 100 && i / 16 % 5 == 4))
            a[i] = 0.0f;
}

/* The partial after each `how`, in both types of array. Zeros of either sign are equal: they
 * represent integers. */
static void check_outer(const qn__cpu_kernels *k, uint32_t items, uint32_t panels, qn__partial kind,
                        int with_some, uint32_t density) {
    const qn__cpu_span span = {.items = items, .columns = 1, .rows = 1};
    const int doubles = kind == QN__PARTIAL_FIRST || kind == QN__PARTIAL_ADD;
    const size_t d_stride = items * 16 + 32, count = panels * 256u;
    float *a = guarded_numbers(items * 16, 0);
    const float *d = guarded_numbers((panels - 1) * d_stride + items * 16, 0);
    float *floats = doubles ? NULL : guard(count * sizeof *floats);
    double *sums = doubles ? guard(count * sizeof *sums) : NULL;
    double before[5 * 256] = {0};
    thin_out(a, items, density);
    const uint16_t *some = with_some ? masks_of(a, items) : NULL;
    for (size_t i = 0; doubles && i < count; ++i)
        before[i] = sums[i] = (double)(int32_t)word();
    k->outer(&span, a, some, d, d_stride, NULL, kind, doubles ? (void *)sums : (void *)floats,
             panels);
    for (uint32_t p = 0; p < panels; ++p)
        for (uint32_t at = 0; at < 256; ++at) {
            float acc = 0.0f;
            for (uint32_t i = 0; i < items; ++i)
                acc = fmaf(d[p * d_stride + i * 16 + at % 16], a[i * 16 + at / 16], acc);
            double want = (double)(kind == QN__PARTIAL_RAW ? acc : rintf(acc));
            want += kind == QN__PARTIAL_ADD ? before[p * 256 + at] : 0.0;
            const double got = doubles ? sums[p * 256 + at] : (double)floats[p * 256 + at];
            if (got != want)
                fail_msg("%s outer, kind %d, %u items, density %u, some %d, panel %u of %u, "
                         "element %u: %a, want %a",
                         k->name, (int)kind, items, density, with_some, p, panels, at, got, want);
        }
    release();
}

/* Sums over pixels, in any distance of each other, that begin from a sum. */
static void check_span(const qn__cpu_kernels *k, qn__cpu_span span, uint32_t panels) {
    const uint32_t pixels = span.rows * span.columns;
    const size_t a_count = 16 * (size_t)(pixels * span.items) * 3, d_stride = a_count + 32;
    const float *a = guarded_numbers(a_count, 0), *d = guarded_numbers(panels * d_stride, 0);
    float *sums = guarded_numbers(panels * 256, 0), *want = copy_of(sums, panels * 256);
    span.a_column = 16 * (size_t)span.items * 2;
    span.d_column = 16 * (size_t)span.items;
    span.a_row = span.columns * span.a_column;
    span.d_row = span.columns * span.d_column + 32;
    for (uint32_t at = 0; at < panels * 256; ++at)
        for (uint32_t i = 0; i < pixels * span.items; ++i) {
            const uint32_t y = i / span.items / span.columns, x = i / span.items % span.columns;
            const size_t item = 16 * (size_t)(i % span.items);
            want[at] =
                fmaf(d[at / 256 * d_stride + y * span.d_row + x * span.d_column + item + at % 16],
                     a[y * span.a_row + x * span.a_column + item + at / 16 % 16], want[at]);
        }
    k->outer(&span, a, NULL, d, d_stride, sums, QN__PARTIAL_RAW, sums, panels);
    snprintf(how, sizeof how, "%u items of %u x %u pixels", span.items, span.rows, span.columns);
    same(k, "outer", sums, want, panels * 256);
    release();
}

static void span_body(const qn__cpu_kernels *k) {
    for (uint32_t items = 1; items <= 9; ++items)
        for (uint32_t pixels = 0; pixels < 9; ++pixels)
            check_span(
                k,
                (qn__cpu_span){.items = items, .rows = 1 + pixels / 3, .columns = 1 + pixels % 3},
                1 + (items + pixels) % 5);
}

static void test_outer_span(void **state) {
    (void)state;
    every_isa(span_body);
}

/* Windows of any dilation and border; some panels read none of the columns. */
static void check_taps(const qn__cpu_kernels *k, qn__cpu_taps t, uint32_t width) {
    const size_t a_count = t.rows * t.a_row, d_count = t.rows * t.d_row, count = t.panels * 256u;
    const float *a = guarded_numbers(a_count, 0), *d = guarded_numbers(d_count, 0);
    float *got = guarded_numbers(count, 0), *want = copy_of(got, count);
    for (size_t at = 0; at < count; ++at)
        for (uint32_t y = 0; y < t.rows; ++y)
            for (uint32_t x = t.x; x < t.x_end; ++x) {
                const int64_t made = x + t.lead + (int64_t)(at / 256) * t.dilation;
                for (size_t i = 0; made >= 0 && made < t.outputs && i < t.items; ++i)
                    want[at] =
                        fmaf(d[y * t.d_row + (size_t)made * t.column + i * 16 + at % 16],
                             a[y * t.a_row + x * t.column + i * 16 + at / 16 % 16], want[at]);
            }
    k->taps(&t, a, d, got);
    snprintf(how, sizeof how, "%u items, columns %u to %u of %u, lead %d, dilation %u, %u outputs",
             t.items, t.x, t.x_end, width, (int)t.lead, t.dilation, t.outputs);
    same(k, "taps", got, want, count);
    release();
}

static void taps_body(const qn__cpu_kernels *k) {
    for (uint32_t n = 0; n < 150; ++n) {
        const uint32_t items = 1 + n % 6, width = 1 + word() % 9, outputs = 1 + word() % 9;
        const size_t column = items * 16u + (n % 3 > 0 ? 16u : 0u);
        const uint32_t x = n % 4 == 0 ? word() % width : 0;
        check_taps(k,
                   (qn__cpu_taps){.items = items,
                                  .x = x,
                                  .x_end = n % 4 == 1 ? x + 1 : width,
                                  .rows = 1 + n % 3,
                                  .panels = 1 + n % 7,
                                  .dilation = 1 + n / 2 % 3,
                                  .outputs = outputs,
                                  .a_turn = n % 2,
                                  .a_turns = 2,
                                  .d_turns = 1 + n % 20,
                                  .lead = (int64_t)(word() % 10) - 6,
                                  .column = column,
                                  .a_row = width * column,
                                  .d_row = outputs * column,
                                  .d_ahead = -16},
                   width);
    }
}

static void test_taps(void **state) {
    (void)state;
    every_isa(taps_body);
}

static void outer_body(const qn__cpu_kernels *k) {
    static const qn__partial kinds[] = {QN__PARTIAL_RAW, QN__PARTIAL_ONLY, QN__PARTIAL_FIRST,
                                        QN__PARTIAL_ADD};
    for (uint32_t items = 1; items <= 35; ++items)
        for (int kind = 0; kind < 4; ++kind)
            check_outer(k, items, 1 + (items + (uint32_t)kind) % 5, kinds[kind], 0, 100);
}

/* Numbers of items around 256, the capacity of a list. Each with all densities, or with one in
 * QN_TEST_STRIDE of them, in turn. */
static void outer_some_body(const qn__cpu_kernels *k) {
    const char *text = getenv("QN_TEST_STRIDE");
    const uint32_t stride = text ? (uint32_t)strtoul(text, NULL, 10) : 1;
    static const uint32_t densities[] = {0, 10, 50, 100}, many[] = {255, 256, 257, 300};
    for (uint32_t n = 1; n <= 74; ++n)
        for (int kind = QN__PARTIAL_RAW; kind <= QN__PARTIAL_ADD; ++kind)
            for (uint32_t density = (n + (uint32_t)kind) % stride; density < 4; density += stride)
                check_outer(k, n <= 70 ? n : many[n - 71], 1 + (n + (uint32_t)kind + density) % 5,
                            (qn__partial)kind, 1, densities[density]);
}

/* Grains of all sizes up to 35 items, and up to ten of them. */
static void check_bias(const qn__cpu_kernels *k, uint32_t items, uint32_t grain) {
    const uint32_t grains = (items + grain - 1) / grain, pixels = 1 + items % 3;
    const size_t apart = items * 16 + 16 * (items % 2);
    const float *d = guarded_numbers(pixels * apart, 0);
    float *partial = guard(grains * 16 * sizeof *partial), want[160] = {0};
    for (uint32_t i = 0; i < pixels * items; ++i)
        for (uint32_t o = 0; o < 16; ++o)
            want[i % items / grain * 16 + o] += d[i / items * apart + i % items * 16 + o];
    k->bias_partials(items, grain, pixels, apart, d, partial);
    snprintf(how, sizeof how, "%u items in grains of %u", items, grain);
    same(k, "bias_partials", partial, want, (size_t)grains * 16);
    release();
}

/* Sums that go on; items, pixels and panels of all arrays are apart. */
static void check_strip(const qn__cpu_kernels *k, uint32_t items, uint32_t columns,
                        uint32_t factors, uint32_t panels) {
    const qn__cpu_strip s = {.items = items,
                             .columns = columns,
                             .factors = factors,
                             .panels = panels,
                             .a_item = factors + columns * 3u,
                             .a_column = 3,
                             .a_ahead = columns * 3u,
                             .d_column = (items + 1) * 16u,
                             .d_panel = columns * (items + 1) * 16u,
                             .d_ahead = 16,
                             .sums_panel = (factors + 2) * 16u};
    const float *a = guarded_numbers((items - 1) * s.a_item + (columns - 1) * 3 + factors, 0);
    const float *d = guarded_numbers(panels * s.d_panel, 0);
    const size_t count = panels * s.sums_panel;
    float *got = guarded_numbers(count, 0), *want = copy_of(got, count);
    for (uint32_t p = 0; p < panels; ++p)
        for (uint32_t f = 0; f < factors * 16; ++f) {
            float *sum = want + p * s.sums_panel + f;
            for (uint32_t x = 0; x < columns; ++x)
                for (uint32_t i = 0; i < items; ++i)
                    *sum = fmaf(a[x * s.a_column + i * s.a_item + f / 16],
                                d[p * s.d_panel + x * s.d_column + i * 16 + f % 16], *sum);
        }
    snprintf(how, sizeof how, "%u items, %u pixels, %u factors, %u panels", items, columns, factors,
             panels);
    k->strip(&s, a, d, got);
    same(k, "strip", got, want, count);
    release();
}

/* Windows of any number of strips; rows of pictures are apart. */
static void check_windows_of(const qn__cpu_kernels *k, qn__cpu_windows s) {
    const size_t in_window = (s.height - 1) * s.a_row + (s.width - 1) * s.a_tap + s.factors;
    const uint32_t all = s.height * s.width * s.factors;
    const size_t count = s.panels * s.c_panel;
    const float *a =
        guarded_numbers((s.items - 1) * s.a_item + (s.columns - 1) * s.a_column + in_window, 0);
    const float *b = guarded_numbers((s.panels - 1) * s.b_panel + all * 16, 0);
    const float *start = guarded_numbers(s.panels * 16, 0);
    float *got = guarded_numbers(count, 0), *want = copy_of(got, count);
    for (size_t n = 0; n < s.panels * s.columns * s.items * 16; ++n) {
        const size_t o = n % 16, i = n / 16 % s.items, x = n / 16 / s.items % s.columns;
        const size_t p = n / 16 / s.items / s.columns;
        float sum = start[p * 16 + o];
        for (size_t t = 0; t < all; ++t) {
            const size_t strip = t / s.factors;
            sum = fmaf(a[i * s.a_item + x * s.a_column + strip / s.width * s.a_row +
                         strip % s.width * s.a_tap + t % s.factors],
                       b[p * s.b_panel + t * 16 + o], sum);
        }
        want[p * s.c_panel + x * s.c_column + i * 16 + o] = sum + 0.0f;
    }
    snprintf(how, sizeof how, "%u items, %u pixels, %u x %u strips of %u, %u panels", s.items,
             s.columns, s.height, s.width, s.factors, s.panels);
    k->windows(&s, a, b, got, start);
    same(k, "windows", got, want, count);
    release();
}

static void windows_of_body(const qn__cpu_kernels *k) {
    for (uint32_t columns = 1; columns < 30; ++columns) {
        const uint32_t items = 1 + columns % 3, factors = 1 + columns % 7;
        const uint32_t height = 1 + columns % 4, width = 1 + columns % 2;
        check_windows_of(k, (qn__cpu_windows){.items = items,
                                              .columns = columns,
                                              .height = height,
                                              .width = width,
                                              .factors = factors,
                                              .panels = 1 + columns % 5,
                                              .a_item = 200,
                                              .a_column = 1 + columns % 6,
                                              .a_row = 40,
                                              .a_tap = factors + 2,
                                              .b_panel = height * width * factors * 16u + 32,
                                              .c_column = (items + 1) * 16u,
                                              .c_panel = columns * (items + 1) * 16u});
    }
}

static void test_windows(void **state) {
    (void)state;
    every_isa(windows_of_body);
}

static void strip_body(const qn__cpu_kernels *k) {
    for (uint32_t factors = 1; factors < 30; ++factors)
        check_strip(k, 1 + factors % 5, 1 + factors % 4, factors, 1 + factors % 3);
}

static void test_strip(void **state) {
    (void)state;
    every_isa(strip_body);
}

static void bias_body(const qn__cpu_kernels *k) {
    for (uint32_t items = 1; items <= 35; ++items) {
        check_bias(k, items, 35);
        check_bias(k, items, (items + 9) / 10);
        check_bias(k, items, (items + 3) / 4);
    }
}

/* Sums and products of pools and gates. */
static void pool_body(const qn__cpu_kernels *k) {
    enum { COUNT = 64 };
    const float *x = guarded_numbers(COUNT, 0), *d = guarded_numbers(COUNT, 0);
    float *got = guarded_numbers(COUNT, 0), want[COUNT];
    for (uint32_t i = 0; i < COUNT; ++i) {
        volatile float product = d[i] * 0.3f, sum = (got[i] + x[i]) * 0.7f, gated;
        gated = (sum + product + 0.0f + x[i]) * d[i];
        want[i] = fmaf(x[i], d[i], gated + 0.0f);
    }
    k->add(COUNT, x, got);
    k->scale(COUNT, 0.7f, got);
    k->add_scaled(COUNT, 0.3f, d, got);
    k->sum(COUNT, got, x, got);
    k->multiply(COUNT, got, d, got);
    k->multiply_add(COUNT, x, d, got);
    same(k, "add, scale, add_scaled, sum, multiply and multiply_add", got, want, COUNT);
    release();
}

/* The first tap that is not below y gets d, if it is one of `from` .. end - 1. Windows overlap, so
 * the order in which they add counts. Some y are above all taps, or NaN. */
static void check_pick(const qn__cpu_kernels *k, uint32_t pixels, size_t count, uint32_t from,
                       uint32_t end) {
    enum { TAPS = 5 };
    const size_t step = 2 * count, size = (pixels - 1) * step + TAPS * count;
    const size_t a[TAPS] = {0, count, 2 * count, 3 * count, 4 * count};
    float *x = guarded_numbers(size, 1), *y = guarded_numbers(pixels * count, 1);
    const float *d = guarded_numbers(pixels * count, 0);
    float *got = guarded_numbers(size, 0), *want = copy_of(got, size);
    for (size_t p = 0; p < pixels; ++p)
        for (size_t i = 0; i < count; ++i) {
            int first = 1;
            for (uint32_t t = 0; word() % 8 > 0 && t < TAPS; ++t)
                if (t == 0 || x[p * step + a[t] + i] > y[p * count + i])
                    y[p * count + i] = x[p * step + a[t] + i];
            for (uint32_t t = 0; t < TAPS; ++t) {
                const int gets = first && !(x[p * step + a[t] + i] < y[p * count + i]);
                first = first && !gets;
                if (t >= from && t < end)
                    want[p * step + a[t] + i] += gets ? d[p * count + i] : 0.0f;
            }
        }
    snprintf(how, sizeof how, "%u pixels of %zu, taps %u to %u", pixels, count, from, end);
    k->pick(pixels, count, from, end, a, step, x, y, d, got);
    same(k, "pick", got, want, size);
    release();
}

static void pick_body(const qn__cpu_kernels *k) {
    for (uint32_t i = 0; i < 20; ++i)
        check_pick(k, 1 + i % 4, 16 * (1 + i % 3), i % 5, i % 5 + 1 + i % (5 - i % 5));
}

/* Windows of three taps, two pixels apart; `c` 0: the greatest. */
static void check_windows(const qn__cpu_kernels *k, uint32_t pixels, size_t count, float c) {
    enum { TAPS = 3 };
    const size_t step = 2 * count, a[TAPS] = {0, 3 * count, count};
    const float *x = guarded_numbers((pixels - 1) * step + 4 * count, 1);
    float *got = guarded_numbers(pixels * count, 0), *want = copy_of(got, pixels * count);
    for (size_t p = 0; p < pixels; ++p)
        for (size_t i = 0; i < count; ++i) {
            volatile float z = 0.0f + x[p * step + i];
            for (int t = 1; t < TAPS; ++t) {
                const float own = x[p * step + a[t] + i];
                z = c != 0.0f ? z + own : own > z ? own : z;
            }
            if (c != 0.0f)
                z = z * c;
            want[p * count + i] = c != 0.0f ? z + 0.0f : z;
        }
    snprintf(how, sizeof how, "%u pixels of %zu, times %g", pixels, count, (double)c);
    k->pool(pixels, count, TAPS, a, step, x, c, got);
    same(k, "pool", got, want, pixels * count);
    release();
}

static void windows_body(const qn__cpu_kernels *k) {
    for (uint32_t pixels = 1; pixels < 5; ++pixels)
        for (size_t count = 16; count < 64; count += 16) {
            check_windows(k, pixels, count, 0.0f);
            check_windows(k, pixels, count, 0.3f);
        }
}

static void test_pool(void **state) {
    (void)state;
    every_isa(windows_body);
    every_isa(pick_body);
    every_isa(pool_body);
}

static void flush_body(const qn__cpu_kernels *k) {
    static const double edges[] = {0.0,        -0.0,          1.0,    -1.0,
                                   0x1p51 - 1, -(0x1p51 - 1), 0x1p50, -0x1p32};
    for (size_t count = 16; count <= 256; count += 16) {
        double *narrow = guard(count * sizeof *narrow);
        int64_t *wide = guard(count * sizeof *wide), want[256];
        for (size_t i = 0; i < count; ++i) {
            narrow[i] = i < 8 ? edges[i] : (double)((int64_t)word() * (int32_t)word() >> 13);
            wide[i] = (int64_t)word() << 20;
            want[i] = wide[i] + (int64_t)narrow[i];
        }
        k->flush(count, narrow, wide);
        assert_memory_equal(wide, want, count * sizeof *wide);
        float *partial = guarded_numbers(count, 0);
        for (size_t i = 0; i < count; ++i) {
            partial[i] = i < 8 ? (float)edges[i] : partial[i] * 10.0f;
            partial[i] = i == 8 ? 0.5f : i == 9 ? -1.5f : partial[i];
            want[i] += (int64_t)rintf(partial[i]);
        }
        k->add_rounded(count, partial, wide);
        assert_memory_equal(wide, want, count * sizeof *wide);
        for (size_t i = 0; i < count; ++i)
            assert_true(narrow[i] == 0.0);
        release();
    }
}

static void test_outer(void **state) {
    (void)state;
    every_isa(outer_body);
}

static void test_outer_some(void **state) {
    (void)state;
    every_isa(outer_some_body);
}

static void test_bias_partials(void **state) {
    (void)state;
    every_isa(bias_body);
}

static void test_flush(void **state) {
    (void)state;
    every_isa(flush_body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outer),      cmocka_unit_test(test_outer_some),
        cmocka_unit_test(test_outer_span), cmocka_unit_test(test_bias_partials),
        cmocka_unit_test(test_flush),      cmocka_unit_test(test_pool),
        cmocka_unit_test(test_strip),      cmocka_unit_test(test_taps),
        cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
