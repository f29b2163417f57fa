/* Products over the rows of a picture, in each instruction set, against plain loops: the kernel
 * that slides, and matmul over segments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/cpu/float/kernels_space_test.h"

enum { WIDE = 3, BLOCK = QN__PANEL * QN__PANEL };

/* Result o of row r and column x. */
static float chain_of(const qn__cpu_slide *s, uint32_t r, uint32_t x, size_t o, const float *a,
                      const float *b, float sum) {
    for (uint32_t j = 0; j < s->windows; ++j)
        for (uint32_t i = 0; i < WIDE; ++i)
            for (uint32_t p = 0; p < s->panels; ++p) {
                const uint32_t tap = j * WIDE + i, last = s->windows * WIDE - 1;
                const size_t block = (size_t)(s->back ? last - tap : tap) * s->panels + p;
                for (size_t t = 0; t < QN__PANEL; ++t)
                    sum = fmaf(a[r * s->a_row + (x + i) * s->a_column + p * s->a_panel +
                                 j * s->a_window + t],
                               b[block * BLOCK + t * QN__PANEL + o], sum);
            }
    return sum + 0.0f;
}

/* `apart`: of how many items one is computed. */
static void check_slide(const qn__cpu_kernels *k, uint32_t rows, uint32_t columns, uint32_t windows,
                        uint32_t panels, size_t apart) {
    const size_t pixel = apart * QN__PANEL, row = (columns + WIDE - 1) * pixel;
    const size_t panel = (rows + windows - 1) * row;
    const qn__cpu_slide s = {.rows = rows,
                             .columns = columns,
                             .windows = windows,
                             .panels = panels,
                             .a_row = row,
                             .a_column = pixel,
                             .a_panel = panel,
                             .a_window = row,
                             .c_row = columns * pixel,
                             .c_column = pixel,
                             .back = (rows + columns) % 2};
    const size_t count = rows * s.c_row;
    const float *a = guarded_numbers(panels * panel, 0);
    const float *b = guarded_numbers((size_t)windows * WIDE * panels * BLOCK, 0);
    const float *start = guarded_numbers(QN__PANEL, 0);
    float *c = guarded_numbers(count, 0), *want = copy_of(c, count);
    snprintf(how, sizeof how, "%u x %u pixels, %u rows of a window, %u panels, of %zu items", rows,
             columns, windows, panels, apart);
    for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t x = 0; x < columns; ++x)
            for (size_t o = 0; o < QN__PANEL; ++o)
                want[r * s.c_row + x * pixel + o] = chain_of(&s, r, x, o, a, b, start[o]);
    k->slide(&s, a, b, c, start);
    same(k, "slide", c, want, count);
    release();
}

/* A chain of -0 alone ends as +0. */
static void check_sign(const qn__cpu_kernels *k) {
    const uint32_t rows = k->slide_rows;
    const qn__cpu_slide s = {.rows = rows,
                             .columns = 2,
                             .windows = 1,
                             .panels = 1,
                             .a_row = 4 * QN__PANEL,
                             .a_column = QN__PANEL,
                             .c_row = 2 * QN__PANEL,
                             .c_column = QN__PANEL};
    const size_t count = rows * s.c_row;
    float *a = guarded_numbers(rows * s.a_row, 0), *b = guarded_numbers((size_t)WIDE * BLOCK, 0);
    float *start = guarded_numbers(QN__PANEL, 0), *c = guarded_numbers(count, 0);
    memset(a, 0, rows * s.a_row * sizeof *a);
    for (size_t i = 0; i < (size_t)WIDE * BLOCK; ++i)
        b[i] = -1.0f;
    for (size_t o = 0; o < QN__PANEL; ++o)
        start[o] = -0.0f;
    k->slide(&s, a, b, c, start);
    for (size_t i = 0; i < count; ++i)
        assert_int_equal(bits_of(c[i]), 0);
    release();
}

static void slide_body(const qn__cpu_kernels *k) {
    const uint32_t least = k->slide_rows;
    if (!k->slide) {
        assert_int_equal(least, 0);
        return;
    }
    for (uint32_t i = 0; i < 12; ++i)
        check_slide(k, least + i % 4 * 3, 2 + i % 5, 1 + i % 3, 1 + i / 6, 1 + i % 2);
    check_slide(k, 3 * least, 7, 3, 3, 1);
    check_sign(k);
}

static void test_slide(void **state) {
    (void)state;
    every_isa(slide_body);
}

/* Rows in segments give what they give where they follow one another. */
static void check_segments(const qn__cpu_kernels *k, uint32_t rows, uint32_t segment, size_t gap,
                           uint32_t blocks, uint32_t panels) {
    enum { MOST = 20 };
    size_t offset[2][MOST], weights[MOST];
    const size_t height = (rows - 1) / segment + 1, all = rows * QN__PANEL + height * gap;
    float *a = guarded_numbers(blocks * all, 0);
    float *dense = guarded_numbers((size_t)blocks * rows * QN__PANEL, 0);
    const float *b = guarded_numbers((size_t)panels * blocks * BLOCK, 0);
    const size_t count = (size_t)panels * rows * QN__PANEL;
    float *c = guarded_numbers(count, 0), *want = guarded_numbers(count, 0);
    qn__cpu_chain chain = {.k = blocks * QN__PANEL, .a = offset[0], .b = weights};
    for (uint32_t t = 0; t < blocks; ++t) {
        offset[0][t] = t * all;
        offset[1][t] = (size_t)t * rows * QN__PANEL;
        weights[t] = (size_t)t * BLOCK;
        for (size_t r = 0; r < rows; ++r)
            memcpy(dense + offset[1][t] + r * QN__PANEL,
                   a + offset[0][t] + r * QN__PANEL + r / segment * gap, QN__PANEL * sizeof *a);
    }
    snprintf(how, sizeof how, "%u rows, segments of %u, %zu floats between them, %u blocks", rows,
             segment, gap, blocks);
    chain.segment = segment;
    chain.gap = gap;
    k->matmul(rows, &chain, a, b, (size_t)blocks * BLOCK, c, (size_t)rows * QN__PANEL, NULL,
              panels);
    chain = (qn__cpu_chain){.k = chain.k, .a = offset[1], .b = weights};
    k->matmul(rows, &chain, dense, b, (size_t)blocks * BLOCK, want, (size_t)rows * QN__PANEL, NULL,
              panels);
    same(k, "matmul", c, want, count);
    release();
}

static void segments_body(const qn__cpu_kernels *k) {
    for (uint32_t i = 0; i < 12; ++i)
        check_segments(k, 1 + 5 * i, 1 + i * 7 % 17, i * 8, 1 + i * 18 / 11, 1 + i % 3);
}

static void test_segments(void **state) {
    (void)state;
    every_isa(segments_body);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slide),
                                       cmocka_unit_test(test_segments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
