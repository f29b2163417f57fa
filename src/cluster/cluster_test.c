/* Ranks as threads and as processes of this machine, over the socket transport: sums, gathers,
 * shared memory, calculated traffic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cluster/thread_ranks_test.h"
#include <sched.h>
#include <stdlib.h>

/* ----------------------------------------------------------------------------------- reductions */

enum { ROUNDS = 16 };

/* Words and chunks of reduction k, the same on all ranks. */
static qn__reduction reduction_of(uint32_t k) {
    static const uint64_t words[] = {1, 7, 100, 3000, 70000, 200000};
    static const uint32_t chunks[] = {0, 1, 3, 17, 64};
    return (qn__reduction){.kind = (qn__reduction_kind)(k % QN__REDUCTION_KINDS),
                           .words = words[k % 6],
                           .chunks = chunks[k % 5]};
}

/* The term of chunk u in word w of reduction k. */
static int64_t value_of(uint32_t k, uint32_t u, uint64_t w) {
    return (int64_t)((k + 1) * (uint64_t)(u + 3) * 0x9e3779b97f4a7c15u + w * 0xbf58476d1ce4e5b9u);
}

static void add_chunks(int64_t *part, const qn__reduction *reduction, uint32_t k,
                       qn__chunk_range range) {
    for (uint64_t w = 0; w < reduction->words; ++w) {
        uint64_t sum =
            (uint64_t)part[w]; /* one access for all chunks, because sanitizers check each */
        for (uint32_t u = 0; u < range.count; ++u)
            sum += (uint64_t)value_of(k, range.first + u, w);
        part[w] = (int64_t)sum;
    }
}

static qn_status add_up(qn_cluster *c, const qn__reduction *reduction, uint32_t k,
                        const int64_t **total, qn_error *err) {
    qn_status status = qn__reduction_begin(c, reduction, err);
    uint32_t held = 0;
    int more = 1;
    if (status != QN_OK)
        return status;
    int64_t *part = qn__reduction_part(c);
    memset(part, 0, reduction->words * sizeof *part);
    if (reduction->chunks == 0)
        add_chunks(part, reduction, k, (qn__chunk_range){qn_cluster_rank(c), 1});
    while (status == QN_OK && more) {
        qn__chunk_range range;
        for (; qn__reduction_chunks(c, &range); held += range.count)
            add_chunks(part, reduction, k, range);
        qn__reduction_final(c, reduction->words / 2, reduction->words - reduction->words / 2, held);
        qn__reduction_final(c, 0, reduction->words / 2, held);
        status = qn__reduction_finish(c, held, &more, total, err);
    }
    return status;
}

static int is_right(const int64_t *total, const qn__reduction *reduction, uint32_t k,
                    uint32_t ranks) {
    const uint32_t chunks = reduction->chunks ? reduction->chunks : ranks;
    for (uint64_t w = 0; w < reduction->words; w += 1 + w / 13) {
        uint64_t sum = 0;
        for (uint32_t u = 0; u < chunks; ++u)
            sum += (uint64_t)value_of(k, u, w);
        if ((uint64_t)total[w] != sum)
            return 0;
    }
    return 1;
}

static void sum_reductions(thread_ranks_member *m) {
    for (uint32_t k = 0; k < ROUNDS && m->status == QN_OK; ++k) {
        const qn__reduction reduction = reduction_of(k);
        const int64_t *total = NULL;
        m->status = add_up(m->cluster, &reduction, k, &total, &m->err);
        m->result += m->status == QN_OK && is_right(total, &reduction, k, m->thread_ranks->count);
    }
}

static void test_sums(void **state) {
    (void)state;
    static const char *const machines[] = {"AAAAA", "ABABA", "ABCDE", "AABBB"};
    for (uint32_t ranks = 2; ranks <= 5; ++ranks)
        for (size_t i = 0; i < sizeof machines / sizeof *machines; ++i) {
            thread_ranks c;
            thread_ranks_run(&c, ranks, machines[i], sum_reductions);
            for (uint32_t r = 0; r < ranks; ++r)
                assert_int_equal(c.member[r].result, ROUNDS);
        }
}

