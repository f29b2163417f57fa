/* The emulated GPU itself: grids, barriers, and that it tells of kernels that break the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/emulated_matrix.h"
#include "kernels/kernels.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LANES = 64 };

static uint32_t seen[2][3][4][LANES];

static void count(void *const *a) {
    const qn_emulated_lane *now = &qn_emulated_now;
    seen[now->group[2]][now->group[1]][now->group[0]][now->lane] += *(const uint32_t *)a[0];
}

static void test_every_lane_of_every_group_runs_once(void **state) {
    (void)state;
    const qn_emulated_kernel kernel = {"count", "u", count};
    const uint32_t groups[3] = {4, 3, 2}, one = 1;
    void *const arguments[] = {(void *)(uintptr_t)&one};
    qn_emulated_launch(&kernel, groups, LANES, arguments);
    for (int z = 0; z < 2; ++z)
        for (int y = 0; y < 3; ++y)
            for (int x = 0; x < 4; ++x)
                for (int lane = 0; lane < LANES; ++lane)
                    assert_int_equal(seen[z][y][x][lane], 1);
}

/* Each lane writes its place, all meet, and each reads the place of the lane opposite; twice, so
 * that a lane that runs ahead would overwrite what another still has to read. */
static uint32_t board[LANES], met[LANES];

static void meet(void *const *a) {
    const uint32_t lane = qn_emulated_now.lane, rounds = *(const uint32_t *)a[0];
    for (uint32_t round = 0; round < rounds; ++round) {
        board[lane] = 1000 * round + lane;
        qn_emulated_barrier();
        met[lane] = board[LANES - 1 - lane];
        qn_emulated_barrier();
    }
}

static void test_lanes_meet_at_barriers(void **state) {
    (void)state;
    const qn_emulated_kernel kernel = {"meet", "u", meet};
    const uint32_t groups[3] = {3, 1, 1}, rounds = 5;
    void *const arguments[] = {(void *)(uintptr_t)&rounds};
    qn_emulated_launch(&kernel, groups, LANES, arguments);
    for (uint32_t lane = 0; lane < LANES; ++lane)
        assert_int_equal(met[lane], 4000 + LANES - 1 - lane);
}

/* The same without a barrier gives another answer: a missing one does not go unnoticed. */
static void rush(void *const *a) {
    const uint32_t lane = qn_emulated_now.lane;
    (void)a;
    board[lane] = lane;
    met[lane] = board[LANES - 1 - lane];
}

static void test_a_missing_barrier_shows(void **state) {
    (void)state;
    const qn_emulated_kernel kernel = {"rush", "", rush};
    const uint32_t groups[3] = {1, 1, 1};
    int wrong = 0;
    memset(board, 0xff, sizeof board);
    qn_emulated_launch(&kernel, groups, LANES, NULL);
    for (uint32_t lane = 0; lane < LANES; ++lane)
        wrong += met[lane] != LANES - 1 - lane;
    assert_int_equal(wrong, LANES / 2);
}

static void leave_early(void *const *a) {
    if (qn_emulated_now.lane == *(const uint32_t *)a[0])
        return;
    qn_emulated_barrier();
}

static int dies(const qn_emulated_kernel *kernel, uint32_t argument) {
    const uint32_t groups[3] = {1, 1, 1};
    void *const arguments[] = {&argument};
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        qn_emulated_launch(kernel, groups, LANES, arguments);
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_lanes_that_miss_a_barrier_are_found(void **state) {
    (void)state;
    const qn_emulated_kernel kernel = {"leave_early", "u", leave_early};
    assert_true(dies(&kernel, 0));
    assert_true(dies(&kernel, 1));
    assert_true(dies(&kernel, LANES - 1));
    /* Where nobody leaves, all is well. Not in a child: the thread sanitizer's children sometimes
     * end badly for reasons of their own. */
    const uint32_t groups[3] = {1, 1, 1};
    uint32_t nobody = LANES;
    void *const arguments[] = {&nobody};
    qn_emulated_launch(&kernel, groups, LANES, arguments);
}

/* Operands of a matrix instruction, 16 x 32 by 32 x 8, and what each of two warps makes of them, in
 * the order that the PTX ISA gives for m16n8k32 and for the m8n8k16 in its quarters. */
enum { M = 16, N = 8, K = 32 };
static int8_t factor[2][M][K], other[2][K][N];
static int32_t product[2][M][N];

static int32_t word_of(const int8_t *first, uint32_t stride) {
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; ++i)
        word |= (uint32_t)(uint8_t)first[i * stride] << 8 * i;
    return (int32_t)word;
}

