/* A group: the ranks of a run as threads of one test, and the events that they received. */
#ifndef QN_CLUSTER_RENDEZVOUS_RENDEZVOUS_CASE_TEST_H
#define QN_CLUSTER_RENDEZVOUS_RENDEZVOUS_CASE_TEST_H

#include "base/system/clock.h"
#include "cluster/free_port_test.h"
#include "cluster/rendezvous/rendezvous.h"
#include <quern/cluster.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    GANG_MOST = 16,
    LONG = 60 /* seconds: for what comes soon, but may be late on a busy machine */
};

typedef struct member {
    qn__rendezvous rendezvous;
    qn_cluster_options options;
    qn_status status;
    qn_error err;
    double took;
    char machine[8];
    pthread_t thread;
    struct group *group;
    /* Counts of events; written by its transport's thread. */
    atomic_uint messages[GANG_MOST], wrong, ticks, evicted_by;
    atomic_ulong body_bytes[GANG_MOST];
    atomic_int gone[GANG_MOST]; /* -1: not gone */
    _Atomic double gone_at[GANG_MOST];
} member;

typedef struct group {
    uint32_t count;
    char place[32];
    member member[GANG_MOST];
} group;

static inline void *member_joins(void *argument) {
    member *m = argument;
    const double begin = qn__now();
    qn__rendezvous_simulate(m->machine[0] ? m->machine : NULL);
    m->status = qn__rendezvous_begin(&m->options, &m->rendezvous, &m->err);
    m->took = qn__now() - begin;
    return NULL;
}

static inline void group_prepare(group *g, uint32_t count) {
    memset(g, 0, sizeof *g);
    g->count = count;
    snprintf(g->place, sizeof g->place, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < count; ++r) {
        member *m = &g->member[r];
        m->group = g;
        m->options = (qn_cluster_options){.size = sizeof m->options,
                                          .rendezvous = g->place,
                                          .ranks = count,
                                          .rank = r,
                                          .rendezvous_timeout = 20};
        atomic_init(&m->evicted_by, UINT32_MAX);
        for (uint32_t other = 0; other < GANG_MOST; ++other)
            atomic_init(&m->gone[other], -1);
    }
}

/* Ranks whose bit in `absent` is set are not started. */
static inline void group_start(group *g, unsigned absent) {
    for (uint32_t r = 0; r < g->count; ++r)
        if (!(absent >> r & 1))
            assert_int_equal(
                pthread_create(&g->member[r].thread, NULL, member_joins, &g->member[r]), 0);
    for (uint32_t r = 0; r < g->count; ++r)
        if (!(absent >> r & 1))
            pthread_join(g->member[r].thread, NULL);
}

/* machines: a letter for each rank, or NULL: all on this one. */
static inline void group_join(group *g, uint32_t count, const char *machines) {
    group_prepare(g, count);
    for (uint32_t r = 0; r < count && machines; ++r)
        g->member[r].machine[0] = machines[r];
    group_start(g, 0);
    for (uint32_t r = 0; r < count; ++r)
        if (g->member[r].status != QN_OK)
            fail_msg("rank %u: %s (%s)", r, g->member[r].err.what, g->member[r].err.where);
}

/* Bodies hold a sequence that both ends can compute. */
static inline unsigned char body_byte(uint64_t number, uint64_t at) {
    return (unsigned char)(number * 31 + at * 7 + (at >> 8));
}

static inline void on_message(void *user, uint32_t from, const qn__head *head,
                              qn__message_buffer *body) {
    member *m = user;
    const unsigned before = atomic_load(&m->messages[from]);
    int wrong = head->number[0] != before || head->type != 40 || head->extra != from;
    wrong |= head->bytes != (body ? body->bytes : 0);
    for (uint64_t i = 0; body && i < body->bytes; i += 1 + i / 64)
        wrong |= body->data[i] != body_byte(before, i);
    atomic_fetch_add(&m->wrong, (unsigned)wrong);
    atomic_fetch_add(&m->body_bytes[from], head->bytes);
    atomic_fetch_add(&m->messages[from], 1);
    qn__buffer_drop(body);
}

