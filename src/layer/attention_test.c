/* attention's reference against the same formulas and numerical derivatives in doubles; what its
 * words refuse; what a position cannot see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layer/layer.h"
#include "layer/slopes_test.h"
#include "layer/tokens.h"
#include <string.h>

enum { WIDTH = 3, HEADS = 4, SHARED = 2, SPAN = 4, LONG = 7, ALL = HEADS + 2 * SHARED };
enum { IN = ALL * WIDTH, OUT = HEADS * WIDTH };

static double score_of(const double *a, uint32_t t, uint32_t u, uint32_t head) {
    const double *q = a + t * IN + head * WIDTH;
    const double *k = a + u * IN + (HEADS + head / (HEADS / SHARED)) * WIDTH;
    double sum = 0;
    for (uint32_t c = 0; c < WIDTH; ++c)
        sum += q[c] * k[c];
    return sum / sqrt(WIDTH);
}

static double output_of(const double *a, uint32_t t, uint32_t head, uint32_t c) {
    double sum = 0, all = 0;
    for (uint32_t u = t >= SPAN ? t - SPAN + 1 : 0; u <= t; ++u) {
        const double p = exp(score_of(a, t, u, head));
        all += p;
        sum += p * a[u * IN + (HEADS + SHARED + head / (HEADS / SHARED)) * WIDTH + c];
    }
    return sum / all;
}

/* The sum of g times the outputs. */
static double loss_of(const double *p, const double *a, const float *g) {
    double loss = 0;
    (void)p;
    for (uint32_t t = 0; t < LONG; ++t)
        for (uint32_t i = 0; i < OUT; ++i)
            loss += (double)g[t * OUT + i] * output_of(a, t, i / WIDTH, i % WIDTH);
    return loss;
}

static qn__layer layer_of(uint32_t positions) {
    const qn__layer_text text = {
        .kind = QN__LAYER_ATTENTION, .heads = HEADS, .kv_heads = SHARED, .causal = 1, .span = SPAN};
    qn__layer l;
    assert_int_equal(
        qn__attention.make(&text, (qn__shape){IN, 1, positions, QN__SEQUENCE}, 5, &l, NULL), QN_OK);
    return l;
}

static void test_outputs_and_errors(void **state) {
    (void)state;
    const qn__layer l = layer_of(LONG);
    float a[LONG * IN], delta[LONG * OUT], z[LONG * OUT], e[LONG * IN];
    double wide[LONG * IN];
    int64_t sums[LONG * IN];
    assert_true(l.to.channels == OUT && l.to.axes == QN__SEQUENCE && qn__layer_end(&l) == 5);
    for (uint32_t i = 0; i < LONG * IN; ++i)
        wide[i] = (double)(a[i] = 2 * drawn(1, i));
    for (uint32_t i = 0; i < LONG * OUT; ++i)
        delta[i] = drawn(2, i);
    qn__attention.forward(&l, 0, NULL, a, z);
    for (uint32_t i = 0; i < LONG * OUT; ++i)
        expect_near("output", i, (double)z[i],
                    output_of(wide, i / OUT, i % OUT / WIDTH, i % WIDTH));
    qn__attention.backward(&l, 0, NULL, a, delta, sums, e);
    for (uint32_t i = 0; i < LONG * IN; ++i)
        expect_near("the error", i, (double)e[i], slope(loss_of, NULL, wide, delta, &wide[i]));
}

/* A change of one position moves the bits of those that see it, and of no other. */
static void test_who_sees_a_position(void **state) {
    (void)state;
    const qn__layer l = layer_of(LONG);
    float a[LONG * IN], z[LONG * OUT], moved[LONG * OUT];
    for (uint32_t i = 0; i < LONG * IN; ++i)
        a[i] = drawn(1, i);
    qn__attention.forward(&l, 0, NULL, a, z);
    for (uint32_t i = 0; i < IN; ++i)
        a[2 * IN + i] += 1.0f;
    qn__attention.forward(&l, 0, NULL, a, moved);
    for (uint32_t t = 0; t < LONG; ++t)
        assert_true((memcmp(z + t * OUT, moved + t * OUT, OUT * sizeof *z) != 0) ==
                    (t >= 2 && t < 2 + SPAN));
}

/* A weight below half a unit is +0: what it multiplies does not matter. */
static void test_small_weights(void **state) {
    (void)state;
    const qn__layer_text text = {.kind = QN__LAYER_ATTENTION, .heads = 1};
    const float far[] = {1, 0, 3, 1, -28.5f, 0x1p100f}, near[] = {1, 0, 3, 1, -27.5f, 0x1p39f};
    float z[2];
    qn__layer l;
    assert_int_equal(qn__attention.make(&text, (qn__shape){3, 1, 2, QN__SEQUENCE}, 0, &l, NULL),
                     QN_OK);
    qn__attention.forward(&l, 0, NULL, far, z);
    assert_true(z[0] == 3.0f && z[1] == 3.0f);
    qn__attention.forward(&l, 0, NULL, near, z);
    assert_true(z[0] > 3.5f && z[0] < 4.0f);
}

static void test_what_is_infinite(void **state) {
    (void)state;
    const qn__layer_text text = {.kind = QN__LAYER_ATTENTION, .heads = 1, .causal = 1};
    const float a[] = {0x1p100f, 1, 2, 1, 0x1p100f, 3};
    float z[2];
    qn__layer l;
    assert_int_equal(qn__attention.make(&text, (qn__shape){3, 1, 2, QN__SEQUENCE}, 0, &l, NULL),
                     QN_OK);
    qn__attention.forward(&l, 0, NULL, a, z);
    assert_true(z[0] == 2.0f && z[1] == 3.0f);
    const float b[] = {0x1p100f, 0x1p100f, 2, 1, 1, 3};
    qn__attention.forward(&l, 0, NULL, b, z);
    assert_true(isnan(z[0]) && z[1] == 2.0f);
}

static void test_channels_that_do_not_divide(void **state) {
    (void)state;
    const qn__layer_text text = {.kind = QN__LAYER_ATTENTION, .heads = 6, .kv_heads = 2};
    const qn__layer_text one = {.kind = QN__LAYER_ATTENTION, .heads = 1};
    qn_error err = {0};
    qn__layer l;
    assert_int_equal(qn__attention.make(&text, (qn__shape){384, 1, 9, QN__SEQUENCE}, 0, &l, &err),
                     QN_USAGE);
    assert_non_null(strstr(err.what, "384 channels cannot be divided into 10 equal heads"));
    assert_non_null(strstr(err.remedy, "\"conv 390 1x1\""));
    assert_int_equal(
        qn__attention.make(&one, (qn__shape){3, 1, 4194305, QN__SEQUENCE}, 0, &l, &err), QN_USAGE);
    assert_non_null(strstr(err.what, "over 4194305 positions"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs_and_errors),
        cmocka_unit_test(test_who_sees_a_position),
        cmocka_unit_test(test_small_weights),
        cmocka_unit_test(test_what_is_infinite),
        cmocka_unit_test(test_channels_that_do_not_divide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
