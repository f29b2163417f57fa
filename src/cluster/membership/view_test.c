/* Agreement on a view while ranks die, sleep and are partitioned at random times.
 *
 * A view is *whole* when all of its members that still take part have entered it: only a whole view
 * can finish a reduction. The main property: there are never two different whole views of one
 * number, so at most one side of a partition continues. QN_TEST_SEED and QN_TEST_CASES select other
 * random courses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/membership/view_state.h"
#include "cluster/transport/simulated_transport_test.h"
#include <stdio.h>

enum { MOST = 40, VIEWS = 3 * MOST };
static const double PATIENCE = 20.0;

typedef struct user {
    struct world *w;
    uint32_t rank;
    qn__view *view;
    int out, others; /* has left; 1: because the others continue */
    int mute;        /* never reports */
    int short_of_memory;
    uint64_t number, key, ballot;
    qn__ranks members;
    double since; /* time of the last view, or of the start */
} user;

typedef struct world {
    sim_net net;
    uint32_t ranks;
    uint64_t seed;
    user user[MOST];
    uint64_t whole[VIEWS]; /* the key of the whole view of a number; 0: none so far */
    uint64_t plans, adopted;
    int lies;                 /* a rank sends false reports, so whole views may differ */
    struct late_report *late; /* all late reports, sent or not */
} world;

typedef struct late_report {
    struct late_report *next;
    user *u;
    uint64_t ballot;
} late_report;

static int takes_part(const world *w, uint32_t r) {
    return !w->net.rank[r].ended && !w->user[r].out;
}

/* Called after each event. */
static void check_whole(world *w) {
    if (w->lies)
        return;
    for (uint32_t r = 0; r < w->ranks; ++r) {
        const user *u = &w->user[r];
        if (!takes_part(w, r) || !u->number)
            continue;
        int whole = 1;
        for (uint32_t i = 0; i < w->ranks; ++i)
            if (qn__ranks_has(&u->members, i) && takes_part(w, i))
                whole &= w->user[i].key == u->key;
        if (!whole)
            continue;
        if (w->whole[u->number] && w->whole[u->number] != u->key)
            fail_msg("seed %llu: two views %llu", (unsigned long long)w->seed,
                     (unsigned long long)u->number);
        w->whole[u->number] = u->key;
    }
}

/* ----------------------------------------------------------------------------- user of the view */

static void report_now(user *u, uint64_t ballot) {
    const uint64_t text[3] = {u->rank, u->number, u->key};
    qn__transport *transport = &u->w->net.rank[u->rank].transport;
    qn__message_buffer *report = transport->calls->buffer(transport, sizeof text);
    memcpy(report->data, text, sizeof text);
    qn__view_reported(u->view, ballot, report);
}

static void report_late(sim_net *net, void *argument) {
    late_report *late = argument;
    const uint32_t r = late->u->rank;
    if (net->rank[r].paused) {
        sim_at(net, net->now + 0.5, report_late, late);
        return;
    }
    if (!net->rank[r].ended)
        report_now(late->u, late->ballot);
    check_whole(late->u->w);
}

static void on_stop(void *argument, uint64_t ballot) {
    user *u = argument;
    assert_false(u->out);
    assert_true(ballot > u->ballot);
    assert_int_equal(qn__view_changing(u->view), 1);
    u->ballot = ballot;
    if (u->mute)
        return;
    if (sim_pick(&u->w->net, 2)) {
        report_now(u, ballot);
        return;
    }
    late_report *late = malloc(sizeof *late);
    *late = (late_report){u->w->late, u, ballot};
    u->w->late = late;
    sim_at(&u->w->net, u->w->net.now + 0.01 * sim_chance(&u->w->net), report_late, late);
}

static qn__message_buffer *on_plan(void *argument, const qn__ranks *members,
                                   qn__message_buffer *const *report) {
    user *u = argument;
    const uint64_t key = ++u->w->plans;
    qn__transport *transport = &u->w->net.rank[u->rank].transport;
    for (uint32_t r = 0; r < u->w->ranks; ++r)
        if (qn__ranks_has(members, r)) {
            uint64_t text[3];
            assert_non_null(report[r]);
            assert_int_equal(report[r]->bytes, sizeof text);
            memcpy(text, report[r]->data, sizeof text);
            assert_int_equal(text[0], r);
            assert_int_equal(text[1], u->number);
            assert_int_equal(text[2], u->key);
        }
    u->short_of_memory = !u->short_of_memory && !sim_pick(&u->w->net, 10);
    if (u->short_of_memory)
        return NULL; /* the next tick asks again */
    qn__message_buffer *plan = transport->calls->buffer(transport, sizeof key);
    memcpy(plan->data, &key, sizeof key);
    return plan;
}

