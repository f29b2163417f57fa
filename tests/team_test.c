/* The one promise, seen from above: whoever takes part in a training, at whatever speed, stalling
 * or dying at whatever grain, the model is the same byte for byte. The team is the CPU and fake
 * devices (fake_device/fake_device.h); every fourth team computes with integers. QN_TEST_SEED and
 * QN_TEST_CASES choose other teams than the usual ones; a failure names its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "team_case_test.h"

/* Who takes part in each step, at random, often somebody alone. */
static uint64_t pick(void *user, uint64_t step) {
    const uint64_t *seed = user;
    uint64_t z = (*seed + step / 2) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 29)) * 0xBF58476D1CE4E5B9u;
    z ^= z >> 32;
    return z & 1 ? UINT64_C(1) << (z >> 8) % 5 : z >> 3 & 31;
}

/* A behaviour in which a step of 24 items takes from no time to some milliseconds. */
static qn__fake_behaviour draw_behaviour(void) {
    qn__fake_behaviour b = {0};
    if (below(3) != 0)
        b.rate = 20000.0 + below(300000);
    b.noise = below(2) ? 0.5 : 0.0;
    b.start = below(8) == 0 ? 0.002 : 0.0;
    if (below(3) == 0)
        b.fail_at = 1 + below(STEPS * GRAINS / 2);
    if (below(10) == 0)
        b.fail_update = 1 + below(STEPS);
    if (below(10) == 0)
        b.fail_collect = 1 + below(STEPS);
    if (below(4) == 0) {
        b.stall_at = 1 + below(STEPS * GRAINS / 4);
        b.stall = 0.001 * below(5);
    }
    if (below(4) == 0) {
        b.change_at = 1 + below(STEPS * GRAINS / 4);
        b.change_rate = 5000.0 + below(300000);
    }
    if (below(8) == 0)
        b.fail_step = 1 + below(STEPS / 2);
    if (below(8) == 0)
        b.fail_flush = 1 + below(4);
    if (below(10) == 0)
        b.fail_apply = 1 + below(3);
    if (below(10) == 0)
        b.fail_load = 1 + below(4);
    if (below(10) == 0)
        b.fail_save = 1 + below(3);
    return b;
}

static void never_fail(qn__fake_behaviour *b) {
    b->fail_at = b->fail_update = b->fail_collect = b->fail_step = b->fail_flush = 0;
    b->fail_apply = b->fail_load = b->fail_save = 0;
}

/* A team of one to four fake devices and, mostly, the CPU; without it one fake device never fails.
 */
static uint32_t draw_team(qn__fake_plan *plan, qn__member members[]) {
    static const qn__device_table *const kinds[] = {&qn__fake_device, &qn__fake_lone_device,
                                                    &qn__fake_late_device};
    uint32_t count = 0;
    *plan = (qn__fake_plan){.count = 1 + below(4)};
    for (uint32_t i = 0; i < plan->count; ++i)
        plan->device[i] = draw_behaviour();
    if (below(4) != 0)
        members[count++] = (qn__member){.device = qn__device_find("cpu")};
    else
        never_fail(&plan->device[0]);
    for (uint32_t i = 0; i < plan->count; ++i)
        members[count++] = (qn__member){.device = kinds[below(3)], .index = i};
    for (uint32_t i = count - 1; i > 0; --i) {
        const uint32_t j = below(i + 1);
        const qn__member other = members[i];
        members[i] = members[j];
        members[j] = other;
    }
    return count;
}

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* `picked` 1: sets drawn at random take part, one worker alone as often as several, so that whoever
 * has the newest state may die with it; 0: the team tries out who should. */
