/* Conversions between floats and units, at every kind of tie, and the limit of a partial. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/sums.h"
#include <math.h>

static void test_to_units_rounds_ties_to_even(void **state) {
    (void)state;
    static const struct {
        float x;
        int64_t units;
    } known[] = {
        {0.0f, 0},
        {-0.0f, 0},
        {0.5f, 0},
        {-0.5f, 0},
        {0x1.000002p-1f, 1},
        {-0x1.000002p-1f, -1},
        {1.5f, 2},
        {-1.5f, -2},
        {2.5f, 2},
        {-2.5f, -2},
        {0x1.4p1f, 2},
        {3.5f, 4},
        {4194303.5f, 4194304},
        {-4194304.5f, -4194304},
        {8388607.5f, 8388608},
        {16777216.0f, 16777216},
        {0x1p-149f, 0},
        {0x1.fffffep61f, 0x3fffffc000000000},
        {-0x1.fffffep61f, -0x3fffffc000000000},
        {0x1p61f, 0x2000000000000000},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        assert_true(qn__to_units(known[i].x) == known[i].units);
}

static void test_from_units_rounds_once(void **state) {
    (void)state;
    static const struct {
        int64_t sum;
        float x;
    } known[] = {
        {0, 0.0f},
        {1, 1.0f},
        {-16777215, -16777215.0f},
        {16777217, 16777216.0f}, /* tie, down to even */
        {16777219, 16777220.0f}, /* tie, up to even */
        {-16777217, -16777216.0f},
        {(1ll << 54) + (1ll << 30), 0x1p54f}, /* tie */
        {(1ll << 54) + (1ll << 30) + 1,
         0x1.000002p54f}, /* no tie, but a tie when rounded to double */
        {(1ll << 54) + (3ll << 30) - 1, 0x1.000002p54f}, /* the same from above */
        {-((1ll << 54) + (1ll << 30) + 1), -0x1.000002p54f},
        {INT64_MAX, 0x1p63f},
        {INT64_MIN, -0x1p63f},
        {INT64_MAX - (1ll << 38), 0x1.fffffep62f},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        assert_true(qn__from_units(known[i].sum) == known[i].x);
    assert_false(signbit(qn__from_units(0)));
}

/* docs/exactness.md 8.7: 2^(62 - max(h, 1)), h the smallest integer with 2^h >= q. */
static void test_partial_limit(void **state) {
    (void)state;
    assert_true(qn__partial_limit(1) == 0x1p61f);
    assert_true(qn__partial_limit(2) == 0x1p61f);
    assert_true(qn__partial_limit(3) == 0x1p60f);
    assert_true(qn__partial_limit(4) == 0x1p60f);
    assert_true(qn__partial_limit(5) == 0x1p59f);
    for (int h = 2; h < 32; ++h) {
        const uint64_t q = (uint64_t)1 << h;
        assert_true(qn__partial_limit(q) == ldexpf(1.0f, 62 - h));
        assert_true(qn__partial_limit(q + 1) == ldexpf(1.0f, 62 - (h + 1)));
        assert_true(qn__partial_limit(q - 1) == ldexpf(1.0f, 62 - h) || h == 2);
    }
}

/* As many partials as a batch can have, all just below the limit, fit 64 bits. */
static void test_no_sum_can_overflow(void **state) {
    (void)state;
    for (uint64_t q = 1; q < 5000; q = q * 5 / 4 + 1) {
        const int64_t most = qn__to_units(nextafterf(qn__partial_limit(q), 0.0f));
        int64_t sum;
        assert_false(__builtin_mul_overflow(most, (int64_t)q, &sum));
        assert_true(sum < INT64_MAX / 2 + 1);
    }
}

static void test_tallies_do_not_wrap(void **state) {
    (void)state;
    qn__tally tally = {.loss = INT64_MAX - 5, .correct = 1, .items = 2};
    const qn__tally more = {.loss = 6, .correct = 3, .items = 4},
                    less = {.loss = 5, .correct = 3, .items = 4};
    assert_int_equal(qn__tally_add(&tally, &more), -1);
    assert_true(tally.loss == INT64_MAX - 5 && tally.correct == 1 && tally.items == 2);
    assert_int_equal(qn__tally_add(&tally, &less), 0);
    assert_true(tally.loss == INT64_MAX && tally.correct == 4 && tally.items == 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_units_rounds_ties_to_even),
        cmocka_unit_test(test_from_units_rounds_once),
        cmocka_unit_test(test_partial_limit),
        cmocka_unit_test(test_no_sum_can_overflow),
        cmocka_unit_test(test_tallies_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
