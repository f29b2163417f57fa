/* The cost that a rank reports: lasting stalls count, single ones do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "team/rank_cost.h"
#include <math.h>

/* Reductions of 10 ms in which 4 chunks take 1 ms each, the update 1 ms; every nth update is
 * stalled. */
static void go(qn__rank_cost *c, int reductions, int nth, double stall, double *now) {
    for (int i = 0; i < reductions; ++i) {
        qn__rank_cost_share(c, 1, 4, 0.004, *now);
        const double stalled = nth > 0 && i % nth == nth - 1 ? stall : 0;
        qn__rank_cost_update(c, 0.001 + stalled);
        *now += 0.01 + stalled;
    }
}

static void test_a_steady_rank(void **state) {
    (void)state;
    qn__rank_cost c = {.set = 0};
    double now = 1;
    go(&c, 100, 0, 0, &now);
    const qn__cost told = qn__rank_cost_reported(&c);
    assert_true(fabs(told.each - 0.001) < 1e-9);
    assert_true(fabs(told.start - 0.001) < 1e-9);
    assert_true(fabs(qn__rank_cost_stretch(&c) - 1) < 1e-9);
}

/* Single disturbances in the long window are not lasting. */
static void test_a_disturbed_call(void **state) {
    (void)state;
    qn__rank_cost c = {.set = 0};
    double now = 1;
    go(&c, 100, 0, 0, &now);
    go(&c, 1, 1, 0.5, &now);
    assert_true(fabs(qn__rank_cost_stretch(&c) - 1) < 1e-9);
    go(&c, 100, 0, 0, &now);
    assert_true(fabs(qn__rank_cost_stretch(&c) - 1) < 1e-9);
}

/* Stalls in updates alone raise the cost of chunks: by 2.5 ms in each 5 ms while they are shorter
 * than a reduction, and by more if they are longer. */
static void test_stalls_outside_of_shares(void **state) {
    (void)state;
    qn__rank_cost c = {.set = 0};
    double now = 1;
    go(&c, 1000, 3, 0.0075, &now);
    assert_true(fabs(qn__rank_cost_stretch(&c) - 1.5) < 0.05);
    assert_true(fabs(qn__rank_cost_reported(&c).each - 0.0015) < 5e-5);
    c = (qn__rank_cost){.set = 0};
    go(&c, 1000, 20, 0.1, &now);
    assert_true(qn__rank_cost_stretch(&c) > 5);
    go(&c, 500, 0, 0, &now);
    assert_true(fabs(qn__rank_cost_stretch(&c) - 1) < 1e-9);
}

/* Without chunks it is tried again when that is cheap: the cost that it reports falls until it gets
 * one. */
static void test_a_trial(void **state) {
    (void)state;
    qn__rank_cost c = {.set = 0};
    double now = 1;
    int reductions = 0;
    for (int i = 0; i < 3; ++i)
        qn__rank_cost_share(&c, 1, 1, 0.1, now += 0.11);
    while (qn__rank_cost_reported(&c).each > 0.01 && reductions < 100000) {
        qn__rank_cost_share(&c, 1, 0, 0, now += 0.01);
        ++reductions;
    }
    assert_in_range(reductions, 990, 1020);
    qn__rank_cost_share(&c, 1, 1, 0.002, now += 0.01);
    assert_true(fabs(qn__rank_cost_reported(&c).each - 0.002) < 1e-9);
}

/* The first call includes one-time costs: the rank is tried again although it seems slow. */
static void test_a_first_call(void **state) {
    (void)state;
    qn__rank_cost c = {.set = 0};
    double now = 1;
    int reductions = 0;
    qn__rank_cost_share(&c, 1, 2, 30, now);
    for (; qn__rank_cost_reported(&c).each > 0.01 && reductions < 100; ++reductions)
        qn__rank_cost_share(&c, 1, 0, 0, now += 0.01);
    assert_in_range(reductions, 1, 12);
    qn__rank_cost_share(&c, 1, 2, 0.002, now += 0.01);
    assert_true(fabs(qn__rank_cost_reported(&c).each - 0.001) < 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_steady_rank),
        cmocka_unit_test(test_a_disturbed_call),
        cmocka_unit_test(test_stalls_outside_of_shares),
        cmocka_unit_test(test_a_trial),
        cmocka_unit_test(test_a_first_call),
    };
    return cmocka_run_group_tests_name("rank_cost", tests, NULL, NULL);
}
