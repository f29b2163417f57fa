/* The queue of grains: sizes that follow measured speeds, lost grains, slow workers, and many
 * threads at once. Speeds are told to the queue, so nothing here depends on how fast the machine
 * is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "team/queue.h"
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { MOST_GRAINS = 4096 };

/* Makes the worker's measured speed `rate` grains a second, with a step of one grain. */
static void teach(qn__queue *q, uint32_t worker, double rate) {
    qn__chunk chunk;
    assert_int_equal(qn__queue_fill(q, 1), 0);
    q->rate[worker] = 0;
    assert_int_equal(qn__queue_take(q, worker, &chunk), 1);
    qn__queue_done(q, worker, chunk, 1.0 / rate);
    assert_true(q->rate[worker] == 1.0 / (1.0 / rate));
}

static void begin(qn__queue *q, uint32_t workers, const double *rates) {
    assert_int_equal(qn__queue_begin(q, workers), 0);
    for (uint32_t w = 0; w < workers; ++w)
        teach(q, w, rates[w]);
}

static void test_chunks_follow_the_rates(void **state) {
    (void)state;
    const double rates[] = {300, 100};
    qn__queue q;
    qn__chunk a, b;
    begin(&q, 2, rates);
    assert_int_equal(qn__queue_fill(&q, 400), 0);
    assert_int_equal(qn__queue_take(&q, 0, &a), 1);
    assert_int_equal(a.count, 150); /* half of 3/4 of 400 */
    assert_int_equal(qn__queue_take(&q, 1, &b), 1);
    assert_int_equal(b.count, 31); /* half of 1/4 of 250 */
    assert_int_equal(qn__queue_left(&q), 219);
    assert_true(a.first + a.count <= b.first || b.first + b.count <= a.first);
    qn__queue_done(&q, 0, a, 0.5);
    assert_int_equal(qn__queue_take(&q, 0, &a), 1);
    assert_in_range(a.count, 80, 83); /* 3/8 of 219, as nothing has changed */
    qn__queue_end(&q);
}

static void test_a_new_speed_counts_in_part(void **state) {
    (void)state;
    const double rates[] = {100};
    qn__queue q;
    qn__chunk chunk;
    begin(&q, 1, rates);
    assert_int_equal(qn__queue_fill(&q, 50), 0);
    assert_int_equal(qn__queue_take(&q, 0, &chunk), 1);
    assert_int_equal(chunk.count, 50);  /* alone: everything */
    qn__queue_done(&q, 0, chunk, 0.25); /* 200 a second */
    assert_true(q.rate[0] > 125 && q.rate[0] < 135);
    assert_int_equal(qn__queue_take(&q, 0, &chunk), 0);
    qn__queue_end(&q);
}

static void test_lost_grains_come_back(void **state) {
    (void)state;
    const double rates[] = {100, 100};
    uint8_t covered[100] = {0};
    qn__queue q;
    qn__chunk chunk;
    begin(&q, 2, rates);
    assert_int_equal(qn__queue_fill(&q, 100), 0);
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(qn__queue_take(&q, 0, &chunk), 1);
        if (i < 2) /* the third one is under way when the worker is lost */
            qn__queue_done(&q, 0, chunk, 0.01);
    }
    assert_true(qn__queue_left(&q) < 60);
    qn__queue_lose(&q, 0);
    assert_int_equal(qn__queue_left(&q), 100);
    assert_int_equal(qn__queue_take(&q, 0, &chunk), 0);
    while (qn__queue_take(&q, 1, &chunk)) {
        for (uint32_t g = chunk.first; g < chunk.first + chunk.count; ++g)
            covered[g] += 1;
        qn__queue_done(&q, 1, chunk, 0.01);
    }
    for (int g = 0; g < 100; ++g)
        assert_int_equal(covered[g], 1);
    qn__queue_lose(&q, 1);
    assert_int_equal(qn__queue_left(&q), 100); /* nobody is left to compute them */
    qn__queue_end(&q);
}

/* A driver that takes until there is nothing, and computes in no time. */
typedef struct driver {
    qn__queue *queue;
    uint32_t worker, lost_after; /* chunks; 0: never */
    double rate;                 /* what it says of its speed */
    uint32_t grains, chunks;
    atomic_int *covered; /* of each grain, or NULL */
    pthread_t thread;
} driver;

static void *drive(void *context) {
    driver *d = context;
    qn__chunk chunk;
    uint8_t own[MOST_GRAINS] = {0};
    while (qn__queue_take(d->queue, d->worker, &chunk)) {
        d->chunks += 1;
        sched_yield();
        if (d->chunks == d->lost_after) {
            qn__queue_lose(d->queue, d->worker);
            return NULL; /* and with it all that it computed */
        }
        d->grains += chunk.count;
        memset(own + chunk.first, 1, chunk.count);
        qn__queue_done(d->queue, d->worker, chunk, chunk.count / d->rate);
    }
    for (int g = 0; d->covered && g < MOST_GRAINS; ++g)
        d->covered[g] += own[g];
    return NULL;
}

