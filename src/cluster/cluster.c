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
/* Seconds within which a rank of this machine must hand over the shared memory. */
static const double HAND_OVER = 10.0;
/* Seconds in which ranks that lose their devices in the same step exchange that news. */
static const double FAREWELL = 1.0;

int qn__cluster_apart;

/* ---------------------------------------------------------------------------------------- notes */

/* The wake-up counter lies in the shared memory that reductions use now. Only the caller's thread
 * changes which memory that is. */
static unsigned wakeups(qn_cluster *c) { return qn__common_wakeups(c->reducer.common); }

static void wait(qn_cluster *c, unsigned seen) {
    qn__common_wait(c->reducer.common, seen, RECHECK);
}

/* Reports pending notes, on the caller's thread. */
static void report_notes(qn_cluster *c) {
    char text[sizeof c->reducer.note];
    pthread_mutex_lock(&c->reducer.lock);
    memcpy(text, c->reducer.note, sizeof text);
    c->reducer.note[0] = 0;
    pthread_mutex_unlock(&c->reducer.lock);
    if (text[0] && c->on_note)
        c->on_note(c->user, text);
    qn__float_state_set();
}

static qn_status failure(qn_cluster *c, qn_error *err) {
    pthread_mutex_lock(&c->reducer.lock);
    const qn_error why = c->reducer.error;
    pthread_mutex_unlock(&c->reducer.lock);
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
    for (;;) {
        const unsigned seen = wakeups(c);
        const int begun = qn__reducer_begin(&c->reducer, reduction);
        report_notes(c);
        if (begun > 0)
            return QN_OK;
        if (begun < 0)
            return failure(c, err);
        wait(c, seen);
    }
}

int qn__reduction_chunks(qn_cluster *c, qn__chunk_range *range) {
    return qn__reducer_chunks(&c->reducer, range);
}

int64_t *qn__reduction_part(qn_cluster *c) { return qn__reducer_part(&c->reducer); }

void qn__reduction_final(qn_cluster *c, uint64_t first, uint64_t count, uint32_t chunks) {
    qn__reducer_final(&c->reducer, first, count, chunks);
}

static qn_status add_up(qn_cluster *c, int *more, const int64_t **total, qn_error *err) {
    for (;;) {
        const unsigned seen = wakeups(c);
        switch (qn__reducer_step(&c->reducer)) {
        case QN__REDUCER_AGAIN:
            break;
        case QN__REDUCER_WAITS:
            wait(c, seen);
            break;
        case QN__REDUCER_MORE:
            *more = 1;
            return QN_OK;
        case QN__REDUCER_TOTAL:
            *total = qn__reducer_total(&c->reducer);
            return QN_OK;
        case QN__REDUCER_FAILED:
            return failure(c, err);
        }
    }
}

qn_status qn__reduction_finish(qn_cluster *c, uint32_t chunks, int *more, const int64_t **total,
                               qn_error *err) {
    const double begun = qn__now();
    qn__reducer_added(&c->reducer, chunks);
    *more = 0;
    *total = NULL;
    const qn_status status = add_up(c, more, total, err);
    c->reducer.traffic.waiting += qn__now() - begun;
    report_notes(c);
    return status;
}

qn_status qn__cluster_reserve(qn_cluster *c, uint64_t words, qn_error *err) {
    qn__reducer *r = &c->reducer;
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
    c->reducer.costs.own[kind] = cost;
}

int qn__cluster_stopping(const qn_cluster *c) { return c && c->reducer.requests.stopping; }

void qn__cluster_go_on(qn_cluster *c) {
    if (c)
        qn__reducer_go_on(&c->reducer);
}

void qn__cluster_request_save(qn_cluster *c) {
    atomic_store(&c->reducer.requests.requested[QN__REQUEST_SAVE], 1);
}

int qn__cluster_saving(const qn_cluster *c) { return c->reducer.requests.saving; }

void qn__cluster_saved(qn_cluster *c) { qn__reducer_saved(&c->reducer); }

void qn__cluster_fail(qn_cluster *c, qn_error *why) {
    if (qn__cluster_is_ours(c))
        qn__reducer_fail(&c->reducer, why);
}

int qn__cluster_withdraw(qn_cluster *c) {
    if (!c || !qn__cluster_is_ours(c))
        return 0;
    const double until = qn__now() + (qn__reducer_withdraw(&c->reducer) ? FAREWELL : 0);
    int last = 0;
    while (!(last = qn__reducer_is_last(&c->reducer)) && qn__now() < until)
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
    pthread_mutex_lock(&c->reducer.lock);
    const qn_error why = c->reducer.error;
    pthread_mutex_unlock(&c->reducer.lock);
    if (why.status != QN_CLUSTER)
        return qn__fail(err, QN_CLUSTER, "another rank writes the results");
    if (err)
        *err = why;
    return QN_CLUSTER;
}

