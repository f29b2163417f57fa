/* batchnorm's reference by hand, and against the same formulas and numerical derivatives in
 * doubles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer/layer.h"
#include "layer/slopes_test.h"
#include "num/norm.h"
#include "num/optimise.h"
#include <string.h>

enum { CHANNELS = 3, PIXELS = 4, ITEMS = 5, OUT = CHANNELS * PIXELS, MANY = OUT * ITEMS };

static qn__layer layer_of(qn__shape shape) {
    const qn__layer_text text = {.kind = QN__LAYER_BATCHNORM, .activation = QN__ACT_RELU};
    qn__layer l;
    assert_int_equal(qn__batchnorm.make(&text, shape, 0, &l, NULL), QN_OK);
    return l;
}

static void test_parameters(void **state) {
    (void)state;
    const qn__layer l = layer_of((qn__shape){2, 3, 3, QN__PICTURE});
    float p[8];
    assert_int_equal(qn__layer_end(&l), 8);
    assert_int_equal(qn__layer_running(&l), 4);
    qn__batchnorm.begin(&l, p);
    assert_memory_equal(p, ((const float[]){1, 1, 0, 0, 0, 0, 1, 1}), sizeof p);
}

/* Mean and variance of a channel, in doubles. */
static void moments(const double *a, uint32_t c, double *mean, double *variance) {
    *mean = *variance = 0;
    for (uint32_t i = c; i < MANY; i += CHANNELS)
        *mean += a[i] * CHANNELS / MANY;
    for (uint32_t i = c; i < MANY; i += CHANNELS)
        *variance += (a[i] - *mean) * (a[i] - *mean) * CHANNELS / MANY;
}

/* The sum of g times the outputs. */
static double loss_of(const double *p, const double *a, const float *g) {
    double loss = 0, mean, variance;
    for (uint32_t i = 0; i < MANY; ++i) {
        const uint32_t c = i % CHANNELS;
        moments(a, c, &mean, &variance);
        loss += (double)g[i] * ((a[i] - mean) / sqrt(variance + 1e-5) * p[c] + p[CHANNELS + c]);
    }
    return loss;
}

static void test_a_grain(void **state) {
    (void)state;
    const qn__layer l = layer_of((qn__shape){CHANNELS, 2, 2, QN__PICTURE});
    float a[MANY], delta[MANY], z[MANY], e[MANY], p[4 * CHANNELS], partial[4 * CHANNELS];
    double wide[MANY], parameters[4 * CHANNELS], loss = 0;
    for (uint32_t i = 0; i < MANY; ++i) {
        wide[i] = (double)(a[i] = 3 + drawn(1, i) * (float)(1 + i % CHANNELS));
        delta[i] = drawn(2, i);
    }
    for (uint32_t i = 0; i < 4 * CHANNELS; ++i)
        parameters[i] = (double)(p[i] = 0.5f + drawn(3, i));
    qn__batchnorm.forward_grain(&l, p, ITEMS, a, z);
    qn__batchnorm.backward_grain(&l, p, ITEMS, a, delta, e);
    qn__batchnorm.gradient(&l, ITEMS, a, delta, partial);
    for (uint32_t i = 0; i < MANY; ++i)
        loss += (double)(delta[i] * z[i]);
    expect_near("the loss", 0, loss, loss_of(parameters, wide, delta));
    for (uint32_t i = 0; i < MANY; ++i)
        expect_near("the error", i, (double)e[i],
                    slope(loss_of, parameters, wide, delta, &wide[i]));
    for (uint32_t i = 0; i < 2 * CHANNELS; ++i)
        expect_near("the gradient", i, (double)partial[i],
                    slope(loss_of, parameters, wide, delta, &parameters[i]));
    for (uint32_t c = 0; c < CHANNELS; ++c) {
        double mean, variance;
        moments(wide, c, &mean, &variance);
        const double n = ITEMS * PIXELS, unit = 0x1p32 * ITEMS;
        expect_near("the mean", c, (double)partial[2 * CHANNELS + c] / unit, mean);
        expect_near("the variance", c, (double)partial[3 * CHANNELS + c] / unit,
                    variance * n / (n - 1));
    }
}

/* One item and one pixel: the mean is the value, and no deviation is left. */
static void test_a_single_value(void **state) {
    (void)state;
    const qn__layer l = layer_of((qn__shape){1, 1, 1, QN__PICTURE});
    const float p[] = {2, -0.5f, 0, 1}, a[] = {7}, delta[] = {3};
    float z[1], e[1], partial[4];
    qn__batchnorm.forward_grain(&l, p, 1, a, z);
    assert_true(z[0] == -0.5f);
    qn__batchnorm.backward_grain(&l, p, 1, a, delta, e);
    assert_true(e[0] == 0 && !signbit(e[0]));
    qn__batchnorm.gradient(&l, 1, a, delta, partial);
    assert_memory_equal(partial, ((const float[]){0, 3, 7 * 0x1p32f, 0}), sizeof partial);
}

/* A prediction: weight 2, mean 3, variance such that the root is 2. */
static void test_running_averages_predict(void **state) {
    (void)state;
    const qn__layer l = layer_of((qn__shape){1, 1, 2, QN__PICTURE});
    const float p[] = {2, 1, 3, 4.0f - QN__NORM_EPSILON}, a[] = {5, 2};
    float z[2];
    qn__batchnorm.forward(&l, 0, p, a, z);
    assert_memory_equal(z, ((const float[]){3, 0}), sizeof z);
    assert_true(!signbit(z[1]));
}

static void test_an_average_moves_a_tenth(void **state) {
    (void)state;
    const qn__program program = {.gradient_scale = 50};
    qn__adam_powers powers = {1, 1};
    qn__update update;
    float average = 1;
    qn__update_begin(&program, 0.5f, 4, &powers, &update);
    qn__update_running(&update, 0.1f, 4 * 6 * (INT64_C(1) << 32), &average);
    assert_true(average == fmaf(0.1f, 5, 1));
    qn__update_running(&update, 0.1f, 0, &average);
    assert_true(average == fmaf(0.1f, -fmaf(0.1f, 5, 1), fmaf(0.1f, 5, 1)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_a_grain),
        cmocka_unit_test(test_a_single_value),
        cmocka_unit_test(test_running_averages_predict),
        cmocka_unit_test(test_an_average_moves_a_tenth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