/* ---------------------------------------------------------------------------------- other calls */

static void gather(thread_ranks_member *m) {
    const uint32_t ranks = m->thread_ranks->count, rank = qn_cluster_rank(m->cluster);
    char own[13], all[13 * THREAD_RANKS_MOST], copy[5000];
    memset(own, 'a' + (int)rank, sizeof own);
    m->status = qn__cluster_gather(m->cluster, own, sizeof own, all, &m->err);
    for (uint32_t i = 0; i < 13 * ranks; ++i)
        m->result += all[i] == 'a' + (char)(i / 13);
    memset(copy, 'A' + (int)rank, sizeof copy);
    if (m->status == QN_OK)
        m->status = qn__cluster_from_first(m->cluster, copy, sizeof copy, &m->err);
    for (uint32_t i = 0; i < sizeof copy; ++i)
        m->result += copy[i] == 'A';
}

static void test_gathering(void **state) {
    (void)state;
    thread_ranks c;
    thread_ranks_run(&c, 4, "AABC", gather);
    for (uint32_t r = 0; r < 4; ++r)
        assert_int_equal(c.member[r].result, 4 * 13 + 5000);
}

static void fill_common(thread_ranks_member *m) {
    const qn__reduction reduction = {.kind = QN__REDUCTION_OTHER, .words = 1};
    const int64_t *total;
    for (int i = 0; i < 3 && m->status == QN_OK; ++i) {
        unsigned char *memory;
        void *at;
        int first;
        m->status = qn__cluster_common(m->cluster, 100000, &at, &first, &m->err);
        memory = at;
        if (m->status == QN_OK && first)
            memset(memory, 1 + i, 100000);
        m->result += (uint64_t)first;
        if (m->status == QN_OK)
            m->status = add_up(m->cluster, &reduction, 0, &total, &m->err);
        for (int k = 0; k < 100000 && m->status == QN_OK; ++k)
            m->result += memory[k] == 1 + i ? 10 : 0;
    }
}

static void test_common_memory(void **state) {
    (void)state;
    thread_ranks c;
    thread_ranks_run(&c, 4, "ABAB", fill_common);
    for (uint32_t r = 0; r < 4; ++r)
        assert_int_equal(c.member[r].result, 3 * 100000 * 10 + (r < 2 ? 3 : 0));
    /* Ranks that cannot share memory have their own. */
    qn__cluster_apart = 1;
    thread_ranks_run(&c, 3, "AAA", fill_common);
    qn__cluster_apart = 0;
    for (uint32_t r = 0; r < 3; ++r)
        assert_int_equal(c.member[r].result, 3 * 100000 * 10 + 3);
}

enum { EARLY = 1000 };

/* Words that need all of 64 bits travel with two bytes for 16 of them. Adds EARLY if some left
 * while others were missing. */
static void count_traffic(thread_ranks_member *m) {
    int early = 0;
    for (uint32_t k = 0; k < ROUNDS && m->status == QN_OK; ++k) {
        const qn__reduction reduction = reduction_of(k);
        const int64_t *total;
        qn__rank_traffic before, after;
        uint64_t out, in;
        qn__cluster_count(m->cluster, reduction.words, &out, &in);
        qn__cluster_traffic(m->cluster, &before);
        m->status = add_up(m->cluster, &reduction, k, &total, &m->err);
        qn__cluster_traffic(m->cluster, &after);
        const uint64_t sent = after.bytes_out - before.bytes_out;
        const uint64_t received = after.bytes_in - before.bytes_in;
        m->result += (sent > 0) == (out > 0) && sent <= out + out / 32;
        m->result += (received > 0) == (in > 0) && received <= in + in / 32;
        m->result += after.reductions == before.reductions + 1;
        early |= after.bytes_early > before.bytes_early && after.bytes_early < after.bytes_out;
    }
    m->result += early ? EARLY : 0;
}

