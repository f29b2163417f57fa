/* The public calls of a cluster: join, wait, leave. */
#include "base/argument.h"
#include "base/sized.h"
#include "cluster/cluster_state.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "base/system/timeouts.h"
#include "cluster/transport/wire.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Seconds between two checks of the state. A wake-up is lost only if something is wrong. */
static const double RECHECK = 1.0;
/* Seconds in which ranks that lose their devices in the same step exchange that news. */
static const double FAREWELL = 1.0;

/* ---------------------------------------------------------------------------------------- notes */

/* The wake-up counter lies in the shared memory that reductions use now. Only the caller's thread
 * changes which memory that is. */
static unsigned wakeups(qn_cluster *c) { return qn__common_wakeups(c->reducer->common); }

static void wait(qn_cluster *c, unsigned seen) {
    qn__common_wait(c->reducer->common, seen, RECHECK);
}

/* Reports pending notes, on the caller's thread. */
static void report_notes(qn_cluster *c) {
    char text[sizeof c->reducer->note];
    if (c->quiet)
        return;
    pthread_mutex_lock(&c->reducer->lock);
    memcpy(text, c->reducer->note, sizeof text);
    c->reducer->note[0] = 0;
    pthread_mutex_unlock(&c->reducer->lock);
    if (text[0] && c->on_note)
        c->on_note(c->user, text);
    qn__float_state_set();
}

static qn_status failure(qn_cluster *c, qn_error *err) {
    pthread_mutex_lock(&c->reducer->lock);
    const qn_error why = c->reducer->error;
    pthread_mutex_unlock(&c->reducer->lock);
    if (err)
        *err = why;
    return why.status;
}

/* ------------------------------------------------------------------------------------ processes */

int qn__cluster_is_ours(const qn_cluster *c) { return !c || c->process == getpid(); }

qn_status qn__cluster_check_process(const qn_cluster *c, qn_error *err) {
    if (qn__cluster_is_ours(c))
        return QN_OK;
    qn__fail(err, QN_USAGE, "process %ld joined the cluster, and process %ld is a child of it",
             (long)c->process, (long)getpid());
    return qn__remedy(err, QN_USAGE,
                      "use the cluster in the process that joined it: threads and connections do "
                      "not survive fork()");
}

/* ----------------------------------------------------------------------------------- reductions */

qn_status qn__reduction_begin(qn_cluster *c, const qn__reduction *reduction, qn_error *err) {
    const qn_status status = qn__cluster_check_process(c, err);
    if (status != QN_OK)
        return status;
    c->history.now = *reduction;
    if (c->history.state == QN__RUN_HISTORY_TAKEN)
        return c->reducer->error.status == QN_OK
                   ? qn__run_history_begin(&c->history, reduction, err)
                   : failure(c, err);
    for (;;) {
        const unsigned seen = wakeups(c);
        const int begun = qn__reducer_begin(c->reducer, reduction);
        report_notes(c);
        if (begun > 0)
            return QN_OK;
        if (begun < 0)
            return failure(c, err);
        wait(c, seen);
    }
}

int qn__reduction_chunks(qn_cluster *c, qn__chunk_range *range) {
    return c->history.state != QN__RUN_HISTORY_TAKEN && qn__reducer_chunks(c->reducer, range);
}

int64_t *qn__reduction_part(qn_cluster *c) {
    return c->history.state == QN__RUN_HISTORY_TAKEN ? c->history.part
                                                     : qn__reducer_part(c->reducer);
}

void qn__reduction_final(qn_cluster *c, uint64_t first, uint64_t count, uint32_t chunks) {
    if (c->history.state != QN__RUN_HISTORY_TAKEN)
        qn__reducer_final(c->reducer, first, count, chunks);
}