static void on_adopt(void *argument, uint64_t number, const qn__ranks *members,
                     const qn__message_buffer *plan) {
    user *u = argument;
    assert_false(u->out);
    assert_int_equal(number, u->number + 1);
    assert_int_equal(qn__view_number(u->view), number);
    assert_true(qn__ranks_has(members, u->rank));
    assert_int_equal(plan->bytes, sizeof u->key);
    for (uint32_t r = 0; r < u->w->ranks; ++r)
        assert_true(!qn__ranks_has(members, r) || qn__ranks_has(&u->members, r));
    memcpy(&u->key, plan->data, sizeof u->key);
    u->number = number;
    u->members = *members;
    u->ballot = 0;
    u->since = u->w->net.now;
    ++u->w->adopted;
    assert_true(number < VIEWS);
}

static void leave_late(sim_net *net, void *argument) {
    user *u = argument;
    if (net->rank[u->rank].paused)
        sim_at(net, net->now + 0.5, leave_late, u);
    else
        sim_leave(net, u->rank);
}

static void on_leave(void *argument, int others, const char *why) {
    user *u = argument;
    assert_false(u->out);
    assert_true(strlen(why) > 0);
    u->out = 1;
    u->others = others;
    sim_at(&u->w->net, u->w->net.now + 3.0 * sim_chance(&u->w->net), leave_late, u);
}

/* ---------------------------------------------------------------------- events of the transport */

static void on_message(void *argument, uint32_t from, const qn__head *head,
                       qn__message_buffer *body) {
    user *u = argument;
    qn__view_message(u->view, from, head, body);
    check_whole(u->w);
}

static void on_gone(void *argument, uint32_t rank, qn__loss_kind how) {
    user *u = argument;
    qn__view_gone(u->view, rank, how);
    check_whole(u->w);
}

static void on_evicted(void *argument, uint32_t by, const char *why) {
    user *u = argument;
    qn__view_evicted(u->view, by, why);
    check_whole(u->w);
}

static void on_tick(void *argument, double time) {
    user *u = argument;
    qn__view_tick(u->view, time);
    check_whole(u->w);
}

static void begin(world *w, uint32_t ranks, uint64_t seed) {
    memset(w, 0, sizeof *w);
    w->ranks = ranks;
    w->seed = seed;
    sim_begin(&w->net, ranks, seed, PATIENCE);
    w->net.late_evicts = (int)sim_pick(&w->net, 2);
    for (uint32_t r = 0; r < ranks; ++r) {
        user *u = &w->user[r];
        const qn__view_calls calls = {u, on_stop, on_plan, on_adopt, on_leave};
        const qn__transport_events events = {u,       on_message, on_gone, on_evicted,
                                             on_tick, NULL,       NULL};
        *u = (user){.w = w, .rank = r};
        u->view = qn__view_create(&w->net.rank[r].transport, ranks, r, NULL, PATIENCE, &calls);
        assert_non_null(u->view);
        u->members = *qn__view_members(u->view);
        assert_int_equal(qn__ranks_count(&u->members), ranks);
        sim_listen(&w->net, r, &events);
    }
}

static void end(world *w) {
    for (uint32_t r = 0; r < w->ranks; ++r)
        qn__view_destroy(w->user[r].view);
    for (late_report *late = w->late, *next; late; late = next) {
        next = late->next;
        free(late);
    }
    assert_int_equal(sim_end(&w->net), 0);
}

static uint32_t taking_part(const world *w) {
    uint32_t count = 0;
    for (uint32_t r = 0; r < w->ranks; ++r)
        count += (uint32_t)takes_part(w, r);
    return count;
}

/* All ranks that take part are in one view, whose members they are, and nothing is in progress. */
static void check_end(world *w) {
    const user *first = NULL;
    for (uint32_t r = 0; r < w->ranks; ++r) {
        const user *u = &w->user[r];
        if (!takes_part(w, r))
            continue;
        if (qn__view_changing(u->view))
            fail_msg("seed %llu: rank %u never comes to rest", (unsigned long long)w->seed, r);
        first = first ? first : u;
        if (u->number != first->number || u->key != first->key)
            fail_msg("seed %llu: ranks %u and %u differ", (unsigned long long)w->seed, first->rank,
                     r);
        assert_memory_equal(&u->members, qn__view_members(u->view), sizeof u->members);
        for (uint32_t i = 0; i < w->ranks; ++i)
            if (qn__ranks_has(&u->members, i) != takes_part(w, i))
                fail_msg("seed %llu: rank %u is wrong about %u", (unsigned long long)w->seed, r, i);
    }
}

