/* Sums by a carrier beside the sockets: its messages, and what happens when it fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/memory.h"
#include "cluster/thread_ranks_test.h"

/* ------------------------------------------------------------------------------------- a carrier
 */

enum { RANKS = 3, MOST = 4096, NEVER = -1 };

typedef enum fault { NONE, FAILS, IS_SILENT, DAMAGES } fault;

typedef struct transfer {
    uint32_t from, to, tag;
    const unsigned char *source; /* of a sender */
    unsigned char *into;         /* of a receiver */
    uint64_t bytes;
    int matched;
} transfer;

/* Transfers of all ranks. From the number `fault_at` on they have the fault. */
static struct {
    pthread_mutex_t lock;
    transfer transfer[MOST];
    int count, carried, fault_at;
    fault fault;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const uint32_t RANK[RANKS] = {0, 1, 2};

static int add(transfer added, qn__carried *handle) {
    pthread_mutex_lock(&table.lock);
    const int is_broken = table.fault == FAILS && table.count >= table.fault_at;
    assert_in_range(table.count, 0, MOST - 1);
    table.transfer[table.count] = added;
    handle->number = table.count++;
    pthread_mutex_unlock(&table.lock);
    return is_broken ? 7 : 0;
}

static int fake_send(void *user, const void *from, uint64_t bytes, uint32_t to, uint32_t tag,
                     qn__carried *handle) {
    const uint32_t *self = user;
    return add((transfer){.from = *self, .to = to, .tag = tag, .source = from, .bytes = bytes},
               handle);
}

static int fake_receive(void *user, void *into, uint64_t bytes, uint32_t from, uint32_t tag,
                        qn__carried *handle) {
    const uint32_t *self = user;
    return add((transfer){.from = from, .to = *self, .tag = tag, .into = into, .bytes = bytes},
               handle);
}

static int fits(const transfer *a, const transfer *b) {
    return !b->matched && (a->source == NULL) != (b->source == NULL) && a->from == b->from &&
           a->to == b->to && a->tag == b->tag && a->bytes == b->bytes;
}

static void match(transfer *a, transfer *b) {
    const transfer *sender = a->source ? a : b, *receiver = a->source ? b : a;
    memcpy(receiver->into, sender->source, sender->bytes);
    if (table.fault == DAMAGES && table.carried == table.fault_at)
        receiver->into[sender->bytes / 2] ^= 1;
    a->matched = b->matched = 1;
    ++table.carried;
}

static int fake_test(void *user, qn__carried *handle, int *done) {
    (void)user;
    pthread_mutex_lock(&table.lock);
    transfer *own = &table.transfer[handle->number];
    const int silent = table.fault == IS_SILENT && table.carried >= table.fault_at;
    for (int i = 0; i < table.count && !own->matched && !silent; ++i)
        if (fits(own, &table.transfer[i]))
            match(own, &table.transfer[i]);
    *done = own->matched;
    pthread_mutex_unlock(&table.lock);
    return 0;
}

/* ------------------------------------------------------------------------------------------ sums
 */

enum { ROUNDS = 3, WORDS = 120000 };

static int64_t value_of(uint32_t round, uint32_t rank, uint64_t word) {
    return (int64_t)((word + 1) * (rank + 2) * (round + 3) * UINT64_C(0x9e3779b97f4a7c15));
}

static int is_right(const int64_t *total, uint32_t round) {
    for (uint64_t w = 0; w < WORDS; w += 7) {
        uint64_t sum = 0;
        for (uint32_t rank = 0; rank < RANKS; ++rank)
            sum += (uint64_t)value_of(round, rank, w);
        if ((uint64_t)total[w] != sum)
            return 0;
    }
    return 1;
}

static void sum(thread_ranks_member *m) {
    const qn__reduction reduction = {.kind = QN__REDUCTION_STEP, .words = WORDS};
    for (uint32_t round = 0; round < ROUNDS && m->status == QN_OK; ++round) {
        const int64_t *total = NULL;
        int more = 1;
        m->status = qn__reduction_begin(m->cluster, &reduction, &m->err);
        if (m->status != QN_OK)
            return;
        int64_t *part = qn__reduction_part(m->cluster);
        for (uint64_t w = 0; w < WORDS; ++w)
            part[w] = value_of(round, qn_cluster_rank(m->cluster), w);
        while (m->status == QN_OK && more)
            m->status = qn__reduction_finish(m->cluster, 0, &more, &total, &m->err);
        m->result += m->status == QN_OK && is_right(total, round);
    }
}

/* Three ranks on three machines; returns what was reported. */
static const char *sums_with(fault what, int at) {
    static thread_ranks c;
    static qn__carrier carrier[RANKS];
    table.count = table.carried = 0;
    table.fault = what;
    table.fault_at = at;
    thread_ranks_prepare(&c, RANKS, "ABC", sum);
    for (uint32_t r = 0; r < RANKS; ++r) {
        carrier[r] = (qn__carrier){.name = "a test",
                                   .user = (void *)&RANK[r],
                                   .send = fake_send,
                                   .receive = fake_receive,
                                   .test = fake_test};
        c.member[r].carrier = &carrier[r];
        c.member[r].options.rank_timeout = 4;
    }
    thread_ranks_work(&c);
    for (uint32_t r = 0; r < RANKS; ++r) {
        assert_int_equal(c.member[r].status, QN_OK);
        assert_int_equal(c.member[r].result, ROUNDS);
    }
    for (uint32_t r = 0; r < RANKS; ++r)
        if (c.member[r].notes[0])
            return c.member[r].notes;
    return "";
}

/* 64 pieces of each of 3 segments, from 2 ranks to the third and back. */
static void test_a_carrier(void **state) {
    (void)state;
    assert_string_equal(sums_with(NONE, NEVER), "");
    assert_true(table.carried > 20);
}

static void test_a_code(void **state) {
    (void)state;
    assert_non_null(strstr(sums_with(FAILS, 9), "of a test failed with code 7"));
}

static void test_a_damaged_message(void **state) {
    (void)state;
    assert_non_null(strstr(sums_with(DAMAGES, 9), "a message was damaged on its way"));
}

static void test_silence(void **state) {
    (void)state;
    assert_non_null(strstr(sums_with(IS_SILENT, 9), "took 2.0 s"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_carrier), cmocka_unit_test(test_a_code),
        cmocka_unit_test(test_a_damaged_message), cmocka_unit_test(test_silence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