static void test_traffic_is_what_counting_says(void **state) {
    (void)state;
    static const char *const machines[] = {"AAA", "AAB", "ABC", "ABBBB"};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; ++i) {
        thread_ranks c;
        thread_ranks_run(&c, (uint32_t)strlen(machines[i]), machines[i], count_traffic);
        for (uint32_t r = 0; r < c.count; ++r)
            assert_int_equal(c.member[r].result % EARLY, 3 * ROUNDS);
        /* Announced words leave at once if the rank need not wait for others of its machine. */
        for (uint32_t r = 0; r < c.count; ++r)
            if (c.count == 3 && machines[i][2] != 'B')
                assert_int_equal(c.member[r].result / EARLY, machines[i][2] == 'C');
    }
}

static void stop_in_round_3(thread_ranks_member *m) {
    for (uint32_t k = 0; k < 6 && m->status == QN_OK; ++k) {
        const qn__reduction reduction = reduction_of(k);
        const int64_t *total;
        if (k == 3 && qn_cluster_rank(m->cluster) == 1)
            qn_cluster_stop(m->cluster);
        m->status = add_up(m->cluster, &reduction, k, &total, &m->err);
        m->result |= (uint64_t)qn__cluster_stopping(m->cluster) << k;
    }
}

static void test_all_stop_alike(void **state) {
    (void)state;
    thread_ranks c;
    thread_ranks_run(&c, 3, "AAB", stop_in_round_3);
    for (uint32_t r = 0; r < 3; ++r)
        assert_int_equal(c.member[r].result, 8 + 16 + 32);
}

static void fail_in_round_3(thread_ranks_member *m) {
    for (uint32_t k = 0; k < 6 && m->status == QN_OK; ++k) {
        const qn__reduction reduction = reduction_of(k);
        const int64_t *total;
        if (k == 3 && qn_cluster_rank(m->cluster) == 2) {
            qn_error why;
            qn__fail(&why, QN_NUMERIC, "the loss is a NaN");
            qn__at(&why, "step 7");
            qn__cluster_fail(m->cluster, &why);
        }
        m->status = add_up(m->cluster, &reduction, k, &total, &m->err);
        m->result += m->status == QN_OK;
    }
}

static void test_all_fail_alike(void **state) {
    (void)state;
    thread_ranks c;
    thread_ranks_prepare(&c, 3, "AAB", fail_in_round_3);
    thread_ranks_work(&c);
    for (uint32_t r = 0; r < 3; ++r) {
        assert_int_equal(c.member[r].status, QN_NUMERIC);
        assert_in_range(c.member[r].result, 2, 3); /* the notice may arrive before reduction 2 */
        assert_non_null(strstr(c.member[r].err.what, "rank 2 on "));
        assert_non_null(strstr(c.member[r].err.what, ": the loss is a NaN"));
        assert_string_equal(c.member[r].err.where, "step 7");
    }
}

static void do_something_else(thread_ranks_member *m) {
    const uint32_t rank = qn_cluster_rank(m->cluster);
    const qn__reduction reduction = {
        .kind = QN__REDUCTION_STEP, .words = rank == 1 ? 1001 : 1000, .chunks = 8};
    const int64_t *total;
    m->status = add_up(m->cluster, &reduction, 0, &total, &m->err);
}

static void test_different_reductions_are_named(void **state) {
    (void)state;
    static const char *const machines[] = {"AAA", "ABC", "AAB"};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; ++i) {
        thread_ranks c;
        thread_ranks_prepare(&c, 3, machines[i], do_something_else);
        thread_ranks_work(&c);
        for (uint32_t r = 0; r < 3; ++r) {
            assert_int_equal(c.member[r].status, QN_MISMATCH);
            assert_non_null(strstr(c.member[r].err.what, "rank 1 on "));
        }
    }
}

