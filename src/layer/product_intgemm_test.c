/* Products of integers of a dense layer against exact rational arithmetic (num/intgemm_vectors.h,
 * made by tests/intgemm_vectors.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/binary/float_bits.h"
#include "layer/product.h"
#include "num/intgemm_vectors.h"
#include <math.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void take(float *to, const uint32_t *from, size_t count) {
    for (size_t i = 0; i < count; ++i)
        to[i] = qn__float_of_bits(from[i]);
}

static void same(size_t vector, const char *what, const float *got, const uint32_t *want,
                 size_t count) {
    for (size_t i = 0; i < count; ++i)
        if (qn__float_bits(got[i]) != want[i])
            fail_msg("vector %zu: %s %zu is %a, exact arithmetic gives %a", vector, what, i,
                     (double)got[i], (double)qn__float_of_bits(want[i]));
}

static void test_products_of_vectors(void **state) {
    (void)state;
    for (size_t v = 0; v < COUNT(layer_vectors); ++v) {
        const int bits = layer_vectors[v].bits;
        const uint32_t in = layer_vectors[v].in, out = layer_vectors[v].out;
        const uint32_t items = layer_vectors[v].items;
        const qn__layer l = qn__layer_flat(in, out, QN__ACT_NONE, 0);
        float parameters[(MOST_IN + 1) * MOST_OUT], a[MOST_IN * MOST_ITEMS];
        float d[MOST_OUT * MOST_ITEMS], z[MOST_OUT * MOST_ITEMS], e[MOST_IN * MOST_ITEMS];
        int64_t sums[MOST_IN], units[MOST_IN * MOST_OUT];
        take(parameters, layer_vectors[v].parameters, (size_t)(in + 1) * out);
        take(a, layer_vectors[v].a, (size_t)in * items);
        take(d, layer_vectors[v].d, (size_t)out * items);
        for (uint32_t i = 0; i < items; ++i) {
            qn__product_intgemm_forward(bits, &l, parameters, a + (size_t)i * in,
                                        z + (size_t)i * out);
            qn__product_intgemm_backward(bits, &l, parameters, d + (size_t)i * out, sums,
                                         e + (size_t)i * in);
        }
        same(v, "z", z, layer_vectors[v].z, (size_t)out * items);
        same(v, "e", e, layer_vectors[v].e, (size_t)in * items);
        assert_int_equal(qn__product_intgemm_gradient(bits, &l, items, a, d, 0x1p61f, units), 1);
        for (size_t i = 0; i < (size_t)in * out; ++i)
            if (units[i] != layer_vectors[v].units[i])
                fail_msg("vector %zu: partial %zu is %lld, exact arithmetic gives %lld", v, i,
                         (long long)units[i], (long long)layer_vectors[v].units[i]);
    }
}

/* 3 and 1/2 are 48 and 8 times 2^-4 in 7 bits, the weights 1 and -1/4 are 32 and -8 times 2^-5. */
static void test_by_hand(void **state) {
    (void)state;
    const qn__layer l = qn__layer_flat(2, 1, QN__ACT_NONE, 0);
    const float parameters[] = {1.0f, -0.25f, 0.5f}, a[] = {3.0f, 0.5f}, d[] = {2.0f};
    float z, e[2];
    int64_t sums[2], units[2];
    qn__product_intgemm_forward(7, &l, parameters, a, &z);
    assert_true(z == 3.375f);
    qn__product_intgemm_backward(7, &l, parameters, d, sums, e);
    assert_true(e[0] == 2.0f && e[1] == -0.5f);
    assert_int_equal(qn__product_intgemm_gradient(7, &l, 1, a, d, 8.0f, units), 1);
    assert_int_equal(units[0], 6);
    assert_int_equal(units[1], 1);
    assert_int_equal(qn__product_intgemm_gradient(7, &l, 1, a, d, 4.0f, units), 0);
    /* 1/2^6 beside 3 is a quarter of the step of 2^-4: it becomes 0. */
    const float small[] = {3.0f, 0x1p-6f};
    qn__product_intgemm_forward(7, &l, (float[]){0.0f, 1.0f, -0.0f}, small, &z);
    assert_int_equal(qn__float_bits(z), 0);
    qn__product_intgemm_forward(14, &l, (float[]){0.0f, 1.0f, -0.0f}, small, &z);
    assert_true(z == 0x1p-6f);
    /* The product alone would overflow, but it is not rounded alone. */
    qn__product_intgemm_forward(7, &l, (float[]){0x1p28f, 0.0f, -0x1.8p127f},
                                (float[]){0x1p100f, 0.0f}, &z);
    assert_true(z == 0x1p126f);
}

