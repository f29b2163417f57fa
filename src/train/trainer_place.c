/* Where the model is written: to the requested path, or another one if no rank can write there. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "train/trainer_state.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Attempts to find a free name for a file that must not replace another. */
enum { MOST_NAMES = 100 };

/* The state that a rank sends in a reduction. A dead rank counts as ABSENT. */
typedef enum state { ABSENT, PRESENT, READY, WRITTEN, REFUSED } state;

typedef struct attempt {
    uint64_t state;
    uint64_t parameters;
    char path[sizeof((qn_saved *)0)->path], digest[65];
    qn_error why;
} attempt;

typedef struct placing {
    qn_train *train;
    qn_model *model; /* of this rank: created when its turn comes */
    attempt own, *all;
    unsigned char *there, *refused; /* of each rank: it is alive; its host cannot write here */
    qn_status status;               /* of the reductions */
    qn_saved *saved;
    qn_error *err;
} placing;

/* All-gathers the states. */
static int hear(placing *p, state own) {
    const qn_train *t = p->train;
    p->own.state = own;
    if (p->status == QN_OK && t->cluster)
        p->status = qn__cluster_gather(t->cluster, &p->own, sizeof p->own, p->all, p->err);
    else if (p->status == QN_OK)
        p->all[0] = p->own;
    return p->status == QN_OK;
}

/* For the writer: all is written and only the rename is left. In this reduction an evicted rank
 * learns of its eviction. */
static int ask(void *user) {
    placing *p = user;
    return hear(p, READY);
}

/* Reserves a free name by an empty file, which the model replaces. */
static qn_status take_name(const char *place, char *path, size_t size, qn_error *err) {
    for (int i = 1; i <= MOST_NAMES; ++i) {
        snprintf(path, size, i > 1 ? "%s.%d" : "%s", place, i);
        const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0) {
            close(file);
            return QN_OK;
        }
        if (errno != EEXIST)
            break;
    }
    return qn__fail_errno(err, "create", path);
}

static qn_status write_model(placing *p, const char *place, int is_new, qn_error *err) {
    qn_status status = QN_OK;
    snprintf(p->own.path, sizeof p->own.path, "%s", place);
    if (strlen(place) + 8 > sizeof p->own.path) {
        errno = ENAMETOOLONG;
        return qn__fail_errno(err, "write", place);
    }
    if (!p->model)
        status = qn_train_model(p->train, &p->model, err);
    if (status == QN_OK) {
        p->own.parameters = qn_model_parameters(p->model);
        snprintf(p->own.digest, sizeof p->own.digest, "%s", qn_model_digest(p->model));
    }
    if (status == QN_OK && is_new)
        status = take_name(place, p->own.path, sizeof p->own.path, err);
    if (status != QN_OK)
        return status;
    status = qn__model_save_asking(p->model, p->own.path, ask, p, err);
    if (status != QN_OK && is_new)
        unlink(p->own.path);
    return status;
}

/* The turn of this rank. In any case it makes the same reductions as the others. */
static void take_turn(placing *p, const char *place, int is_new) {
    qn_error why = {0};
    const qn_status status = write_model(p, place, is_new, &why);
    if (p->status != QN_OK) /* in a reduction: this rank has to leave */
        return;
    if (status != QN_OK && status != QN_IO) {
        p->status = status;
        *p->err = why;
        if (status != QN_DEVICE && p->train->cluster)
            qn__cluster_fail(p->train->cluster, p->err);
        return;
    }
    p->own.why = why;
    hear(p, status == QN_OK ? WRITTEN : REFUSED);
}

/* Takes part while another rank has its turn. */
static void watch(placing *p, uint32_t rank) {
    if (hear(p, PRESENT) && p->all[rank].state == READY)
        hear(p, PRESENT);
}

