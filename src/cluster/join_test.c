/* Ranks that join a run: they return, fall while they are let in, or are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/thread_ranks_test.h"
#include <string.h>
#include <sys/socket.h>

enum { WORDS = 70000, CHUNKS = 7, RETURNS_AT = 3, WAITS_AT = 5, ROUNDS = 12 };

/* What the rank that is missing from round RETURNS_AT on does. */
typedef enum guest_kind {
    RETURNS,
    FALLS,
    IS_SILENT,
    DIFFERS,
    HAS_ANOTHER_KEY,
    IS_LATE,
    IS_STOPPED,
    IS_ALONE,
    IS_UNHEARD,
    ASKS,
    COMES_LAST
} guest_kind;

enum { TABLE = 7 };

static struct {
    guest_kind kind;
    uint32_t let_in;   /* of rank 0: ranks that were let in */
    uint32_t attempts; /* and how often it tried */
    int leaves;        /* another rank ends when it should let the first one in */
    atomic_int refused, begun, silent, heard, done, asked, came, closed;
} course;

static void add(int64_t *part, uint64_t round, qn__chunk_range range) {
    for (uint64_t w = 0; w < WORDS; ++w)
        for (uint32_t u = range.first; u < range.first + range.count; ++u)
            part[w] += (int64_t)((u + 1) * (w ^ round));
}

static int is_right(const int64_t *total, uint64_t round) {
    for (uint64_t w = 0; w < WORDS; ++w)
        if (total[w] != (int64_t)((w ^ round) * (CHUNKS * (CHUNKS + 1) / 2)))
            return 0;
    return 1;
}

static qn_status one_round(thread_ranks_member *m, uint64_t round) {
    const qn__reduction what = {.kind = QN__REDUCTION_STEP, .words = WORDS, .chunks = CHUNKS};
    const int64_t *total = NULL;
    uint32_t held = 0;
    int more = 1;
    qn_status status = qn__reduction_begin(m->cluster, &what, &m->err);
    if (status != QN_OK)
        return status;
    int64_t *part = qn__reduction_part(m->cluster);
    memset(part, 0, WORDS * sizeof *part);
    while (status == QN_OK && more) {
        qn__chunk_range range;
        for (; qn__reduction_chunks(m->cluster, &range); held += range.count)
            add(part, round, range);
        status = qn__reduction_finish(m->cluster, held, &more, &total, &m->err);
    }
    m->result += status == QN_OK && is_right(total, round);
    return status;
}

static qn_status compare(thread_ranks_member *m, const char *colour) {
    const qn_agreement item = {sizeof item, "the colour", colour, "paint it"};
    return qn__cluster_agree(m->cluster, NULL, &item, 1, NULL, &m->err);
}

/* Ends this rank, and starts it again. */
static qn_status begin_again(thread_ranks_member *m, const char *colour) {
    qn_cluster_leave(m->cluster);
    m->cluster = NULL;
    qn_status status = qn_cluster_join(&m->options, &m->cluster, &m->err);
    if (status != QN_OK)
        return status;
    assert_true(qn__cluster_is_joining(m->cluster));
    assert_false(qn_cluster_is_writer(m->cluster));
    status = compare(m, colour);
    return status;
}

static qn__door_word hear(thread_ranks_member *m) {
    qn__invitation invitation;
    qn__endpoint endpoint[3];
    return qn__door_hear(m->cluster->rendezvous.meeting.door, 3, 1, &invitation, endpoint,
                         qn__now() + LONG);
}

/* It is ready, and ends when it is invited. */
static void fall(thread_ranks_member *m) {
    qn__door_word word;
    assert_int_equal(begin_again(m, "red"), QN_OK);
    do {
        assert_true(qn__door_ready(m->cluster->rendezvous.meeting.door, 0));
        word = hear(m);
    } while (word == QN__DOOR_HEARS);
    assert_int_equal(word, QN__DOOR_INVITES);
}

/* It hears that it has to wait. Then it says again that it is ready. */
static void hear_again(thread_ranks_member *m) {
    const int door = m->cluster->rendezvous.meeting.door;
    assert_int_equal(hear(m), QN__DOOR_AGAIN);
    assert_true(qn__door_ready(door, 0)); /* as if it had said so before the invitation */
    assert_int_equal(hear(m), QN__DOOR_HEARS);
    atomic_store(&course.heard, 1);
    while (!atomic_load(&course.silent))
        usleep(1000);
    while (!atomic_load(&course.done)) {
        assert_true(qn__door_ready(door, 1));
        usleep(1000);
    }
}

