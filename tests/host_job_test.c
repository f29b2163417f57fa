/* Host jobs on a team: the sums of a function over grains, and results at places of their own, are
 * the same with any number of threads, workers and ranks, whatever is lost on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "host_job_case_test.h"

static const qn_compute threads_of[] = {{.size = sizeof(qn_compute), .threads = 1},
                                        {.size = sizeof(qn_compute), .threads = 2},
                                        {.size = sizeof(qn_compute), .threads = 3}};

/* The job by a team of these members; NULL: those of `compute`. */
static qn_status by_team(const qn_compute *compute, const qn__member *members, uint32_t count,
                         counting *c, int64_t *got, qn_error *err) {
    qn__team *team;
    qn_status status = qn__team_create(NULL, compute, members, count, &team, err);
    if (status != QN_OK)
        return status;
    for (int again = 0; again < 2 && status == QN_OK; ++again)
        status = counting_run(team, c, got, err);
    qn__team_destroy(team);
    return status;
}

static void test_threads(void **state) {
    (void)state;
    for (int apart = 0; apart < 2; ++apart)
        for (int i = 0; i < 3; ++i) {
            counting c = {.apart = apart};
            int64_t got[WORDS], wanted[WORDS];
            qn_error err;
            counting_expect(&c, wanted);
            assert_int_equal(by_team(&threads_of[i], NULL, 0, &c, got, &err), QN_OK);
            assert_memory_equal(got, wanted, sizeof wanted);
            assert_int_equal(atomic_load(&c.open), 0);
            assert_true(atomic_load(&c.opened) > 0);
        }
}

/* Devices of other speeds take part, and are lost at some grain. */
static void test_losses(void **state) {
    (void)state;
    const qn__member members[] = {{.device = qn__device_find("cpu")},
                                  {.device = &qn__fake_device},
                                  {.device = &qn__fake_device, .index = 1}};
    for (uint32_t at = 0; at < 12; ++at) {
        const qn__fake_plan plan = {
            .count = 2,
            .device = {{.rate = 30000, .fail_at = at}, {.rate = 60000, .fail_at = at / 3}}};
        counting c = {.apart = (int)(at & 1)};
        int64_t got[WORDS], wanted[WORDS];
        qn_error err;
        counting_expect(&c, wanted);
        qn__fake_set(&plan);
        assert_int_equal(by_team(&threads_of[1], members, 3, &c, got, &err), QN_OK);
        assert_memory_equal(got, wanted, sizeof wanted);
        /* Without the CPU: one is left, or none. */
        const qn_status status = by_team(&threads_of[0], members + 1, 2, &c, got, &err);
        assert_int_equal(status, at >= 3 ? QN_DEVICE : QN_OK);
        if (status == QN_OK)
            assert_memory_equal(got, wanted, sizeof wanted);
        assert_int_equal(atomic_load(&c.open), 0);
    }
    qn__fake_set(NULL);
}

/* The failure is that of the lowest grain, whoever computes it. */
static void test_failures(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 1, .device = {{.rate = 50000}}};
    const qn__member members[] = {{.device = qn__device_find("cpu")}, {.device = &qn__fake_device}};
    qn__fake_set(&plan);
    for (uint32_t i = 0; i < 12; ++i) {
        counting c = {.apart = (int)(i & 1), .bad = {151, 40 + 9 * i}};
        int64_t got[WORDS];
        char what[32];
        qn_error err;
        const qn_status status = i < 6 ? by_team(&threads_of[i % 3], NULL, 0, &c, got, &err)
                                       : by_team(&threads_of[i % 3], members, 2, &c, got, &err);
        assert_int_equal(status, QN_NUMERIC);
        snprintf(what, sizeof what, "grain %u is bad", 40 + 9 * i);
        assert_string_equal(err.what, what);
        assert_int_equal(atomic_load(&c.open), 0);
    }
    qn__fake_set(NULL);
}

static void test_out_of_memory(void **state) {
    (void)state;
    counting c = {.refuse = 1};
    int64_t got[WORDS];
    qn_error err;
    assert_int_equal(by_team(&threads_of[2], NULL, 0, &c, got, &err), QN_MEMORY);
    assert_string_equal(err.what, "no space, as planned");
}

/* A device that computes networks only: refused by name. */
static void test_devices_without_host_jobs(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 1};
    qn__device_table networks = qn__fake_device;
    const qn__member members[] = {{.device = qn__device_find("cpu")}, {.device = &networks}};
    const qn__member left_out[] = {members[0], {.device = &networks, .optional = 1}};
    counting c = {0};
    int64_t got[WORDS];
    qn_error err;
    networks.jobs = qn__job_bit(QN__JOB_TRAIN) | qn__job_bit(QN__JOB_APPLY);
    qn__fake_set(&plan);
    assert_int_equal(by_team(&threads_of[0], members, 2, &c, got, &err), QN_UNSUPPORTED);
    assert_string_equal(err.what, "fake:0 computes networks only");
    assert_string_equal(err.remedy, "use `compute.devices` cpu");
    assert_int_equal(by_team(&threads_of[0], left_out, 2, &c, got, &err), QN_OK);
    qn__fake_set(NULL);
}

/* ---------------------------------------------------------------------------------- among ranks */

static qn_status rank_works(hand *h) {
    const qn_compute compute = {.size = sizeof compute,
                                .threads = 1 + (int)(h->rank % 2),
                                .devices = h->run.devices,
                                .cluster = h->run.cluster};
    return counting_on_rank(h, &compute);
}

static void test_ranks(void **state) {
    (void)state;
    for (uint32_t ranks = 2; ranks <= 4; ++ranks)
        for (int apart = 0; apart < 2; ++apart) {
            hand hands[CREW] = {0};
            counting c[CREW] = {0};
            for (uint32_t r = 0; r < ranks; ++r) {
                hands[r].work = rank_works;
                hands[r].user = &c[r];
                c[r].apart = apart;
                c[r].bad[0] = ranks == 4 && apart ? 77 : 0;
                c[r].bad[1] = c[r].bad[0] ? 201 : 0;
            }
            thread_ranks_run(hands, ranks);
            for (uint32_t r = 0; r < ranks; ++r) {
                if (!c[r].bad[0])
                    assert_int_equal(hands[r].status, QN_OK);
                else
                    assert_string_equal(hands[r].run.err.what, "grain 77 is bad");
                assert_int_equal(atomic_load(&c[r].open), 0);
            }
        }
}

/* A rank whose only device is lost leaves; the others have the same bytes. */
static void test_a_rank_without_a_device(void **state) {
    (void)state;
    const qn__fake_plan plan = {.count = 1, .device = {{.rate = 20000, .fail_at = 4}}};
    hand hands[3] = {0};
    counting c[3] = {0};
    qn__fake_set(&plan);
    for (uint32_t r = 0; r < 3; ++r) {
        hands[r].work = rank_works;
        hands[r].user = &c[r];
        hands[r].run.devices = r == 1 ? "fake:0" : "cpu";
    }
    thread_ranks_run(hands, 3);
    assert_int_equal(hands[0].status, QN_OK);
    assert_int_equal(hands[1].status, QN_DEVICE);
    assert_int_equal(hands[2].status, QN_OK);
    qn__fake_set(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_losses),
                                       cmocka_unit_test(test_failures),
                                       cmocka_unit_test(test_out_of_memory),
                                       cmocka_unit_test(test_devices_without_host_jobs),
                                       cmocka_unit_test(test_ranks),
                                       cmocka_unit_test(test_a_rank_without_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