static qn_status add_up(qn_cluster *c, int *more, const int64_t **total, qn_error *err) {
    for (;;) {
        const unsigned seen = wakeups(c);
        switch (qn__reducer_step(c->reducer)) {
        case QN__REDUCER_AGAIN:
            break;
        case QN__REDUCER_WAITS:
            wait(c, seen);
            break;
        case QN__REDUCER_MORE:
            *more = 1;
            return QN_OK;
        case QN__REDUCER_TOTAL:
            *total = qn__reducer_total(c->reducer);
            return QN_OK;
        case QN__REDUCER_FAILED:
            return failure(c, err);
        }
    }
}

qn_status qn__reduction_finish(qn_cluster *c, uint32_t chunks, int *more, const int64_t **total,
                               qn_error *err) {
    const double begun = qn__now();
    *more = 0;
    *total = NULL;
    if (c->history.state == QN__RUN_HISTORY_TAKEN) {
        *total = qn__run_history_total(&c->history);
        return QN_OK;
    }
    qn__reducer_added(c->reducer, chunks);
    const qn_status status = add_up(c, more, total, err);
    if (status == QN_OK && !*more && c->history.state == QN__RUN_HISTORY_KEPT)
        qn__run_history_add(&c->history, *total);
    c->reducer->traffic.waiting += qn__now() - begun;
    report_notes(c);
    return status;
}

qn_status qn__cluster_reserve(qn_cluster *c, uint64_t words, qn_error *err) {
    qn__reducer *r = c->reducer;
    const uint64_t all = words + qn__reducer_trailer(r->ranks);
    int fine = 1;
    if (words <= c->reserved)
        return QN_OK;
    pthread_mutex_lock(&r->lock);
    for (uint32_t i = 0; i < r->common->locals && fine; ++i)
        fine = qn__common_part(r->common, i, all, err) != NULL;
    for (int odd = 0; odd < 2 && fine; ++odd)
        fine = qn__common_total(r->common, r->totals.generation, odd, all, err) != NULL;
    pthread_mutex_unlock(&r->lock);
    if (fine)
        c->reserved = words;
    return fine ? QN_OK : QN_MEMORY;
}

void qn__cluster_cost(qn_cluster *c, qn__reduction_kind kind, qn__cost cost) {
    c->reducer->costs.own[kind] = cost;
}

int qn__cluster_stopping(const qn_cluster *c) { return c && c->reducer->requests.stopping; }

void qn__cluster_go_on(qn_cluster *c) {
    if (c)
        qn__reducer_go_on(c->reducer);
}

void qn__cluster_request_save(qn_cluster *c) {
    atomic_store(&c->reducer->requests.requested[QN__REQUEST_SAVE], 1);
}

int qn__cluster_saving(const qn_cluster *c) { return c->reducer->requests.saving; }

void qn__cluster_saved(qn_cluster *c) { qn__reducer_saved(c->reducer); }

void qn__cluster_fail(qn_cluster *c, qn_error *why) {
    if (qn__cluster_is_ours(c))
        qn__reducer_fail(c->reducer, why);
}

int qn__cluster_withdraw(qn_cluster *c) {
    if (!c || !qn__cluster_is_ours(c))
        return 0;
    const double until = qn__now() + (qn__reducer_withdraw(c->reducer) ? FAREWELL : 0);
    int last = 0;
    while (!(last = qn__reducer_is_last(c->reducer)) && qn__now() < until)
        usleep(10000);
    return !last;
}

uint64_t qn__cluster_id(const qn_cluster *c) { return c->id; }

int qn__cluster_may_write(void *cluster) {
    int code;
    if (qn_cluster_is_writer(cluster))
        (void)qn_cluster_over(
            cluster, &code); /* after it a rank that has to leave is no longer the writer */
    return qn_cluster_is_writer(cluster);
}

qn_status qn__cluster_refuse(qn_cluster *c, qn_error *err) {
    const qn_status status = qn__cluster_check_process(c, err);
    if (status != QN_OK)
        return status;
    pthread_mutex_lock(&c->reducer->lock);
    const qn_error why = c->reducer->error;
    pthread_mutex_unlock(&c->reducer->lock);
    if (why.status != QN_CLUSTER)
        return qn__fail(err, QN_CLUSTER, "another rank writes the results");
    if (err)
        *err = why;
    return QN_CLUSTER;
}

