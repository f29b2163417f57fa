/* User kernels as jobs of a team: the results are the same with any number of threads, workers and
 * ranks, whatever is lost. The kernel is a function in C here, so that no compiler is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "userkernel/execution/user_run.h"
#include "ranks_case_test.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { ALL = 30003, RANKS_MOST = 4, GOOD = ALL };
enum { BYTE, WIDE, SUM, LEAST, MOST, COUNT, PARTS };

/* What a run gives, in shared memory where ranks are processes. */
typedef struct results {
    int8_t byte[ALL];
    double wide[ALL];
    double sum;
    float least, most;
    int64_t least_at, most_at, took, count;
} results;

static double wide_of(int64_t i) { return (double)(i * i % 1001) / 8; }

/* Of three items two cancel, and only an exact sum keeps the third. */
static double term_of(int64_t i) { return i % 3 == 2 ? wide_of(i) : i % 3 ? -1e300 : 1e300; }

static float extreme_of(int64_t i) { return (float)((i * 37 + 5) % 5003); }

/* The scalar 0 is an item that divides by zero, and so is the one 100 items after it. The scalar 1
 * is where items of the two halves of the space are counted, or NULL. */
static uint64_t compute(const qn__user_call *call, int64_t first, int64_t count) {
    int8_t *byte = call->array[BYTE];
    double *wide = call->array[WIDE], *term = call->array[SUM];
    float *least = call->array[LEAST], *most = call->array[MOST];
    uint8_t *is_least = call->array[QN__USER_PARTS + LEAST], *counts = call->array[COUNT];
    uint8_t *is_most = call->array[QN__USER_PARTS + MOST];
    const int64_t bad = *(const int64_t *)call->scalar[0];
    _Atomic int64_t *halves = (_Atomic int64_t *)(uintptr_t)call->scalar[1];
    uint64_t fault = 0;
    for (int64_t i = first; i < first + count; ++i) {
        const int64_t k = i - first;
        byte[i] = (int8_t)(i * 7);
        wide[i] = wide_of(i);
        term[k] = term_of(i);
        least[k] = most[k] = extreme_of(i);
        is_least[k] = is_most[k] = i % 4 != 0;
        counts[k] = i % 5 == 0;
        fault |= i == bad || i == bad + 100 ? QN__USER_FAULT_DIVISION : 0;
        if (halves)
            ++halves[i >= ALL / 2];
    }
    return fault;
}

/* By plain loops. */
static void expect(results *r) {
    memset(r, 0, sizeof *r);
    r->least_at = r->most_at = -1;
    for (int64_t i = 0; i < ALL; ++i) {
        r->byte[i] = (int8_t)(i * 7);
        r->wide[i] = wide_of(i);
        r->sum += i % 3 == 2 ? wide_of(i) : 0; /* exact: multiples of 1/8 */
        r->count += i % 5 == 0;
        if (i % 4 == 0)
            continue;
        ++r->took;
        if (r->least_at < 0 || extreme_of(i) < r->least) {
            r->least = extreme_of(i);
            r->least_at = i;
        }
        if (r->most_at < 0 || extreme_of(i) > r->most) {
            r->most = extreme_of(i);
            r->most_at = i;
        }
    }
}

static const qn__user_source source = {
    .dimensions = 1,
    .parts = PARTS,
    .part = {[BYTE] = {.use = QN__USER_OUTPUT, .type = QN__USER_I8, .name = "byte"},
             [WIDE] = {.use = QN__USER_OUTPUT, .type = QN__USER_F64, .name = "wide"},
             [SUM] = {.use = QN__USER_SUM, .type = QN__USER_F64, .name = "sum"},
             [LEAST] = {.use = QN__USER_MIN, .type = QN__USER_F32, .name = "least"},
             [MOST] = {.use = QN__USER_MAX, .type = QN__USER_F32, .name = "most"},
             [COUNT] = {.use = QN__USER_COUNT, .type = QN__USER_U64, .name = "count"}}};

static void take(const qn__user_total *total, results *r) {
    qn__user_total sum = total[SUM];
    uint64_t value;
    assert_true(qn__user_total_value(&sum, &source.part[SUM], &value));
    memcpy(&r->sum, &value, sizeof r->sum);
    memcpy(&r->least, &total[LEAST].value, sizeof r->least);
    memcpy(&r->most, &total[MOST].value, sizeof r->most);
    r->least_at = total[LEAST].item;
    r->most_at = total[MOST].item;
    r->took = (int64_t)total[LEAST].count;
    r->count = (int64_t)total[COUNT].count;
}

/* The job twice by a team, because the second time the speed is known. */
static qn_status run(qn__team *team, qn_cluster *cluster, int64_t grain, int64_t bad, results *r,
                     _Atomic int64_t *halves, qn_error *err) {
    qn__user_job job = {.source = &source,
                        .grain = compute,
                        .array = {[BYTE] = r->byte, [WIDE] = r->wide},
                        .scalar = {&bad, halves},
                        .extent = {1, 1, ALL},
                        .items_of_grain = grain,
                        .cluster = cluster};
    qn_status status = QN_OK;
    for (int again = 0; again < 2 && status == QN_OK; ++again) {
        qn__user_total total[QN__USER_PARTS] = {{.count = 0}};
        memset(r, 0, sizeof *r);
        status = qn__user_job_run(&job, team, total, err);
        if (status == QN_OK)
            take(total, r);
    }
    return status;
}

