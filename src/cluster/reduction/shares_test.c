/* Shares: compared with the best makespan, found by assigning chunks one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/reduction/shares.h"
#include "num/philox.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8192 };

static double seconds_of(qn__cost c, uint32_t chunks) {
    return chunks ? c.start + chunks * c.each : 0;
}

static double makespan(const qn__cost *cost, const uint32_t *count, uint32_t ranks) {
    double longest = 0;
    for (uint32_t r = 0; r < ranks; ++r)
        longest = fmax(longest, seconds_of(cost[r], count[r]));
    return longest;
}

/* Assigns each chunk to the rank that finishes it first. */
static double best_makespan(const qn__cost *cost, const unsigned char *has, uint32_t ranks,
                            uint32_t chunks) {
    uint32_t count[16] = {0};
    for (uint32_t u = 0; u < chunks; ++u) {
        uint32_t best = ranks;
        for (uint32_t r = 0; r < ranks; ++r)
            if (has[r] && (best == ranks || seconds_of(cost[r], count[r] + 1) <
                                                seconds_of(cost[best], count[best] + 1)))
                best = r;
        ++count[best];
    }
    return makespan(cost, count, ranks);
}

static void assert_shares(const qn__cost *cost, const unsigned char *has, uint32_t ranks,
                          uint32_t chunks) {
    uint32_t count[16], sum = 0;
    qn__shares(cost, has, ranks, chunks, count);
    for (uint32_t r = 0; r < ranks; ++r) {
        sum += count[r];
        assert_true(has[r] || count[r] == 0);
    }
    assert_int_equal(sum, chunks);
    const double got = makespan(cost, count, ranks), best = best_makespan(cost, has, ranks, chunks);
    assert_memory_equal(&got, &best, sizeof got);
}

static void test_no_better_shares_exist(void **state) {
    (void)state;
    for (uint32_t trial = 0; trial < 4000; ++trial) {
        qn__cost cost[16] = {{0}};
        unsigned char has[16] = {0};
        uint32_t word[4], members = 0;
        qn__words(5, 0, 0, 0, trial, 0, word);
        const uint32_t ranks = 1 + word[0] % 12, chunks = word[1] % 300;
        for (uint32_t r = 0; r < ranks; ++r) {
            uint32_t w[4];
            qn__words(5, 1, 0, trial, r, 0, w);
            /* Few different costs, so that many chunks finish at once; or all different. */
            cost[r].each = word[2] % 2 ? 1 + w[0] % 3 : 1e-6 * (1 + w[0] % 100000);
            cost[r].start = w[1] % 3 == 0 ? 0 : word[2] % 2 ? w[1] % 20 : 1e-6 * (w[1] % 3000000);
            has[r] = w[2] % 8 > 0;
            members += has[r];
        }
        if (members)
            assert_shares(cost, has, ranks, chunks);
    }
}

static void test_shares_follow_the_speeds(void **state) {
    (void)state;
    const qn__cost cost[] = {{0, 4}, {0, 2}, {0, 1}};
    const uint32_t expected[] = {9, 18, 37};
    uint32_t count[3];
    qn__shares(cost, NULL, 3, 64, count);
    assert_memory_equal(count, expected, sizeof count);
}

static void test_a_start_that_costs_more_than_all_is_not_paid(void **state) {
    (void)state;
    const qn__cost cost[] = {{0, 1}, {20, 0.01}};
    uint32_t count[2];
    qn__shares(cost, NULL, 2, 20, count);
    assert_int_equal(count[0], 20);
    qn__shares(cost, NULL, 2, 400, count);
    assert_int_equal(count[0], 23); /* the other rank finishes its 377 after 23.77 */
}

static void test_unknown_ranks_count_as_the_median(void **state) {
    (void)state;
    const qn__cost cost[] = {{0, 0}, {0, 1}, {0, 2}, {0, 8}, {0, NAN}, {-1, 1}, {0, INFINITY}};
    const qn__cost same[] = {{0, 2}, {0, 1}, {0, 2}, {0, 8}, {0, 2}, {0, 2}, {0, 2}};
    const unsigned char has[] = {1, 1, 0, 1, 1, 0, 0};
    const qn__cost without[] = {{0, 1}, {0, 1}, {0, 9}, {0, 8}, {0, 1}, {0, 9}, {0, 9}};
    uint32_t count[7], expected[7];
    qn__shares(cost, NULL, 7, 1000, count);
    qn__shares(same, NULL, 7, 1000, expected);
    assert_memory_equal(count, expected, sizeof count);
    /* Of two ranks, the cheaper one; ranks without a share do not count. */
    qn__shares(cost, has, 7, 1000, count);
    qn__shares(without, has, 7, 1000, expected);
    assert_memory_equal(count, expected, sizeof count);
}