qn_status qn__cluster_stay_out(qn_cluster *c, int well, const char *why, qn_error *err) {
    pthread_mutex_lock(&c->reducer->lock);
    if (c->reducer->error.status == QN_OK)
        qn__reducer_leave(c->reducer, well, why);
    if (err)
        *err = c->reducer->error;
    pthread_mutex_unlock(&c->reducer->lock);
    return QN_CLUSTER;
}

/* -------------------------------------------------------------------------------------- members */

static qn__ranks members(const qn_cluster *c) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&c->reducer->lock;
    pthread_mutex_lock(lock);
    const qn__ranks set = c->reducer->group.members;
    pthread_mutex_unlock(lock);
    return set;
}

uint32_t qn_cluster_rank(const qn_cluster *c) { return c ? c->rendezvous.rank : 0; }

uint32_t qn_cluster_ranks(const qn_cluster *c) { return c ? c->rendezvous.ranks : 1; }

uint32_t qn_cluster_alive(const qn_cluster *c) {
    const qn__ranks set = c && qn__cluster_is_ours(c) ? members(c) : (qn__ranks){{1}};
    return qn__ranks_count(&set);
}

const char *qn_cluster_name(const qn_cluster *c, uint32_t rank) {
    return c && rank < c->rendezvous.ranks ? c->name[rank] : "rank 0";
}

const char *qn__cluster_host(const qn_cluster *c, uint32_t rank) {
    return c && rank < c->rendezvous.ranks ? c->rendezvous.info[rank].host : "";
}

int qn__cluster_together(const qn_cluster *c, uint32_t one, uint32_t other) {
    return c->machine[one] == c->machine[other];
}

int qn__cluster_is_first(const qn_cluster *c) {
    if (!qn__cluster_is_ours(c))
        return 0;
    pthread_mutex_t *lock = (pthread_mutex_t *)&c->reducer->lock;
    pthread_mutex_lock(lock);
    const int speaks =
        !c->reducer->ending.leaving && qn__reducer_writer(c->reducer) == c->rendezvous.rank;
    pthread_mutex_unlock(lock);
    return speaks;
}

int qn__cluster_is_joining(const qn_cluster *c) { return c && c->rendezvous.meeting.door >= 0; }

int qn_cluster_is_writer(const qn_cluster *c) {
    return !c || (qn__cluster_is_first(c) && !qn__cluster_is_joining(c));
}

/* ------------------------------------------------------------------------------------------ end */

void qn_cluster_finish(qn_cluster *c, int code) {
    QN__OWN_FLOATS;
    if (c && qn__cluster_is_ours(c))
        qn__reducer_finish(c->reducer, code);
}

int qn_cluster_over(qn_cluster *c, int *code) {
    QN__OWN_FLOATS;
    int unwanted;
    code = code ? code : &unwanted;
    if (!qn__cluster_is_ours(c)) {
        *code = 1;
        return 2;
    }
    while (c) {
        const unsigned seen = wakeups(c);
        const int over = qn__reducer_over(c->reducer, code);
        report_notes(c);
        if (over >= 0)
            return over;
        wait(c, seen);
    }
    return 0;
}

void qn_cluster_stop(qn_cluster *c) {
    if (c && qn__cluster_is_ours(c))
        atomic_store(&c->reducer->requests.requested[QN__REQUEST_STOP], 1);
}

/* ---------------------------------------------------------------------------------- for reports */

void qn__cluster_traffic(const qn_cluster *c, qn__rank_traffic *traffic) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&c->reducer->lock;
    pthread_mutex_lock(lock);
    *traffic = c->reducer->traffic;
    pthread_mutex_unlock(lock);
}

double qn__cluster_clock(const qn_cluster *c, uint32_t rank) {
    return qn__rendezvous_clock(&c->rendezvous, rank);
}

void qn__cluster_count(const qn_cluster *c, uint64_t words, uint64_t *out, uint64_t *in) {
    qn__reducer_count((qn__reducer *)c->reducer, words, out, in);
}
