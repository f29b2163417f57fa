/* The pool and its barrier: every thread must see the full count of every round, also with more
 * threads than cores. A pool may be destroyed as soon as a run has returned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/system/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST = 16, ROUNDS = 10000 };

/* Plain integers on purpose: the barrier guarantees that their values are visible, and without a
 * race that ThreadSanitizer would report. */
typedef struct counts {
    qn__pool *pool;
    int rounds;
    struct {
        _Alignas(64) long value;
    } own[MOST];
    long wrong[MOST];
    double waited[MOST];
} counts;

static void count_rounds(void *context, int thread) {
    counts *c = context;
    const int threads = qn__pool_threads(c->pool);
    for (int round = 1; round <= c->rounds; round++) {
        c->own[thread].value++;
        c->waited[thread] += qn__pool_barrier(c->pool, thread);
        for (int i = 0; i < threads; i++)
            c->wrong[thread] += c->own[i].value != round;
        c->waited[thread] += qn__pool_barrier(c->pool, thread);
    }
}

static void run_rounds(int threads, int rounds, int pin) {
    static counts c;
    c = (counts){.rounds = rounds};
    qn_error err;
    assert_int_equal(qn__pool_create(threads, pin, &c.pool, &err), QN_OK);
    assert_int_equal(qn__pool_threads(c.pool), threads);
    qn__pool_run(c.pool, count_rounds, &c);
    for (int i = 0; i < threads; i++) {
        assert_int_equal(c.own[i].value, rounds);
        assert_int_equal(c.wrong[i], 0);
        assert_true(c.waited[i] >= 0 && c.waited[i] < 1000);
    }
    qn__pool_destroy(c.pool);
}

static void test_every_thread_sees_every_round(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 7, 16};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        run_rounds(threads[i], ROUNDS, 0);
}

static void test_bound_threads(void **state) {
    (void)state;
    run_rounds(qn__cores() < MOST ? qn__cores() : MOST, 1000, 1);
    run_rounds(MOST, 100, 1);
}

static void mark(void *context, int thread) { ((int *)context)[thread]++; }

static void test_results_are_there_when_a_run_returns(void **state) {
    (void)state;
    qn__pool *pool;
    assert_int_equal(qn__pool_create(5, 0, &pool, NULL), QN_OK);
    int marks[5] = {0};
    for (int run = 1; run <= 2000; run++) {
        qn__pool_run(pool, mark, marks);
        for (int i = 0; i < 5; i++)
            assert_int_equal(marks[i], run);
    }
    qn__pool_destroy(pool);
}

static void test_destroy_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 300; i++) {
        int marks[4] = {0};
        qn__pool *pool;
        assert_int_equal(qn__pool_create(1 + i % 4, 0, &pool, NULL), QN_OK);
        if (i % 3 != 0)
            qn__pool_run(pool, mark, marks);
        qn__pool_destroy(pool);
        assert_int_equal(marks[i % 4], i % 3 != 0);
    }
    qn__pool_destroy(NULL);
}

/* Thread 0 arrives late, so that the others sleep; their wait must be measured. */
static void come_late(void *context, int thread) {
    counts *c = context;
    if (thread == 0)
        usleep(30000);
    c->waited[thread] = qn__pool_barrier(c->pool, thread);
}

static void test_waiting_is_measured(void **state) {
    (void)state;
    static counts c;
    c = (counts){0};
    assert_int_equal(qn__pool_create(3, 0, &c.pool, NULL), QN_OK);
    /* On a busy machine another thread may start late as well: one good run of several is
     * enough. */
    int good = 0;
    for (int i = 0; i < 20 && !good; i++) {
        qn__pool_run(c.pool, come_late, &c);
        good = c.waited[0] < 0.02 && c.waited[1] > 0.02 && c.waited[2] > 0.02;
    }
    assert_true(good);
    qn__pool_destroy(c.pool);
}

static void test_caller_keeps_its_cores(void **state) {
    (void)state;
    cpu_set_t before, after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    const int cores = qn__cores();
    int marks[MOST] = {0};
    qn__pool *pool;
    assert_int_equal(qn__pool_create(cores < MOST ? cores : MOST, 1, &pool, NULL), QN_OK);
    qn__pool_run(pool, mark, marks);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(qn__cores(), cores);
    qn__pool_destroy(pool);
}

