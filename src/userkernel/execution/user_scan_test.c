/* Prefix sums against the long integers of num/exact_sum.h, element by element, with one thread and
 * with several. tests/test_kernel.py compares them with Python's integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "num/philox.h"
#include "userkernel/execution/user_scan.h"

enum { COUNT = 40000, SEGMENT = 1 << 14 }; /* three segments */

static qn__pool *pools[2];

static int set_up(void **state) {
    (void)state;
    return qn__pool_create(1, 0, &pools[0], NULL) != QN_OK ||
           qn__pool_create(3, 0, &pools[1], NULL) != QN_OK;
}

static int tear_down(void **state) {
    (void)state;
    qn__pool_destroy(pools[0]);
    qn__pool_destroy(pools[1]);
    return 0;
}

static double real_of(const uint32_t word[4], int low, int high) {
    const uint64_t exponent = (uint64_t)(low + (int)(word[0] % (uint32_t)(high - low + 1)));
    const uint64_t bits = exponent << 52 | (uint64_t)(word[1] & 0xFFFFF) << 32 | word[2] |
                          (uint64_t)(word[3] & 1) << 63;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Numbers with exponent fields of a range. Every 7th takes back the one before. */
static void check_reals(int low, int high, int narrow) {
    static double x[COUNT], got[COUNT];
    static float y[COUNT], gotf[COUNT];
    static uint64_t wanted[COUNT];
    static char before[sizeof x];
    const size_t size = narrow ? sizeof *y : sizeof *x;
    const qn__user_part part = {.use = QN__USER_SUM, .type = narrow ? QN__USER_F32 : QN__USER_F64};
    qn__user_total total = {.count = 0};
    for (int i = 0; i < COUNT; i++) {
        uint32_t word[4];
        qn__words(3, 0, 0, (uint32_t)low, (uint64_t)i, 0, word);
        x[i] = i % 7 == 6 ? -x[i - 1] : real_of(word, low, high);
        y[i] = (float)x[i];
        qn__exact_add(&total.sum, narrow ? (double)y[i] : x[i]);
        assert_true(qn__user_total_value(&total, &part, &wanted[i]));
    }
    for (int k = 0; k < 2; k++) {
        int64_t faulty = 0;
        memcpy(got, x, sizeof x);
        memcpy(gotf, y, sizeof y);
        assert_int_equal(qn__user_scan(part.type, 0, narrow ? (void *)gotf : (void *)got, COUNT,
                                       pools[k], &faulty, NULL),
                         QN_OK);
        assert_int_equal(faulty, -1);
        memcpy(before, narrow ? (void *)y : (void *)x, narrow ? sizeof y : sizeof x);
        assert_int_equal(qn__user_scan(part.type, 1, before, COUNT, pools[k], &faulty, NULL),
                         QN_OK);
        assert_memory_equal(before + size, narrow ? (void *)gotf : (void *)got, (COUNT - 1) * size);
        for (int i = 0; i < COUNT; i++)
            if (narrow ? memcmp(&gotf[i], &wanted[i], 4) != 0 : memcmp(&got[i], &wanted[i], 8) != 0)
                fail_msg("fields from %d to %d, threads %d, element %d", low, high, 1 + 2 * k, i);
    }
}

static void test_reals(void **state) {
    (void)state;
    check_reals(1000, 1040, 0);
    check_reals(0, 2, 0); /* subnormal sums */
    check_reals(0, 2020, 0);
    check_reals(1960, 2026, 0);
    check_reals(1020, 1030, 1);
    check_reals(0, 1130, 1);
    check_reals(873, 900, 1); /* subnormal floats */
}

/* Sums halfway between two numbers, and close to it: by hand. */
static void test_ties(void **state) {
    (void)state;
    for (int sign = -1; sign < 2; sign += 2) {
        double x[4] = {sign * 0x1p53, sign, sign * 0x1p-60, -sign * 0x1p-59};
        float y[4] = {(float)sign * 0x1p24f, (float)sign, (float)sign * 0x1p-60f,
                      -(float)sign * 0x1p-59f};
        int64_t faulty;
        assert_int_equal(qn__user_scan(QN__USER_F64, 0, x, 4, pools[0], &faulty, NULL), QN_OK);
        assert_int_equal(qn__user_scan(QN__USER_F32, 0, y, 4, pools[0], &faulty, NULL), QN_OK);
        for (int i = 0; i < 4; i++) {
            assert_true(x[i] == sign * (i == 2 ? 0x1p53 + 2 : 0x1p53));
            assert_true(y[i] == (float)sign * (i == 2 ? 0x1p24f + 2 : 0x1p24f));
        }
    }
}

/* The first faulty item; that of an exclusive sum is the next one, unless a number is infinite. */
static int64_t fault_of(qn__user_type type, void *numbers, int64_t count, int later) {
    static char copy[COUNT * sizeof(double)];
    int64_t faulty = 0, next = 0;
    memcpy(copy, numbers, (size_t)count * qn__user_type_size(type));
    assert_int_equal(qn__user_scan(type, 1, copy, count, pools[1], &next, NULL), QN_OK);
    assert_int_equal(qn__user_scan(type, 0, numbers, count, pools[1], &faulty, NULL), QN_OK);
    assert_int_equal(next, faulty + later);
    return faulty;
}

static void test_faults(void **state) {
    static double x[COUNT];
    static int64_t n[COUNT];
    static uint64_t u[COUNT];
    static float f[COUNT];
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        x[i] = 1;
        f[i] = 1;
        n[i] = 1;
        u[i] = 1;
    }
    x[39000] = -__builtin_inf();
    assert_int_equal(fault_of(QN__USER_F64, x, COUNT, 0), 39000);
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    x[20000] = x[20001] = x[20002] = 0x1.fffffffffffffp1023;
    x[20003] = -x[20000]; /* back in the range */
    assert_int_equal(fault_of(QN__USER_F64, x, COUNT, 1), 20001);
    f[30000] = f[30001] = 0x1.fffffep127f;
    assert_int_equal(fault_of(QN__USER_F32, f, COUNT, 1), 30001);
    n[25000] = INT64_MAX;
    assert_int_equal(fault_of(QN__USER_I64, n, COUNT, 1), 25000);
    u[16384] = UINT64_MAX - 16384; /* the first of a segment: the sum is the greatest number */
    assert_int_equal(fault_of(QN__USER_U64, u, COUNT, 1), 16385);
    for (int i = 0; i < COUNT; i++)
        n[i] = i == SEGMENT - 1 ? INT64_MAX : 1; /* the next item begins a segment */
    assert_int_equal(fault_of(QN__USER_I64, n, COUNT, 1), SEGMENT - 1);
    int64_t last[2] = {1, INT64_MAX}, faulty; /* of which no item comes after */
    assert_int_equal(qn__user_scan(QN__USER_I64, 1, last, 2, pools[0], &faulty, NULL), QN_OK);
    assert_true(faulty == -1 && last[0] == 0 && last[1] == 1);
}

static void test_integers(void **state) {
    static int64_t n[COUNT], before[COUNT], later[COUNT];
    int64_t sum = 0;
    (void)state;
    for (int i = 0; i < COUNT; i++) {
        uint32_t word[4];
        qn__words(5, 0, 0, 0, (uint64_t)i, 0, word);
        before[i] = (int64_t)((uint64_t)word[0] << 29) - (sum > 0 ? INT64_MAX / 2 : 0);
        n[i] = before[i];
        sum += before[i];
    }
    for (int k = 0; k < 2; k++) {
        int64_t faulty = 0;
        memcpy(n, before, sizeof n);
        memcpy(later, before, sizeof n);
        assert_int_equal(qn__user_scan(QN__USER_I64, 0, n, COUNT, pools[k], &faulty, NULL), QN_OK);
        assert_int_equal(qn__user_scan(QN__USER_I64, 1, later, COUNT, pools[k], &faulty, NULL),
                         QN_OK);
        sum = 0;
        for (int i = 0; i < COUNT; i++) {
            assert_true(later[i] == sum);
            sum += before[i];
            assert_true(n[i] == sum);
        }
        assert_int_equal(faulty, -1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_integers),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