/* --------------------------------------------------------------------------------------- faults */

enum { KILL, VANISH, LEAVE, SLEEP, SIDE, ONE_WAY, PAIR, HEAL, FAULTS };

typedef struct fault {
    world *w;
    int what;
    uint32_t rank, other;
    double seconds;
    qn__ranks side;
} fault;

static void happen(sim_net *net, void *argument) {
    const fault *f = argument;
    switch (f->what) {
    case KILL:
        sim_kill(net, f->rank);
        break;
    case VANISH:
        sim_vanish(net, f->rank);
        break;
    case LEAVE:
        sim_leave(net, f->rank);
        break;
    case SLEEP:
        sim_pause(net, f->rank, f->seconds);
        break;
    case SIDE:
        sim_cut(net, &f->side);
        break;
    case PAIR:
        if (f->rank != f->other)
            sim_cut_way(net, f->other, f->rank);
        /* fall through */
    case ONE_WAY:
        if (f->rank != f->other)
            sim_cut_way(net, f->rank, f->other);
        break;
    default:
        sim_heal(net);
    }
    check_whole(f->w);
}

/* A random time: at the start, within a few milliseconds of other faults, or near the timeout. */
static double moment(sim_net *net) {
    const double base = sim_pick(net, 3) ? 0 : sim_pick(net, 4) * PATIENCE;
    return base + sim_chance(net) * (sim_pick(net, 3) ? 0.03 : 30.0);
}

static uint32_t draw_faults(world *w, fault *faults, uint32_t most, int kinds) {
    sim_net *net = &w->net;
    const uint32_t count = 1 + sim_pick(net, most);
    for (uint32_t i = 0; i < count; ++i) {
        fault *f = &faults[i];
        *f = (fault){.w = w,
                     .what = (int)sim_pick(net, (uint32_t)kinds),
                     .rank = sim_pick(net, w->ranks),
                     .other = sim_pick(net, w->ranks),
                     .seconds = 60.0 * sim_chance(net) * sim_chance(net)};
        if (kinds == 1)
            f->what = sim_pick(net, 8) ? KILL : LEAVE;
        for (uint32_t r = 0; r < w->ranks; ++r)
            if (sim_pick(net, 2))
                qn__ranks_add(&f->side, r);
        sim_at(net, kinds == 1 ? 0.03 * sim_chance(net) : moment(net), happen, f);
    }
    return count;
}

static uint64_t setting(const char *name, uint64_t usual) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : usual;
}

static uint64_t cases(uint64_t usual) {
    const uint64_t percent = setting("QN_TEST_CASES", 100);
    return usual * percent / 100 + 1;
}

/* ---------------------------------------------------------------------------------------- tests */

static void test_nothing_happens(void **state) {
    (void)state;
    static world w;
    begin(&w, 5, 1);
    sim_run(&w.net, 500);
    check_end(&w);
    assert_int_equal(taking_part(&w), 5);
    assert_int_equal(w.adopted, 0);
    assert_int_equal(w.net.messages, 0);
    end(&w);
}

static void test_one_death(void **state) {
    (void)state;
    static world w;
    for (uint32_t ranks = 2; ranks <= 9; ++ranks)
        for (uint32_t dead = 0; dead < ranks; ++dead) {
            begin(&w, ranks, 100 * ranks + dead);
            sim_kill(&w.net, dead);
            sim_run(&w.net, 4);
            check_end(&w);
            assert_int_equal(taking_part(&w), ranks - 1);
            assert_int_equal(w.user[!dead].number, 1);
            assert_int_equal(w.adopted, ranks - 1);
            end(&w);
        }
}

/* With clean deaths alone no other rank is lost, and no timeout is needed. */
static void deaths(uint32_t ranks, uint64_t seed) {
    static world w;
    static fault faults[2 * MOST];
    begin(&w, ranks, seed);
    draw_faults(&w, faults, ranks + 1, 1);
    sim_run(&w.net, 8.0);
    for (uint32_t r = 0; r < ranks; ++r)
        if (w.user[r].out)
            fail_msg("seed %llu: rank %u had to leave", (unsigned long long)seed, r);
    check_end(&w);
    end(&w);
}

static void test_deaths(void **state) {
    (void)state;
    const uint64_t from = setting("QN_TEST_SEED", 1000), count = cases(6000);
    for (uint64_t seed = from; seed < from + count; ++seed)
        deaths(2 + (uint32_t)(seed % 8), seed);
    for (uint64_t seed = from; seed < from + cases(20); ++seed)
        deaths(MOST, seed);
}

