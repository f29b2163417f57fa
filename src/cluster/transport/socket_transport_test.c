/* The transport between connected ranks: messages of all sizes, deaths, silences, evictions, file
 * descriptors, and the CPU time of an idle rank. Ranks are threads of this process, or processes of
 * their own if they have to die. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/rendezvous/rendezvous_case_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ------------------------------------------------------------------------------------- messages */

/* machines: one, three, and two of which one holds two ranks. */
static void test_messages_arrive_whole_and_in_order(void **state) {
    (void)state;
    static const char *const machines[] = {NULL, "abc", "aab"};
    for (size_t i = 0; i < 3; ++i) {
        group g;
        group_join(&g, 3, machines[i]);
        group_listen(&g);
        group_exchange(&g, 500);
        group_end(&g);
    }
}

/* The counter is updated after the last byte was sent, possibly after the peer has read it. */
static uint64_t bytes_out(const member *m, uint64_t expected) {
    const double until = qn__now() + LONG;
    uint64_t out, in;
    do {
        qn__rendezvous_bytes(&m->rendezvous, &out, &in);
    } while (out < expected && qn__now() < until && usleep(200) == 0);
    return out;
}

static void test_big_messages(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 4095, 4096, 70000, 3200000, 50000001, 0, 16384, 16344};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int apart = 0; apart < 2; ++apart) {
        group g;
        group_join(&g, 2, apart ? "ab" : NULL);
        group_listen(&g);
        uint64_t total = 0;
        for (uint32_t i = 0; i < SIZES; ++i) {
            total += sizes[i];
            member_send(&g.member[0], 1, i, sizes[i]);
            member_send(&g.member[1], 0, i, sizes[i]);
        }
        for (uint32_t r = 0; r < 2; ++r) {
            assert_true(wait_for(&g.member[r].messages[1 - r], SIZES, LONG));
            assert_int_equal(atomic_load(&g.member[r].wrong), 0);
            assert_int_equal(atomic_load(&g.member[r].body_bytes[1 - r]), total);
            const uint64_t all = apart ? total + SIZES * QN__FRAME_BYTES : 0;
            assert_int_equal(bytes_out(&g.member[r], all), all);
            uint64_t out, in;
            qn__rendezvous_bytes(&g.member[r].rendezvous, &out, &in);
            assert_int_equal(in, all);
        }
        group_end(&g);
    }
}

/* Messages sent before goodbye arrive, also if the receiver was busy meanwhile. */
static void test_nothing_is_lost_by_leaving(void **state) {
    (void)state;
    for (int apart = 0; apart < 2; ++apart) {
        group g;
        group_join(&g, 2, apart ? "ab" : NULL);
        member_listen(&g.member[0]);
        for (uint32_t i = 0; i < 100; ++i)
            member_send(&g.member[0], 1, i, 100000);
        pthread_create(&g.member[0].thread, NULL, member_ends, &g.member[0]);
        usleep(50000);
        member_listen(&g.member[1]);
        assert_int_equal(wait_gone(&g.member[1], 0, LONG), QN__GONE_LEFT);
        assert_int_equal(atomic_load(&g.member[1].messages[0]), 100);
        assert_int_equal(atomic_load(&g.member[1].wrong), 0);
        pthread_join(g.member[0].thread, NULL);
        qn__rendezvous_end(&g.member[1].rendezvous);
    }
}

/* Many threads send at once; the order of each thread is kept. */
typedef struct crowd {
    member *m;
    atomic_uint *next;
    pthread_mutex_t *turn;
} crowd;

static void *sends_many(void *argument) {
    const crowd *c = argument;
    for (int i = 0; i < 500; ++i) {
        pthread_mutex_lock(c->turn); /* so that numbers and messages have one order */
        member_send(c->m, 1, atomic_fetch_add(c->next, 1), (uint64_t)i * 100);
        pthread_mutex_unlock(c->turn);
    }
    return NULL;
}

