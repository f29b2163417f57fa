/* groupnorm's reference against the same formulas and numerical derivatives in doubles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer/layer.h"
#include "layer/slopes_test.h"
#include "num/norm.h"
#include <string.h>

enum { CHANNELS = 34, GROUPS = 2, EACH = CHANNELS / GROUPS, PIXELS = 4, OUT = CHANNELS * PIXELS };

static void moments(const double *a, uint32_t group, double *mean, double *variance) {
    *mean = *variance = 0;
    for (uint32_t i = 0; i < OUT; ++i)
        if (i % CHANNELS / EACH == group)
            *mean += a[i] / (EACH * PIXELS);
    for (uint32_t i = 0; i < OUT; ++i)
        if (i % CHANNELS / EACH == group)
            *variance += (a[i] - *mean) * (a[i] - *mean) / (EACH * PIXELS);
}

/* The sum of g times the outputs of one item. */
static double loss_of(const double *p, const double *a, const float *g) {
    double loss = 0, mean[GROUPS], variance[GROUPS];
    for (uint32_t i = 0; i < GROUPS; ++i)
        moments(a, i, &mean[i], &variance[i]);
    for (uint32_t i = 0; i < OUT; ++i) {
        const uint32_t c = i % CHANNELS, group = c / EACH;
        const double x = (a[i] - mean[group]) / sqrt(variance[group] + 1e-5);
        loss += (double)g[i] * (x * p[c] + p[CHANNELS + c]);
    }
    return loss;
}

static void test_two_items(void **state) {
    (void)state;
    const qn__layer_text text = {.kind = QN__LAYER_GROUPNORM, .norm_groups = GROUPS};
    float a[2 * OUT], delta[2 * OUT], z[OUT], e[OUT], p[2 * CHANNELS], partial[2 * CHANNELS] = {0};
    double wide[2][OUT], parameters[2 * CHANNELS];
    qn__layer l;
    assert_int_equal(
        qn__groupnorm.make(&text, (qn__shape){CHANNELS, 2, PIXELS / 2, QN__PICTURE}, 0, &l, NULL),
        QN_OK);
    for (uint32_t i = 0; i < 2 * OUT; ++i) {
        wide[i / OUT][i % OUT] = (double)(a[i] = 3 + drawn(1, i) * (float)(1 + i % CHANNELS / 9));
        delta[i] = drawn(2, i);
    }
    for (uint32_t i = 0; i < 2 * CHANNELS; ++i)
        parameters[i] = (double)(p[i] = 0.5f + drawn(3, i));
    for (uint32_t item = 0; item < 2; ++item) {
        const float *own = delta + item * OUT;
        double loss = 0;
        qn__groupnorm.forward(&l, 0, p, a + item * OUT, z);
        qn__groupnorm.backward(&l, 0, p, a + item * OUT, own, NULL, e);
        for (uint32_t i = 0; i < OUT; ++i)
            loss += (double)(own[i] * z[i]);
        expect_near("the loss", item, loss, loss_of(parameters, wide[item], own));
        for (uint32_t i = 0; i < OUT; ++i)
            expect_near("the error", i, (double)e[i],
                        slope(loss_of, parameters, wide[item], own, &wide[item][i]));
    }
    qn__groupnorm.gradient(&l, 2, a, delta, partial);
    for (uint32_t i = 0; i < 2 * CHANNELS; ++i)
        expect_near("the gradient", i, (double)partial[i],
                    slope(loss_of, parameters, wide[0], delta, &parameters[i]) +
                        slope(loss_of, parameters, wide[1], delta + OUT, &parameters[i]));
}

/* Equal inputs have no deviation. */
static void test_a_constant_item(void **state) {
    (void)state;
    const qn__layer_text text = {.kind = QN__LAYER_LAYERNORM, .norm_groups = 1};
    const float p[] = {2, 3, -0.5f, 0.25f}, a[] = {0.1f, 0.1f, 0.1f, 0.1f};
    float z[4];
    qn__layer l;
    assert_int_equal(qn__layernorm.make(&text, (qn__shape){2, 1, 2, QN__PICTURE}, 0, &l, NULL),
                     QN_OK);
    qn__layernorm.forward(&l, 0, p, a, z);
    assert_memory_equal(z, ((const float[]){-0.5f, 0.25f, -0.5f, 0.25f}), sizeof z);
}

static void test_groups_divide_channels(void **state) {
    (void)state;
    const qn__layer_text text = {.kind = QN__LAYER_GROUPNORM, .norm_groups = 4};
    qn_error err = {0};
    qn__layer l;
    assert_int_equal(qn__groupnorm.make(&text, (qn__shape){18, 2, 2, QN__PICTURE}, 0, &l, &err),
                     QN_USAGE);
    assert_non_null(strstr(err.what, "18 channels cannot be divided into 4 equal groups"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_items),
        cmocka_unit_test(test_a_constant_item),
        cmocka_unit_test(test_groups_divide_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
