/* Ranks as processes that are killed with SIGKILL: the remaining ranks continue with the right
 * sums. Also measures how long that takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/system/clock.h"
#include "cluster/thread_ranks_test.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { MOST = 8 };

/* Results of the processes, in memory shared with the test. */
typedef struct results {
    atomic_uint ready;
    struct {
        atomic_uint reduction, right, wrong, spoke, recoveries;
        atomic_int status, over, code;
        _Atomic double longest;
        char what[256];
    } rank[MOST];
} results;

typedef struct course {
    uint32_t ranks, reductions;
    uint64_t words;
    const char *machines;
    double pause; /* seconds that a chunk takes */
    results *results;
    char place[32];
    pid_t process[MOST];
    uint64_t seed;
} course;

enum { CHUNKS = 24 };

static uint32_t draw(course *c) {
    c->seed = c->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->seed >> 33);
}

static void nap(double seconds) {
    const struct timespec time = {(time_t)seconds,
                                  (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* For each chunk one word counts it; all other words are a sum over chunks. */
static void compute(int64_t *part, uint64_t words, uint32_t reduction, qn__chunk_range range) {
    uint64_t sum = 0;
    for (uint32_t u = range.first; u < range.first + range.count; ++u) {
        part[u] += 1;
        sum += u + 1;
    }
    for (uint64_t w = CHUNKS; w < words; ++w)
        part[w] += (int64_t)(sum * (w ^ reduction));
}

static int is_right(const int64_t *total, uint64_t words, uint32_t reduction) {
    for (uint64_t w = 0; w < words; ++w)
        if (total[w] != (w < CHUNKS ? 1 : (int64_t)((w ^ reduction) * (CHUNKS * (CHUNKS + 1) / 2))))
            return 0;
    return 1;
}

static qn_status one_reduction(const course *c, qn_cluster *cluster, uint32_t reduction,
                               const int64_t **total, qn_error *err) {
    const qn__reduction what = {.kind = QN__REDUCTION_STEP, .words = c->words, .chunks = CHUNKS};
    qn_status status = qn__reduction_begin(cluster, &what, err);
    uint32_t held = 0;
    int more = 1;
    if (status != QN_OK)
        return status;
    int64_t *part = qn__reduction_part(cluster);
    memset(part, 0, c->words * sizeof *part);
    while (status == QN_OK && more) {
        qn__chunk_range range;
        while (qn__reduction_chunks(cluster, &range)) {
            compute(part, c->words, reduction, range);
            held += range.count;
            nap(c->pause * range.count);
        }
        qn__reduction_final(cluster, c->words / 2, c->words - c->words / 2, held);
        status = qn__reduction_finish(cluster, held, &more, total, err);
    }
    return status;
}

static qn_status all_reductions(course *c, uint32_t rank, qn_cluster *cluster, qn_error *err) {
    results *t = c->results;
    for (uint32_t reduction = 0; reduction < c->reductions; ++reduction) {
        const int64_t *total;
        atomic_store(&t->rank[rank].reduction, reduction);
        const qn_status status = one_reduction(c, cluster, reduction, &total, err);
        if (status != QN_OK)
            return status;
        if (is_right(total, c->words, reduction))
            atomic_fetch_add(&t->rank[rank].right, 1);
        else
            atomic_fetch_add(&t->rank[rank].wrong, 1);
    }
    return QN_OK;
}

static void be_rank(course *c, uint32_t rank) {
    results *t = c->results;
    const char name[2] = {c->machines[rank], 0};
    qn_cluster_options o;
    qn_cluster *cluster;
    qn_error err = {0};
    qn__rank_traffic traffic;
    int code = -1;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    qn_cluster_options_init(&o);
    o.rendezvous = c->place;
    o.ranks = c->ranks;
    o.rank = rank;
    o.rendezvous_timeout = 60;
    o.rank_timeout = 5;
    qn__rendezvous_simulate(name[0] == 'A' ? NULL : name);
    qn_status status = qn_cluster_join(&o, &cluster, &err);
    atomic_fetch_add(&t->ready, 1);
    if (status == QN_OK)
        status = all_reductions(c, rank, cluster, &err);
    if (cluster) {
        qn__cluster_traffic(cluster, &traffic);
        atomic_store(&t->rank[rank].longest, traffic.longest);
        atomic_store(&t->rank[rank].recoveries, traffic.recoveries);
        while (!qn_cluster_over(cluster, &code)) {
            atomic_fetch_add(&t->rank[rank].spoke, 1);
            nap(c->pause);
            qn_cluster_finish(cluster, 5);
        }
        atomic_store(&t->rank[rank].over, 1);
    }
    memcpy(t->rank[rank].what, err.what, sizeof t->rank[rank].what - 1);
    atomic_store(&t->rank[rank].status, (int)status);
    atomic_store(&t->rank[rank].code, code);
    qn_cluster_leave(cluster);
    _exit(0);
}

static void start(course *c) {
    c->results =
        mmap(NULL, sizeof *c->results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(c->results != MAP_FAILED);
    snprintf(c->place, sizeof c->place, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < c->ranks; ++r) {
        c->process[r] = fork();
        assert_true(c->process[r] >= 0);
        if (c->process[r] == 0)
            be_rank(c, r);
    }
    const double begun = qn__now();
    while (atomic_load(&c->results->ready) < c->ranks && qn__now() - begun < 60)
        nap(1e-3);
    assert_int_equal(atomic_load(&c->results->ready), c->ranks);
}

static void print(const course *c) {
    for (uint32_t r = 0; r < c->ranks; ++r)
        print_error("rank %u: reduction %u, %u right, %u wrong, status %d, over %d, code %d: %s\n",
                    r, c->results->rank[r].reduction, c->results->rank[r].right,
                    c->results->rank[r].wrong, c->results->rank[r].status, c->results->rank[r].over,
                    c->results->rank[r].code, c->results->rank[r].what);
}

/* Waits for the ranks of `left`, which must finish within a minute. */
static void await_all(course *c, unsigned left) {
    const double begun = qn__now();
    for (uint32_t r = 0; r < c->ranks; ++r) {
        int done = !c->process[r];
        while (!done && qn__now() - begun < 60) {
            done = waitpid(c->process[r], NULL, WNOHANG) == c->process[r];
            if (!done)
                nap(1e-3);
        }
        if (!done) {
            print(c);
            for (uint32_t k = 0; k < c->ranks; ++k)
                if (c->process[k])
                    kill(c->process[k], SIGKILL);
            fail_msg("rank %u hangs", r);
        }
        c->process[r] = 0;
    }
    for (uint32_t r = 0; r < c->ranks; ++r)
        if (left >> r & 1 &&
            (c->results->rank[r].right != c->reductions || c->results->rank[r].wrong ||
             !c->results->rank[r].over || c->results->rank[r].code != 5)) {
            print(c);
            fail_msg("rank %u did not end well", r);
        }
}

static void kill_rank(course *c, uint32_t rank) {
    if (!c->process[rank])
        return;
    kill(c->process[rank], SIGKILL);
    waitpid(c->process[rank], NULL, 0);
    c->process[rank] = 0;
}

static uint32_t cases(uint32_t usual) {
    const char *text = getenv("QN_TEST_CASES");
    return text ? (uint32_t)strtoul(text, NULL, 10) : usual;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void test_kills_at_any_moment(void **state) {
    (void)state;
    static const char *const machines[] = {"AAAA", "AABB", "ABCD", "ABAB", "AAAB"};
    double longest[1000];
    uint32_t count = 0;
    for (uint32_t i = 0; i < cases(40); ++i) {
        course c = {.reductions = 60,
                    .words = i % 4 == 3 ? 150000 : 2000,
                    .pause = 1e-4,
                    .seed = i + 1,
                    .machines = machines[i % 5]};
        c.ranks = 2 + i % 3;
        start(&c);
        unsigned left = (1u << c.ranks) - 1;
        const uint32_t deaths = 1 + draw(&c) % (c.ranks - 1);
        for (uint32_t k = 0; k < deaths; ++k) {
            const uint32_t who = draw(&c) % c.ranks;
            nap(draw(&c) % 100 * 5e-4 / deaths);
            if ((left & ~(1u << who)) == 0)
                continue;
            left &= ~(1u << who);
            kill_rank(&c, who);
        }
        await_all(&c, left);
        for (uint32_t r = 0; r < c.ranks && count < 1000; ++r)
            if (left >> r & 1 && c.results->rank[r].recoveries)
                longest[count++] = c.results->rank[r].longest;
        munmap(c.results, sizeof *c.results);
    }
    qsort(longest, count, sizeof *longest, by_size);
    if (count)
        print_message("from the notice of a death to going on: median %.2f ms, longest %.2f ms\n",
                      1e3 * longest[count / 2], 1e3 * longest[count - 1]);
}

/* Returns 0 when the rank was stopped too late: it had done nearly all. */
static int sleeper_leaves(uint32_t who, uint32_t reductions) {
    course c = {
        .reductions = reductions, .words = 100000, .pause = 1e-4, .ranks = 3, .machines = "AAB"};
    start(&c);
    const double begun = qn__now();
    while (atomic_load(&c.results->rank[who].reduction) < 3 && qn__now() - begun < 60)
        nap(1e-4);
    kill(c.process[who], SIGSTOP);
    const double stopped = qn__now();
    const uint32_t other = who ? 0 : 1;
    const int early = atomic_load(&c.results->rank[who].reduction) + 10 < c.reductions;
    const uint32_t was = atomic_load(&c.results->rank[other].reduction);
    while (early && atomic_load(&c.results->rank[other].reduction) < was + 3 &&
           qn__now() - stopped < 60)
        nap(1e-3);
    print_message("rank %u was missed for %.2f s\n", who, qn__now() - stopped);
    kill(c.process[who], SIGCONT);
    await_all(&c, early ? 7u & ~(1u << who) : 0);
    if (early) {
        assert_int_equal(c.results->rank[who].spoke, 0);
        assert_int_equal(c.results->rank[who].status, QN_CLUSTER);
        assert_int_equal(c.results->rank[who].code, 0);
    }
    munmap(c.results, sizeof *c.results);
    return early;
}

/* A stopped rank counts as dead after a timeout; when it continues it leaves. A test that waited
 * for a processor until the rank was done needs a longer run. */
static void test_a_sleeper_leaves(void **state) {
    (void)state;
    for (uint32_t who = 0; who < 3; who += 2) {
        uint32_t reductions = cases(40) < 40 ? 100 : 1000;
        for (; !sleeper_leaves(who, reductions) && reductions < 100000; reductions *= 4)
            ;
        assert_true(reductions < 100000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills_at_any_moment),
        cmocka_unit_test(test_a_sleeper_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