static void everything(uint32_t ranks, uint64_t seed, uint32_t most) {
    static world w;
    static fault faults[2 * MOST];
    begin(&w, ranks, seed);
    draw_faults(&w, faults, most, FAULTS);
    sim_run(&w.net, 100 + 8 * PATIENCE * (4 + ranks));
    check_end(&w);
    end(&w);
}

static void test_everything(void **state) {
    (void)state;
    const uint64_t from = setting("QN_TEST_SEED", 1000), count = cases(6000);
    const uint32_t large = count > 600 ? MOST : 16; /* with a sanitizer 40 ranks take 12 seconds */
    for (uint64_t seed = from; seed < from + count; ++seed)
        everything(2 + (uint32_t)(seed % 8), seed, 2 + (uint32_t)(seed % 5));
    for (uint64_t seed = from; seed < from + cases(5); ++seed)
        everything(large, seed, 10);
}

/* After a partition exactly the larger side continues, or of two halves the one with the lowest
 * rank. */
static void test_two_parts(void **state) {
    (void)state;
    static world w;
    for (uint32_t ranks = 2; ranks <= 6; ++ranks)
        for (uint32_t side = 1; side < (1u << ranks) - 1; ++side) {
            const uint32_t size = (uint32_t)__builtin_popcount(side);
            const int goes = 2 * size > ranks || (2 * size == ranks && (side & 1));
            const qn__ranks set = {.word = {side}};
            const uint64_t seed = 1000 * ranks + side;
            begin(&w, ranks, seed);
            sim_cut(&w.net, &set);
            sim_run(&w.net, 12 * PATIENCE);
            check_end(&w);
            for (uint32_t r = 0; r < ranks; ++r)
                if (takes_part(&w, r) != (goes == (int)(side >> r & 1)))
                    fail_msg("%u ranks, side %x: rank %u", ranks, side, r);
            end(&w);
        }
}

/* Healing a partition changes nothing: the ranks that had to leave are notified. */
static void test_the_other_part_is_told(void **state) {
    (void)state;
    static world w;
    static fault heal;
    for (uint64_t seed = 0; seed < 50; ++seed) {
        begin(&w, 4, seed);
        w.net.late_evicts = 1;
        heal = (fault){.w = &w, .what = HEAL};
        sim_cut(&w.net, &(qn__ranks){.word = {0x3}});
        sim_at(&w.net, PATIENCE * 1.3, happen, &heal);
        sim_run(&w.net, 12 * PATIENCE);
        check_end(&w);
        assert_true(takes_part(&w, 0) && takes_part(&w, 1));
        assert_true(w.user[2].others && w.user[3].others);
        end(&w);
    }
}

/* 1 and 2 cannot reach each other; all others reach both: one of the two has to leave. */
static void test_one_broken_pair(void **state) {
    (void)state;
    static world w;
    for (uint64_t seed = 0; seed < 50; ++seed) {
        begin(&w, 5, seed);
        sim_cut_way(&w.net, 1, 2);
        if (seed % 2)
            sim_cut_way(&w.net, 2, 1);
        sim_run(&w.net, 12 * PATIENCE);
        check_end(&w);
        assert_int_equal(taking_part(&w), 4);
        assert_true(w.user[2].out && w.user[2].others);
        end(&w);
    }
}

/* A live rank that does not answer is evicted after one patience, whichever it is. */
static void test_who_does_not_report(void **state) {
    (void)state;
    static world w;
    for (uint32_t mute = 0; mute < 4; ++mute)
        for (uint64_t seed = 0; seed < 20; ++seed) {
            begin(&w, 5, seed);
            w.user[mute].mute = 1;
            sim_kill(&w.net, 4);
            sim_run(&w.net, 6 * PATIENCE);
            check_end(&w);
            assert_int_equal(taking_part(&w), 3);
            assert_true(w.user[mute].out);
            end(&w);
        }
}