/* A block that is not finite makes exactly those results not finite that use it. */
static void test_products_that_are_not_finite(void **state) {
    (void)state;
    const qn__layer l = qn__layer_flat(2, 2, QN__ACT_NONE, 0);
    float parameters[] = {1.0f, 2.0f, 3.0f, 4.0f, 0.0f, 0.0f}, z[2], e[2];
    const float fine[] = {1.0f, 2.0f}, bad[] = {0.0f, INFINITY};
    int64_t sums[2], units[4];
    qn__product_intgemm_forward(14, &l, parameters, bad, z);
    assert_true(isnan(z[0]) && isnan(z[1]));
    qn__product_intgemm_backward(14, &l, parameters, bad, sums, e);
    assert_true(isnan(e[0]) && isnan(e[1]));
    assert_int_equal(qn__product_intgemm_gradient(14, &l, 1, bad, fine, 0x1p61f, units), 0);
    assert_int_equal(qn__product_intgemm_gradient(14, &l, 1, fine, bad, 0x1p61f, units), 0);
    assert_int_equal(qn__product_intgemm_gradient(14, &l, 1, fine, fine, 0x1p61f, units), 1);
    parameters[1] = NAN;
    qn__product_intgemm_forward(14, &l, parameters, fine, z);
    assert_true(isnan(z[0]) && z[1] == 11.0f);
    qn__product_intgemm_backward(14, &l, parameters, fine, sums, e);
    assert_true(isnan(e[0]) && isnan(e[1]));
}

/* 25.24: the first position is that of test_by_hand, whatever the others are. */
static void test_positions_are_blocks(void **state) {
    (void)state;
    const qn__shape from = {2, 1, 3, QN__SEQUENCE};
    const qn__layer_text text = {
        .kind = QN__LAYER_CONV, .out = 1, .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}}};
    const float parameters[] = {1.0f, -0.25f, 0.5f};
    const float a[] = {3.0f, 0.5f, 3000.0f, 0.0f, NAN, 0.0f}, d[] = {2.0f, 0x1p-20f, NAN};
    qn__layer l;
    float z[3], e[6];
    int64_t sums[6], units[2];
    assert_int_equal(qn__conv.make(&text, from, 0, &l, NULL), QN_OK);
    assert_true(qn__layer_has_position_blocks(&l));
    qn__product_intgemm_forward(7, &l, parameters, a, z);
    assert_true(z[0] == 3.375f && z[1] == 3008.5f && isnan(z[2])); /* 47 * 2^6 + 1/2 */
    qn__product_intgemm_backward(7, &l, parameters, d, sums, e);
    assert_true(e[0] == 2.0f && e[1] == -0.5f && e[2] == 0x1p-20f && e[3] == -0x1p-22f);
    assert_true(isnan(e[4]) && isnan(e[5]));
    /* A gradient has one block for all: 2^-20 beside 2 is 0. */
    l.from.width = l.to.width = 2;
    l.in = 4;
    l.out = 2;
    assert_int_equal(qn__product_intgemm_gradient(7, &l, 1, a, d, 0x1p61f, units), 1);
    assert_true(units[0] == 0 && units[1] == 0); /* 3 and 1/2 beside 3000: steps of 64 */
    const qn__layer_text wide = {
        .kind = QN__LAYER_CONV, .out = 1, .window = {{1, 3}, {1, 1}, {0, 1}, {1, 1}}};
    assert_int_equal(qn__conv.make(&wide, from, 0, &l, NULL), QN_OK);
    assert_false(qn__layer_has_position_blocks(&l));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products_of_vectors),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_positions_are_blocks),
        cmocka_unit_test(test_products_that_are_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
