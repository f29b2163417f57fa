/* The state of a run on its way to a rank that has joined. One of the others gives it, and all go
 * on with their steps. The rank that joins takes part in these without a share, and makes up for
 * them when it has the state (team/team_follow.c). The state that is given is the host's copy; the
 * rank copies it once more when something else is about to be written there. */
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
    pthread_mutex_t lock; /* for `state` */
    unsigned char *state; /* a copy; NULL: it is in the arrays of the training */
    uint64_t each, bytes; /* of an array, and of all; 0 where nothing is given */
    atomic_int given;     /* 1: all was asked for */
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

static void copy_in_place(const qn__giving *g, uint64_t offset, uint64_t bytes, uint8_t *to) {
    for (uint64_t done = 0, more; done < bytes; done += more) {
        const uint64_t at = offset + done, within = at % g->each;
        const float *array = qn__train_position_array(g->train, (int)(at / g->each));
        more = g->each - within < bytes - done ? g->each - within : bytes - done;
        memcpy(to + done, (const uint8_t *)array + within, more);
    }
}

static int copy(void *user, uint32_t part, const qn__item_piece *piece, void *to) {
    qn__giving *g = user;
    (void)part;
    if (piece->offset > g->bytes || piece->bytes > g->bytes - piece->offset)
        return 0;
    pthread_mutex_lock(&g->lock);
    if (g->state)
        memcpy(to, g->state + piece->offset, piece->bytes);
    else
        copy_in_place(g, piece->offset, piece->bytes, to);
    pthread_mutex_unlock(&g->lock);
    if (piece->offset + piece->bytes == g->bytes)
        atomic_store(&g->given, 1);
    return 1;
}

/* `gives`: to others. */
static qn_status begin(qn_train *t, int gives, qn_error *err) {
    qn__giving *g = t->giving = qn__alloc(1, sizeof *g, err);
    if (!g)
        return QN_MEMORY;
    const qn__item_holder holder = {.user = g, .reach = reach, .copy = copy};
    pthread_mutex_init(&g->lock, NULL);
    g->train = t;
    g->each = t->job.program.parameters * sizeof(float);
    for (int i = 0; gives && qn__train_position_array(t, i); ++i)
        g->bytes += g->each;
    return qn__items_create(t->cluster, TABLES + t->job.step, &holder, &g->items, err);
}

static void end(qn_train *t) {
    qn__giving *g = t->giving;
    t->giving = NULL;
    if (g->started)
        pthread_join(g->thread, NULL);
    qn__items_destroy(g->items);
    pthread_mutex_destroy(&g->lock);
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
    qn_status status = qn__train_job_pull(&t->job, err);
    if (status == QN_OK)
        status = begin(t, 1, err);
    if (status != QN_OK)
        qn__train_giving_end(t, 1);
    else if (t->job.features || qn__team_may_save(t->job.team))
        qn__train_giving_keep(t); /* others are saved to the host's copy at any step */
    return status;
}

void qn__train_giving_keep(qn_train *t) {
    qn__giving *g = t->giving;
    if (!g || g->bytes == 0 || g->state || atomic_load(&g->given))
        return;
    unsigned char *state = qn__alloc(g->bytes, 1, NULL);
    if (!state) { /* who gets it has to leave */
        qn__train_giving_end(t, 1);
        return;
    }
    copy_in_place(g, 0, g->bytes, state);
    pthread_mutex_lock(&g->lock);
    g->state = state;
    pthread_mutex_unlock(&g->lock);
}

/* ------------------------------------------------------------------------------ the rank that gets
 */

static void *get_all(void *user) {
    qn__giving *g = user;
    uint64_t at = 0;
    float *array;
    qn__float_state_set();
    for (int i = 0; g->status == QN_OK && (array = qn__train_position_array(g->train, i)); ++i) {
        g->status = qn__items_fetch(g->items, g->from, 0, at, g->each, array, &g->error);
        at += g->each;
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
    qn__fail(err, QN_CLUSTER, "this rank has to leave: it did not get the state: %.300s", why.what);
    return qn__remedy(err, QN_CLUSTER, "start it again");
}

qn_status qn__train_get(qn_train *t, uint32_t from, qn_error *err) {
    const qn__arrival arrival = {t, arrived};
    int is;
    qn_status status = begin(t, 0, err);
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
