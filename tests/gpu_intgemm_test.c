/* What no case of the conformance suite reaches in the kernels for integers: the longest sums,
 * since those of 32 bits have to be gathered on the way; and blocks that are not finite, with which
 * other kernels of a step fail as well. Kernels are run by hand, with words of the greatest digits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emulated_gpu/emulated_gpu.h"
#include "kernels/kernels.h"
#include "kernels/step.h"
#include "num/intgemm_reference.h"

#include <stdlib.h>
#include <string.h>

/* With three digits of 63, sums of three products leave 32 bits behind 180,400 numbers. */
enum { LENGTH = 200032, WORDS = LENGTH / 4, DIGITS = 3, VALUE = 63 * (1 + 128 + 128 * 128) };

static _Alignas(16) uint32_t left[DIGITS * WORDS], right[DIGITS * WORDS];
static qn_step step;

/* One row of each operand, all numbers VALUE, of the right one with `sign`. */
static void fill(int sign) {
    memset(left, 63, sizeof left);
    memset(right, sign < 0 ? 256 - 63 : 63, sizeof right);
}

static void run(const char *name, uint32_t lanes, void *const *arguments) {
    const uint32_t groups[3] = {1, 1, 1};
    const qn_emulated_kernel *kernel = qn_emulated_find(name);
    assert_non_null(kernel);
    qn_emulated_launch(kernel, groups, lanes, arguments);
}

/* The bits of a greatest magnitude whose block has t = 0 with 21 bits, and so holds VALUE. */
static uint32_t absmax_of_zero(void) {
    const uint32_t bits = UINT32_C(146) << 23;
    assert_int_equal(qn__block_exponent(21, bits), 0);
    return bits;
}

static void test_long_forward(void **state) {
    (void)state;
    const uint32_t absmax = absmax_of_zero(), in = LENGTH, out = 1, zero = 0;
    const uint64_t none = 0;
    const float keep = 1.0f;
    static float parameters[16] = {0.5f}, y[16];
    for (int sign = -1; sign <= 1; sign += 2) {
        const void *const memory[] = {&step, left, &absmax, right, parameters, y};
        fill(sign);
        step.items = step.grain = 1;
        void *const arguments[] = {
            (void *)&memory[0], (void *)&memory[1], (void *)&memory[2], (void *)&memory[3],
            (void *)&memory[2], (void *)&memory[4], (void *)&none,      (void *)&memory[5],
            (void *)&memory[0], (void *)&memory[0], (void *)&in,        (void *)&out,
            (void *)&zero,      (void *)&zero,      (void *)&zero,      (void *)&zero,
            (void *)&zero,      (void *)&keep,      (void *)&none};
        run("qn_intgemm_forward_i21_small", 128, arguments);
        const int64_t n = sign * (int64_t)LENGTH * VALUE * VALUE;
        assert_true(y[0] == fmaf((float)n, 1.0f, 0.5f));
    }
}

/* Lanes of a group of a kernel. */
static uint32_t lanes_of(const char *name) {
    int k = 0;
    while (strcmp(qn__kernel_shape_of((qn__kernel)k)->name, name) != 0)
        ++k;
    return qn__kernel_shape_of((qn__kernel)k)->lanes[0];
}

/* The gradient of layer 6, one weight, in grains of step.grain items with these greatest magnitudes
 * of the inputs and, after them, of the errors. Returns the status; *sum is the weight's. */
static uint32_t gradient(const char *name, const uint32_t *absmax, int64_t *sum) {
    const uint32_t grains = step.items / step.grain, one = 1, zero = 0, layer = 6, stride = 16;
    const uint64_t none = 0;
    const float limit = 0x1p61f;
    qn_status_words status = {0};
    int64_t sums[16] = {0};
    const void *const memory[] = {&step, left, right, absmax, sums, &status};
    void *const arguments[] = {
        (void *)&memory[0], (void *)&memory[1], (void *)&memory[2], (void *)&memory[3],
        (void *)&memory[4], (void *)&memory[5], (void *)&none,      (void *)&one,
        (void *)&one,       (void *)&stride,    (void *)&layer,     (void *)&zero,
        (void *)&grains,    (void *)&limit,     (void *)&one,       (void *)&zero};
    run(name, lanes_of(name), arguments);
    *sum = sums[0];
    return status.bad_layer;
}

static void test_long_gradient(void **state) {
    (void)state;
    /* The inputs' block has t = -20, so that partials are rounded. */
    const uint32_t absmax[2] = {absmax_of_zero() - (UINT32_C(20) << 23), absmax_of_zero()};
    int64_t got = 0, want = 0;
    fill(-1);
    step.items = step.grain = LENGTH;
    assert_int_equal(gradient("qn_intgemm_gradient_i21_small", absmax, &got), 0);
    assert_true(qn__intgemm_units(-(int64_t)LENGTH * VALUE * VALUE, -20, 0x1p61f, &want));
    assert_true(got == want);
}

/* A block with an infinity or a NaN, of the inputs or of the errors of any grain, ends the step,
 * whatever its integers are: here they are zeros, with which no sum leaves its range. */
static void test_blocks_that_are_not_finite(void **state) {
    static const char *const kernels[] = {
        "qn_intgemm_gradient_i7_small",         "qn_intgemm_gradient_i14_small",
        "qn_intgemm_gradient_i21_small",        "qn_intgemm_gradient_i7_matrix_small",
        "qn_intgemm_gradient_i14_matrix_small", "qn_intgemm_gradient_i21_matrix_small"};
    static const uint32_t bad[] = {0x7f800000, 0x7fc00000};
    enum { GRAINS = 3 };
    int64_t sum;
    (void)state;
    memset(left, 0, sizeof left);
    memset(right, 0, sizeof right);
    step.grain = 16; /* what matrix instructions take */
    step.items = GRAINS * step.grain;
    for (int k = 0; k < 6; ++k)
        for (int at = -1; at < 2 * GRAINS; ++at)
            for (int value = 0; value < 2; ++value) {
                uint32_t absmax[2 * GRAINS];
                for (int i = 0; i < 2 * GRAINS; ++i)
                    absmax[i] = i == at ? bad[value] : absmax_of_zero();
                assert_int_equal(gradient(kernels[k], absmax, &sum), at < 0 ? 0 : 7);
            }
}

/* Two grains with the same exponents, each of which fits 32 bits, and both do not. */
static void test_long_gradient_by_matrix_instructions(void **state) {
    (void)state;
    const uint32_t t0 = absmax_of_zero(), absmax[4] = {t0, t0, t0, t0};
    int64_t got = 0;
    fill(-1);
    step.items = LENGTH;
    step.grain = LENGTH / 2;
    assert_true(step.grain % 32 == 16 && (int64_t)LENGTH * 3 * 63 * 63 > INT32_MAX);
    assert_int_equal(gradient("qn_intgemm_gradient_i21_matrix_small", absmax, &got), 0);
    assert_true(got == -(int64_t)LENGTH * VALUE * VALUE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_forward),
        cmocka_unit_test(test_long_gradient),
        cmocka_unit_test(test_blocks_that_are_not_finite),
        cmocka_unit_test(test_long_gradient_by_matrix_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