/* Rank 0 does not count on a rank that has said nothing since its invitation. */
static void invite_in_vain(qn_cluster *c) {
    qn__invitation invitation = {.id = 1};
    qn__endpoint endpoint;
    qn__ranks others = {{0}};
    uint32_t rank, times;
    qn__ranks_add(&others, 0);
    qn__ranks_add(&others, 2);
    while (!qn__door_waits(c->door, &others, &rank, &endpoint, &times))
        usleep(1000);
    assert_int_equal(times, 0);
    qn__ranks_add(&invitation.present, 0);
    qn__ranks_add(&invitation.present, 1);
    qn__door_invite(c->door, 1, &invitation, c->rendezvous.meeting.endpoint);
    qn__door_tell(c->door, 1, QN__DOOR_AGAIN);
    while (!atomic_load(&course.heard))
        usleep(1000);
    assert_false(qn__door_waits(c->door, &others, &rank, &endpoint, &times));
    atomic_store(&course.silent, 1);
    while (!qn__door_waits(c->door, &others, &rank, &endpoint, &times))
        usleep(1000);
    assert_int_equal(times, 1);
    atomic_store(&course.done, 1);
}

/* As if rank 0 were stopped, and said nothing. */
static void hear_nobody(qn_cluster *c, int *other) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    close(c->rendezvous.meeting.door);
    c->rendezvous.meeting.door = pair[0];
    *other = pair[1];
    c->patience = 0.01;
}

/* Rank 0 has these bytes. When the door asks for them, rank 0 may need some itself. */
static int give_bytes(void *user, uint64_t first, uint64_t count, void *to) {
    int asked = 1;
    assert_int_equal(qn__cluster_ask_run(user, TABLE, first, count, to, &asked, NULL), QN_OK);
    assert_int_equal(asked, 0);
    memset(to, (int)first, (size_t)count);
    return 1;
}

static qn_status ask(thread_ranks_member *m) {
    unsigned char bytes[3] = {0};
    int asked;
    if (course.kind == COMES_LAST) {
        atomic_store(&course.came, 1);
        while (!atomic_load(&course.closed))
            usleep(1000);
    }
    const qn_status status = qn__cluster_ask_run(m->cluster, TABLE, 9, 3, bytes, &asked, &m->err);
    assert_int_equal(asked, 1);
    if (status == QN_OK)
        assert_memory_equal(bytes, "\t\t\t", 3);
    else
        assert_int_equal(qn_cluster_over(m->cluster, &m->code), 2);
    atomic_store(&course.asked, 1);
    return status;
}

static qn_status come_back(thread_ranks_member *m, uint64_t *round) {
    int other = -1;
    if (course.kind == FALLS || course.kind == IS_SILENT)
        fall(m);
    if (course.kind == IS_SILENT)
        hear_again(m);
    if (course.kind == HAS_ANOTHER_KEY)
        m->options.key = "another secret";
    qn_status status = course.kind == IS_LATE
                           ? compare(m, "red")
                           : begin_again(m, course.kind == DIFFERS ? "blue" : "red");
    if (course.kind == IS_STOPPED)
        qn_cluster_stop(m->cluster);
    if (course.kind == IS_ALONE)
        shutdown(m->cluster->rendezvous.meeting.door, SHUT_RDWR); /* as if rank 0 had ended */
    if (course.kind == IS_UNHEARD)
        hear_nobody(m->cluster, &other);
    if (course.kind == ASKS || course.kind == COMES_LAST)
        status = ask(m);
    if (status == QN_OK)
        status = qn__cluster_enter(m->cluster, &m->err);
    if (other >= 0)
        close(other);
    if (status == QN_OK)
        status = qn__cluster_from_first(m->cluster, round, sizeof *round, &m->err);
    atomic_store(&course.refused, status != QN_OK);
    return status;
}