/* ---------------------------------------------------------------------------------- join, leave */

void qn_cluster_options_init(qn_cluster_options *options) {
    if (options)
        *options = (qn_cluster_options){.size = sizeof *options};
}

/* Nobody waits for an answer that does not come. */
static void refuse_request(qn_cluster *c, uint32_t to, const qn__head *head) {
    const qn__head answer = {.type = QN__MESSAGE_ANSWER, .extra = 1, .number = {head->number[0]}};
    if (head->type == QN__MESSAGE_ASK)
        qn__cluster_send(c, to, &answer, NULL);
}

static void on_message(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    qn_cluster *c = user;
    if (head->type < QN__LISTENED_FIRST) {
        qn__reducer_message(&c->reducer, from, head, body);
        return;
    }
    pthread_mutex_lock(&c->listening);
    if (c->listener.message) {
        c->listener.message(c->listener.user, from, head, body);
    } else {
        refuse_request(c, from, head);
        qn__buffer_drop(body);
    }
    pthread_mutex_unlock(&c->listening);
}

/* Tells the listener which ranks are gone: also those that were evicted, of which the transport
 * says nothing. Called with `listening` locked. */
static void tell_gone(qn_cluster *c) {
    pthread_mutex_lock(&c->reducer.lock);
    qn__ranks there = c->reducer.group.members;
    for (uint32_t rank = 0; rank < c->rendezvous.ranks; ++rank)
        if (c->reducer.group.gone[rank])
            qn__ranks_drop(&there, rank);
    pthread_mutex_unlock(&c->reducer.lock);
    for (uint32_t rank = 0; rank < c->rendezvous.ranks; ++rank)
        if (rank != c->rendezvous.rank && !qn__ranks_has(&there, rank) &&
            !qn__ranks_has(&c->told, rank)) {
            qn__ranks_add(&c->told, rank);
            c->listener.gone(c->listener.user, rank);
        }
}

static void tell_listener(qn_cluster *c) {
    pthread_mutex_lock(&c->listening);
    if (c->listener.message)
        tell_gone(c);
    pthread_mutex_unlock(&c->listening);
}

static void on_gone(void *user, uint32_t rank, qn__loss_kind how) {
    qn_cluster *c = user;
    qn__reducer_gone(&c->reducer, rank, how);
    tell_listener(c);
}

static void on_evicted(void *user, uint32_t by, const char *why) {
    qn_cluster *c = user;
    qn__reducer_evicted(&c->reducer, by, why);
}

static void on_restored(void *user, uint32_t rank, double seconds, int damaged) {
    qn_cluster *c = user;
    qn__reducer_restored(&c->reducer, rank, seconds, damaged);
}

static void on_tick(void *user, double now) {
    qn_cluster *c = user;
    qn__reducer_tick(&c->reducer, now);
    tell_listener(c);
}

static qn_status open_names(qn_cluster *c, qn_error *err) {
    const uint32_t n = c->rendezvous.ranks;
    c->machine = qn__alloc(n, sizeof *c->machine, err);
    c->local = qn__alloc(n, sizeof *c->local, err);
    c->name = qn__alloc(n, sizeof *c->name, err);
    c->name_text = qn__alloc(n, sizeof *c->name_text, err);
    if (!c->machine || !c->local || !c->name || !c->name_text)
        return QN_MEMORY;
    for (uint32_t i = 0; i < n; ++i) {
        snprintf(c->name_text[i], sizeof *c->name_text, "rank %u on %s", i,
                 c->rendezvous.info[i].host);
        c->name[i] = c->name_text[i];
    }
    return QN_OK;
}

static uint32_t locals_of(const qn_cluster *c, uint32_t rank, uint32_t *index) {
    uint32_t count = 0;
    *index = 0;
    for (uint32_t i = 0; i < c->rendezvous.ranks; ++i)
        if (c->rendezvous.info[i].machine == c->rendezvous.info[rank].machine) {
            *index += i < rank;
            ++count;
        }
    return count;
}

static uint32_t lowest_beside(const qn_cluster *c, uint32_t rank) {
    uint32_t i = 0;
    while (c->rendezvous.info[i].machine != c->rendezvous.info[rank].machine)
        ++i;
    return i;
}

/* The file of this machine's shared memory, created by its lowest rank. */
static int common_file(qn_cluster *c) {
    const uint32_t self = c->rendezvous.rank, lowest = lowest_beside(c, self);
    if (qn__cluster_apart)
        return -1;
    if (lowest != self)
        return qn__rendezvous_receive_file(&c->rendezvous, lowest, HAND_OVER);
    const int file = qn__common_file();
    for (uint32_t i = self + 1; i < c->rendezvous.ranks; ++i)
        if (c->rendezvous.info[i].machine == c->rendezvous.info[self].machine)
            qn__rendezvous_send_file(&c->rendezvous, i, file, NULL);
    return file;
}

