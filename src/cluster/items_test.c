/* Items of parts: asked of their rank, of the next one after its end, and refused where a request
 * is wrong. */
#include "cluster/items.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "cluster/thread_ranks_test.h"

enum { ITEMS = 1000, STRIDE = 24 };

/* What a rank has, and what it may read again. */
typedef struct holding {
    uint32_t rank;
    int reaches; /* 1: it can read parts of others */
    atomic_uint reached;
} holding;

static uint8_t byte_of(uint32_t part, uint64_t at) { return (uint8_t)(part * 91 + at * 7); }

static qn_status reach(void *user, uint32_t part, qn_error *err) {
    holding *h = user;
    ++h->reached;
    if (h->reaches)
        return QN_OK;
    qn__fail(err, QN_IO, "there is no such file");
    qn__at(err, "part-%u.csv", part);
    return QN_IO;
}

static int copy(void *user, uint32_t part, const qn__item_piece *piece, void *to) {
    uint8_t *bytes = to;
    (void)user;
    if (piece->array != 0 || piece->offset > ITEMS * STRIDE ||
        piece->bytes > ITEMS * STRIDE - piece->offset)
        return 0;
    for (uint32_t i = 0; i < piece->bytes; ++i)
        bytes[i] = byte_of(part, piece->offset + i);
    return 1;
}

/* Rows of a part, those that a number tells. 1: they are right. */
static int fetch(qn__items *items, uint32_t part, uint32_t count, uint64_t first, qn_error *err) {
    static const uint64_t step = 37;
    qn__item_piece piece[64] = {{0, 0, 0}};
    const uint8_t *bytes;
    int right = 1;
    for (uint32_t i = 0; i < count; ++i)
        piece[i] = (qn__item_piece){0, STRIDE, (first + i * step) % ITEMS * STRIDE};
    qn__item_request *request = qn__items_ask(items, part, piece, count, err);
    const qn_status status = qn__items_wait(items, request, &bytes, err);
    for (uint32_t i = 0; i < count && status == QN_OK; ++i)
        for (uint32_t k = 0; k < STRIDE; ++k)
            right &= bytes[i * STRIDE + k] == byte_of(part, piece[i].offset + k);
    qn__items_drop(items, request);
    return right && status == QN_OK;
}

/* Returns whether rank 1 came. All ranks get the same answer. */
static int meet(qn_cluster *c) {
    char all[THREAD_RANKS_MOST], own = 1;
    return qn__cluster_gather(c, &own, 1, all, NULL) == QN_OK && all[1];
}

static void begin(thread_ranks_member *m, holding *h, qn__items **items) {
    const qn__item_holder holder = {.user = h, .reach = reach, .copy = copy};
    h->rank = qn_cluster_rank(m->cluster);
    assert_int_equal(qn__items_create(m->cluster, 7, &holder, items, NULL), QN_OK);
    meet(m->cluster);
}

/* result: requests that were right. */
static void ask_all(thread_ranks_member *m) {
    holding h = {.reaches = 0};
    qn__items *items;
    begin(m, &h, &items);
    for (uint32_t turn = 0; turn < 50; ++turn)
        for (uint32_t part = 0; part < m->thread_ranks->count; ++part)
            m->result += (uint64_t)fetch(items, part, 1 + turn, turn * 11, NULL);
    meet(m->cluster);
    m->code = h.reached == 0;
    meet(m->cluster);
    qn__items_destroy(items);
}

static void test_every_rank_gets_items_of_every_part(void **state) {
    thread_ranks c;
    (void)state;
    thread_ranks_run(&c, 3, "AAB", ask_all);
    for (int r = 0; r < 3; ++r) {
        assert_int_equal(c.member[r].result, 150);
        assert_int_equal(c.member[r].code, 1);
    }
}

/* A request that is wrong is refused by the rank that has the part, and by all others. */
static void ask_wrongly(thread_ranks_member *m) {
    static const qn__item_piece wrong[] = {{1, 8, 0},
                                           {0, 8, ITEMS * STRIDE - 7},
                                           {0, 8, UINT64_MAX - 3},
                                           {0, QN__ANSWER_MOST + 1, 0},
                                           {0, 0, 0}};
    holding h = {.reaches = 1};
    qn__items *items;
    begin(m, &h, &items);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        const uint8_t *bytes;
        qn_error err = {.what = ""};
        qn__item_request *request = qn__items_ask(items, 1, &wrong[i], 1, &err);
        m->result += qn__items_wait(items, request, &bytes, &err) == QN_IO &&
                     strstr(err.what, "the request ") != NULL;
        qn__items_drop(items, request);
    }
    meet(m->cluster); /* the other rank waits for nothing that the next answer could be taken for */
    /* Not even a whole number of pieces; and the answer of a question that nobody asked. */
    const qn__head ask = {.type = QN__MESSAGE_ASK, .extra = 1, .number = {99}, .bytes = 5};
    const qn__head answer = {.type = QN__MESSAGE_ANSWER, .number = {1}};
    const uint32_t other = 1 - h.rank;
    qn__cluster_send(m->cluster, other, &ask, qn__cluster_buffer(m->cluster, 5));
    qn__cluster_send(m->cluster, other, &answer, NULL);
    m->code = fetch(items, other, 3, 5, NULL);
    meet(m->cluster);
    qn__items_destroy(items);
}

static void test_wrong_requests_are_refused(void **state) {
    thread_ranks c;
    (void)state;
    thread_ranks_run(&c, 2, "AB", ask_wrongly);
    for (int r = 0; r < 2; ++r) {
        assert_int_equal(c.member[r].result, 5);
        assert_int_equal(c.member[r].code, 1);
    }
}

/* Rank 1 leaves. Rank 2 reads its part again where it can, else nobody does. */
static void lose_one(thread_ranks_member *m) {
    holding h = {.reaches = m->options.rank == 2 && m->code == 0};
    qn_error err = {.what = ""};
    qn__items *items;
    begin(m, &h, &items);
    if (h.rank == 1) {
        qn__items_destroy(items);
        qn_cluster_leave(m->cluster);
        m->cluster = NULL;
        return;
    }
    while (meet(m->cluster))
        ;
    m->result = (uint64_t)fetch(items, 1, 20, 3, &err);
    m->code = (int)h.reached;
    snprintf(m->notes, sizeof m->notes, "%.250s", err.what);
    meet(m->cluster);
    qn__items_destroy(items);
}

static void test_the_next_rank_reads_a_part_again(void **state) {
    thread_ranks c;
    (void)state;
    thread_ranks_prepare(&c, 3, "ABC", lose_one);
    thread_ranks_work(&c);
    assert_int_equal(c.member[0].result, 1);
    assert_int_equal(c.member[2].result, 1);
    assert_int_equal(c.member[0].code, 0);
    assert_true(c.member[2].code > 0);
}

static void test_nobody_can_read_a_part_again(void **state) {
    thread_ranks c;
    (void)state;
    thread_ranks_prepare(&c, 3, "ABC", lose_one);
    for (int r = 0; r < 3; ++r)
        c.member[r].code = 1;
    thread_ranks_work(&c);
    for (int r = 0; r < 3; r += 2) {
        assert_int_equal(c.member[r].result, 0);
        assert_non_null(strstr(c.member[r].notes, "rank 1 on "));
        assert_non_null(strstr(c.member[r].notes, "there is no such file (part-1.csv)"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rank_gets_items_of_every_part),
        cmocka_unit_test(test_wrong_requests_are_refused),
        cmocka_unit_test(test_the_next_rank_reads_a_part_again),
        cmocka_unit_test(test_nobody_can_read_a_part_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