/* Thread 1 goes to the core of thread 0, where it may run on all cores again. */
typedef struct crowd {
    qn__pool *pool;
    atomic_int caller, apart;
} crowd;

static void come_together(void *context, int thread) {
    crowd *c = context;
    if (thread == 0)
        c->caller = sched_getcpu();
    const int here = sched_getcpu();
    qn__pool_barrier(c->pool, thread);
    cpu_set_t own, one;
    if (thread == 0 || sched_getaffinity(0, sizeof own, &own) != 0)
        return;
    c->apart += here != c->caller;
    CPU_ZERO(&one);
    CPU_SET((size_t)c->caller, &one);
    sched_setaffinity(0, sizeof one, &one);
    sched_setaffinity(0, sizeof own, &own);
}

/* In most runs it leaves that core before it computes. Other programs may move threads too. */
static void test_threads_keep_apart(void **state) {
    (void)state;
    if (qn__cores() < 2)
        skip();
    enum { RUNS = 200 };
    crowd c = {NULL, 0, 0};
    assert_int_equal(qn__pool_create(2, 0, &c.pool, NULL), QN_OK);
    for (int run = 0; run < RUNS; run++)
        qn__pool_run(c.pool, come_together, &c);
    qn__pool_destroy(c.pool);
    assert_in_range(c.apart, RUNS / 2, RUNS);
}

static void test_impossible_numbers_are_refused(void **state) {
    (void)state;
    static const int threads[] = {0, -1, 5000, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        qn_error err;
        int something;
        qn__pool *pool = (qn__pool *)&something;
        assert_int_equal(qn__pool_create(threads[i], 0, &pool, &err), QN_USAGE);
        assert_null(pool);
        assert_true(err.remedy[0] != 0);
    }
}

static void *give_signals(void *set) {
    pthread_sigmask(SIG_SETMASK, NULL, set);
    return NULL;
}

/* Signals from outside go to other threads; a fault of the thread itself reaches its handler. */
static void test_signals_of_a_thread(void **state) {
    (void)state;
    sigset_t set;
    pthread_t thread;
    assert_int_equal(qn__thread_start(&thread, NULL, give_signals, &set), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    static const int outside[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        assert_int_equal(sigismember(&set, outside[i]), 1);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_int_equal(sigismember(&set, own[i]), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    assert_int_equal(sigismember(&set, SIGINT), 0);
}

/* Uses half a megabyte of the stack. */
static void use_stack(void *context, int thread) {
    volatile char bytes[1 << 19];
    for (size_t i = 0; thread > 0 && i < sizeof bytes; i += 1024)
        bytes[i] = (char)i;
    if (thread > 0)
        *(char *)context = bytes[1024];
}

/* A small stack limit is the default of new threads in a process that starts with it; its first
 * thread keeps its own stack. */
static void test_small_default_of_the_stack(void **state) {
    (void)state;
#ifdef __SANITIZE_THREAD__
    skip(); /* the thread sanitizer's own threads need more stack than that default */
#endif
    pthread_attr_t before, small;
    char seen = 1;
    qn__pool *pool;
    assert_int_equal(pthread_getattr_default_np(&before), 0);
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, 1 << 17), 0);
    assert_int_equal(pthread_setattr_default_np(&small), 0);
    assert_int_equal(qn__pool_create(2, 0, &pool, NULL), QN_OK);
    qn__pool_run(pool, use_stack, &seen);
    qn__pool_destroy(pool);
    assert_int_equal(pthread_setattr_default_np(&before), 0);
    assert_int_equal(seen, 0);
}

int main(void) {
    /* First the test whose result an earlier failure could hide. */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caller_keeps_its_cores),
        cmocka_unit_test(test_small_default_of_the_stack),
        cmocka_unit_test(test_every_thread_sees_every_round),
        cmocka_unit_test(test_bound_threads),
        cmocka_unit_test(test_results_are_there_when_a_run_returns),
        cmocka_unit_test(test_destroy_at_once),
        cmocka_unit_test(test_waiting_is_measured),
        cmocka_unit_test(test_threads_keep_apart),
        cmocka_unit_test(test_impossible_numbers_are_refused),
        cmocka_unit_test(test_signals_of_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