static void every_team(int picked) {
    const uint64_t first = setting("QN_TEST_SEED", 1), cases = setting("QN_TEST_CASES", 200);
    tiny alones[] = {{0}, {.arith = "i14"}};
    uint32_t lost = 0, shared = 0;
    uint64_t repeated = 0;
    qn_data *data = tiny_data();
    assert_int_equal(tiny_run(&alones[0], data), QN_OK);
    assert_int_equal(tiny_run(&alones[1], data), QN_OK);
    assert_string_not_equal(alones[0].digest, alones[1].digest);
    for (uint64_t seed = first; seed < first + cases; ++seed) {
        qn__member members[QN__FAKE_DEVICES + 1];
        qn__fake_plan plan;
        const tiny *alone = &alones[seed % 4 == 0];
        random_state = seed;
        const uint32_t count = draw_team(&plan, members);
        tiny run = {.members = members,
                    .count = count,
                    .arith = alone->arith,
                    .pick = picked ? pick : NULL,
                    .seed = seed,
                    .save_every = below(4)};
        qn__fake_set(&plan);
        if (tiny_run(&run, data) != QN_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, run.err.what);
        if (strcmp(alone->digest, run.digest) != 0)
            fail_msg("seed %llu, %u workers, %u lost: the model is %s, the CPU alone gives %s",
                     (unsigned long long)seed, count, run.lost, run.digest, alone->digest);
        if (strcmp(alone->epochs, run.epochs) != 0)
            fail_msg(
                "seed %llu, %u workers, %u lost: losses and right answers are\n%sthe CPU alone "
                "gives\n%s",
                (unsigned long long)seed, count, run.lost, run.epochs, alone->epochs);
        lost += run.lost;
        shared += run.at_work > 1;
        repeated += run.repeated;
    }
    qn__fake_set(NULL);
    qn_data_close(data);
    print_message("seeds %llu..%llu: %u workers lost, %u runs shared by several, %llu steps done "
                  "again\n",
                  (unsigned long long)first, (unsigned long long)(first + cases - 1), lost, shared,
                  (unsigned long long)repeated);
    assert_true(cases < 50 || (lost > cases / 4 && shared > cases / 2));
}

static void test_every_team_gives_the_same_model(void **state) {
    (void)state;
    every_team(0);
}

static void test_whoever_takes_part(void **state) {
    (void)state;
    every_team(1);
}

static void test_all_workers_lost(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 2, .device = {{.fail_update = 6}, {.fail_update = 4}}};
    const qn__member members[] = {{.device = &qn__fake_device, .index = 0},
                                  {.device = &qn__fake_device, .index = 1}};
    tiny run = {.members = members, .count = 2};
    qn_data *data = tiny_data();
    qn__fake_set(&plan);
    assert_int_equal(tiny_run(&run, data), QN_DEVICE);
    assert_int_equal(run.err.status, QN_DEVICE);
    assert_non_null(strstr(run.err.what, "no worker is left"));
    assert_non_null(strstr(run.err.remedy, "checkpoint"));
    assert_int_equal(run.lost, 2);
    qn__fake_set(NULL);
    qn_data_close(data);
}

static void test_a_lost_worker_is_named(void **state) {
    (void)state;
    /* Every worker makes every update, whereas nobody knows how many grains it gets. */
    const qn__fake_plan plan = {.count = 2, .device = {{.fail_update = 1}, {0}}};
    const qn__member members[] = {{.device = &qn__fake_device, .index = 1},
                                  {.device = &qn__fake_device, .index = 0}};
    tiny run = {.members = members, .count = 2};
    qn_data *data = tiny_data();
    qn__fake_set(&plan);
    assert_int_equal(tiny_run(&run, data), QN_OK);
    assert_int_equal(run.lost, 1);
    assert_non_null(strstr(run.last, "fake:0"));
    qn__fake_set(NULL);
    qn_data_close(data);
}

/* A device that is not there, and more than a team can have. */
static void test_teams_that_cannot_be(void **state) {
    (void)state;
    const qn__member absent[] = {{.device = &qn__fake_device, .index = 0}};
    tiny run = {.members = absent, .count = 1}, many = {.members = absent, .count = 65};
    qn_data *data = tiny_data();
    qn__fake_set(NULL);
    assert_int_equal(tiny_run(&run, data), QN_USAGE);
    assert_int_equal(tiny_run(&many, data), QN_USAGE);
    qn_data_close(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_team_gives_the_same_model),
        cmocka_unit_test(test_whoever_takes_part),
        cmocka_unit_test(test_all_workers_lost),
        cmocka_unit_test(test_a_lost_worker_is_named),
        cmocka_unit_test(test_teams_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