/* Until the other rank is ready, or was refused. */
static void await_guest(qn_cluster *c) {
    if (course.kind == IS_SILENT && !atomic_load(&course.done))
        invite_in_vain(c);
    while (course.kind == COMES_LAST && !atomic_load(&course.came))
        usleep(1000);
    if (course.kind == COMES_LAST) {
        qn__cluster_close_door(c);
        atomic_store(&course.closed, 1);
    }
    while (!course.let_in && !atomic_load(&course.refused) &&
           !atomic_load(&c->reducer->requests.requested[QN__REQUEST_JOIN])) {
        usleep(1000);
        qn__cluster_ask_door(c);
    }
}

static qn_status let_in(thread_ranks_member *m, uint64_t *round) {
    uint32_t joined, ranks = qn_cluster_ranks(m->cluster);
    uint64_t next = *round + 1;
    qn_status status = qn__cluster_let_in(m->cluster, &joined, &m->err);
    if (qn_cluster_rank(m->cluster) == 0) {
        course.attempts++;
        course.let_in += joined < ranks;
        m->cluster->next_guest = 0; /* in the next round again */
    }
    if (status == QN_OK && joined < ranks)
        status = qn__cluster_from_first(m->cluster, &next, sizeof next, &m->err);
    return status;
}

/* Rank 0 ends. Then the rank writes that was there from the beginning. */
static void end_without_first(thread_ranks_member *m) {
    uint64_t own = 1, all[3];
    if (qn_cluster_rank(m->cluster) == 0) {
        qn_cluster_leave(m->cluster);
        m->cluster = NULL;
        return;
    }
    while (qn_cluster_alive(m->cluster) > 2)
        usleep(1000);
    m->status = qn__cluster_gather(m->cluster, &own, sizeof own, all, &m->err);
    m->code = qn_cluster_is_writer(m->cluster);
}

static void hear_of_none(void *user, uint32_t rank) {
    (void)user;
    (void)rank;
}

static void work(thread_ranks_member *m) {
    const uint32_t rank = qn_cluster_rank(m->cluster);
    qn__cluster_listener listener = {
        .table = TABLE, .user = m->cluster, .gone = hear_of_none, .whole = give_bytes};
    if (course.kind == ASKS && rank == 0)
        qn__cluster_listen(m->cluster, &listener);
    m->status = compare(m, "red");
    qn__cluster_open_door(m->cluster);
    if (rank == 0)
        atomic_store(&course.begun, 1);
    for (uint64_t round = 0; round < ROUNDS && m->status == QN_OK; ++round) {
        const uint64_t comes_at = course.kind == IS_LATE ? 0 : RETURNS_AT;
        if (rank == 1 && round == comes_at && (m->status = come_back(m, &round)) != QN_OK)
            return;
        if (rank == 0 && round >= WAITS_AT)
            await_guest(m->cluster);
        m->status = one_round(m, round);
        if (m->status != QN_OK || !qn__cluster_letting_in(m->cluster))
            continue;
        if (course.leaves && rank == 2) {
            qn_cluster_leave(m->cluster);
            m->cluster = NULL;
            return;
        }
        m->status = let_in(m, &round);
    }
    qn__cluster_close_door(m->cluster);
    if (course.kind == ASKS && rank == 0)
        qn__cluster_unlisten(m->cluster, &listener);
    if (course.kind == RETURNS && m->status == QN_OK)
        end_without_first(m);
}

static void run(thread_ranks *c) {
    thread_ranks_work(c);
    for (uint32_t r = 0; r < c->count; ++r)
        if (c->member[r].status != QN_OK)
            print_message("rank %u: %s\n", r, c->member[r].err.what);
}

static void begin(thread_ranks *c, guest_kind kind, const char *machines) {
    memset(&course, 0, sizeof course);
    course.kind = kind;
    thread_ranks_prepare(c, 3, machines, work);
    for (uint32_t r = 0; r < c->count; ++r)
        c->member[r].options.key = "a secret of this test";
}

static void test_return(void **state) {
    (void)state;
    static const char *const machines[] = {"AAA", "ABC", "ABA", "AAB"};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; ++i) {
        thread_ranks c;
        begin(&c, RETURNS, machines[i]);
        run(&c);
        for (uint32_t r = 0; r < c.count; ++r) {
            assert_int_equal(c.member[r].status, QN_OK);
            if (r != 1)
                assert_int_equal(c.member[r].result, ROUNDS);
        }
        assert_int_equal(course.let_in, 1);
        assert_int_equal(c.member[1].result, RETURNS_AT + ROUNDS - WAITS_AT - 1);
        assert_non_null(strstr(c.member[0].notes, " has joined"));
        assert_int_equal(c.member[1].code, 0);
        assert_int_equal(c.member[2].code, 1);
    }
}

