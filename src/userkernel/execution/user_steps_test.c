/* Several iterations at once are what they are one by one, for each border, in one to three
 * dimensions, with one and two threads. The kernel is a function in C here, without a compiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userkernel/execution/user_run.h"
#include "userkernel/execution/user_steps.h"

enum { A, B, A_NEW, B_NEW, SEEN, SUM, COUNT, PARTS, MOST = 4096, ITERATIONS = 12 };

static qn__user_source source = {
    .parts = PARTS,
    .has_next = 1,
    .part = {[A] = {.use = QN__USER_HALOED, .type = QN__USER_I64, .name = "a", .halo = 2},
             [B] = {.use = QN__USER_INPUT, .type = QN__USER_U8, .name = "b", .next = 1 + B_NEW},
             [A_NEW] = {.use = QN__USER_OUTPUT, .type = QN__USER_I64, .next = 1 + A},
             [B_NEW] = {.use = QN__USER_OUTPUT, .type = QN__USER_U8, .next = 1 + B},
             [SEEN] = {.use = QN__USER_OUTPUT, .type = QN__USER_I64, .name = "seen"},
             [SUM] = {.use = QN__USER_SUM, .type = QN__USER_I64, .name = "sum"},
             [COUNT] = {.use = QN__USER_COUNT, .type = QN__USER_U8, .name = "count"}}};
static int64_t faulty_item = -1, faulty_iteration;

/* The index of a neighbour, or -1. */
static int64_t place(int64_t i, int64_t n) {
    switch (source.part[A].border) {
    case QN__USER_ZERO:
        return i < 0 || i >= n ? -1 : i;
    case QN__USER_NEAREST:
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    default:
        return (i % n + n) % n;
    }
}

static int64_t neighbour(const qn__user_call *c, const int64_t at[3], int64_t dz, int64_t dy,
                         int64_t dx) {
    const int64_t z = place(at[0] + dz, c->extent[0]), y = place(at[1] + dy, c->extent[1]),
                  x = place(at[2] + dx, c->extent[2]);
    return z < 0 || y < 0 || x < 0
               ? 0
               : ((const int64_t *)c->array[A])[(z * c->extent[1] + y) * c->extent[2] + x];
}

static uint64_t compute(const qn__user_call *c, int64_t first, int64_t count) {
    uint64_t fault = 0;
    for (int64_t i = first; i < first + count; i++) {
        const int64_t row = i / c->extent[2];
        const int64_t at[3] = {row / c->extent[1], row % c->extent[1], i % c->extent[2]};
        const int64_t d2 = source.dimensions > 2 ? 2 : 0, d1 = source.dimensions > 1 ? 2 : 0;
        const int64_t own = ((const int64_t *)c->array[A])[i];
        const uint8_t b = ((const uint8_t *)c->array[B])[i];
        ((int64_t *)c->array[A_NEW])[i] =
            (3 * own + 5 * neighbour(c, at, -d2, 0, 1) + 7 * neighbour(c, at, d2, d1, -2) +
             11 * neighbour(c, at, 0, -d1, 2) + b + i + c->iteration) %
            1000003;
        ((uint8_t *)c->array[B_NEW])[i] = (uint8_t)(b + own + 1);
        ((int64_t *)c->array[SEEN])[i] = own + c->iteration;
        ((int64_t *)c->array[SUM])[i - first] = own;
        ((uint8_t *)c->array[COUNT])[i - first] = b > 100;
        fault |= i == faulty_item && c->iteration == faulty_iteration;
    }
    return fault;
}

typedef struct state {
    int64_t a[MOST], seen[MOST];
    uint8_t b[MOST];
    int64_t sum, count;
} state;

static void start(state *s) {
    for (int i = 0; i < MOST; i++) {
        s->a[i] = i * 7919 % 10007;
        s->b[i] = (uint8_t)(i * 31);
    }
}