/* Opens the shared memory of the machine: 1 if this rank can use it. */
static int open_common(qn_cluster *c) {
    uint32_t index;
    const uint32_t locals = locals_of(c, c->rendezvous.rank, &index);
    const int file = locals > 1 ? common_file(c) : -1;
    if (file < 0 || qn__common_open(&c->common[1], file, index, locals, NULL) != QN_OK)
        return 0;
    c->common[1].spins = sysconf(_SC_NPROCESSORS_ONLN) >= (long)locals;
    return 1;
}

/* The first reduction: which ranks share memory, and in the bits above that each rank's part of the
 * number of the run. If sharing failed on one rank of a machine, each of its ranks counts as a
 * machine of its own. */
static qn_status share_memory(qn_cluster *c, qn_error *err) {
    enum { ABSENT, SHARES, SHARES_NOT, STATE_BITS = 2, STATE = (1 << STATE_BITS) - 1 };
    const uint32_t n = c->rendezvous.ranks;
    const qn__reduction reduction = {QN__REDUCTION_OTHER, n, 0};
    const int64_t *total = NULL;
    int more;
    uint32_t random = 0;
    c->shared = open_common(c);
    qn_status status = qn__reduction_begin(c, &reduction, err);
    if (status != QN_OK)
        return status;
    qn__random_bytes(&random, sizeof random);
    memset(qn__reduction_part(c), 0, n * sizeof(int64_t));
    qn__reduction_part(c)[c->rendezvous.rank] =
        ((int64_t)random + 1) << STATE_BITS | (c->shared ? SHARES : SHARES_NOT);
    do
        status = qn__reduction_finish(c, 0, &more, &total, err);
    while (status == QN_OK && more);
    if (status != QN_OK || !total)
        return status;
    for (uint32_t i = 0; i < n; ++i) {
        c->machine[i] = lowest_beside(c, i);
        locals_of(c, i, &c->local[i]);
        c->id += (uint64_t)total[i] >> STATE_BITS;
    }
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t k = 0; k < n && (total[i] & STATE) == SHARES_NOT; ++k)
            if (c->rendezvous.info[k].machine == c->rendezvous.info[i].machine)
                c->machine[k] = k;
    int alone = 1;
    for (uint32_t i = 0; i < n; ++i)
        alone &= i == c->rendezvous.rank || c->machine[i] != c->machine[c->rendezvous.rank];
    if (alone) {
        c->shared = 0;
        c->local[c->rendezvous.rank] = 0;
    }
    qn__reducer_share(&c->reducer, c->machine, c->local, &c->common[c->shared]);
    return QN_OK;
}

static qn_status open_reducer(qn_cluster *c, const qn_cluster_options *options, qn_error *err) {
    const double patience = options->rank_timeout > 0 ? options->rank_timeout : QN__RANK_TIMEOUT;
    qn_status status = open_names(c, err);
    if (status == QN_OK)
        status = qn__common_open(&c->common[0], -1, 0, 1, err);
    if (status == QN_OK)
        status = qn__reducer_open(&c->reducer, c->rendezvous.transport, c->rendezvous.ranks,
                                  c->rendezvous.rank, c->name, patience, &c->common[0], err);
    return status;
}

static qn_status join(const qn_cluster_options *options, qn_cluster **out, qn_error *err) {
    const qn__transport_events events = {.message = on_message,
                                         .gone = on_gone,
                                         .evicted = on_evicted,
                                         .restored = on_restored,
                                         .tick = on_tick};
    qn_cluster *c = qn__alloc(1, sizeof *c, err);
    if (!c)
        return QN_MEMORY;
    c->process = getpid();
    c->user = options->user;
    c->on_note = options->on_note;
    c->common[0].file = c->common[1].file = -1;
    pthread_mutex_init(&c->listening, NULL);
    qn_status status = qn__rendezvous_begin(options, &c->rendezvous, err);
    qn__float_state_set(); /* loaded libraries may have changed it */
    if (status != QN_OK || c->rendezvous.ranks == 0) {
        pthread_mutex_destroy(&c->listening);
        qn__free(c);
        return status;
    }
    status = open_reducer(c, options, err);
    if (status == QN_OK) {
        qn__transport_events own = events;
        own.user = c;
        status = qn__rendezvous_listen(&c->rendezvous, &own, err);
    }
    if (status == QN_OK)
        status = share_memory(c, err);
    if (status == QN_OK)
        *out = c;
    else
        qn_cluster_leave(c);
    return status;
}