static void test_any_thread_may_send(void **state) {
    (void)state;
    pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    atomic_uint next;
    pthread_t thread[4];
    group g;
    group_join(&g, 2, NULL);
    group_listen(&g);
    atomic_init(&next, 0);
    crowd c = {&g.member[0], &next, &turn};
    for (int i = 0; i < 4; ++i)
        pthread_create(&thread[i], NULL, sends_many, &c);
    for (int i = 0; i < 4; ++i)
        pthread_join(thread[i], NULL);
    assert_true(wait_for(&g.member[1].messages[0], 2000, LONG));
    assert_int_equal(atomic_load(&g.member[1].wrong), 0);
    group_end(&g);
}

static void test_ticks_and_wakes(void **state) {
    (void)state;
    group g;
    group_prepare(&g, 2);
    g.member[0].options.rank_timeout = g.member[1].options.rank_timeout = 2;
    group_start(&g, 0);
    group_listen(&g);
    assert_true(wait_for(&g.member[0].ticks, 10, LONG));
    qn__transport *transport = g.member[0].rendezvous.transport;
    for (int i = 0; i < 20; ++i) {
        const unsigned before = atomic_load(&g.member[0].ticks);
        transport->calls->wake(transport);
        assert_true(wait_for(&g.member[0].ticks, before + 1, LONG));
    }
    assert_true(transport->calls->now(transport) <= qn__now());
    group_end(&g);
}

/* ----------------------------------------------------------------------------- file descriptors */

static void test_file_descriptors(void **state) {
    (void)state;
    group g;
    qn_error err;
    group_join(&g, 3, "aab");
    group_listen(&g);
    for (int i = 0; i < 5; ++i) {
        const int file = memfd_create("test", MFD_CLOEXEC);
        assert_int_equal(write(file, &i, sizeof i), sizeof i);
        assert_int_equal(qn__rendezvous_send_file(&g.member[0].rendezvous, 1, file, &err), QN_OK);
        member_send(&g.member[0], 1, (uint64_t)i, 30000);
        close(file);
    }
    for (int i = 0; i < 5; ++i) {
        int value = -1;
        const int file = qn__rendezvous_receive_file(&g.member[1].rendezvous, 0, LONG);
        assert_true(file >= 0);
        assert_int_equal(pread(file, &value, sizeof value, 0), sizeof value);
        assert_int_equal(value, i);
        close(file);
    }
    assert_true(wait_for(&g.member[1].messages[0], 5, LONG));
    assert_int_equal(qn__rendezvous_send_file(&g.member[0].rendezvous, 2, 0, &err), QN_UNSUPPORTED);
    const double begin = qn__now();
    assert_int_equal(qn__rendezvous_receive_file(&g.member[1].rendezvous, 0, 0.2), -1);
    assert_true(qn__now() - begin >= 0.19);
    /* A descriptor that no rank takes is closed with the transport: the build's leak checker
     * verifies it. */
    assert_int_equal(qn__rendezvous_send_file(&g.member[0].rendezvous, 1, 0, &err), QN_OK);
    group_end(&g);
}

/* --------------------------------------------------------------------------- deaths and silence */

/* The last rank of a group as a process of its own: it sends one message to all and then acts as
 * `how` says. */
typedef enum child_kind { CHILD_WAITS, CHILD_SENDS_FOR_EVER } child_kind;

static pid_t child_rank(group *g, child_kind kind) {
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    member *m = &g->member[g->count - 1];
    member_joins(m);
    if (m->status != QN_OK)
        _exit(3);
    member_listen(m);
    for (uint32_t r = 0; r + 1 < g->count; ++r)
        member_send(m, r, 0, 10);
    for (uint64_t i = 1; kind == CHILD_SENDS_FOR_EVER && i < 100000; ++i)
        for (uint32_t r = 0; r + 1 < g->count; ++r)
            member_send(m, r, i, 50000);
    for (int i = 0; i < 600 && atomic_load(&m->evicted_by) == UINT32_MAX; ++i)
        usleep(100000);
    _exit(atomic_load(&m->evicted_by) == 0 ? 42 : 4);
}

