/* Simulated ranks: shares that follow different and changing speeds, sums over machines, deaths.
 * The clock is simulated, so every number is the same on every machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "team/virtual_ranks.h"
#include <math.h>
#include <string.h>

enum { MOST = 8, CHUNKS = 64 };
#define UPDATE 1e-4

typedef struct scene {
    qn__virtual_worker worker[MOST];
    qn__virtual_team *team;
    uint32_t ranks;
} scene;

/* A rank for each rate, one worker each, on different machines, with a network that takes no
 * time. */
static void begin(scene *s, const double *rates, uint32_t ranks) {
    memset(s, 0, sizeof *s);
    s->ranks = ranks;
    assert_int_equal(qn__virtual_team_create(ranks, &s->team, NULL), QN_OK);
    s->team->network = (qn__virtual_network){.bandwidth = 1e30};
    s->team->words = 1000;
    for (uint32_t r = 0; r < ranks; ++r) {
        s->worker[r].rate = rates[r];
        s->team->rank[r].worker = &s->worker[r];
        s->team->rank[r].workers = 1;
        s->team->rank[r].machine = r;
        s->team->rank[r].memory = 1e30;
    }
    assert_int_equal(qn__virtual_team_ready(s->team, CHUNKS, NULL), QN_OK);
}

static void steps(scene *s, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        assert_int_equal(qn__virtual_reduction(s->team, CHUNKS, NULL), QN_OK);
}

/* T_bound/T of the next `count` steps. */
static double reached(scene *s, uint32_t count) {
    const double begun = s->team->now;
    steps(s, count);
    return qn__virtual_bound(s->worker, s->ranks, (double)count * CHUNKS, begun) /
           (s->team->now - begun);
}

static const double one_two_four[] = {100, 200, 400};

static void test_unequal_ranks(void **state) {
    (void)state;
    scene s;
    begin(&s, one_two_four, 3);
    steps(&s, 10);
    const double measured = reached(&s, 50);
    qn__virtual_team_free(s.team);
    begin(&s, one_two_four, 3);
    s.team->equal = 1;
    const double equal = reached(&s, 60);
    qn__virtual_team_free(s.team);
    print_message("T_bound/T %.3f by measured shares, %.3f by equal ones\n", measured, equal);
    assert_true(measured > 0.98);
    assert_true(equal < 0.43);
}

static void test_the_first_steps_cost_little(void **state) {
    (void)state;
    scene s;
    begin(&s, one_two_four, 3);
    const double whole = reached(&s, 60);
    qn__virtual_team_free(s.team);
    assert_true(whole > 0.9);
}

/* One rank slows to half: within ten steps the others take over its excess. */
static void test_a_rank_that_slows_down(void **state) {
    (void)state;
    for (uint32_t slow = 0; slow < 3; ++slow) {
        scene s;
        begin(&s, one_two_four, 3);
        for (uint32_t r = 0; r < 3; ++r)
            s.worker[r].noise = 0.02;
        steps(&s, 40);
        s.worker[slow].change_at = s.team->now;
        s.worker[slow].change_rate = one_two_four[slow] / 2;
        steps(&s, 10);
        const double after = reached(&s, 30);
        qn__virtual_team_free(s.team);
        begin(&s, one_two_four, 3);
        s.team->equal = 1;
        s.worker[slow].change_at = 1e-9;
        s.worker[slow].change_rate = one_two_four[slow] / 2;
        const double equal = reached(&s, 30);
        qn__virtual_team_free(s.team);
        print_message("rank %u at half: T_bound/T %.3f, equal shares %.3f\n", slow, after, equal);
        assert_true(after > 0.9);
        assert_true(equal < 0.6);
    }
}

/* A rank that was left without a share is tried again after a while. */
static void test_a_rank_that_recovers(void **state) {
    (void)state;
    static const double rates[] = {400, 400, 400};
    scene s;
    begin(&s, rates, 3);
    steps(&s, 20);
    s.worker[1].change_at = s.team->now;
    s.worker[1].change_rate = 0.5;
    steps(&s, 10);
    assert_int_equal(s.team->rank[1].share, 0);
    s.worker[1].change_at = 0;
    steps(&s, 4000); /* a trial of 2 s costs less than 2 % of 200 s, 2500 steps of the others */
    assert_in_range(s.team->rank[1].share, 20, 22);
    qn__virtual_team_free(s.team);
}

/* Seconds of `count` steps of equal ranks with an update each, after steps in which they learn
 * their speeds. The last rank has that part of its core as a quota, in periods of 100 ms; 0: no
 * quota. */