/* Records the result of a rank's turn: 1 if the model is written. */
static int conclude(placing *p, uint32_t rank, uint32_t place) {
    const attempt *a = &p->all[rank];
    qn_saved *saved = p->saved;
    if (a->state == WRITTEN) {
        saved->rank = rank;
        saved->place = place;
        saved->parameters = a->parameters;
        memcpy(saved->digest, a->digest, sizeof saved->digest);
        snprintf(saved->path, sizeof saved->path, "%s", a->path);
        return 1;
    }
    if (a->state == REFUSED && saved->why.status == QN_OK) {
        saved->why = a->why;
        saved->why_rank = rank;
    }
    p->there[rank] = a->state != ABSENT;
    p->refused[rank] = a->state == REFUSED;
    return 0;
}

/* Ranks of one host see the same files: if one was refused, the others need not try. */
static int may_try(const placing *p, uint32_t rank) {
    const qn_cluster *c = p->train->cluster;
    if (!p->there[rank])
        return 0;
    for (uint32_t r = 0; r < rank; ++r)
        if (p->refused[r] && strcmp(qn__cluster_host(c, r), qn__cluster_host(c, rank)) == 0)
            return 0;
    return 1;
}

static int try_place(placing *p, const char *place, uint32_t index) {
    const uint32_t ranks = qn_cluster_ranks(p->train->cluster);
    memset(p->refused, 0, ranks);
    for (uint32_t r = 0; r < ranks && p->status == QN_OK; ++r) {
        if (!may_try(p, r))
            continue;
        if (r == qn_cluster_rank(p->train->cluster))
            take_turn(p, place, index > 0);
        else
            watch(p, r);
        if (p->status == QN_OK && conclude(p, r, index))
            return 1;
    }
    return 0;
}

static qn_status try_all(placing *p, const char *const *place, uint32_t places) {
    const uint32_t ranks = qn_cluster_ranks(p->train->cluster);
    if (!hear(p, PRESENT))
        return p->status;
    for (uint32_t r = 0; r < ranks; ++r)
        p->there[r] = p->all[r].state != ABSENT;
    for (uint32_t i = 0; i < places && p->status == QN_OK; ++i)
        if (try_place(p, place[i], i))
            return QN_OK;
    if (p->status == QN_OK)
        *p->err = p->saved->why;
    return p->status != QN_OK ? p->status : QN_IO;
}

static qn_status save(qn_train *t, const char *const *place, uint32_t places, qn_saved *saved,
                      qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(t->cluster);
    qn_error unheard;
    *saved = (qn_saved){.size = sizeof *saved};
    placing p = {.train = t, .saved = saved, .err = err ? err : &unheard};
    p.all = qn__alloc(ranks, sizeof *p.all, err);
    p.there = qn__alloc(ranks, 2, err);
    qn_status status = p.all && p.there ? QN_OK : QN_MEMORY;
    p.refused = p.there ? p.there + ranks : NULL;
    if (status == QN_OK)
        status = try_all(&p, place, places);
    else if (t->cluster)
        qn__cluster_fail(t->cluster, p.err);
    qn_model_free(p.model);
    qn__free(p.all);
    qn__free(p.there);
    return status;
}

qn_status qn_train_save(qn_train *t, const char *const *place, uint32_t places, qn_saved *saved,
                        qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_AS(t, "train", err);
    QN__NEED(saved, err);
    if (places > 0)
        QN__NEED(place, err);
    for (uint32_t i = 0; place && i < places; ++i)
        if (!place[i])
            return qn__fail_null_at(err, __func__, "place", i, "");
    const qn__sized *what = QN__SIZED("saved", qn_saved);
    qn_saved own = {.size = sizeof(qn_saved)};
    qn_status status = qn__sized_check(what, saved, err);
    if (status == QN_OK)
        status = qn__train_enter(t, __func__, err);
    if (status != QN_OK)
        return status;
    status = qn__train_leave(t, save(t, place, places, &own, err));
    qn__sized_give(what, &own, saved, saved->size);
    return status;
}
