/* The choice of workers, with simulated ones: given their speeds alone, the speeds of their grains
 * when they share, and the overhead of sharing. Time is simulated, so every run decides alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "num/philox.h"
#include "team/chooser.h"
#include "team/virtual.h"
#include <math.h>
#include <string.h>

enum { GRAINS = 64, MOST = 8 };

typedef struct world {
    uint32_t workers;
    qn__virtual_worker worker[MOST];
    double alone[MOST]; /* seconds of a step alone, 0: the sum of its shared grains */
    double sharing;     /* overhead of a shared step in seconds */
    double noise;
    int disturbed; /* so many steps of worker 0 alone take three times as long */
    double clock;
    uint64_t late, steps;
    qn__queue queue;
    qn__chooser chooser;
    double spent[64]; /* steps by each set of up to six workers */
} world;

static void begin(world *v) {
    v->clock = 100;
    assert_int_equal(qn__queue_begin(&v->queue, v->workers), 0);
    qn__chooser_begin(&v->chooser, &v->queue, (1u << v->workers) - 1, v->late, GRAINS);
}

static double noise(world *v) {
    uint32_t word[4];
    qn__words(77, 0, 0, 0, v->steps, 0, word);
    return 1.0 + v->noise * (word[0] * 0x1p-31 - 1.0);
}

/* One step of the job, by the chosen set. */
static void step(world *v) {
    const uint64_t set = qn__chooser_set(&v->chooser);
    const double begun = v->clock;
    const uint32_t lone = (uint32_t)__builtin_ctzll(set);
    if (!(set & (set - 1)) && v->alone[lone] > 0) {
        const int disturbed = lone == 0 && v->disturbed > 0;
        v->disturbed -= disturbed;
        v->clock += v->alone[lone] * noise(v) * (disturbed ? 3.0 : 1.0);
    } else {
        qn__virtual_step(&v->queue, v->worker, v->workers, set, GRAINS, &v->clock);
        v->clock += v->sharing * noise(v);
    }
    ++v->steps;
    if (set < 64)
        v->spent[set] += 1;
    qn__chooser_step(&v->chooser, v->clock - begun, 0, 1, v->clock);
}

static void steps(world *v, int count) {
    for (int i = 0; i < count; ++i)
        step(v);
}

/* Runs steps until the choice is made. */
static uint64_t settle(world *v) {
    for (int i = 0; i < 5000 && v->chooser.stage != QN__CHOOSE_STAY; ++i)
        step(v);
    assert_int_equal(v->chooser.stage, QN__CHOOSE_STAY);
    return qn__chooser_set(&v->chooser);
}

static void test_equals_share(void **state) {
    (void)state;
    world v = {.workers = 2,
               .worker = {{.rate = 1000, .noise = 0.05}, {.rate = 1000, .noise = 0.05}},
               .alone = {0.060, 0.060},
               .sharing = 0.002,
               .noise = 0.05};
    begin(&v);
    assert_int_equal(settle(&v), 3);
    assert_true(v.steps < 40);
    qn__queue_end(&v.queue);
}

/* A device that computes its grains as fast as the CPU, but costs more by sharing than it saves. */
static void test_who_slows_down_is_left_out(void **state) {
    (void)state;
    char why[160];
    world v = {.workers = 2,
               .worker = {{.rate = 100000, .noise = 0.1}, {.rate = 100000, .noise = 0.1}},
               .alone = {0.0006, 0.002},
               .sharing = 0.0007,
               .noise = 0.1};
    begin(&v);
    assert_int_equal(settle(&v), 1);
    qn__chooser_reason(&v.chooser, 1, why, sizeof why);
    print_message("%s\n", why);
    assert_non_null(strstr(why, "without it"));
    assert_non_null(strstr(why, "on it alone"));
    qn__chooser_reason(&v.chooser, 0, why, sizeof why);
    assert_string_equal(why, "");
    qn__queue_end(&v.queue);
}

/* Another program uses the cores while the CPU is tried: it gets a second trial. */
static void test_a_disturbed_trial_does_not_decide(void **state) {
    (void)state;
    world v = {.workers = 2,
               .worker = {{.rate = 100000, .noise = 0.05}, {.rate = 50000, .noise = 0.05}},
               .alone = {0.0007, 0.0013},
               .sharing = 0.002,
               .noise = 0.05,
               .disturbed = 6};
    begin(&v);
    assert_int_equal(settle(&v), 1);
    assert_int_equal(v.disturbed, 0);
    qn__queue_end(&v.queue);
}

/* A GPU that needs no transfer of sums when alone, and whose shared calls are slow to start. */
static void test_a_gpu_alone(void **state) {
    (void)state;
    world v = {.workers = 2,
               .worker = {{.rate = 40000}, {.rate = 4000000, .start = 0.0004}},
               .alone = {0.0016, 0.00006},
               .sharing = 0.0006,
               .late = 2};
    begin(&v);
    assert_int_equal(settle(&v), 2);
    qn__queue_end(&v.queue);
}

