/* Learning rates, against numbers computed in Python with exact fractions, rounded operation by
 * operation, for 10 epochs of 7 steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/recipe/schedule.h"

#include <string.h>

typedef struct point {
    uint64_t step;
    uint32_t bits;
} point;

static float rate_at(const qn__recipe *recipe, uint64_t step, uint64_t steps_per_epoch) {
    qn__stages stages;
    qn__stages_of(recipe, &stages);
    return qn__learning_rate_in(&stages, step, steps_per_epoch);
}

static void check(const qn__recipe *recipe, const point *points, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const float rate = rate_at(recipe, points[i].step, 7);
        uint32_t bits;
        memcpy(&bits, &rate, sizeof bits);
        assert_int_equal(bits, points[i].bits);
    }
}

static void test_constant(void **state) {
    (void)state;
    const qn__recipe recipe = {.learning_rate = 0.1f, .warmup = 3, .epochs = 10};
    const point points[] = {
        {0, 0x3d088889u}, {1, 0x3d888889u}, {2, 0x3dcccccdu}, {3, 0x3dcccccdu}, {69, 0x3dcccccdu}};
    check(&recipe, points, 5);
}

static void test_step(void **state) {
    (void)state;
    const qn__recipe recipe = {.learning_rate = 0.4f,
                               .schedule = QN__SCHEDULE_STEP,
                               .lr_step = 2,
                               .lr_gamma = 0.3f,
                               .epochs = 10};
    const point points[] = {{0, 0x3ecccccdu},  {13, 0x3ecccccdu}, {14, 0x3df5c290u},
                            {27, 0x3df5c290u}, {28, 0x3d1374bdu}, {42, 0x3c30f27du},
                            {69, 0x3b545630u}};
    check(&recipe, points, 7);
}

static void test_cosine(void **state) {
    (void)state;
    const qn__recipe recipe = {
        .learning_rate = 0.05f, .schedule = QN__SCHEDULE_COSINE, .warmup = 5, .epochs = 10};
    const point points[] = {{0, 0x3c23d70bu},  {4, 0x3d4ccccdu},  {5, 0x3d4ccccdu},
                            {6, 0x3d4cae30u},  {20, 0x3d330c2au}, {37, 0x3cd1bfadu},
                            {50, 0x3c30ebb0u}, {69, 0x37f4e667u}};
    check(&recipe, points, 8);
}

/* The factors of docs/exactness.md 24.34; binary powers, so that late steps cost little. */
static void test_exponential(void **state) {
    (void)state;
    qn__recipe recipe = {.learning_rate = 0x1p-20f,
                         .schedule = QN__SCHEDULE_EXPONENTIAL,
                         .lr_gamma = 1.3f,
                         .warmup = 2,
                         .epochs = 3};
    const float two = 1.3f * 1.3f, four = two * two;
    assert_true(rate_at(&recipe, 1, 7) == 0x1p-20f && rate_at(&recipe, 2, 7) == 0x1p-20f);
    assert_true(rate_at(&recipe, 3, 7) == 0x1p-20f * 1.3f);
    assert_true(rate_at(&recipe, 2 + 7, 7) == 0x1p-20f * (1.3f * two * four));
    recipe.lr_gamma = 0.999999940395355225f; /* the float below 1 */
    recipe.epochs = UINT32_MAX;
    assert_true(rate_at(&recipe, 7 * (uint64_t)UINT32_MAX - 1, 7) == 0.0f);
}

/* Very many reductions of the rate end in the fixed point of their rounding, and quickly. */
static void test_many_cuts(void **state) {
    (void)state;
    qn__recipe recipe = {.learning_rate = 1.0f,
                         .schedule = QN__SCHEDULE_STEP,
                         .lr_step = 1,
                         .lr_gamma = 0.5f,
                         .epochs = UINT32_MAX};
    const uint64_t last = 7 * (uint64_t)UINT32_MAX - 1;
    assert_true(rate_at(&recipe, 7 * 149, 7) == 0x1p-149f);
    /* Half the smallest number is a tie, which goes to 0; nine tenths of it is rounded back to it.
     */
    assert_true(rate_at(&recipe, last, 7) == 0.0f);
    recipe.lr_gamma = 0.9f;
    assert_true(rate_at(&recipe, last, 7) > 0.0f);
    recipe.lr_gamma = 1.0f;
    assert_true(rate_at(&recipe, last, 7) == 1.0f);
}

/* A warm-up longer than the run never reaches the schedule. */
static void test_long_warmup(void **state) {
    (void)state;
    const qn__recipe recipe = {
        .learning_rate = 1.0f, .schedule = QN__SCHEDULE_COSINE, .warmup = 1000, .epochs = 10};
    assert_true(rate_at(&recipe, 69, 7) == 70.0f / 1000.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_constant),    cmocka_unit_test(test_step),
        cmocka_unit_test(test_cosine),      cmocka_unit_test(test_many_cuts),
        cmocka_unit_test(test_long_warmup), cmocka_unit_test(test_exponential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
