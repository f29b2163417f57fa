/* The ranks of a run as threads of one test, each with a training of its own. */
#ifndef QN_TESTS_RANKS_CASE_TEST_H
#define QN_TESTS_RANKS_CASE_TEST_H

#include "cluster/free_port_test.h"
#include "cluster/rendezvous/rendezvous.h"
#include "team_case_test.h"
#include <pthread.h>

enum { CREW = 16 };

typedef struct hand {
    tiny run;
    uint32_t rank, ranks;
    const char *rendezvous;
    const char *machine; /* NULL: the real one */
    qn_data *data;
    /* Instead of a training; returns its status. */
    qn_status (*work)(struct hand *hand);
    void *user;
    qn_status status;
    int code; /* of qn_cluster_over; -1: this rank had left before */
    pthread_t thread;
} hand;

static inline qn_status hand_joins(hand *h) {
    qn_cluster_options o;
    qn_cluster_options_init(&o);
    o.rendezvous = h->rendezvous;
    o.ranks = h->ranks;
    o.rank = h->rank;
    o.rank_timeout = 20;
    return qn_cluster_join(&o, &h->run.cluster, &h->run.err);
}

/* A rank's whole life, as a program would have it. */
static inline void *hand_lives(void *argument) {
    hand *h = argument;
    qn__rendezvous_simulate(h->machine);
    h->code = -1;
    h->status = hand_joins(h);
    if (h->status != QN_OK)
        return NULL;
    h->status = h->work ? h->work(h) : tiny_run(&h->run, h->data);
    if (h->status == QN_OK || h->status == QN_DEVICE)
        while (!qn_cluster_over(h->run.cluster, &h->code))
            qn_cluster_finish(h->run.cluster, 7);
    qn_cluster_leave(h->run.cluster);
    h->run.cluster = NULL;
    return NULL;
}

static inline void alone_is(tiny *alone) {
    qn_data *data = tiny_data();
    assert_int_equal(tiny_run(alone, data), QN_OK);
    qn_data_close(data);
}

static inline void remove_folder(const char *dir) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    assert_int_equal(system(command), 0);
}

/* Runs the ranks: what each rank does stands in hands[0 .. ranks-1]; their data is made
 * here. */
static inline void thread_ranks_run(hand *hands, uint32_t ranks) {
    char place[32];
    snprintf(place, sizeof place, "127.0.0.1:%u", free_port());
    for (uint32_t r = 0; r < ranks; ++r) {
        hands[r].rank = r;
        hands[r].ranks = ranks;
        hands[r].rendezvous = place;
        hands[r].data = tiny_data();
    }
    for (uint32_t r = 0; r < ranks; ++r)
        assert_int_equal(pthread_create(&hands[r].thread, NULL, hand_lives, &hands[r]), 0);
    for (uint32_t r = 0; r < ranks; ++r) {
        pthread_join(hands[r].thread, NULL);
        qn_data_close(hands[r].data);
    }
}

/* All that are left have what a process alone has. */
static inline void all_have(const hand *hands, uint32_t ranks, const tiny *alone) {
    for (uint32_t r = 0; r < ranks; ++r) {
        if (hands[r].status != QN_OK)
            fail_msg("rank %u of %u: %s, %s", r, ranks, hands[r].run.err.what,
                     hands[r].run.err.where);
        assert_string_equal(hands[r].run.digest, alone->digest);
        assert_string_equal(hands[r].run.epochs, alone->epochs);
        assert_int_equal(hands[r].code, 7);
    }
}

#endif