static void multiply(void *const *arguments) {
    const uint32_t warp = qn_emulated_now.lane / 32, lane = qn_emulated_now.lane % 32;
    const uint32_t group = lane / 4, in_group = lane % 4;
    int32_t a[4], b[2], d[4] = {1, 2, 3, 4};
    for (uint32_t i = 0; i < 4; ++i)
        a[i] = word_of(
            &factor[warp][i % 2 ? group + 8 : group][i < 2 ? in_group * 4 : in_group * 4 + 16], 1);
    for (uint32_t i = 0; i < 2; ++i)
        b[i] = word_of(&other[warp][in_group * 4 + 16 * i][group], N);
    qn_matrix_begin(a, b);
    if (*(const uint32_t *)arguments[0]) {
        qn_matrix_part(d, &a[0], &b[0]);
        qn_matrix_part(d, &a[2], &b[1]);
        qn_matrix_part(d + 2, &a[1], &b[0]);
        qn_matrix_part(d + 2, &a[3], &b[1]);
    } else {
        qn_matrix_whole(d, a, b);
    }
    qn_matrix_end();
    for (uint32_t i = 0; i < 4; ++i)
        product[warp][i < 2 ? group : group + 8][in_group * 2 + i % 2] = d[i] - (int32_t)i - 1;
}

static void test_matrix_instructions(void **state) {
    (void)state;
    const qn_emulated_kernel kernel = {"multiply", "u", multiply};
    const uint32_t groups[3] = {1, 1, 1};
    uint32_t random = 1;
    for (uint32_t i = 0; i < 2 * M * K; ++i)
        (&factor[0][0][0])[i] = (int8_t)((random = random * 1664525u + 1013904223u) >> 24);
    for (uint32_t i = 0; i < 2 * K * N; ++i)
        (&other[0][0][0])[i] = (int8_t)((random = random * 1664525u + 1013904223u) >> 24);
    memset(factor[1][5], 0x80, K);
    memset(factor[0][9], 0, K);
    for (uint32_t quarters = 0; quarters < 2; ++quarters) {
        void *const arguments[] = {&quarters};
        memset(product, 0x55, sizeof product);
        qn_emulated_launch(&kernel, groups, LANES, arguments);
        for (int warp = 0; warp < 2; ++warp)
            for (int m = 0; m < M; ++m)
                for (int n = 0; n < N; ++n) {
                    int32_t want = 0;
                    for (int k = 0; k < K; ++k)
                        want += factor[warp][m][k] * other[warp][k][n];
                    assert_int_equal(product[warp][m][n], want);
                }
    }
}

/* Two pieces are under way; waiting for all but one finds the first, and the second is not there.
 */
static void copy(void *const *arguments) {
    _Alignas(16) static int32_t from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[12];
    uint32_t *found = *(uint32_t *const *)arguments[0];
    memset(to, 0xff, sizeof to);
    qn_copy(to, from, 1);
    qn_copy(to + 8, from, 0);
    qn_copies_end();
    qn_copy(to + 4, from + 4, 1);
    qn_copies_end();
    found[0] = to[0] == -1 && to[8] == -1;
    qn_copies_wait(1);
    found[1] = to[0] == 1 && to[3] == 4 && to[4] == -1 && to[8] == 0 && to[11] == 0;
    qn_copies_wait(0);
    found[2] = to[4] == 5 && to[7] == 8;
}

static void test_copies_are_there_when_they_are_waited_for(void **state) {
    (void)state;
    const qn_emulated_kernel kernel = {"copy", "M", copy};
    const uint32_t groups[3] = {1, 1, 1};
    uint32_t found[3] = {0}, *place = found;
    void *const arguments[] = {&place};
    qn_emulated_launch(&kernel, groups, 1, arguments);
    for (int i = 0; i < 3; ++i)
        assert_int_equal(found[i], 1);
}

static void test_kernels_are_found_by_name(void **state) {
    (void)state;
    assert_non_null(qn_emulated_find("qn_forward_small"));
    assert_null(qn_emulated_find("qn_forward_tiny"));
}

/* A kernel that is new has a row here, too: without it no training finds all kernels. */
static void test_each_kernel_of_cuda_has_its_row(void **state) {
    (void)state;
    for (int k = 0; k < QN__KERNELS; ++k) {
        const qn__kernel_shape *shape = qn__kernel_shape_of((qn__kernel)k);
        if (shape->opencl_only)
            continue;
        const qn_emulated_kernel *kernel = qn_emulated_find(shape->name);
        if (kernel == NULL)
            fail_msg("%s has no row in emulated_gpu/emulated_kernels.c", shape->name);
        assert_string_equal(kernel->arguments, shape->arguments);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_lane_of_every_group_runs_once),
        cmocka_unit_test(test_lanes_meet_at_barriers),
        cmocka_unit_test(test_a_missing_barrier_shows),
        cmocka_unit_test(test_lanes_that_miss_a_barrier_are_found),
        cmocka_unit_test(test_matrix_instructions),
        cmocka_unit_test(test_copies_are_there_when_they_are_waited_for),
        cmocka_unit_test(test_kernels_are_found_by_name),
        cmocka_unit_test(test_each_kernel_of_cuda_has_its_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
