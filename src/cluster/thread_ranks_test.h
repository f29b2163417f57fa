/* The ranks of a run as threads of one test. */
#ifndef QN_CLUSTER_THREAD_RANKS_TEST_H
#define QN_CLUSTER_THREAD_RANKS_TEST_H

#include "cluster/cluster_state.h"
#include "cluster/rendezvous/rendezvous_case_test.h"

enum { THREAD_RANKS_MOST = 16 };

typedef struct thread_ranks_member {
    struct thread_ranks *thread_ranks;
    qn_cluster_options options;
    qn_cluster *cluster;
    qn_status status;
    qn_error err;
    uint64_t result; /* of the body */
    int code;        /* of the body */
    char machine[8];
    char notes[256];
    const qn__carrier *carrier; /* or NULL */
    pthread_t thread;
} thread_ranks_member;

typedef struct thread_ranks {
    uint32_t count;
    char place[32];
    void (*body)(thread_ranks_member *m);
    thread_ranks_member member[THREAD_RANKS_MOST];
} thread_ranks;

static inline void thread_ranks_note(void *user, const char *text) {
    thread_ranks_member *m = user;
    snprintf(m->notes, sizeof m->notes, "%s", text);
}

/* Rank r is on the machine named by letter r of `machines`; A is the real one. */
static inline void thread_ranks_prepare(thread_ranks *c, uint32_t count, const char *machines,
                                        void (*body)(thread_ranks_member *m)) {
    memset(c, 0, sizeof *c);
    c->count = count;
    c->body = body;
    snprintf(c->place, sizeof c->place, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < count; ++r) {
        thread_ranks_member *m = &c->member[r];
        m->thread_ranks = c;
        m->machine[0] = machines[r] == 'A' ? 0 : machines[r];
        qn_cluster_options_init(&m->options);
        m->options.rendezvous = c->place;
        m->options.ranks = count;
        m->options.rank = r;
        m->options.rendezvous_timeout = 30;
        m->options.user = m;
        m->options.on_note = thread_ranks_note;
    }
}

static inline void *thread_ranks_thread(void *argument) {
    thread_ranks_member *m = argument;
    int code;
    qn__rendezvous_simulate(m->machine[0] ? m->machine : NULL);
    qn__rendezvous_carry(m->carrier);
    m->status = qn_cluster_join(&m->options, &m->cluster, &m->err);
    if (m->status == QN_OK)
        m->thread_ranks->body(m);
    /* A rank that leaves before the run is over counts as lost, with its totals. */
    while (m->cluster && m->status == QN_OK && !qn_cluster_over(m->cluster, &code))
        qn_cluster_finish(m->cluster, 0);
    qn_cluster_leave(m->cluster);
    return NULL;
}

static inline void thread_ranks_work(thread_ranks *c) {
    for (uint32_t r = 0; r < c->count; ++r)
        assert_int_equal(
            pthread_create(&c->member[r].thread, NULL, thread_ranks_thread, &c->member[r]), 0);
    for (uint32_t r = 0; r < c->count; ++r)
        pthread_join(c->member[r].thread, NULL);
}

/* All must succeed. */
static inline void thread_ranks_run(thread_ranks *c, uint32_t count, const char *machines,
                                    void (*body)(thread_ranks_member *m)) {
    thread_ranks_prepare(c, count, machines, body);
    thread_ranks_work(c);
    for (uint32_t r = 0; r < count; ++r) {
        if (c->member[r].status != QN_OK)
            print_message("rank %u: %s\n", r, c->member[r].err.what);
        assert_int_equal(c->member[r].status, QN_OK);
    }
}

#endif
