/* What a rank that joins gets before it is let in: the history of the run, and bytes of tables. */
#include "base/memory.h"
#include "cluster/cluster_state.h"
#include <string.h>

/* ------------------------------------------------------------------ rank 0 */

static int supply_history(const qn__run_history *h, uint64_t first, uint64_t count, void *to) {
    if (h->state != QN__RUN_HISTORY_WHOLE || first > h->size || count > h->size - first)
        return 0;
    if (count > 0)
        memcpy(to, h->bytes + first, count);
    else
        memcpy(to, &h->size, sizeof h->size);
    return 1;
}

int qn__run_history_supply(void *user, uint64_t table, uint64_t first, uint64_t count, void *to) {
    qn_cluster *c = user;
    int has = 0;
    if (table == QN__RUN_HISTORY_TABLE)
        return supply_history(&c->history, first, count, to);
    pthread_mutex_lock(&c->supplying); /* nobody stops listening meanwhile */
    pthread_mutex_lock(&c->listening);
    const qn__cluster_listener *listener = c->listeners;
    while (listener && listener->table != table)
        listener = listener->next;
    pthread_mutex_unlock(&c->listening);
    if (listener && listener->whole)
        has = listener->whole(listener->user, first, count, to);
    pthread_mutex_unlock(&c->supplying);
    return has;
}

/* ------------------------------------------------------------------ the rank that joins */

static qn_status ask(qn_cluster *c, uint64_t table, uint64_t first, uint64_t count, uint64_t bytes,
                     void *to, qn_error *err) {
    const qn__meeting *m = &c->rendezvous.meeting;
    const qn__door_word said = qn__door_ask(m->door, m->secret, table, first, count, bytes, to);
    if (said == QN__DOOR_HAS)
        return QN_OK;
    return said == QN__DOOR_OVER
               ? qn__cluster_stay_out(c, 1, "the run has ended", err)
               : qn__cluster_stay_out(c, 0, "rank 0 has ended, and only rank 0 lets a rank in",
                                      err);
}

qn_status qn__cluster_ask_run(qn_cluster *c, uint64_t table, uint64_t first, uint64_t count,
                              void *to, int *asked, qn_error *err) {
    qn_status status = QN_OK;
    *asked = 0;
    /* Rank 0 never joins. The thread of its door holds the lock, and may wait for this call. */
    if (c->rendezvous.rank == 0)
        return QN_OK;
    pthread_mutex_lock(&c->supplying); /* until this rank is in, if it is about to be let in */
    if (qn__cluster_is_joining(c)) {
        *asked = 1;
        for (uint64_t at = 0; at < count && status == QN_OK; at += QN__DOOR_MOST) {
            const uint64_t left = count - at, bytes = left < QN__DOOR_MOST ? left : QN__DOOR_MOST;
            status = ask(c, table, first + at, bytes, bytes, (uint8_t *)to + at, err);
        }
    }
    pthread_mutex_unlock(&c->supplying);
    return status;
}

/* This rank gets the history, as far as rank 0 has it. */
static qn_status take(qn_cluster *c, qn_error *err) {
    qn__run_history *h = &c->history;
    int asked;
    uint64_t size = 0;
    qn_status status = ask(c, QN__RUN_HISTORY_TABLE, 0, 0, sizeof size, &size, err);
    if (status != QN_OK)
        return status;
    if (size > QN__RUN_HISTORY_MOST)
        return qn__fail(err, QN_CLUSTER, "rank 0 sent a malformed message");
    h->bytes = qn__alloc(size + 1, 1, err);
    if (!h->bytes)
        return QN_MEMORY;
    h->size = h->capacity = size;
    h->state = QN__RUN_HISTORY_TAKEN;
    return qn__cluster_ask_run(c, QN__RUN_HISTORY_TABLE, 0, size, h->bytes, &asked, err);
}

qn_status qn__cluster_remember(qn_cluster *c, qn_error *err) {
    if (!c || c->history.state != QN__RUN_HISTORY_NONE)
        return QN_OK;
    c->spread = 1;
    if (qn__cluster_is_joining(c))
        return take(c, err);
    if (c->rendezvous.rank == 0 && c->rendezvous.meeting.possible && !c->door_was_open)
        c->history.state = QN__RUN_HISTORY_KEPT;
    return QN_OK;
}

int qn__cluster_takes_history(const qn_cluster *c) {
    return c && c->history.state == QN__RUN_HISTORY_TAKEN;
}
