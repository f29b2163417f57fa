/* The state of a run on its way to a rank that has joined. One of the others keeps a copy of it,
 * and all go on with their steps. The rank that joins takes part in these without a share, and
 * makes up for them when it has the state (team/team_follow.c). */
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "cluster/items.h"
#include "train/trainer_state.h"
#include <stdio.h>
#include <string.h>

/* Numbers of tables from here on are of states. */
static const uint64_t TABLES = UINT64_C(1) << 63;

struct qn__giving {
    qn_train *train;
    qn__items *items;
    /* The rank that gives: */
    unsigned char *state;
    size_t bytes;
    atomic_int given; /* 1: all was asked for */
    /* The rank that gets: */
    uint32_t from;
    int gets, started; /* started: the thread */
    pthread_t thread;
    atomic_int ended;
    qn_status status;
    qn_error error;
};

static qn_status reach(void *user, uint32_t part, qn_error *err) {
    (void)user;
    (void)part;
    return qn__fail(err, QN_IO, "another rank gives the state");
}

static int copy(void *user, uint32_t part, const qn__item_piece *piece, void *to) {
    qn__giving *g = user;
    (void)part;
    if (piece->offset > g->bytes || piece->bytes > g->bytes - piece->offset)
        return 0;
    memcpy(to, g->state + piece->offset, piece->bytes);
    if (piece->offset + piece->bytes == g->bytes)
        atomic_store(&g->given, 1);
    return 1;
}

static qn_status begin(qn_train *t, qn_error *err) {
    qn__giving *g = t->giving = qn__alloc(1, sizeof *g, err);
    if (!g)
        return QN_MEMORY;
    const qn__item_holder holder = {.user = g, .reach = reach, .copy = copy};
    g->train = t;
    return qn__items_create(t->cluster, TABLES + t->job.step, &holder, &g->items, err);
}

static void end(qn_train *t) {
    qn__giving *g = t->giving;
    t->giving = NULL;
    if (g->started)
        pthread_join(g->thread, NULL);
    qn__items_destroy(g->items);
    qn__free(g->state);
    qn__free(g);
}

void qn__train_giving_end(qn_train *t, int all) {
    if (t->giving && (all || atomic_load(&t->giving->given)))
        end(t);
}

/* ----------------------------------------------------------------------------- the rank that gives
 */

qn_status qn__train_give(qn_train *t, qn_error *err) {
    const size_t bytes = qn__train_position_bytes(t);
    unsigned char *state = qn__alloc(bytes, 1, err);
    if (!state)
        return QN_MEMORY;
    qn_status status = qn__train_job_pull(&t->job, err);
    if (status == QN_OK) {
        qn__train_position_pack(t, 1, state);
        status = begin(t, err);
    }
    if (status == QN_OK) {
        t->giving->bytes = bytes;
        t->giving->state = state;
        return QN_OK;
    }
    qn__free(state);
    qn__train_giving_end(t, 1);
    return status;
}

/* ------------------------------------------------------------------------------ the rank that gets
 */

static void *get_all(void *user) {
    qn__giving *g = user;
    const uint64_t bytes = g->train->job.program.parameters * sizeof(float);
    uint64_t at = qn__train_position_head();
    float *array;
    qn__float_state_set();
    for (int i = 0; g->status == QN_OK && (array = qn__train_position_array(g->train, i)); ++i) {
        g->status = qn__items_fetch(g->items, g->from, 0, at, bytes, array, &g->error);
        at += bytes;
    }
    atomic_store(&g->ended, 1);
    return NULL;
}

/* qn__arrival.arrived. A rank that cannot get the state leaves alone. */
static qn_status arrived(void *user, int wait, int *is, qn_error *err) {
    qn_train *t = user;
    qn__giving *g = t->giving;
    *is = wait || atomic_load(&g->ended);
    if (!*is)
        return QN_OK;
    if (g->started)
        pthread_join(g->thread, NULL);
    g->started = 0;
    const qn_status status = g->status;
    const qn_error why = g->error;
    qn__train_giving_end(t, 1);
    if (status == QN_OK)
        return QN_OK;
    qn__cluster_withdraw(t->cluster);
    return qn__fail(err, QN_CLUSTER, "this rank has to leave: it did not get the state: %.300s",
                    why.what);
}

qn_status qn__train_get(qn_train *t, uint32_t from, qn_error *err) {
    const qn__arrival arrival = {t, arrived};
    int is;
    qn_status status = begin(t, err);
    /* Outputs that are kept are computed with the state. */
    if (status == QN_OK && !t->job.features)
        status = qn__train_job_push(&t->job, err);
    if (status != QN_OK)
        return status;
    t->giving->from = from;
    t->giving->started = qn__thread_start(&t->giving->thread, NULL, get_all, t->giving) == 0;
    if (!t->giving->started)
        get_all(t->giving);
    if (!t->job.features) {
        qn__team_follow(t->job.team, &arrival);
        return QN_OK;
    }
    status = arrived(t, 1, &is, err);
    return status == QN_OK ? qn__train_job_push(&t->job, err) : status;
}