/* Malformed messages have no effect. */
static void test_garbage(void **state) {
    (void)state;
    static world w;
    for (uint64_t seed = 0; seed < cases(300); ++seed) {
        begin(&w, 5, seed);
        sim_net *net = &w.net;
        qn__transport *transport = &net->rank[4].transport;
        sim_kill(net, 3);
        for (int i = 0; i < 300; ++i) {
            const uint32_t bytes = sim_pick(net, 60);
            qn__head head = {.type = QN__VIEW_FIRST_TYPE + sim_pick(net, 16),
                             .extra = sim_pick(net, 4),
                             .number = {sim_pick(net, 3), sim_pick(net, 3) * 1024u,
                                        sim_pick(net, 3) * 1024u + sim_pick(net, 6)},
                             .bytes = bytes};
            qn__message_buffer *body = bytes ? transport->calls->buffer(transport, bytes) : NULL;
            for (uint32_t b = 0; b < bytes; ++b)
                body->data[b] = (unsigned char)(sim_pick(net, 3) ? 0 : sim_draw(net));
            /* A member may send these legitimately. */
            if (head.type == QN__VIEW_FIRST_TYPE + 4 || head.type == QN__VIEW_FIRST_TYPE + 2)
                head.number[0] += 7;
            qn__view_message(w.user[sim_pick(net, 3)].view, 4, &head, body);
            sim_run(net, net->now + 1e-3);
        }
        end(&w);
    }
}

/* A well-formed report from rank `from` to rank `to`, which says that `from` accepted a view with
 * the ranks of `members` under the ballot `accepted`. */
static void report_falsely(world *w, uint32_t from, uint32_t to, uint64_t accepted,
                           uint32_t members) {
    enum { SET = 1, VALUE = 8 + SET + 8, REPORT = 24 };
    qn__transport *transport = &w->net.rank[from].transport;
    const uint64_t key = ++w->plans, text[3] = {from};
    qn__message_buffer *body = transport->calls->buffer(transport, 16 + 2 * SET + VALUE + REPORT);
    unsigned char *at = body->data, *value = at + 16 + 2 * SET;
    memset(at, 0, body->bytes);
    qn__view_put_u64(at, accepted);
    qn__view_put_u64(at + 8 + 2 * SET, VALUE);
    qn__view_put_u64(value, accepted);
    value[8] = (unsigned char)members;
    memcpy(value + 8 + SET, &key, 8);
    memcpy(value + VALUE, text, sizeof text);
    const qn__head head = {
        .type = QN__VIEW_REPORT, .number = {0, 0, w->user[to].ballot}, .bytes = body->bytes};
    qn__view_message(w->user[to].view, from, &head, body);
}

/* Rank 0 proposes. Rank 2 reports that it accepted a view without rank 0, and dies before it can
 * accept this view again. No votes are not a quorum. */
static void test_nobody_votes(void **state) {
    (void)state;
    static world w;
    for (uint64_t seed = 0; seed < 20; ++seed) {
        begin(&w, 3, seed);
        w.user[2].mute = 1;
        sim_cut(&w.net, &(qn__ranks){.word = {0x2}});
        while (!w.user[0].ballot)
            sim_step(&w.net);
        sim_run(&w.net, w.net.now + 0.02);
        report_falsely(&w, 2, 0, 1024 + 1, 0x6);
        sim_kill(&w.net, 2);
        sim_run(&w.net, 12 * PATIENCE);
        assert_true(w.user[0].out && !w.user[0].others);
        assert_int_equal(w.adopted, 0);
        end(&w);
    }
}

/* Random courses of the same kind: the reports are well-formed, their contents random. */
static void test_false_reports(void **state) {
    (void)state;
    static world w;
    static fault faults[4];
    for (uint64_t seed = 0; seed < cases(300); ++seed) {
        const uint32_t ranks = 3 + (uint32_t)(seed % 5);
        begin(&w, ranks, seed);
        w.lies = 1;
        draw_faults(&w, faults, 4, FAULTS);
        for (uint32_t i = 0; i < 100; ++i) {
            const uint32_t from = sim_pick(&w.net, ranks), to = sim_pick(&w.net, ranks);
            const uint64_t accepted = 1024 + sim_pick(&w.net, ranks);
            const uint32_t members = 1 + sim_pick(&w.net, (1u << ranks) - 1);
            if (from != to && takes_part(&w, from) && takes_part(&w, to) && w.user[to].ballot) {
                report_falsely(&w, from, to, accepted, members);
                if (!sim_pick(&w.net, 3))
                    sim_kill(&w.net, from);
            }
            sim_run(&w.net, w.net.now + 0.5 * sim_chance(&w.net));
        }
        sim_run(&w.net, 12 * PATIENCE);
        end(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_happens), cmocka_unit_test(test_one_death),
        cmocka_unit_test(test_deaths),          cmocka_unit_test(test_everything),
        cmocka_unit_test(test_two_parts),       cmocka_unit_test(test_the_other_part_is_told),
        cmocka_unit_test(test_one_broken_pair), cmocka_unit_test(test_who_does_not_report),
        cmocka_unit_test(test_garbage),         cmocka_unit_test(test_nobody_votes),
        cmocka_unit_test(test_false_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