static void test_nothing_known_is_all_alike(void **state) {
    (void)state;
    const qn__cost cost[5] = {{0}};
    const unsigned char nobody[5] = {0};
    const uint32_t expected[] = {3, 3, 2, 2, 2};
    uint32_t count[5];
    qn__shares(cost, NULL, 5, 12, count);
    assert_memory_equal(count, expected, sizeof count);
    qn__shares(cost, nobody, 5, 12, count);
    for (int r = 0; r < 5; ++r)
        assert_int_equal(count[r], 0);
    qn__shares(cost, NULL, 5, 0, count);
    for (int r = 0; r < 5; ++r)
        assert_int_equal(count[r], 0);
}

/* Whatever costs ranks report, all chunks are assigned. */
static void test_absurd_costs(void **state) {
    (void)state;
    const double value[] = {0,    5e-324, 1e-300,  1e-15, 1,  1e12,
                            1e18, 1e300,  1.7e308, NAN,   -1, INFINITY};
    enum { VALUES = sizeof value / sizeof *value };
    for (uint32_t trial = 0; trial < 20000; ++trial) {
        qn__cost cost[6];
        uint32_t count[6], word[4];
        uint64_t sum = 0;
        for (uint32_t r = 0; r < 6; ++r) {
            qn__words(6, 0, 0, trial, r, 0, word);
            cost[r] = (qn__cost){value[word[0] % VALUES], value[word[1] % VALUES]};
        }
        const uint32_t chunks = trial % 3 ? word[2] : word[2] % 100;
        qn__shares(cost, NULL, 1 + word[3] % 6, chunks, count);
        for (uint32_t r = 0; r < 1 + word[3] % 6; ++r)
            sum += count[r];
        assert_int_equal(sum, chunks);
    }
}

/* Many ranks: within one chunk of the bound for divisible work. */
static void test_thousands_of_ranks(void **state) {
    (void)state;
    qn__cost *cost = calloc(MOST_RANKS, sizeof *cost);
    uint32_t *count = calloc(MOST_RANKS, sizeof *count);
    const uint32_t chunks = 50000000;
    double rate = 0, begun = 0, longest = 0;
    uint64_t sum = 0;
    assert_non_null(cost);
    assert_non_null(count);
    for (uint32_t r = 0; r < MOST_RANKS; ++r) {
        uint32_t word[4];
        qn__words(7, 0, 0, 0, r, 0, word);
        cost[r] = (qn__cost){1e-4 * (word[0] % 100), 1e-5 * (1 + word[1] % 1000)};
        rate += 1 / cost[r].each;
        begun += cost[r].start / cost[r].each;
        longest = fmax(longest, cost[r].each);
    }
    qn__shares(cost, NULL, MOST_RANKS, chunks, count);
    for (uint32_t r = 0; r < MOST_RANKS; ++r)
        sum += count[r];
    assert_int_equal(sum, chunks);
    const double bound = (chunks + begun) / rate, got = makespan(cost, count, MOST_RANKS);
    assert_true(got > bound * (1 - 1e-9) && got < bound + longest);
    free(cost);
    free(count);
}

static void test_ranks_that_are_out(void **state) {
    (void)state;
    const unsigned char has[] = {0, 0, 1};
    const qn__cost cost[] = {{0, 0}, {0, 0}, QN__COST_OUT};
    uint32_t count[3];
    qn__shares(cost, NULL, 3, 7, count);
    assert_int_equal(count[0] + count[1], 7);
    assert_int_equal(count[2], 0);
    qn__shares(cost, has, 3, 7, count);
    assert_int_equal(count[2], 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_better_shares_exist),
        cmocka_unit_test(test_shares_follow_the_speeds),
        cmocka_unit_test(test_a_start_that_costs_more_than_all_is_not_paid),
        cmocka_unit_test(test_unknown_ranks_count_as_the_median),
        cmocka_unit_test(test_nothing_known_is_all_alike),
        cmocka_unit_test(test_ranks_that_are_out),
        cmocka_unit_test(test_absurd_costs),
        cmocka_unit_test(test_thousands_of_ranks),
    };
    return cmocka_run_group_tests_name("shares", tests, NULL, NULL);
}
