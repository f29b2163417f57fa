/* Counts of values that lost all bits, against counts made by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layer/lost.h"
#include "layer/reference.h"

static void expect(const qn__lost *l, uint64_t values, uint64_t lost) {
    assert_int_equal(l->values, values);
    assert_int_equal(l->lost, lost);
}

/* The largest is 1, so steps are 2^-5, 2^-12 and 2^-19; half a step is a tie and becomes 0. */
static void test_block(void **state) {
    static const float v[] = {1.0f,     0.0f,      -0.0f,     0x1p-6f,        -0x1.000002p-6f,
                              0x1p-13f, 0x1p-14f,  -0x1p-20f, 0x1.8p-13f,     0x1p-149f,
                              0.25f,    -0x1p-30f, 0x1p-20f,  0x1.000002p-20f};
    static const uint64_t lost[] = {9, 7, 4};
    (void)state;
    for (int digits = 1; digits <= 3; ++digits) {
        qn__lost l = {0};
        qn__lost_block(7 * digits, sizeof v / sizeof *v, v, &l);
        expect(&l, 12, lost[digits - 1]);
    }
}

static void test_not_finite(void **state) {
    const float v[] = {1.0f, NAN, 1e-20f};
    qn__lost l = {0};
    (void)state;
    qn__lost_block(7, 3, v, &l);
    expect(&l, 0, 0);
}

/* Two inputs, two units without activation, two outputs. With i7 a value keeps some bits from a
 * 64th of its block's largest value on, which is a power of two here. */
static const float parameters[] = {1, 0x1p-10f, 0x1p-10f, 1, 0, 0, 1, 1, 0x1p-9f, 0, 0, 0};

static void test_grain(void **state) {
    const qn__layer layers[] = {qn__layer_flat(2, 2, QN__ACT_NONE, 0),
                                qn__layer_flat(2, 2, QN__ACT_NONE, 6)};
    const qn__program p = {.layers = 2,
                           .layer = layers,
                           .parameters = 12,
                           .arith = QN__ARITH_I7,
                           .loss = QN__LOSS_MSE,
                           .scale = QN__SCALE_NONE,
                           .batch = 2,
                           .grain = 2,
                           .gradient_scale = 0,
                           .partial_limit = 0x1p61f};
    static const float x[2][2] = {{1, 0.25f}, {64, 0.5f}};
    qn__reference *r;
    qn__lost_kinds l = {0};
    (void)state;
    assert_int_equal(qn__reference_watch(&p, &r, NULL), QN_OK);
    qn__reference_grain_begin(r);
    for (uint32_t i = 0; i < 2; ++i) {
        const qn__reference_item item = {
            .type = QN__ELEMENT_F32, .values = x[i], .number = i, .label = 1};
        qn__reference_grain_item(r, parameters, &item, 0);
    }
    qn__reference_lost(r, parameters, &l);
    /* Of 64 and 0.5 the second is lost; beside 64 in one block 1 and 0.25 are lost as well: 1 is
     * half a step, a tie. */
    expect(&l.inputs, 4, 1);
    expect(&l.grain_inputs, 4, 3);
    /* 2^-10 twice, beside 1. The units' outputs are 1, 0.25 and 64, 0. */
    expect(&l.weights, 7, 2);
    expect(&l.activations, 3, 0);
    expect(&l.grain_activations, 3, 2);
    /* Outputs are 1.25, 2^-9 and 64, 2^-3, so the second layer's errors are 2.5, -2 + 2^-8 and 128,
     * -1.75. Backward they are multiplied with 2^-5 and 2^-14 first, and both of the second output
     * are lost; so they are in the grain's block, whose step is 4. The first layer's errors are 2.5
     * twice and 128 twice, and 2.5 keeps one step. */
    expect(&l.errors, 4, 2);
    expect(&l.grain_errors, 8, 2);
    qn__reference_destroy(r);
}

/* A report looks at whole grains of small networks, at one item of large ones, and at none where
 * the reference would take seconds; the memory for
 * it grows with what is kept of each: inputs and errors. */
static void test_items(void **state) {
    const qn__layer layers[] = {qn__layer_flat(3000, 3000, QN__ACT_NONE, 0)};
    const qn__layer small[] = {qn__layer_flat(30, 30, QN__ACT_NONE, 0)};
    qn__program p = {.layers = 1, .layer = layers, .grain = 32};
    (void)state;
    assert_int_equal(qn__lost_items(&p), 1);
    assert_int_equal(qn__reference_bytes(&p, 5) - qn__reference_bytes(&p, 1), 4 * 6000 * 4);
    p.layer = small;
    assert_int_equal(qn__lost_items(&p), 32);
    const qn__layer most[] = {qn__layer_flat(16384, 16384, QN__ACT_NONE, 0)};
    p.layer = most;
    assert_int_equal(qn__lost_items(&p), 0);
}

/* Both paths of a block read the network's input: its values count for each of them, and neither
 * layer has errors to pass on. */
static void test_two_readers(void **state) {
    qn__layer layers[] = {
        qn__layer_flat(2, 2, QN__ACT_NONE, 0), qn__layer_flat(2, 2, QN__ACT_NONE, 6),
        qn__layer_flat(2, 2, QN__ACT_NONE, 12), qn__layer_flat(2, 2, QN__ACT_NONE, 12)};
    const qn__program p = {.layers = 4,
                           .layer = layers,
                           .parameters = 18,
                           .arith = QN__ARITH_I7,
                           .loss = QN__LOSS_MSE,
                           .scale = QN__SCALE_NONE,
                           .batch = 1,
                           .grain = 1,
                           .gradient_scale = 0,
                           .partial_limit = 0x1p61f};
    static const float x[2] = {64, 0.5f};
    float ones[18];
    qn__reference *r;
    qn__lost_kinds l = {0};
    (void)state;
    layers[1].skip = 1;
    layers[2].kind = QN__LAYER_ADD;
    layers[2].depth = 0;
    layers[2].skip = 1;
    for (int i = 0; i < 18; ++i)
        ones[i] = 1.0f;
    assert_int_equal(qn__reference_watch(&p, &r, NULL), QN_OK);
    qn__reference_grain_begin(r);
    qn__reference_grain_item(
        r, ones, &(qn__reference_item){.type = QN__ELEMENT_F32, .values = x, .label = 1}, 0);
    qn__reference_lost(r, ones, &l);
    expect(&l.inputs, 4, 2);
    expect(&l.activations, 2, 0);
    expect(&l.errors, 2, 0);
    qn__reference_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),       cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_grain),       cmocka_unit_test(test_items),
        cmocka_unit_test(test_two_readers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
