/* The exact norm of a gradient, beside numbers whose root is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/clip.h"

#include <math.h>

static float norm(const int64_t *sums, uint64_t count) {
    qn__squares q = {{0}};
    qn__squares_add(&q, sums, count);
    return qn__squares_root(&q);
}

/* The norm of one number is its magnitude, rounded once. */
static void test_one_number(void **state) {
    (void)state;
    static const int64_t some[] = {0,
                                   1,
                                   2,
                                   3,
                                   (1 << 24) + 1, /* a tie: to even */
                                   (1 << 24) + 3,
                                   (INT64_C(1) << 40) + (1 << 16), /* a tie, and beside it */
                                   (INT64_C(1) << 40) + (1 << 16) + 1,
                                   (INT64_C(1) << 40) + (1 << 16) - 1,
                                   (INT64_C(1) << 62) - 1,
                                   INT64_MAX};
    for (size_t i = 0; i < sizeof some / sizeof *some; ++i) {
        const int64_t below = -some[i];
        assert_true(norm(&some[i], 1) == (float)some[i]);
        assert_true(norm(&below, 1) == (float)some[i]);
    }
    const int64_t least = INT64_MIN;
    assert_true(norm(&least, 1) == 0x1p63f);
    for (int64_t k = 1, n = 7; k < INT64_C(1) << 61; k += k / 3 + n++)
        assert_true(norm(&k, 1) == (float)k);
}

/* 3, 4 and 12 give 13, at every size; and one more in the last place is seen: the root of 2^2k + 1
 * lies above 2^k. */
static void test_several(void **state) {
    (void)state;
    for (int by = 0; by < 59; ++by) {
        const int64_t unit = INT64_C(1) << by, three[] = {3 * unit, -12 * unit, 4 * unit};
        assert_true(norm(three, 3) == ldexpf(13.0f, by));
    }
    const int64_t tie[] = {(INT64_C(1) << 50) + (1 << 26), 0, 0};
    const int64_t above[] = {tie[0], 0, 1};
    assert_true(norm(tie, 3) == 0x1p50f);
    assert_true(norm(above, 3) == 0x1.000002p50f);
}

/* Many of the largest carry into the third word: sqrt(n * 2^126). */
static void test_third_word(void **state) {
    (void)state;
    static int64_t many[1 << 16];
    for (size_t i = 0; i < sizeof many / sizeof *many; ++i)
        many[i] = i % 2 ? INT64_MIN : -(INT64_MAX / 2) - 1;
    /* 2^15 * 2^126 + 2^15 * 2^124 = 5 * 2^139 */
    assert_true(norm(many, 1 << 16) == ldexpf(sqrtf(10.0f), 69));
}

static void test_update(void **state) {
    (void)state;
    const qn__layer layer = qn__layer_flat(1, 1, QN__ACT_NONE, 0);
    qn__program p = {.layers = 1, .layer = &layer, .parameters = 2};
    const int64_t sums[] = {30, -40};
    qn__update u = {.gradient = 0.1f};
    qn__update_clip(&p, sums, &u); /* it does not clip */
    assert_true(u.gradient == 0.1f);
    p.clip = 5.0f; /* the norm itself */
    qn__update_clip(&p, sums, &u);
    assert_true(u.gradient == 0.1f);
    p.clip = 4.0f;
    qn__update_clip(&p, sums, &u);
    assert_true(u.gradient == 4.0f / 50.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_number),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_third_word),
        cmocka_unit_test(test_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
