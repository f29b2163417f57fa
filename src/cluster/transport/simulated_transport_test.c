/* The simulated transport fulfils the contract of a transport. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster/transport/simulated_transport_test.h"

enum { RANKS = 4 };

typedef struct receiver {
    uint64_t next[RANKS]; /* number of the next message from each */
    int gone[RANKS];      /* 1 + the reason */
    double gone_at[RANKS];
    int evicted;
    uint64_t ticks;
} receiver;

typedef struct world {
    sim_net net;
    receiver receiver[RANKS];
    struct {
        struct world *w;
        uint32_t r;
    } self[RANKS];
} world;

static receiver *receiver_of(void *user, sim_net **net) {
    world *w = *(world **)user;
    *net = &w->net;
    return &w->receiver[((uintptr_t)user - (uintptr_t)w->self) / sizeof w->self[0]];
}

static void on_message(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    sim_net *net;
    receiver *e = receiver_of(user, &net);
    assert_int_equal(e->gone[from], 0);
    assert_int_equal(head->number[0], e->next[from]++);
    assert_int_equal(body->data[0], head->number[0] & 255);
    qn__buffer_drop(body);
}

static void on_gone(void *user, uint32_t rank, qn__loss_kind how) {
    sim_net *net;
    receiver *e = receiver_of(user, &net);
    assert_int_equal(e->gone[rank], 0);
    e->gone[rank] = 1 + (int)how;
    e->gone_at[rank] = net->now;
}

static void on_evicted(void *user, uint32_t by, const char *why) {
    sim_net *net;
    (void)by;
    assert_string_equal(why, "because");
    receiver_of(user, &net)->evicted = 1;
}

static void on_tick(void *user, double now) {
    sim_net *net;
    (void)now;
    ++receiver_of(user, &net)->ticks;
}

static void begin(world *w, uint64_t seed) {
    memset(w, 0, sizeof *w);
    sim_begin(&w->net, RANKS, seed, 20.0);
    for (uint32_t r = 0; r < RANKS; ++r) {
        w->self[r].w = w;
        w->self[r].r = r;
        sim_listen(&w->net, r,
                   &(qn__transport_events){&w->self[r], on_message, on_gone, on_evicted, on_tick,
                                           NULL, NULL});
    }
}

static void send_numbers(world *w, uint32_t from, uint32_t to, uint64_t first, uint64_t count) {
    qn__transport *transport = &w->net.rank[from].transport;
    for (uint64_t i = first; i < first + count; ++i) {
        qn__message_buffer *body = transport->calls->buffer(transport, 1);
        body->data[0] = (unsigned char)i;
        transport->calls->send(transport, to, &(qn__head){16, 0, {i, 0, 0}, 1}, body);
    }
}

static void test_in_order_and_the_end_last(void **state) {
    (void)state;
    int all = 0, some = 0;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        world w;
        begin(&w, seed);
        send_numbers(&w, 1, 0, 0, 50);
        send_numbers(&w, 1, 2, 0, 50);
        sim_kill(&w.net, 1);
        sim_run(&w.net, 1);
        assert_int_equal(w.receiver[0].gone[1], 1 + QN__GONE_DEAD);
        assert_int_equal(w.receiver[2].gone[1], 1 + QN__GONE_DEAD);
        all += w.receiver[0].next[1] == 50;
        some += w.receiver[0].next[1] < 50;
        assert_int_equal(sim_end(&w.net), 0);
    }
    assert_true(all > 20 && some > 20);
}

static void test_silence_is_mutual(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 200; ++seed) {
        world w;
        begin(&w, seed);
        sim_cut_way(&w.net, 1, 0); /* 0 does not receive from 1, 1 receives from 0 */
        send_numbers(&w, 1, 0, 0, 3);
        send_numbers(&w, 0, 1, 0, 3);
        sim_run(&w.net, 19.9);
        assert_int_equal(w.receiver[1].next[0], 3);
        assert_int_equal(w.receiver[0].next[1], 0);
        assert_int_equal(w.receiver[0].gone[1], 0);
        sim_run(&w.net, 22);
        sim_kill(&w.net, 0);
        sim_heal(&w.net);
        sim_run(&w.net, 30);
        assert_int_equal(w.receiver[0].gone[1], 1 + QN__GONE_SILENT);
        assert_int_equal(w.receiver[1].gone[0], 1 + QN__GONE_SILENT);
        assert_int_equal(w.receiver[2].gone[0], 1 + QN__GONE_DEAD);
        assert_int_equal(sim_end(&w.net), 0);
    }
}

static void test_who_slept_cannot_tell(void **state) {
    (void)state;
    world w;
    begin(&w, 5);
    sim_pause(&w.net, 0, 12);
    sim_pause(&w.net, 1, 30);
    sim_pause(&w.net, 2, 3);
    sim_run(&w.net, 1);
    send_numbers(&w, 3, 1, 0, 5);
    sim_kill(&w.net, 3);
    sim_run(&w.net, 25);
    assert_int_equal(w.receiver[0].gone[3], 1 + QN__GONE_SILENT); /* it slept for long meanwhile */
    assert_int_equal(w.receiver[2].gone[3], 1 + QN__GONE_DEAD);
    assert_int_equal(w.receiver[0].gone[1], 1 + QN__GONE_SILENT); /* 1 sleeps for too long */
    assert_int_equal(w.receiver[2].gone[1], 1 + QN__GONE_SILENT);
    assert_int_equal(w.receiver[0].gone[2], 0);
    assert_true(w.receiver[1].ticks < 3 && w.receiver[2].ticks > 15);
    w.net.rank[0].transport.calls->evict(&w.net.rank[0].transport, 1, "because");
    sim_run(&w.net, 60);
    assert_int_equal(w.receiver[1].evicted, 1);
    assert_int_equal(w.receiver[1].gone[2], 1 + QN__GONE_SILENT);
    assert_int_equal(sim_end(&w.net), 0);
}

static void test_goodbyes_and_vanishing(void **state) {
    (void)state;
    world w;
    begin(&w, 6);
    send_numbers(&w, 3, 0, 0, 5);
    sim_leave(&w.net, 3);
    sim_vanish(&w.net, 2);
    assert_int_equal(sim_settle(&w.net, 5), 0); /* not yet noticed */
    assert_int_equal(w.receiver[0].next[3], 5);
    assert_int_equal(w.receiver[0].gone[3], 1 + QN__GONE_LEFT);
    assert_int_equal(w.receiver[0].gone[2], 0);
    assert_int_equal(sim_settle(&w.net, 25), 1);
    assert_int_equal(w.receiver[0].gone[2], 1 + QN__GONE_SILENT);
    assert_true(w.receiver[0].gone_at[2] >= 20 && w.receiver[0].gone_at[2] < 21.1);
    assert_int_equal(sim_end(&w.net), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order_and_the_end_last),
        cmocka_unit_test(test_silence_is_mutual),
        cmocka_unit_test(test_who_slept_cannot_tell),
        cmocka_unit_test(test_goodbyes_and_vanishing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