static pid_t group_with_child(group *g, uint32_t count, const char *machines, double rank_timeout,
                              child_kind kind) {
    group_prepare(g, count);
    for (uint32_t r = 0; r < count; ++r) {
        g->member[r].machine[0] = machines ? machines[r] : 0;
        g->member[r].options.rank_timeout = rank_timeout;
    }
    const pid_t pid = child_rank(g, kind);
    assert_true(pid > 0);
    group_start(g, 1u << (count - 1));
    for (uint32_t r = 0; r + 1 < count; ++r) {
        assert_int_equal(g->member[r].status, QN_OK);
        member_listen(&g->member[r]);
    }
    for (uint32_t r = 0; r + 1 < count; ++r)
        assert_true(wait_for(&g->member[r].messages[count - 1], 1, LONG));
    g->count--;
    return pid;
}

static void test_a_death_is_told_at_once(void **state) {
    (void)state;
    double slowest = 0;
    for (int i = 0; i < 12; ++i) {
        group g;
        const pid_t pid = group_with_child(&g, 3, i % 2 ? "abc" : NULL, 20,
                                           i % 4 < 2 ? CHILD_WAITS : CHILD_SENDS_FOR_EVER);
        usleep((useconds_t)i * 2000);
        const double killed = qn__now();
        kill(pid, SIGKILL);
        for (uint32_t r = 0; r < 2; ++r) {
            assert_int_equal(wait_gone(&g.member[r], 2, LONG), QN__GONE_DEAD);
            assert_int_equal(atomic_load(&g.member[r].wrong), 0);
            const double took = atomic_load(&g.member[r].gone_at[2]) - killed;
            slowest = took > slowest ? took : slowest;
            assert_true(took < 15); /* sooner than by its silence */
        }
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        member_send(&g.member[0], 2, 0, 100); /* discarded */
        group_end(&g);
    }
    print_message("a death was known after at most %.2f ms\n", slowest * 1e3);
}

static void test_silence_is_told_and_the_silent_one_hears_that_it_is_out(void **state) {
    (void)state;
    for (int i = 0; i < 2; ++i) {
        group g;
        int status = 0;
        /* Before: on a busy machine it may have been silent for a while when it is stopped. */
        const double begun = qn__now();
        const pid_t pid = group_with_child(&g, 3, i ? "abc" : NULL, 2, CHILD_WAITS);
        kill(pid, SIGSTOP);
        for (uint32_t r = 0; r < 2; ++r) {
            assert_int_equal(wait_gone(&g.member[r], 2, LONG), QN__GONE_SILENT);
            assert_true(atomic_load(&g.member[r].gone_at[2]) - begun > 1.6);
        }
        qn__transport *transport = g.member[0].rendezvous.transport;
        transport->calls->evict(transport, 2, "because");
        usleep(300000);
        kill(pid, SIGCONT);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 42);
        for (uint32_t r = 0; r < 2; ++r)
            assert_int_equal(atomic_load(&g.member[r].wrong), 0);
        assert_int_equal(atomic_load(&g.member[0].gone[1]), -1);
        group_end(&g);
    }
}

/* 1: nobody was given up. */
static int sleeps_shortly(void) {
    group g;
    int good = 1;
    const pid_t pid = group_with_child(&g, 3, "aab", 3, CHILD_WAITS);
    kill(pid, SIGSTOP);
    usleep(1800000);
    kill(pid, SIGCONT);
    usleep(1700000);
    for (uint32_t r = 0; r < 2; ++r)
        good &= atomic_load(&g.member[r].gone[2]) == -1;
    kill(pid, SIGKILL);
    for (uint32_t r = 0; good && r < 2; ++r)
        assert_int_equal(wait_gone(&g.member[r], 2, LONG), QN__GONE_DEAD);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    group_end(&g);
    return good;
}