static qn_status by_team(const qn_compute *compute, const qn__member *members, uint32_t count,
                         int64_t grain, int64_t bad, results *r, _Atomic int64_t *halves,
                         qn_error *err) {
    qn__team *team;
    qn_status status = qn__team_create(NULL, compute, members, count, &team, err);
    if (status != QN_OK)
        return status;
    status = run(team, compute->cluster, grain, bad, r, halves, err);
    qn__team_destroy(team);
    return status;
}

static void test_threads(void **state) {
    static results wanted, got;
    const int64_t grains[] = {0, 1, 1000, ALL, (int64_t)1 << 32};
    qn_error err;
    (void)state;
    expect(&wanted);
    for (int threads = 1; threads <= 3; ++threads)
        for (size_t g = 0; g < sizeof grains / sizeof *grains; ++g) {
            const qn_compute compute = {.size = sizeof compute, .threads = threads};
            assert_int_equal(by_team(&compute, NULL, 0, grains[g], GOOD, &got, NULL, &err), QN_OK);
            assert_memory_equal(&got, &wanted, sizeof got);
            const int64_t bad = 4321 * threads;
            assert_int_equal(by_team(&compute, NULL, 0, grains[g], bad, &got, NULL, &err),
                             QN_NUMERIC);
            assert_string_equal(err.what, "an integer is divided by zero");
            assert_int_equal(strtol(err.where + strlen("item "), NULL, 10), bad);
        }
}

/* Devices of other speeds take part, and are lost at some grain. */
static void test_losses(void **state) {
    static results wanted, got;
    const qn__member members[] = {{.device = qn__device_find("cpu")},
                                  {.device = &qn__fake_device},
                                  {.device = &qn__fake_device, .index = 1}};
    const qn_compute compute = {.size = sizeof compute, .threads = 2};
    qn_error err;
    (void)state;
    expect(&wanted);
    for (uint32_t at = 0; at < 8; ++at) {
        const qn__fake_plan plan = {
            .count = 2,
            .device = {{.rate = 100000, .fail_at = 9 * at}, {.rate = 200000, .fail_at = 5 * at}}};
        qn__fake_set(&plan);
        assert_int_equal(by_team(&compute, members, 3, 0, GOOD, &got, NULL, &err), QN_OK);
        assert_memory_equal(&got, &wanted, sizeof got);
        assert_int_equal(by_team(&compute, members, 3, 0, 77, &got, NULL, &err), QN_NUMERIC);
        assert_string_equal(err.where, "item 77");
    }
    qn__fake_set(NULL);
}

/* --------------------------------------------------------------------------------------- ranks */

typedef struct part {
    results *got;
    int64_t grain, bad;
    _Atomic int64_t *halves;
} part;

static qn_status works(hand *h) {
    const part *p = h->user;
    const qn_compute compute = {.size = sizeof compute,
                                .threads = 1 + (int)(h->rank % 2),
                                .devices = h->run.devices,
                                .cluster = h->run.cluster};
    const qn_status status =
        by_team(&compute, NULL, 0, p->grain, p->bad, p->got, p->halves, &h->run.err);
    if (status == QN_DEVICE)
        qn__cluster_withdraw(h->run.cluster);
    return status;
}

static void test_ranks(void **state) {
    static results wanted, got[RANKS_MOST];
    const int64_t grains[] = {0, 1, 2000, ALL};
    (void)state;
    expect(&wanted);
    for (uint32_t ranks = 2; ranks <= RANKS_MOST; ++ranks)
        for (size_t g = 0; g < sizeof grains / sizeof *grains; ++g) {
            hand hands[CREW] = {0};
            part parts[RANKS_MOST];
            const int64_t bad = g == 2 ? 12345 : g == 0 && ranks == 2 ? 1 : GOOD;
            for (uint32_t r = 0; r < ranks; ++r) {
                parts[r] = (part){&got[r], grains[g], bad, NULL};
                hands[r].work = works;
                hands[r].user = &parts[r];
            }
            thread_ranks_run(hands, ranks);
            for (uint32_t r = 0; r < ranks; ++r) {
                assert_int_equal(hands[r].status, bad < GOOD ? QN_NUMERIC : QN_OK);
                if (bad < GOOD)
                    assert_int_equal(strtol(hands[r].run.err.where + 5, NULL, 10), bad);
                else
                    assert_memory_equal(&got[r], &wanted, sizeof wanted);
            }
        }
}