static double seconds_of(scene *s, uint32_t ranks, double rate, double quota, uint32_t count) {
    const double rates[MOST] = {rate, rate, rate, rate, rate, rate, rate, rate};
    begin(s, rates, ranks);
    for (uint32_t r = 0; r < ranks; ++r) {
        s->worker[r].noise = 0.02;
        s->team->rank[r].update = UPDATE;
    }
    if (quota > 0) {
        s->worker[ranks - 1].period = 0.1;
        s->worker[ranks - 1].quota = quota;
    }
    steps(s, 50);
    const double begun = s->team->now;
    s->team->rank[ranks - 1].spent.chunks = 0;
    steps(s, count);
    return s->team->now - begun;
}

/* A rank that the system runs in bursts, with a step of `rate` chunks per second. */
static void throttle(uint32_t ranks, double rate, double quota) {
    scene s;
    const uint32_t count = (uint32_t)(100 + 10 * rate / CHUNKS);
    const double without = seconds_of(&s, ranks - 1, rate, 0, count);
    qn__virtual_team_free(s.team);
    const double with = seconds_of(&s, ranks, rate, quota, count);
    const double chunks = s.team->rank[ranks - 1].spent.chunks / count;
    qn__virtual_team_free(s.team);
    /* All ranks make updates, so the quota slows them whatever the shares are. */
    const double updates = count * UPDATE * (1 / quota - 1);
    const double fair = CHUNKS * quota / (ranks - 1 + quota);
    print_message("%u ranks, quota %.2f, steps of %5.1f ms: %.2f times as long as without the "
                  "rank, updates excluded %.2f; %.1f chunks a step, fair %.1f\n",
                  ranks, quota, 1e3 * without / count, with / without, (with - updates) / without,
                  chunks, fair);
    assert_true(with < 1.3 * without + updates);
    assert_true(chunks < 1.5 * fair);
}

static void test_a_throttled_rank(void **state) {
    (void)state;
    static const double rates[] = {40000, 12000, 4000, 1000, 300, 40};
    static const double quotas[] = {0.05, 0.1, 0.2, 0.5};
    for (uint32_t ranks = 2; ranks <= 3; ++ranks)
        for (size_t q = 0; q < sizeof quotas / sizeof *quotas; ++q)
            for (size_t i = 0; i < sizeof rates / sizeof *rates; ++i)
                throttle(ranks, rates[i], quotas[q]);
}

/* The quota ends: within some seconds the rank has its share again. */
static void test_a_quota_that_ends(void **state) {
    (void)state;
    scene s;
    seconds_of(&s, 3, 4000, 0.05, 300);
    assert_true(s.team->rank[2].share < 3);
    s.worker[2].period = 0;
    const double ended = s.team->now;
    while (s.team->now < ended + 10)
        steps(&s, 1);
    assert_in_range(s.team->rank[2].share, 20, 23);
    qn__virtual_team_free(s.team);
}

/* A rank whose single chunk takes longer than a step of the others is tried again repeatedly, for
 * at most 2 % of the time. */
static void test_trials_cost_little(void **state) {
    (void)state;
    static const double slow[] = {0.4, 4, 40, 150};
    for (size_t i = 0; i < sizeof slow / sizeof *slow; ++i) {
        const double rates[] = {4000, 4000, slow[i]};
        scene s;
        begin(&s, rates, 3);
        steps(&s, 50);
        const double begun = s.team->now;
        s.team->rank[2].spent.chunks = 0;
        steps(&s, 200000);
        const double part = (s.team->now - begun) / (200000 * CHUNKS / 8000.0);
        print_message("%g chunks a second: %.0f chunks tried, %.4f times as long\n", slow[i],
                      s.team->rank[2].spent.chunks, part);
        assert_true(s.team->rank[2].spent.chunks > 0);
        assert_true(part < 1.02);
        qn__virtual_team_free(s.team);
    }
}

static void test_every_second_is_accounted_for(void **state) {
    (void)state;
    scene s;
    begin(&s, one_two_four, 3);
    s.team->network = (qn__virtual_network){0.05, 1e6, 1e-5, 1e-4};
    for (uint32_t r = 0; r < 3; ++r) {
        s.worker[r].noise = 0.1;
        s.team->rank[r].update = 0.001 * r;
        s.team->rank[r].memory = 1e8;
        s.team->rank[r].machine = r / 2;
    }
    s.team->rank[1].dies_at = 2; /* two machines are left, which take a while to agree */
    steps(&s, 30);
    double chunks = 0, recovering = 0;
    for (uint32_t r = 0; r < 3; ++r) {
        const qn__virtual_rank *k = &s.team->rank[r];
        const qn__virtual_spent *p = &k->spent;
        chunks += p->chunks;
        recovering += p->recovering;
        if (k->alive)
            assert_true(fabs(p->computing + p->waiting + p->exchanging + p->updating +
                             p->recovering - k->at) < 1e-9);
    }
    assert_int_equal(s.team->deaths, 1);
    assert_true(recovering > 0);
    assert_false(s.team->rank[1].alive);
    assert_true(s.team->chunks_again > 0 && s.team->chunks_again < CHUNKS);
    assert_true(fabs(chunks - 30 * CHUNKS - s.team->chunks_again) < 1e-9);
    qn__virtual_team_free(s.team);
}

