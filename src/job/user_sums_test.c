/* Sums of user kernels against sums that are known, and extremes whatever the order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "job/user_sums.h"

static double sum_of(qn__user_type type, const void *values, int64_t count, int *fits) {
    const qn__user_part part = {.use = QN__USER_SUM, .type = type};
    qn__user_total total = {.count = 0};
    uint64_t value = 0;
    double d = 0;
    float f = 0;
    assert_int_equal(qn__user_total_add(&total, &part, values, NULL, 0, count), -1);
    *fits = qn__user_total_value(&total, &part, &value);
    memcpy(&d, &value, sizeof d);
    memcpy(&f, &value, sizeof f);
    return type == QN__USER_F32 ? (double)f : d;
}

/* The expected sums are decimal texts' values, by hand. */
static void test_reals(void **state) {
    int fits;
    (void)state;
    const double cancels[] = {1e300, 1, -1e300, 0x1p-1074};
    assert_true(sum_of(QN__USER_F64, cancels, 4, &fits) == 1 && fits);
    const double small[] = {0x1p-1074, 0x1p-1074, 0x1p-1074, -0.0};
    assert_true(sum_of(QN__USER_F64, small, 4, &fits) == 0x3p-1074 && fits);
    const double tie[] = {0x1p53, 1}, above[] = {0x1p53, 1, 0x1p-1074}, odd[] = {0x1p53 + 2, 1};
    assert_true(sum_of(QN__USER_F64, tie, 2, &fits) == 0x1p53);
    assert_true(sum_of(QN__USER_F64, above, 3, &fits) == 0x1p53 + 2);
    assert_true(sum_of(QN__USER_F64, odd, 2, &fits) == 0x1p53 + 4);
    const double huge[] = {0x1.fffffffffffffp1023, 0x1p970},
                 most[] = {0x1.fffffffffffffp1023, 0x1p969};
    sum_of(QN__USER_F64, huge, 2, &fits);
    assert_false(fits);
    assert_true(sum_of(QN__USER_F64, most, 2, &fits) == 0x1.fffffffffffffp1023 && fits);
    const float floats[] = {0x1p24f, 1, 0x1p-149f}, less[] = {-0x1p-149f, -0x1p-149f};
    assert_true(sum_of(QN__USER_F32, floats, 3, &fits) == 0x1p24 + 2 && fits);
    assert_true(sum_of(QN__USER_F32, less, 2, &fits) == -0x1p-148 && fits);
    const float many[] = {0x1.fffffep127f, 0x1.fffffep127f};
    sum_of(QN__USER_F32, many, 2, &fits);
    assert_false(fits);
    assert_true(sum_of(QN__USER_F64, many, 0, &fits) == 0 && fits);
}

static uint64_t whole(qn__user_type type, const void *values, int64_t count, int *fits) {
    const qn__user_part part = {.use = QN__USER_SUM, .type = type};
    qn__user_total total = {.count = 0};
    uint64_t value = 0;
    qn__user_total_add(&total, &part, values, NULL, 0, count);
    *fits = qn__user_total_value(&total, &part, &value);
    return value;
}

static void test_integers(void **state) {
    int fits;
    (void)state;
    const int64_t ends[] = {INT64_MAX, INT64_MAX, INT64_MIN, INT64_MIN, 7};
    assert_true((int64_t)whole(QN__USER_I64, ends, 5, &fits) == 5 && fits);
    assert_true((int64_t)whole(QN__USER_I64, ends + 3, 1, &fits) == INT64_MIN && fits);
    whole(QN__USER_I64, ends, 2, &fits);
    assert_false(fits);
    whole(QN__USER_I64, ends + 2, 2, &fits);
    assert_false(fits);
    const uint64_t plain[] = {UINT64_MAX, 1};
    assert_true(whole(QN__USER_U64, plain, 1, &fits) == UINT64_MAX && fits);
    whole(QN__USER_U64, plain, 2, &fits);
    assert_false(fits);
}

static void test_infinite(void **state) {
    (void)state;
    const qn__user_part part = {.use = QN__USER_SUM, .type = QN__USER_F32};
    const float values[] = {1, 2, -__builtin_inff(), 3};
    qn__user_total total = {.count = 0};
    assert_int_equal(qn__user_total_add(&total, &part, values, NULL, 0, 4), 2);
}

/* In two parts, in either order. */
static void check_extreme(qn__user_use use, const float *values, const uint8_t *took, int64_t count,
                          float value, int64_t item, uint64_t taken) {
    const qn__user_part part = {.use = use, .type = QN__USER_F32};
    for (int64_t cut = 0; cut <= count; cut++)
        for (int swap = 0; swap < 2; swap++) {
            qn__user_total a = {.count = 0}, b = {.count = 0};
            uint64_t bytes = 0;
            float f;
            qn__user_total_add(&a, &part, values, took, 0, cut);
            qn__user_total_add(&b, &part, values + cut, took + cut, cut, count - cut);
            qn__user_total *first = swap ? &b : &a;
            qn__user_total_merge(first, &part, swap ? &a : &b);
            assert_true(qn__user_total_value(first, &part, &bytes));
            memcpy(&f, &bytes, sizeof f);
            assert_memory_equal(&f, &value, sizeof f);
            assert_true(first->item == item && first->count == taken);
        }
}

static void test_extremes(void **state) {
    (void)state;
    const float values[] = {9, 0.0f, -0.0f, 3, 9, -5};
    const uint8_t all[] = {1, 1, 1, 1, 1, 1}, some[] = {0, 1, 1, 1, 1, 0};
    check_extreme(QN__USER_MIN, values, all, 6, -5, 5, 6);
    check_extreme(QN__USER_MAX, values, all, 6, 9, 0, 6);
    check_extreme(QN__USER_MIN, values, some, 6, 0.0f, 1, 4); /* the first of equal zeros */
    check_extreme(QN__USER_MAX, values, some, 6, 9, 4, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_infinite),
        cmocka_unit_test(test_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