qn_status qn_cluster_join(const qn_cluster_options *options, qn_cluster **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(options, err);
    qn_cluster_options own;
    qn_cluster_options_init(&own);
    const qn_status status =
        qn__sized_take(QN__SIZED("options", qn_cluster_options), options, &own, err);
    return status == QN_OK ? join(&own, out, err) : status;
}

void qn_cluster_leave(qn_cluster *c) {
    QN__OWN_FLOATS;
    if (!c || !qn__cluster_is_ours(c))
        return;
    const int open = c->reducer.view != NULL;
    if (open)
        qn__reducer_shut(&c->reducer);
    qn__rendezvous_end(&c->rendezvous);
    if (open)
        qn__reducer_close(&c->reducer);
    qn__common_close(&c->common[0]);
    qn__common_close(&c->common[1]);
    qn__free(c->machine);
    qn__free(c->local);
    qn__free(c->name);
    qn__free(c->name_text);
    pthread_mutex_destroy(&c->listening);
    qn__free(c);
}

/* -------------------------------------------------------------------------------------- members */

static qn__ranks members(const qn_cluster *c) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&c->reducer.lock;
    pthread_mutex_lock(lock);
    const qn__ranks set = c->reducer.group.members;
    pthread_mutex_unlock(lock);
    return set;
}

uint32_t qn_cluster_rank(const qn_cluster *c) { return c ? c->rendezvous.rank : 0; }

uint32_t qn_cluster_ranks(const qn_cluster *c) { return c ? c->rendezvous.ranks : 1; }

uint32_t qn_cluster_alive(const qn_cluster *c) {
    const qn__ranks set = c && qn__cluster_is_ours(c) ? members(c) : (qn__ranks){{1}};
    return qn__ranks_count(&set);
}

void qn_cluster_local(const qn_cluster *c, uint32_t *index, uint32_t *count) {
    uint32_t own = 0;
    const uint32_t all = c ? locals_of(c, c->rendezvous.rank, &own) : 1;
    if (index)
        *index = own;
    if (count)
        *count = all;
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

int qn_cluster_is_writer(const qn_cluster *c) {
    if (!c)
        return 1;
    if (!qn__cluster_is_ours(c))
        return 0;
    pthread_mutex_t *lock = (pthread_mutex_t *)&c->reducer.lock;
    pthread_mutex_lock(lock);
    const int speaks = !c->reducer.ending.leaving &&
                       qn__ranks_first(&c->reducer.group.members) == c->rendezvous.rank;
    pthread_mutex_unlock(lock);
    return speaks;
}

/* ------------------------------------------------------------------------------------------ end */

void qn_cluster_finish(qn_cluster *c, int code) {
    QN__OWN_FLOATS;
    if (c && qn__cluster_is_ours(c))
        qn__reducer_finish(&c->reducer, code);
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
        const int over = qn__reducer_over(&c->reducer, code);
        report_notes(c);
        if (over >= 0)
            return over;
        wait(c, seen);
    }
    return 0;
}

void qn_cluster_stop(qn_cluster *c) {
    if (c && qn__cluster_is_ours(c))
        atomic_store(&c->reducer.requests.requested[QN__REQUEST_STOP], 1);
}

/* ----------------------------------------------------------------------------- other messages */

void qn__cluster_listen(qn_cluster *c, const qn__cluster_listener *listener) {
    pthread_mutex_lock(&c->listening);
    c->listener = listener ? *listener : (qn__cluster_listener){.message = NULL};
    c->told = (qn__ranks){{0}};
    if (listener)
        tell_gone(c);
    pthread_mutex_unlock(&c->listening);
}

void qn__cluster_send(qn_cluster *c, uint32_t to, const qn__head *head, qn__message_buffer *body) {
    c->reducer.transport->calls->send(c->reducer.transport, to, head, body);
}

qn__message_buffer *qn__cluster_buffer(qn_cluster *c, uint64_t bytes) {
    return c->reducer.transport->calls->buffer(c->reducer.transport, bytes);
}

/* ---------------------------------------------------------------------------------- for reports */

void qn__cluster_traffic(const qn_cluster *c, qn__rank_traffic *traffic) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&c->reducer.lock;
    pthread_mutex_lock(lock);
    *traffic = c->reducer.traffic;
    pthread_mutex_unlock(lock);
}

double qn__cluster_clock(const qn_cluster *c, uint32_t rank) {
    return qn__rendezvous_clock(&c->rendezvous, rank);
}

void qn__cluster_count(const qn_cluster *c, uint64_t words, uint64_t *out, uint64_t *in) {
    qn__reducer_count((qn__reducer *)&c->reducer, words, out, in);
}
