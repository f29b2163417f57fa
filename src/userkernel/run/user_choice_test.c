/* Which devices compute the iterations of a kernel, with times that are made up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "userkernel/run/user_choice.h"

enum { CPU = 1, GPU = 2, OTHER_GPU = 4 };

typedef struct job {
    double each[QN__WHO_KINDS]; /* seconds of an iteration */
    double first;               /* more seconds of the first run of each trial */
    int tries;                  /* runs in which the processor tries steps: it ends at each[CPU] */
    uint64_t iterations;
} job;

/* Runs the job. Returns its seconds; *c has the final choice. */
static double go(qn__user_choice *c, const job *j) {
    double all = 0;
    int runs = 0;
    qn__user_who before = QN__WHO_KINDS;
    for (uint64_t t = 0, steps = 1; t < j->iterations; t += steps) {
        const qn__user_who who = c->now;
        runs = who == before ? runs + 1 : 0;
        double seconds = j->each[who] + (runs == 0 ? j->first : 0);
        if (who == QN__WHO_CPU && runs < j->tries)
            seconds *= 3;
        before = who;
        all += seconds;
        qn__user_choice_done(c, seconds, steps, j->iterations - t - steps, runs >= j->tries);
    }
    return all;
}

static void test_the_fastest(void **state) {
    (void)state;
    for (int best = 0; best < QN__WHO_KINDS; ++best) {
        job j = {.each = {0.02, 0.02, 0.02}, .first = 0.3, .tries = 6, .iterations = 1000};
        qn__user_choice c;
        j.each[best] = 0.01;
        qn__user_choice_begin(&c, CPU, GPU | OTHER_GPU, GPU);
        assert_false(c.settled);
        assert_int_equal(c.set[QN__WHO_ALL], CPU | GPU | OTHER_GPU);
        const double seconds = go(&c, &j);
        assert_true(c.settled);
        assert_int_equal(c.now, best);
        assert_true(seconds < 1.2 * 1000 * 0.01 + 3 * 0.3);
    }
}

/* The processor's search would take longer than it can save. */
static void test_a_slow_processor(void **state) {
    (void)state;
    const job j = {.each = {0.02, 0.001, 0.5}, .tries = 1000000, .iterations = 10000};
    qn__user_choice c;
    qn__user_choice_begin(&c, CPU, GPU, GPU);
    assert_true(go(&c, &j) < 10 + 6);
    assert_int_equal(c.now, QN__WHO_GPU);
}

/* A search that does not end. */
static void test_a_long_search(void **state) {
    (void)state;
    const job j = {.each = {0.02, 0.01, 0.008}, .tries = 1000000, .iterations = 10000};
    qn__user_choice c;
    qn__user_choice_begin(&c, CPU, GPU, GPU);
    assert_true(go(&c, &j) < 100 * 1.1 + 15);
    assert_int_equal(c.now, QN__WHO_GPU);
}

static void test_short_jobs(void **state) {
    (void)state;
    const job j = {.each = {0.01, 0.001, 0.001}, .iterations = 30};
    qn__user_choice c;
    qn__user_choice_begin(&c, CPU, GPU, GPU);
    go(&c, &j);
    assert_int_equal(c.now, QN__WHO_ALL);
}

static void test_no_choice(void **state) {
    (void)state;
    qn__user_choice c;
    qn__user_choice_begin(&c, CPU, 0, 0);
    assert_true(c.settled && c.now == QN__WHO_ALL);
    qn__user_choice_begin(&c, 0, GPU, GPU);
    assert_true(c.settled && c.now == QN__WHO_ALL);
    const job j = {.each = {0.02, 0.01, 0}, .iterations = 10000};
    qn__user_choice_begin(&c, 0, GPU | OTHER_GPU, OTHER_GPU);
    go(&c, &j); /* there is no processor to try */
    assert_int_equal(c.now, QN__WHO_GPU);
    qn__user_choice_lost(&c);
    go(&c, &j);
    assert_true(c.settled && c.now == QN__WHO_ALL && c.set[QN__WHO_ALL] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fastest),   cmocka_unit_test(test_a_slow_processor),
        cmocka_unit_test(test_a_long_search), cmocka_unit_test(test_short_jobs),
        cmocka_unit_test(test_no_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