/* All iterations, `steps` at a time. */
static qn_status run(const int64_t extent[3], int64_t steps, int64_t grain, int threads,
                     int64_t iterations, state *to, qn_error *err) {
    static state two[2];
    const qn_compute compute_on = {.size = sizeof compute_on, .threads = threads};
    qn__user_kept kept = {.lock = PTHREAD_MUTEX_INITIALIZER};
    qn__team *team;
    qn_status status = QN_OK;
    assert_int_equal(qn__team_create(NULL, &compute_on, NULL, 0, &team, err), QN_OK);
    memset(two, 0, sizeof two);
    start(&two[0]);
    int now = 0;
    for (int64_t t = 0; t < iterations && status == QN_OK; now = !now) {
        qn__user_total total[QN__USER_PARTS] = {{.count = 0}};
        state *in = &two[now], *out = &two[!now];
        qn__user_job job = {
            .source = &source,
            .grain = compute,
            .array =
                {[A] = in->a, [B] = in->b, [A_NEW] = out->a, [B_NEW] = out->b, [SEEN] = out->seen},
            .extent = {extent[0], extent[1], extent[2]},
            .items_of_grain = grain,
            .iteration = t,
            .iterations = iterations,
            .kept = &kept,
            .steps = steps < iterations - t ? steps : iterations - t};
        job.without_totals = t + job.steps < iterations;
        status = qn__user_job_run(&job, team, total, err);
        uint64_t sum = 0;
        assert_true(qn__user_total_value(&total[SUM], &source.part[SUM], &sum));
        out->sum = (int64_t)sum;
        out->count = (int64_t)total[COUNT].count;
        t += job.steps;
    }
    *to = two[now];
    for (int64_t i = extent[0] * extent[1] * extent[2]; i < MOST; i++)
        to->a[i] = to->b[i] = 0; /* of the start */
    qn__user_kept_release(&kept);
    qn__team_destroy(team);
    return status;
}

static void test_steps(void **unused) {
    static state wanted, got;
    const int64_t extents[][3] = {{1, 1, 97}, {1, 61, 13}, {31, 5, 6}, {1, 3, 40}, {1, 1, 2}};
    const uint32_t dimensions[] = {1, 2, 3, 2, 1};
    qn_error err;
    (void)unused;
    source.part[A].next = 1 + A_NEW;
    for (size_t e = 0; e < sizeof extents / sizeof *extents; e++)
        for (int border = 0; border < 3; border++) {
            source.dimensions = dimensions[e];
            source.part[A].border = (qn__user_border)border;
            assert_int_equal(run(extents[e], 1, 0, 1, ITERATIONS, &wanted, &err), QN_OK);
            for (int64_t steps = 2; steps < 8; steps += 1 + steps / 4)
                for (int64_t grain = 8; grain < 500; grain *= 5) {
                    const int threads = 1 + (int)(grain % 2 == 0);
                    assert_int_equal(run(extents[e], steps, grain, threads, ITERATIONS, &got, &err),
                                     QN_OK);
                    assert_memory_equal(&got, &wanted, sizeof got);
                }
        }
}

/* An item of the seventh iteration fails, seen wherever its neighbours are computed, too. */
static void test_fault(void **unused) {
    static state got;
    const int64_t extent[3] = {1, 61, 13};
    qn_error err;
    (void)unused;
    source.dimensions = 2;
    source.part[A].next = 1 + A_NEW;
    faulty_item = 400;
    faulty_iteration = 7;
    assert_int_equal(run(extent, 4, 104, 2, ITERATIONS, &got, &err), QN_NUMERIC);
    assert_int_equal(run(extent, 1, 104, 2, ITERATIONS, &got, &err), QN_NUMERIC);
    assert_string_equal(err.where, "item (30, 10) of iteration 7");
    assert_int_equal(run(extent, 4, 104, 2, 7, &got, &err), QN_OK);
    faulty_item = -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps), cmocka_unit_test(test_fault)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
