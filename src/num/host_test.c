/* The self-test of the host's arithmetic: it passes on this machine, and detects an error in every
 * operation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/clock.h"
#include "num/host.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void test_this_processor(void **state) {
    (void)state;
    qn_error err = {0};
    const double begun = qn__now();
    const qn_status first = qn__host_compare(qn__host_compute, &err);
    print_message("    %.1f microseconds\n", 1e6 * (qn__now() - begun));
    if (first != QN_OK)
        fail_msg("%s: %s", err.what, err.where);
    assert_int_equal(qn__host_check(&err), QN_OK);
    assert_int_equal(qn__host_check(NULL), QN_OK);
}

static float float_of(uint64_t bits) {
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return x;
}

static uint64_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Every result of one operation is off by one. */
static qn__host_operation wrong;

static uint64_t last_bit_wrong(qn__host_operation operation, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t right = qn__host_compute(operation, a, b, c);
    return operation == wrong ? right ^ 1 : right;
}

/* As an emulator did: the product is rounded before the addition. */
static uint64_t fma_in_two(qn__host_operation operation, uint64_t a, uint64_t b, uint64_t c) {
    volatile float product = float_of(a) * float_of(b);
    return operation == QN__HOST_FMA ? bits_of(product + float_of(c))
                                     : qn__host_compute(operation, a, b, c);
}

/* In double: correct except for double rounding near ties. */
static uint64_t fma_in_double(qn__host_operation operation, uint64_t a, uint64_t b, uint64_t c) {
    volatile double sum = (double)float_of(a) * (double)float_of(b) + (double)float_of(c);
    return operation == QN__HOST_FMA ? bits_of((float)sum) : qn__host_compute(operation, a, b, c);
}

static uint64_t flushed(uint64_t bits) {
    return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits;
}

static uint64_t flushes_products(qn__host_operation operation, uint64_t a, uint64_t b, uint64_t c) {
    const uint64_t right = qn__host_compute(operation, a, b, c);
    return operation == QN__HOST_MULTIPLY ? flushed(right) : right;
}

/* Multiplies by the reciprocal. */
static uint64_t divides_in_two(qn__host_operation operation, uint64_t a, uint64_t b, uint64_t c) {
    volatile float reciprocal = 1 / float_of(b);
    return operation == QN__HOST_DIVIDE ? bits_of(float_of(a) * reciprocal)
                                        : qn__host_compute(operation, a, b, c);
}

/* Rounds ties up. */
static uint64_t rounds_up(qn__host_operation operation, uint64_t a, uint64_t b, uint64_t c) {
    return operation == QN__HOST_TO_INTEGER ? (uint64_t)(int64_t)floorf(float_of(a) + 0.5f)
                                            : qn__host_compute(operation, a, b, c);
}

static void finds(qn__host_function *function, const char *what) {
    qn_error err = {0};
    assert_int_equal(qn__host_compare(function, &err), QN_UNSUPPORTED);
    if (!strstr(err.what, what) || !strstr(err.where, "is right") || !strstr(err.remedy, "machine"))
        fail_msg("\"%s\" does not name %s (%s; %s)", err.what, what, err.where, err.remedy);
}

static void test_faults_are_named(void **state) {
    (void)state;
    finds(fma_in_two, "computes fmaf(a, b, c) wrongly");
    finds(fma_in_double, "computes fmaf(a, b, c) wrongly");
    finds(flushes_products, "computes a * b wrongly");
    finds(divides_in_two, "computes a / b wrongly");
    finds(rounds_up, "the 64-bit integer nearest to the float a wrongly");
    for (int i = 0; i < QN__HOST_OPERATIONS; ++i) {
        wrong = (qn__host_operation)i;
        finds(last_bit_wrong, "wrongly");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_processor),
        cmocka_unit_test(test_faults_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