static void run(driver *drivers, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
        assert_int_equal(pthread_create(&drivers[i].thread, NULL, drive, &drivers[i]), 0);
    for (uint32_t i = 0; i < count; ++i)
        pthread_join(drivers[i].thread, NULL);
}

static void test_a_slow_worker_is_left_out(void **state) {
    (void)state;
    const double rates[] = {1, 1000};
    qn__queue q;
    begin(&q, 2, rates);
    for (int step = 0; step < 20; ++step) {
        /* The slow one mostly asks first, since its thread is started first. */
        driver drivers[] = {{.queue = &q, .worker = 0, .rate = 1},
                            {.queue = &q, .worker = 1, .rate = 1000}};
        assert_int_equal(qn__queue_fill(&q, 50), 0);
        run(drivers, 2);
        assert_int_equal(drivers[0].grains, 0);
        assert_int_equal(drivers[1].grains, 50);
    }
    qn__queue_end(&q);
}

static void test_a_worker_left_out_is_tried_again(void **state) {
    (void)state;
    const double rates[] = {1, 1000};
    qn__queue q;
    uint32_t slow = 0;
    begin(&q, 2, rates);
    for (int step = 0; step < 100; ++step) {
        driver drivers[] = {{.queue = &q, .worker = 0, .rate = 1},
                            {.queue = &q, .worker = 1, .rate = 1000}};
        assert_int_equal(qn__queue_fill(&q, 50), 0);
        run(drivers, 2);
        assert_int_equal(drivers[0].grains + drivers[1].grains, 50);
        slow += drivers[0].grains;
    }
    assert_in_range(slow, 1, 4);
    qn__queue_end(&q);
}

static void test_equal_workers_share_the_last_grains(void **state) {
    (void)state;
    const double rates[] = {10, 10, 10, 10};
    qn__queue q;
    qn__chunk chunk;
    begin(&q, 4, rates);
    assert_int_equal(qn__queue_fill(&q, 3), 0);
    /* None waits for another: three take one each. */
    for (uint32_t w = 0; w < 3; ++w) {
        assert_int_equal(qn__queue_take(&q, w, &chunk), 1);
        assert_int_equal(chunk.count, 1);
    }
    assert_int_equal(qn__queue_left(&q), 0);
    qn__queue_end(&q);
}

static void test_nobody_waits_for_the_lost(void **state) {
    (void)state;
    const double rates[] = {1, 1000};
    qn__queue q;
    begin(&q, 2, rates);
    assert_int_equal(qn__queue_fill(&q, 5), 0);
    driver drivers[] = {{.queue = &q, .worker = 0, .rate = 1},
                        {.queue = &q, .worker = 1, .rate = 1000, .lost_after = 1}};
    run(drivers, 2);
    assert_int_equal(drivers[0].grains, 5);
    qn__queue_end(&q);
}

/* Every grain is in the hands of exactly one worker that is left, whoever was lost and when. */
static void test_nothing_is_lost_under_threads(void **state) {
    (void)state;
    enum { WORKERS = 6, ROUNDS = 150 };
    static atomic_int covered[MOST_GRAINS];
    for (uint32_t round = 0; round < ROUNDS; ++round) {
        const uint32_t grains = 1 + round * 977 % MOST_GRAINS;
        driver drivers[WORKERS] = {0};
        qn__queue q;
        assert_int_equal(qn__queue_begin(&q, WORKERS), 0);
        assert_int_equal(qn__queue_fill(&q, grains), 0);
        memset(covered, 0, sizeof covered);
        for (uint32_t w = 0; w < WORKERS; ++w)
            drivers[w] = (driver){.queue = &q,
                                  .worker = w,
                                  .rate = 10.0 * (1 + (round * 7 + w * 5) % 11),
                                  .lost_after = w && (round >> (w - 1)) % 2 ? 1 + round % 5 : 0,
                                  .covered = covered};
        run(drivers, WORKERS);
        assert_int_equal(qn__queue_left(&q), 0);
        for (uint32_t g = 0; g < MOST_GRAINS; ++g)
            if (covered[g] != (g < grains))
                fail_msg("round %u: grain %u of %u was computed %d times", round, g, grains,
                         (int)covered[g]);
        qn__queue_end(&q);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks_follow_the_rates),
        cmocka_unit_test(test_a_new_speed_counts_in_part),
        cmocka_unit_test(test_lost_grains_come_back),
        cmocka_unit_test(test_a_slow_worker_is_left_out),
        cmocka_unit_test(test_a_worker_left_out_is_tried_again),
        cmocka_unit_test(test_equal_workers_share_the_last_grains),
        cmocka_unit_test(test_nobody_waits_for_the_lost),
        cmocka_unit_test(test_nothing_is_lost_under_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