/* A rank whose only device is lost leaves; the others have the same bytes. */
static void test_a_rank_without_a_device(void **state) {
    static results wanted, got[3];
    const qn__fake_plan plan = {.count = 1, .device = {{.rate = 20000, .fail_at = 3}}};
    hand hands[CREW] = {0};
    part parts[3];
    (void)state;
    expect(&wanted);
    qn__fake_set(&plan);
    for (uint32_t r = 0; r < 3; ++r) {
        parts[r] = (part){&got[r], 0, GOOD, NULL};
        hands[r].work = works;
        hands[r].user = &parts[r];
        hands[r].run.devices = r == 1 ? "fake:0" : "cpu";
    }
    thread_ranks_run(hands, 3);
    qn__fake_set(NULL);
    assert_int_equal(hands[1].status, QN_DEVICE);
    for (uint32_t r = 0; r < 3; r += 2) {
        assert_int_equal(hands[r].status, QN_OK);
        assert_memory_equal(&got[r], &wanted, sizeof wanted);
    }
}

/* 1: the shares followed the speeds, and each was spread over the whole space. */
static int shares_are_good(const results *wanted) {
    static results got[2];
    static _Atomic int64_t halves[2][2];
    const qn__fake_plan plan = {.count = 2, .device = {{.rate = 2000}, {.rate = 10000}}};
    hand hands[CREW] = {0};
    part parts[2];
    int spread = 1;
    memset(halves, 0, sizeof halves);
    qn__fake_set(&plan);
    for (uint32_t r = 0; r < 2; ++r) {
        parts[r] = (part){&got[r], 0, GOOD, halves[r]};
        hands[r].work = works;
        hands[r].user = &parts[r];
        hands[r].run.devices = r ? "fake:1" : "fake:0";
    }
    thread_ranks_run(hands, 2);
    qn__fake_set(NULL);
    for (uint32_t r = 0; r < 2; ++r) {
        const int64_t all = halves[r][0] + halves[r][1];
        assert_int_equal(hands[r].status, QN_OK);
        assert_memory_equal(&got[r], wanted, sizeof *wanted);
        spread &= halves[r][0] > all * 2 / 5 && halves[r][1] > all * 2 / 5;
    }
    return spread && halves[1][0] > 2 * halves[0][0];
}

/* A fast rank and a slow one: shares follow the speeds, and each is spread over the whole space, so
 * that one half of it may cost more than the other. On a busy machine a rank may wait for a
 * processor: one good run of several is enough. */
static void test_shares(void **state) {
    static results wanted;
    int good = 0;
    (void)state;
    expect(&wanted);
    for (int i = 0; i < 8 && !good; ++i)
        good = shares_are_good(&wanted);
    assert_true(good);
}

/* -------------------------------------------------------------------------------------- deaths */

typedef struct stage {
    atomic_uint working;
    results got[RANKS_MOST];
    qn_status status[RANKS_MOST];
} stage;

/* Each rank computes on a device that takes a quarter of a second for its share. Those that are to
 * die stand still in it. */
_Noreturn static void live(stage *s, hand *h) {
    const qn__fake_behaviour how = {.rate = 1000, .stall_at = h->rank % 2 ? 0 : 30, .stall = 600};
    const qn__fake_plan plan = {.count = 1, .device = {how}};
    part p = {&s->got[h->rank], 0, GOOD, NULL};
    int code;
    qn__fake_set(&plan);
    h->run.devices = "fake:0";
    h->user = &p;
    h->status = hand_joins(h);
    atomic_fetch_add(&s->working, 1);
    s->status[h->rank] = h->status == QN_OK ? works(h) : h->status;
    while (s->status[h->rank] == QN_OK && !qn_cluster_over(h->run.cluster, &code))
        qn_cluster_finish(h->run.cluster, 0);
    qn_cluster_leave(h->run.cluster);
    _exit(0);
}

/* Two of four die at work. */
static void test_deaths(void **state) {
    static results wanted;
    char place[32];
    pid_t process[RANKS_MOST];
    stage *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    expect(&wanted);
    assert_true(s != MAP_FAILED);
    snprintf(place, sizeof place, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < RANKS_MOST; ++r) {
        hand h = {.rank = r, .ranks = RANKS_MOST, .rendezvous = place};
        s->status[r] = QN_USAGE;
        process[r] = fork();
        assert_true(process[r] >= 0);
        if (process[r] == 0)
            live(s, &h);
    }
    while (atomic_load(&s->working) < RANKS_MOST)
        usleep(1000);
    usleep(60000);
    kill(process[0], SIGKILL);
    usleep(60000);
    kill(process[2], SIGKILL);
    for (uint32_t r = 0; r < RANKS_MOST; ++r)
        waitpid(process[r], NULL, 0);
    for (uint32_t r = 1; r < RANKS_MOST; r += 2) {
        assert_int_equal(s->status[r], QN_OK);
        assert_memory_equal(&s->got[r], &wanted, sizeof wanted);
    }
    assert_true(s->status[0] == QN_USAGE && s->status[2] == QN_USAGE);
    munmap(s, sizeof *s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deaths), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_losses), cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_shares), cmocka_unit_test(test_a_rank_without_a_device)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