static inline void on_gone(void *user, uint32_t rank, qn__loss_kind how) {
    member *m = user;
    atomic_fetch_add(&m->wrong, atomic_load(&m->gone[rank]) >= 0);
    atomic_store(&m->gone_at[rank], qn__now());
    atomic_store(&m->gone[rank], (int)how);
}

static inline void on_evicted(void *user, uint32_t by, const char *why) {
    member *m = user;
    atomic_fetch_add(&m->wrong, strcmp(why, "because") != 0);
    atomic_store(&m->evicted_by, by);
}

static inline void on_tick(void *user, double now) {
    (void)now;
    atomic_fetch_add(&((member *)user)->ticks, 1);
}

static inline void member_listen(member *m) {
    const qn__transport_events events = {
        .user = m, .message = on_message, .gone = on_gone, .evicted = on_evicted, .tick = on_tick};
    assert_int_equal(qn__rendezvous_listen(&m->rendezvous, &events, &m->err), QN_OK);
}

static inline void group_listen(group *g) {
    for (uint32_t r = 0; r < g->count; ++r)
        member_listen(&g->member[r]);
}

static inline void member_send(member *m, uint32_t to, uint64_t number, uint64_t bytes) {
    qn__transport *transport = m->rendezvous.transport;
    qn__message_buffer *body = bytes ? transport->calls->buffer(transport, bytes) : NULL;
    for (uint64_t i = 0; body && i < bytes; ++i)
        body->data[i] = body_byte(number, i);
    const qn__head head = {.type = 40, .extra = m->rendezvous.rank, .number = {number}};
    transport->calls->send(transport, to, &head, body);
}

/* Waits until *what is `least` or more, for at most `seconds`. */
static inline int wait_for(const atomic_uint *what, unsigned least, double seconds) {
    const double until = qn__now() + seconds;
    while (atomic_load(what) < least && qn__now() < until)
        usleep(200);
    return atomic_load(what) >= least;
}

static inline int wait_gone(member *m, uint32_t rank, double seconds) {
    const double until = qn__now() + seconds;
    while (atomic_load(&m->gone[rank]) < 0 && qn__now() < until)
        usleep(200);
    return atomic_load(&m->gone[rank]);
}

/* All send `count` messages of many sizes to all; checks that they arrive complete and in order. */
static inline void group_exchange(group *g, unsigned count) {
    unsigned before[GANG_MOST][GANG_MOST];
    for (uint32_t r = 0; r < g->count; ++r)
        for (uint32_t other = 0; other < g->count; ++other)
            before[r][other] = atomic_load(&g->member[other].messages[r]);
    for (unsigned i = 0; i < count; ++i)
        for (uint32_t r = 0; r < g->count; ++r)
            for (uint32_t to = 0; to < g->count; ++to)
                if (to != r)
                    member_send(&g->member[r], to, before[r][to] + i, (uint64_t)i * 7919 % 3000);
    for (uint32_t r = 0; r < g->count; ++r)
        for (uint32_t from = 0; from < g->count; ++from)
            if (from != r)
                assert_true(wait_for(&g->member[r].messages[from], before[from][r] + count, LONG));
    for (uint32_t r = 0; r < g->count; ++r)
        assert_int_equal(atomic_load(&g->member[r].wrong), 0);
}

static inline void *member_ends(void *argument) {
    qn__rendezvous_end(&((member *)argument)->rendezvous);
    return NULL;
}

/* All leave at once; none counts another as dead. */
static inline void group_end(group *g) {
    for (uint32_t r = 0; r < g->count; ++r)
        assert_int_equal(pthread_create(&g->member[r].thread, NULL, member_ends, &g->member[r]), 0);
    for (uint32_t r = 0; r < g->count; ++r)
        pthread_join(g->member[r].thread, NULL);
}

#endif
