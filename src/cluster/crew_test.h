/* A crew: the ranks of a run as threads of one test. */
#ifndef QN_CLUSTER_CREW_TEST_H
#define QN_CLUSTER_CREW_TEST_H

#include "cluster/cluster_state.h"
#include "cluster/rendezvous/rendezvous_case_test.h"

enum { CREW_MOST = 16 };

typedef struct crew_member {
    struct crew *crew;
    qn_cluster_options options;
    qn_cluster *cluster;
    qn_status status;
    qn_error err;
    uint64_t result; /* the body's */
    int code;        /* the same */
    char machine[8];
    char notes[256];
    pthread_t thread;
} crew_member;

typedef struct crew {
    uint32_t count;
    char place[32];
    void (*body)(crew_member *m);
    crew_member member[CREW_MOST];
} crew;

static inline void crew_note(void *user, const char *text) {
    crew_member *m = user;
    snprintf(m->notes, sizeof m->notes, "%s", text);
}

/* Rank r is on the machine named by letter r of `machines`; A is the real one. */
static inline void crew_prepare(crew *c, uint32_t count, const char *machines,
                                void (*body)(crew_member *m)) {
    memset(c, 0, sizeof *c);
    c->count = count;
    c->body = body;
    snprintf(c->place, sizeof c->place, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < count; ++r) {
        crew_member *m = &c->member[r];
        m->crew = c;
        m->machine[0] = machines[r] == 'A' ? 0 : machines[r];
        qn_cluster_options_init(&m->options);
        m->options.meet = c->place;
        m->options.ranks = count;
        m->options.rank = r;
        m->options.meet_timeout = 30;
        m->options.user = m;
        m->options.on_note = crew_note;
    }
}

static inline void *crew_thread(void *argument) {
    crew_member *m = argument;
    int code;
    qn__rendezvous_simulate(m->machine[0] ? m->machine : NULL);
    m->status = qn_cluster_join(&m->options, &m->cluster, &m->err);
    if (m->status == QN_OK)
        m->crew->body(m);
    /* Whoever leaves before the run is over is a loss, and takes with it what it alone knows. */
    while (m->cluster && m->status == QN_OK && !qn_cluster_over(m->cluster, &code))
        qn_cluster_finish(m->cluster, 0);
    qn_cluster_leave(m->cluster);
    return NULL;
}

static inline void crew_work(crew *c) {
    for (uint32_t r = 0; r < c->count; ++r)
        assert_int_equal(pthread_create(&c->member[r].thread, NULL, crew_thread, &c->member[r]), 0);
    for (uint32_t r = 0; r < c->count; ++r)
        pthread_join(c->member[r].thread, NULL);
}

/* All are expected to do well. */
static inline void crew_run(crew *c, uint32_t count, const char *machines,
                            void (*body)(crew_member *m)) {
    crew_prepare(c, count, machines, body);
    crew_work(c);
    for (uint32_t r = 0; r < count; ++r) {
        if (c->member[r].status != QN_OK)
            print_message("rank %u: %s\n", r, c->member[r].err.what);
        assert_int_equal(c->member[r].status, QN_OK);
    }
}

#endif