/* On a busy machine the sleep may be too long: one good run of several is enough. */
static void test_a_short_sleep_harms_nobody(void **state) {
    (void)state;
    int good = 0;
    for (int i = 0; i < 6 && !good; ++i)
        good = sleeps_shortly();
    assert_true(good);
}

static void test_evicting_a_live_rank(void **state) {
    (void)state;
    for (int apart = 0; apart < 2; ++apart) {
        group g;
        group_join(&g, 3, apart ? "abc" : NULL);
        group_listen(&g);
        group_exchange(&g, 10);
        qn__transport *transport = g.member[1].rendezvous.transport;
        transport->calls->evict(transport, 2, "because");
        assert_int_equal(wait_gone(&g.member[2], 1, LONG), QN__GONE_SILENT);
        assert_int_equal(atomic_load(&g.member[2].evicted_by), 1);
        assert_int_equal(atomic_load(&g.member[2].wrong), 0);
        usleep(100000);
        assert_int_equal(atomic_load(&g.member[1].gone[2]),
                         -1); /* the evicting rank gets no event */
        assert_int_equal(atomic_load(&g.member[0].gone[2]), -1);
        group_end(&g);
    }
}

/* ----------------------------------------------------------------------------------------- cost */

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void test_idle_ranks_sleep(void **state) {
    (void)state;
    group g;
    group_join(&g, 8, "aabbccdd");
    group_listen(&g);
    usleep(100000);
    const double before = cpu_seconds();
    usleep(2000000);
    const double used = cpu_seconds() - before;
    print_message("8 idle ranks used %.1f ms of processor in 2 s\n", used * 1e3);
    assert_true(used < 0.5);
    group_end(&g);
}

/* A round trip between the ranks' own threads: the cost of a small message. */
typedef struct court {
    qn__rendezvous *side;
    atomic_uint count;
} court;

static void returns_it(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    court *c = user;
    qn__transport *transport = c->side->transport;
    qn__buffer_drop(body);
    if (atomic_fetch_add(&c->count, 1) < 2000)
        transport->calls->send(transport, from, head, NULL);
}

static void ignores_gone(void *user, uint32_t rank, qn__loss_kind how) {
    (void)user;
    (void)rank;
    (void)how;
}

static void test_latency(void **state) {
    (void)state;
    for (int apart = 0; apart < 2; ++apart) {
        group g;
        court c[2];
        group_join(&g, 2, apart ? "ab" : NULL);
        for (int r = 0; r < 2; ++r) {
            c[r].side = &g.member[r].rendezvous;
            atomic_init(&c[r].count, 0);
            const qn__transport_events events = {&c[r], returns_it, ignores_gone, NULL,
                                                 NULL,  NULL,       NULL};
            assert_int_equal(qn__rendezvous_listen(c[r].side, &events, NULL), QN_OK);
        }
        const double begin = qn__now();
        const qn__head head = {.type = 40};
        qn__transport *transport = c[0].side->transport;
        transport->calls->send(transport, 1, &head, NULL);
        assert_true(wait_for(&c[0].count, 2000, LONG));
        print_message("a message there and back over %s: %.1f us\n", apart ? "TCP" : "Unix",
                      (qn__now() - begin) / 2000 * 1e6);
        group_end(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_arrive_whole_and_in_order),
        cmocka_unit_test(test_big_messages),
        cmocka_unit_test(test_nothing_is_lost_by_leaving),
        cmocka_unit_test(test_any_thread_may_send),
        cmocka_unit_test(test_ticks_and_wakes),
        cmocka_unit_test(test_file_descriptors),
        cmocka_unit_test(test_a_death_is_told_at_once),
        cmocka_unit_test(test_silence_is_told_and_the_silent_one_hears_that_it_is_out),
        cmocka_unit_test(test_a_short_sleep_harms_nobody),
        cmocka_unit_test(test_evicting_a_live_rank),
        cmocka_unit_test(test_idle_ranks_sleep),
        cmocka_unit_test(test_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
