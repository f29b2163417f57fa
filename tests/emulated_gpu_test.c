/* The emulated GPU itself: grids, barriers, and that it tells of kernels that break the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emulated_gpu/emulated_gpu.h"
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

static void test_kernels_are_found_by_name(void **state) {
    (void)state;
    assert_non_null(qn_emulated_find("qn_forward_small"));
    assert_null(qn_emulated_find("qn_forward_tiny"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_lane_of_every_group_runs_once),
        cmocka_unit_test(test_lanes_meet_at_barriers),
        cmocka_unit_test(test_a_missing_barrier_shows),
        cmocka_unit_test(test_lanes_that_miss_a_barrier_are_found),
        cmocka_unit_test(test_kernels_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