static void end_well(thread_ranks_member *m) {
    int code = -1;
    sum_reductions(m);
    while (m->status == QN_OK && !qn_cluster_over(m->cluster, &code)) {
        m->result += 1000;
        qn_cluster_finish(m->cluster, 7);
    }
    m->result += (uint64_t)code;
}

static void test_one_speaks(void **state) {
    (void)state;
    thread_ranks c;
    thread_ranks_run(&c, 4, "ABAB", end_well);
    for (uint32_t r = 0; r < 4; ++r)
        assert_int_equal(c.member[r].result, ROUNDS + 7 + (r == 0 ? 1000 : 0));
}

/* Ranks of this set withdraw in the middle. */
static unsigned quitters;

static void withdraw_on_the_way(thread_ranks_member *m) {
    const uint32_t rank = qn_cluster_rank(m->cluster);
    const int quits = (int)(quitters >> rank & 1);
    int code = -1, over = 0;
    for (uint32_t k = 0; k < ROUNDS && m->status == QN_OK; ++k) {
        const int64_t *total = NULL;
        qn__reduction reduction = reduction_of(k);
        reduction.chunks = reduction.chunks ? reduction.chunks : 5;
        if (quits && k == ROUNDS / 2)
            qn__cluster_withdraw(m->cluster);
        m->status = add_up(m->cluster, &reduction, k, &total, &m->err);
        m->result += m->status == QN_OK && is_right(total, &reduction, k, m->thread_ranks->count);
    }
    while (!(over = qn_cluster_over(m->cluster, &code)))
        qn_cluster_finish(m->cluster, 7);
    m->code = over == (quits ? 2 : 1) ? code : -1;
}

/* The remaining ranks have every total. A rank that withdraws succeeds, unless no rank is left. */
static void test_withdrawing(void **state) {
    (void)state;
    static const char *const machines[] = {"AABB", "ABCD"};
    static const unsigned sets[] = {1 << 0 | 1 << 1, 1 << 1 | 1 << 2 | 1 << 3, 15};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; ++i)
        for (size_t s = 0; s < sizeof sets / sizeof *sets; ++s) {
            thread_ranks c;
            quitters = sets[s];
            thread_ranks_prepare(&c, 4, machines[i], withdraw_on_the_way);
            thread_ranks_work(&c);
            int lost = 0;
            for (uint32_t r = 0; r < 4; ++r) {
                const thread_ranks_member *m = &c.member[r];
                const int quits = (int)(sets[s] >> r & 1);
                lost += m->code == 1;
                assert_int_equal(m->status, quits ? QN_CLUSTER : QN_OK);
                assert_int_equal(m->result, quits ? ROUNDS / 2 : ROUNDS);
                assert_int_equal(m->code, !quits ? 7 : sets[s] == 15 ? m->code & 1 : 0);
            }
            assert_int_equal(lost > 0, sets[s] == 15);
        }
}

static void test_alone(void **state) {
    (void)state;
    uint32_t index, count;
    int code = 5;
    assert_int_equal(qn_cluster_rank(NULL), 0);
    assert_int_equal(qn_cluster_ranks(NULL), 1);
    assert_int_equal(qn_cluster_alive(NULL), 1);
    qn_cluster_local(NULL, &index, &count);
    assert_int_equal(index, 0);
    assert_int_equal(count, 1);
    assert_true(qn_cluster_is_writer(NULL));
    assert_false(qn_cluster_over(NULL, &code));
    qn_cluster_finish(NULL, 0);
    assert_int_equal(qn__cluster_stopping(NULL), 0);
    qn_cluster_stop(NULL);
    qn_cluster_leave(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_gathering),
        cmocka_unit_test(test_common_memory),
        cmocka_unit_test(test_traffic_is_what_counting_says),
        cmocka_unit_test(test_all_stop_alike),
        cmocka_unit_test(test_all_fail_alike),
        cmocka_unit_test(test_different_reductions_are_named),
        cmocka_unit_test(test_one_speaks),
        cmocka_unit_test(test_withdrawing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
