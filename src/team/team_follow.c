/* A rank that has joined and does not have the state yet: its team keeps what the ranks' steps add
 * up to, and computes no grains. When the state of the time of joining is there, the team makes up
 * for these updates. */
#include "base/memory.h"
#include "team/team_share.h"
#include <string.h>

/* Bytes of kept sums, at most, but those of one step; and their number. */
static const uint64_t BYTES_MOST = UINT64_C(1) << 29;
enum { KEPT_MOST = 64 };

uint64_t qn__team_follow_least;

void qn__team_follow(qn__team *t, const qn__arrival *arrival) {
    t->following = (qn__following){.on = 1, .arrival = *arrival};
}

void qn__team_follow_end(qn__team *t) {
    qn__kept_update *at = t->following.first;
    while (at) {
        qn__kept_update *next = at->next;
        qn__free(at);
        at = next;
    }
    t->following = (qn__following){.on = 0};
}

typedef struct catching_up {
    qn__team *team;
    const qn__kept_update *kept;
} catching_up;

static void load_body(void *context, int index) {
    const catching_up *c = context;
    qn__team_member *m = &c->team->member[index];
    m->device->load(m->worker, &c->team->history.host.state, &m->error);
}

static void update_body(void *context, int index) {
    const catching_up *c = context;
    qn__team_member *m = &c->team->member[index];
    m->device->update(m->worker, &c->kept->update, c->kept->sums, &m->error);
}

/* The arrays of the last load have the state in which the steps begin. */
static qn_status make_up(qn__team *t, qn_error *err) {
    const uint64_t set = qn__team_alive(t);
    catching_up c = {.team = t};
    qn_status status = qn__team_do(t, set, load_body, &c, err);
    for (c.kept = t->following.first; c.kept && status == QN_OK; c.kept = c.kept->next)
        status = qn__team_do(t, set & qn__team_alive(t), update_body, &c, err);
    qn__team_follow_end(t);
    return status;
}

qn_status qn__team_catch_up(qn__team *t, qn_error *err) {
    int arrived;
    if (!t->following.on)
        return QN_OK;
    const qn_status status =
        t->following.arrival.arrived(t->following.arrival.user, 1, &arrived, err);
    return status == QN_OK ? make_up(t, err) : status;
}

/* Keeps an update; without memory it waits for the state first. */
static qn_status keep(qn__team *t, const qn__update *update, const int64_t *sums, int *kept,
                      qn_error *err) {
    qn__following *f = &t->following;
    const uint64_t words = qn__program_sums(t->program), bytes = words * sizeof *sums;
    const int full = f->count == KEPT_MOST || (f->count > 0 && (f->count + 1) * bytes > BYTES_MOST);
    qn__kept_update *more = full ? NULL : qn__alloc(1, sizeof *more + bytes, NULL);
    *kept = more != NULL;
    if (!more)
        return qn__team_catch_up(t, err);
    more->update = *update;
    memcpy(more->sums, sums, bytes);
    *(f->last ? &f->last->next : &f->first) = more;
    f->last = more;
    ++f->count;
    return QN_OK;
}

qn_status qn__team_keep_update(qn__team *t, const qn__update *update, const int64_t *sums,
                               int *kept, qn_error *err) {
    int arrived = 0;
    *kept = 0;
    if (!t->following.on)
        return QN_OK;
    qn_status status = keep(t, update, sums, kept, err);
    if (status == QN_OK && t->following.on && t->following.count >= qn__team_follow_least)
        status = t->following.arrival.arrived(t->following.arrival.user, 0, &arrived, err);
    return status == QN_OK && arrived ? make_up(t, err) : status;
}