static void test_fall(void **state) {
    (void)state;
    thread_ranks c;
    begin(&c, FALLS, "ABC");
    run(&c);
    assert_int_equal(course.let_in, 1);
    assert_true(course.attempts > 1);
    for (uint32_t r = 0; r < c.count; ++r)
        assert_int_equal(c.member[r].status, QN_OK);
    assert_int_equal(c.member[0].result, ROUNDS);
    assert_int_equal(c.member[2].result, ROUNDS);
}

/* Two of three begin. The third is told so when it comes. */
static void test_a_late_rank(void **state) {
    static const uint32_t order[] = {0, 2, 1};
    (void)state;
    thread_ranks c;
    begin(&c, IS_LATE, "ABC");
    c.member[0].options.min_ranks = 2;
    for (int i = 0; i < 3; ++i) {
        thread_ranks_member *m = &c.member[order[i]];
        while (i == 2 && !atomic_load(&course.begun))
            usleep(1000);
        assert_int_equal(pthread_create(&m->thread, NULL, thread_ranks_thread, m), 0);
    }
    for (uint32_t r = 0; r < c.count; ++r) {
        pthread_join(c.member[r].thread, NULL);
        assert_int_equal(c.member[r].status, QN_OK);
        assert_int_equal(c.member[r].result, r == 1 ? ROUNDS - WAITS_AT - 1 : ROUNDS);
    }
    assert_int_equal(course.let_in, 1);
}

/* The others work on with the one that joins. */
static void test_another_leaves(void **state) {
    (void)state;
    thread_ranks c;
    begin(&c, RETURNS, "ABC");
    course.leaves = 1;
    run(&c);
    assert_int_equal(c.member[0].status, QN_OK);
    assert_int_equal(c.member[1].status, QN_OK);
    assert_int_equal(c.member[0].result, ROUNDS);
    assert_int_equal(course.let_in, 1);
}

/* A rank that has fallen silent is not invited again before it answers. */
static void test_silence(void **state) {
    (void)state;
    thread_ranks c;
    begin(&c, IS_SILENT, "ABC");
    run(&c);
    assert_int_equal(course.let_in, 1);
    assert_int_equal(c.member[0].result, ROUNDS);
}

/* The thread of the door asks rank 0 for bytes, while rank 0 may ask for some, too. */
static void test_bytes(void **state) {
    (void)state;
    thread_ranks c;
    begin(&c, ASKS, "AAA");
    run(&c);
    assert_true(atomic_load(&course.asked));
    assert_int_equal(course.let_in, 1);
    assert_int_equal(c.member[1].status, QN_OK);
}

static void check_refused(guest_kind kind, qn_status status, const char *text) {
    thread_ranks c;
    begin(&c, kind, "AAB");
    run(&c);
    assert_int_equal(c.member[1].status, status);
    assert_non_null(strstr(c.member[1].err.what, text));
    assert_int_equal(course.let_in, 0);
    assert_int_equal(c.member[0].result, ROUNDS);
    assert_int_equal(c.member[2].result, ROUNDS);
}

static void test_refusals(void **state) {
    (void)state;
    check_refused(DIFFERS, QN_MISMATCH, "in the colour: blue, not red");
    check_refused(HAS_ANOTHER_KEY, QN_CLUSTER, "holds another key");
    check_refused(IS_STOPPED, QN_INTERRUPTED, "it was stopped before the run let it in");
    check_refused(IS_ALONE, QN_CLUSTER, "rank 0 has ended");
    check_refused(IS_UNHEARD, QN_CLUSTER, "has not answered for 0.02 s");
    check_refused(COMES_LAST, QN_CLUSTER, "the run has ended");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_return),      cmocka_unit_test(test_fall),
        cmocka_unit_test(test_a_late_rank), cmocka_unit_test(test_another_leaves),
        cmocka_unit_test(test_silence),     cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