static void test_the_hopeless_are_not_waited_for(void **state) {
    (void)state;
    char why[160];
    world v = {.workers = 3,
               .worker = {{.rate = 1000}, {.rate = 900}, {.rate = 5}},
               .alone = {0.064, 0.071, 12.8},
               .sharing = 0.003};
    begin(&v);
    assert_int_equal(settle(&v), 3);
    assert_int_equal(v.spent[4], 0); /* never alone */
    assert_true(v.spent[7] <= 4);
    assert_true(v.clock - 100 < 3.0);
    qn__chooser_reason(&v.chooser, 2, why, sizeof why);
    print_message("%s\n", why);
    assert_non_null(strstr(why, "one grain"));
    qn__queue_end(&v.queue);
}

static void test_eight_of_all_speeds(void **state) {
    (void)state;
    static const double rates[] = {1, 2, 4, 6, 8, 11, 13, 16};
    world v = {.workers = 8, .sharing = 0.001, .noise = 0.03};
    for (int i = 0; i < 8; ++i)
        v.worker[i] = (qn__virtual_worker){.rate = 500 * rates[i], .noise = 0.03};
    begin(&v);
    const uint64_t set = settle(&v);
    print_message("eight workers: the set is %llx after %llu steps, %.2f s of %.2f s for trials\n",
                  (unsigned long long)set, (unsigned long long)v.steps, v.chooser.cost,
                  v.clock - 100);
    assert_true(__builtin_popcountll(set) >= 6 && (set & 0xf8) == 0xf8);
    assert_true(v.steps < 60);
    qn__queue_end(&v.queue);
}

/* Another program occupies the device: within some steps another worker replaces it, and it returns
 * when the program has ended. */
static void test_a_lasting_change_is_seen(void **state) {
    (void)state;
    world v = {.workers = 2,
               .worker = {{.rate = 40000}, {.rate = 400000, .start = 0.0001}},
               .alone = {0.0016, 0.0002},
               .sharing = 0.002,
               .noise = 0.1,
               .late = 2};
    begin(&v);
    assert_int_equal(settle(&v), 2);
    steps(&v, 3000);
    assert_int_equal(qn__chooser_set(&v.chooser), 2);
    v.alone[1] = 0.010;
    v.worker[1] = (qn__virtual_worker){.rate = 8000, .start = 0.005};
    steps(&v, 400);
    assert_int_equal(settle(&v), 1);
    v.alone[1] = 0.0002;
    v.worker[1] = (qn__virtual_worker){.rate = 400000, .start = 0.0001};
    while (v.clock < 100 + 60)
        step(&v);
    assert_int_equal(settle(&v), 2);
    qn__queue_end(&v.queue);
}

/* Trying unused workers again costs less than 1 % of the time. */
static void test_trials_are_cheap(void **state) {
    (void)state;
    world v = {.workers = 3,
               .worker = {{.rate = 40000, .noise = 0.1},
                          {.rate = 20000, .noise = 0.1},
                          {.rate = 3000, .noise = 0.1}},
               .alone = {0.0016, 0.0030, 0.020},
               .sharing = 0.002,
               .noise = 0.1};
    begin(&v);
    assert_int_equal(settle(&v), 1);
    const double begun = v.clock, cost = v.chooser.cost;
    while (v.clock < begun + 200)
        step(&v);
    const double part = (v.chooser.cost - cost) / (v.clock - begun);
    print_message("%u rounds in 200 s cost %.2f %% of the time; the first %.3f s\n",
                  v.chooser.rounds, 100 * part, cost);
    assert_true(v.chooser.rounds > 2 && part < 0.01);
    qn__queue_end(&v.queue);
}

static void test_short_jobs_try_little(void **state) {
    (void)state;
    world v = {.workers = 2,
               .worker = {{.rate = 1000}, {.rate = 300}},
               .alone = {0.064, 0.21},
               .sharing = 0.001};
    begin(&v);
    qn__chooser_expect(&v.chooser, 10);
    steps(&v, 10);
    assert_true(v.spent[2] == 0); /* the slow one never alone */
    assert_true(v.clock - 100 < 10 * 0.064 + 0.1);
    qn__queue_end(&v.queue);
}

static void test_losses(void **state) {
    (void)state;
    world v = {.workers = 3,
               .worker = {{.rate = 1000}, {.rate = 1000}, {.rate = 1000}},
               .alone = {0.064, 0.064, 0.064},
               .sharing = 0.001};
    begin(&v);
    assert_int_equal(settle(&v), 7);
    qn__queue_lose(&v.queue, 1);
    qn__chooser_alive(&v.chooser, 5);
    assert_int_equal(qn__chooser_set(&v.chooser), 5);
    assert_int_equal(settle(&v), 5);
    qn__queue_lose(&v.queue, 0);
    qn__chooser_alive(&v.chooser, 4);
    steps(&v, 50);
    assert_int_equal(qn__chooser_set(&v.chooser), 4);
    qn__queue_end(&v.queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_share),
        cmocka_unit_test(test_who_slows_down_is_left_out),
        cmocka_unit_test(test_a_disturbed_trial_does_not_decide),
        cmocka_unit_test(test_a_gpu_alone),
        cmocka_unit_test(test_the_hopeless_are_not_waited_for),
        cmocka_unit_test(test_eight_of_all_speeds),
        cmocka_unit_test(test_a_lasting_change_is_seen),
        cmocka_unit_test(test_trials_are_cheap),
        cmocka_unit_test(test_short_jobs_try_little),
        cmocka_unit_test(test_losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
