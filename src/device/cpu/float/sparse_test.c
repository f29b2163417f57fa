/* The kernels for lists of errors against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/float/kernels_space_test.h"
#include <stdlib.h>

enum { MOST_ROWS = 9, WEIGHTS = 40 };

static void masks_body(const qn__cpu_kernels *k) {
    static const float odd[] = {0.0f, -0.0f, 0x1p-149f, -0x1p-149f, NAN, INFINITY, 1.0f};
    for (uint32_t rows = 0; rows < 9; ++rows) {
        float *x = guard(rows * 16 * sizeof *x);
        uint16_t *mask = guard(rows * sizeof *mask);
        for (uint32_t i = 0; i < rows * 16; ++i)
            x[i] = odd[word() % 7];
        k->masks(rows, x, mask);
        for (uint32_t i = 0; i < rows * 16; ++i)
            if ((mask[i / 16] >> i % 16 & 1) != (bits_of(x[i]) << 1 != 0))
                fail_msg("%s masks: bit %u of row %u is wrong for %a", k->name, i % 16, i / 16,
                         (double)x[i]);
        release();
    }
}

/* `count` entries, of rows of 16 among `rows` of them. */
static qn__cpu_entry *entries(uint32_t count, uint32_t rows) {
    qn__cpu_entry *list = guard(count * sizeof *list);
    for (uint32_t i = 0; i < count; ++i)
        list[i] = (qn__cpu_entry){(int32_t)(word() % rows * 16), number(0)};
    return list;
}

/* Lists of other lengths in each row, some of them empty. */
static void check_errors(const qn__cpu_kernels *k, uint32_t rows, uint32_t panels, int first) {
    const qn__cpu_entry *list[MOST_ROWS];
    uint32_t count[MOST_ROWS];
    const size_t w_stride = WEIGHTS * 16 + 16, c_stride = rows * 16 + 16;
    const float *w = guarded_numbers((panels - 1) * w_stride + WEIGHTS * 16, 0);
    const size_t size = (panels - 1) * c_stride + rows * 16;
    float *c = guarded_numbers(size, 0), *want = copy_of(c, size);
    const uint32_t all = 60;
    const qn__cpu_entry *pool = entries(all, WEIGHTS);
    for (uint32_t r = 0; r < rows; ++r) {
        count[r] = word() % 3 ? word() % 40 : word() % 3;
        list[r] = pool + all - count[r] - word() % (all - count[r] + 1); /* often at its end */
        for (uint32_t p = 0; p < panels; ++p)
            for (uint32_t o = 0; o < 16; ++o) {
                float *at = &want[p * c_stride + r * 16 + o], acc = first ? 0.0f : *at;
                for (uint32_t t = 0; t < count[r]; ++t)
                    acc = fmaf(list[r][t].value, w[p * w_stride + (size_t)list[r][t].at + o], acc);
                *at = acc + 0.0f;
            }
    }
    k->sparse_errors(rows, panels, list, count, w, w_stride, c, c_stride, first);
    snprintf(how, sizeof how, "%u rows, %u panels, first %d", rows, panels, first);
    same(k, "sparse_errors", c, want, size);
    release();
}

static void errors_body(const qn__cpu_kernels *k) {
    for (uint32_t rows = 1; rows <= MOST_ROWS; ++rows)
        for (uint32_t panels = 1; panels <= 5; ++panels)
            for (int first = 0; first < 2; ++first)
                check_errors(k, rows, panels, first);
}

static void check_sums(const qn__cpu_kernels *k, uint32_t count, uint32_t height, uint32_t width) {
    const uint32_t taps = height * width, places = 7;
    const size_t column = 16 * (1 + count % 3), row = (width + 2) * column,
                 apart = 16 + 16 * (count % 2);
    const size_t x_size = (height - 1) * row + (width - 1) * column + places * 16;
    const float *x = guarded_numbers(x_size, 0);
    const qn__cpu_entry *list = entries(count, places);
    float *sums = guarded_numbers((taps - 1) * apart + 16, 0);
    float *want = copy_of(sums, (taps - 1) * apart + 16);
    for (uint32_t t = 0; t < taps; ++t)
        for (uint32_t i = 0; i < count; ++i)
            for (uint32_t o = 0; o < 16; ++o)
                want[t * apart + o] = fmaf(
                    list[i].value, x[(size_t)list[i].at + t / width * row + t % width * column + o],
                    want[t * apart + o]);
    k->sparse_sums(count, list, height, width, x, row, column, sums, apart);
    snprintf(how, sizeof how, "%u entries, %u x %u taps", count, height, width);
    same(k, "sparse_sums", sums, want, (taps - 1) * apart + 16);
    release();
}

static void sums_body(const qn__cpu_kernels *k) {
    static const uint32_t window[][2] = {{3, 3}, {2, 3}, {1, 3}, {1, 5}};
    for (uint32_t count = 0; count < 20; ++count)
        for (int i = 0; i < 4; ++i)
            check_sums(k, count, window[i][0], window[i][1]);
}

static void test_masks(void **state) {
    (void)state;
    every_isa(masks_body);
}

static void test_sparse_errors(void **state) {
    (void)state;
    every_isa(errors_body);
}

static void test_sparse_sums(void **state) {
    (void)state;
    every_isa(sums_body);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks),
                                       cmocka_unit_test(test_sparse_errors),
                                       cmocka_unit_test(test_sparse_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