/* The bytes follow from the segments: each machine sends all segments but its own once, and its own
 * to all others. */
static void test_bytes_over_the_network(void **state) {
    (void)state;
    static const double rates[] = {100, 100, 100, 100};
    scene s;
    begin(&s, rates, 4);
    s.team->network = (qn__virtual_network){.latency = 0.5, .bandwidth = 1000};
    qn__virtual_network *n = &s.team->network;
    /* Four machines: 2 x 8000 x 3/4 bytes out of each, and two latencies. */
    assert_true(fabs(qn__virtual_exchange(s.team) - (2 * 0.5 + 2 * 8000 * 0.75 / 1000)) < 1e-9);
    steps(&s, 1);
    assert_true(fabs(s.team->rank[3].spent.bytes_out - 12000) < 1e-9);
    /* Two machines of two ranks each. */
    s.team->rank[1].machine = 0;
    s.team->rank[2].machine = s.team->rank[3].machine = 1;
    assert_true(fabs(qn__virtual_exchange(s.team) - (2 * 0.5 + 2 * 8000 * 0.5 / 1000)) < 1e-9);
    /* One machine: nothing is sent; each adds four parts of its segment: 8000 + 2000 bytes. */
    s.team->rank[2].machine = s.team->rank[3].machine = 0;
    for (uint32_t r = 0; r < 4; ++r)
        s.team->rank[r].memory = 1e4;
    n->local = 0.25;
    assert_true(fabs(qn__virtual_exchange(s.team) - (2 * 0.25 + 1.0)) < 1e-9);
    qn__virtual_team_free(s.team);
}

static void test_all_may_die(void **state) {
    (void)state;
    scene s;
    qn_error err;
    begin(&s, one_two_four, 3);
    for (uint32_t r = 0; r < 3; ++r)
        s.team->rank[r].dies_at = 0.5 + r;
    qn_status status = QN_OK;
    for (int i = 0; i < 1000 && status == QN_OK; ++i)
        status = qn__virtual_reduction(s.team, CHUNKS, &err);
    assert_int_equal(status, QN_CLUSTER);
    assert_true(s.team->now > 1.5 && s.team->now <= 2.5);
    qn__virtual_team_free(s.team);
}

/* The same numbers every time. */
static void test_a_repeat_is_equal(void **state) {
    (void)state;
    double now[2];
    for (int i = 0; i < 2; ++i) {
        scene s;
        begin(&s, one_two_four, 3);
        for (uint32_t r = 0; r < 3; ++r)
            s.worker[r].noise = 0.2;
        steps(&s, 100);
        now[i] = s.team->now;
        qn__virtual_team_free(s.team);
    }
    assert_memory_equal(&now[0], &now[1], sizeof now[0]);
}

static void test_measured_calls(void **state) {
    (void)state;
    const qn__virtual_calls c = {.count = 3, .grains = {2, 4, 8}, .seconds = {1.0, 1.5, 3.5}};
    assert_true(fabs(qn__virtual_took(&c, 1) - 0.5) < 1e-12);
    assert_true(fabs(qn__virtual_took(&c, 3) - 1.25) < 1e-12);
    assert_true(fabs(qn__virtual_took(&c, 4) - 1.5) < 1e-12);
    assert_true(fabs(qn__virtual_took(&c, 6) - 2.5) < 1e-12);
    assert_true(fabs(qn__virtual_took(&c, 16) - 7.5) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unequal_ranks),
        cmocka_unit_test(test_the_first_steps_cost_little),
        cmocka_unit_test(test_a_rank_that_slows_down),
        cmocka_unit_test(test_a_rank_that_recovers),
        cmocka_unit_test(test_a_throttled_rank),
        cmocka_unit_test(test_a_quota_that_ends),
        cmocka_unit_test(test_trials_cost_little),
        cmocka_unit_test(test_every_second_is_accounted_for),
        cmocka_unit_test(test_bytes_over_the_network),
        cmocka_unit_test(test_all_may_die),
        cmocka_unit_test(test_a_repeat_is_equal),
        cmocka_unit_test(test_measured_calls),
    };
    return cmocka_run_group_tests_name("virtual_ranks", tests, NULL, NULL);
}
