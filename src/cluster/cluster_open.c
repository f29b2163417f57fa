/* Opening and closing a cluster: connections, memory that ranks share, listeners. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "base/system/timeouts.h"
#include "cluster/cluster_state.h"
#include "cluster/transport/wire.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Seconds within which a rank of this machine must hand over the shared memory. */
static const double HAND_OVER = 10.0;

int qn__cluster_apart;

/* ----------------------------------------------------------------------------- other messages */

void qn__cluster_send(qn_cluster *c, uint32_t to, const qn__head *head, qn__message_buffer *body) {
    c->reducer->transport->calls->send(c->reducer->transport, to, head, body);
}

qn__message_buffer *qn__cluster_buffer(qn_cluster *c, uint64_t bytes) {
    return c->reducer->transport->calls->buffer(c->reducer->transport, bytes);
}

/* ---------------------------------------------------------------------------------- join, leave */

void qn_cluster_options_init(qn_cluster_options *options) {
    if (options)
        *options = (qn_cluster_options){.size = sizeof *options};
}

/* Nobody waits for an answer that does not come. */
static void refuse_request(qn_cluster *c, uint32_t to, const qn__head *head) {
    const qn__head answer = {
        .type = QN__MESSAGE_ANSWER, .extra = 1, .number = {head->number[0], head->number[1]}};
    if (head->type == QN__MESSAGE_ASK)
        qn__cluster_send(c, to, &answer, NULL);
}

static void on_message(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    qn_cluster *c = user;
    if (head->type < QN__LISTENED_FIRST) {
        qn__reducer_message(c->reducer, from, head, body);
        return;
    }
    pthread_mutex_lock(&c->listening);
    const qn__cluster_listener *listener = c->listeners;
    while (listener && listener->table != head->number[1])
        listener = listener->next;
    if (c->quiet) { /* all is asked for again over the new connections */
        qn__buffer_drop(body);
    } else if (listener) {
        listener->message(listener->user, from, head, body);
    } else {
        refuse_request(c, from, head);
        qn__buffer_drop(body);
    }
    pthread_mutex_unlock(&c->listening);
}

/* Tells a listener which ranks are gone: also those that were evicted, of which the transport says
 * nothing. Called with `listening` locked. */
static void tell_gone(qn_cluster *c, qn__cluster_listener *listener) {
    pthread_mutex_lock(&c->reducer->lock);
    qn__ranks there = c->reducer->group.members;
    for (uint32_t rank = 0; rank < c->rendezvous.ranks; ++rank)
        if (c->reducer->group.gone[rank])
            qn__ranks_drop(&there, rank);
    pthread_mutex_unlock(&c->reducer->lock);
    for (uint32_t rank = 0; rank < c->rendezvous.ranks; ++rank)
        if (rank != c->rendezvous.rank && !qn__ranks_has(&there, rank) &&
            !qn__ranks_has(&listener->told, rank)) {
            qn__ranks_add(&listener->told, rank);
            listener->gone(listener->user, rank);
        }
}

void qn__cluster_hold(qn_cluster *c) { pthread_rwlock_rdlock(&c->connected); }

void qn__cluster_let_go(qn_cluster *c) { pthread_rwlock_unlock(&c->connected); }

uint64_t qn__cluster_table(qn_cluster *c) { return c->tables++; }

void qn__cluster_listen(qn_cluster *c, qn__cluster_listener *listener) {
    pthread_mutex_lock(&c->listening);
    listener->told = (qn__ranks){{0}};
    listener->next = c->listeners;
    c->listeners = listener;
    tell_gone(c, listener);
    pthread_mutex_unlock(&c->listening);
}

void qn__cluster_unlisten(qn_cluster *c, qn__cluster_listener *listener) {
    pthread_mutex_lock(&c->supplying);
    pthread_mutex_lock(&c->listening);
    qn__cluster_listener **at = &c->listeners;
    while (*at && *at != listener)
        at = &(*at)->next;
    if (*at)
        *at = listener->next;
    pthread_mutex_unlock(&c->listening);
    pthread_mutex_unlock(&c->supplying);
}

/* Ranks that leave old connections for new ones are not gone. */
static void tell_listeners(qn_cluster *c) {
    pthread_mutex_lock(&c->listening);
    for (qn__cluster_listener *at = c->listeners; at && !c->quiet; at = at->next)
        tell_gone(c, at);
    pthread_mutex_unlock(&c->listening);
}

void qn__cluster_renew_listeners(qn_cluster *c) {
    pthread_mutex_lock(&c->listening);
    for (qn__cluster_listener *at = c->listeners; at; at = at->next) {
        at->told = (qn__ranks){{0}};
        if (at->renewed)
            at->renewed(at->user);
    }
    pthread_mutex_unlock(&c->listening);
}

static void on_gone(void *user, uint32_t rank, qn__loss_kind how) {
    qn_cluster *c = user;
    qn__reducer_gone(c->reducer, rank, how);
    tell_listeners(c);
}

static void on_evicted(void *user, uint32_t by, const char *why) {
    qn_cluster *c = user;
    qn__reducer_evicted(c->reducer, by, why);
}

static void on_restored(void *user, uint32_t rank, double seconds, int damaged) {
    qn_cluster *c = user;
    qn__reducer_restored(c->reducer, rank, seconds, damaged);
}

static void on_tick(void *user, double now) {
    qn_cluster *c = user;
    qn__reducer_tick(c->reducer, now);
    tell_listeners(c);
}

static void on_transport_note(void *user, const char *text) {
    qn_cluster *c = user;
    qn__reducer_add_note(c->reducer, text);
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
        c->name[i] = c->name_text[i];
    }
    return QN_OK;
}

static void fill_names(qn_cluster *c) {
    for (uint32_t i = 0; i < c->rendezvous.ranks; ++i)
        snprintf(c->name_text[i], sizeof *c->name_text, "rank %u%s%s", i,
                 *c->rendezvous.info[i].host ? " on " : "", c->rendezvous.info[i].host);
}

/* Whether two ranks are on one machine; with `present`, only ranks that take part count. */
static int are_beside(const qn_cluster *c, int present, uint32_t a, uint32_t b) {
    const qn__ranks *set = &c->rendezvous.present;
    return c->rendezvous.info[a].machine == c->rendezvous.info[b].machine &&
           (!present || (qn__ranks_has(set, a) && qn__ranks_has(set, b)));
}

static uint32_t locals_of(const qn_cluster *c, int present, uint32_t rank, uint32_t *index) {
    uint32_t count = 0;
    *index = 0;
    for (uint32_t i = 0; i < c->rendezvous.ranks; ++i)
        if (are_beside(c, present, i, rank)) {
            *index += i < rank;
            ++count;
        }
    return count;
}

static uint32_t lowest_beside(const qn_cluster *c, uint32_t rank) {
    uint32_t i = 0;
    while (i < rank && !are_beside(c, 1, i, rank))
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
        if (are_beside(c, 1, i, self))
            qn__rendezvous_send_file(&c->rendezvous, i, file, NULL);
    return file;
}

/* Opens the shared memory of the machine: 1 if this rank can use it. */
static int open_common(qn_cluster *c) {
    uint32_t index;
    const uint32_t locals = locals_of(c, 1, c->rendezvous.rank, &index);
    const int file = locals > 1 ? common_file(c) : -1;
    if (file < 0 || qn__common_open(&c->commons->common[1], file, index, locals, NULL) != QN_OK)
        return 0;
    c->commons->common[1].spins = sysconf(_SC_NPROCESSORS_ONLN) >= (long)locals;
    return 1;
}

/* The first reduction: which ranks share memory, and in the bits above that each rank's part of the
 * number of the run, unless it has one. If sharing failed on one rank of a machine, each of its
 * ranks counts as a machine of its own. */
static qn_status share_memory(qn_cluster *c, qn_error *err) {
    enum { ABSENT, SHARES, SHARES_NOT, STATE_BITS = 2, STATE = (1 << STATE_BITS) - 1 };
    const uint32_t n = c->rendezvous.ranks;
    const qn__reduction reduction = {.kind = QN__REDUCTION_OTHER, .words = n};
    const int64_t *total = NULL;
    int more;
    uint32_t random = 0;
    const int numbered = c->id != 0;
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
        locals_of(c, 1, i, &c->local[i]);
        c->id += numbered ? 0 : (uint64_t)total[i] >> STATE_BITS;
    }
    for (uint32_t i = 0; i < n; ++i)
        for (uint32_t k = 0; k < n && (total[i] & STATE) == SHARES_NOT; ++k)
            if (are_beside(c, 1, k, i))
                c->machine[k] = k;
    int alone = 1;
    for (uint32_t i = 0; i < n; ++i)
        alone &= i == c->rendezvous.rank || c->machine[i] != c->machine[c->rendezvous.rank];
    if (alone) {
        c->shared = 0;
        c->local[c->rendezvous.rank] = 0;
    }
    qn__reducer_share(c->reducer, c->machine, c->local, &c->commons->common[c->shared]);
    return QN_OK;
}

/* How many times as fast as sockets a carrier has to be to be used. */
static const double WORTH = 1.3;

static void note_choice(qn_cluster *c, double gain) {
    char text[160];
    snprintf(text, sizeof text,
             "%s carries the sums between machines, %.1f times as fast as sockets",
             qn__rendezvous_carrier(&c->rendezvous), gain);
    qn__reducer_add_note(c->reducer, text);
}

/* Uses the carrier where trials of all ranks together say that it is faster. */
static qn_status choose_carrier(qn_cluster *c, qn_error *err) {
    const qn__reduction reduction = {.kind = QN__REDUCTION_OTHER, .words = 2};
    const int64_t *total = NULL;
    double sockets = 0, carrier = 0;
    int more;
    qn__rendezvous_try(&c->rendezvous, &sockets, &carrier);
    qn_status status = qn__reduction_begin(c, &reduction, err);
    if (status != QN_OK)
        return status;
    qn__reduction_part(c)[0] = (int64_t)(sockets * 1e9);
    qn__reduction_part(c)[1] = (int64_t)(carrier * 1e9);
    do
        status = qn__reduction_finish(c, 0, &more, &total, err);
    while (status == QN_OK && more);
    if (status != QN_OK || !total)
        return status;
    const double gain = total[1] > 0 ? (double)total[0] / (double)total[1] : 0;
    if (gain >= WORTH) {
        qn__fabric_use(c->rendezvous.fabric);
        note_choice(c, gain);
    } else {
        qn__rendezvous_end_carrier(&c->rendezvous);
    }
    return QN_OK;
}

void qn__commons_close(qn__commons *commons) {
    while (commons) {
        qn__commons *before = commons->before;
        qn__common_close(&commons->common[0]);
        qn__common_close(&commons->common[1]);
        qn__free(commons);
        commons = before;
    }
}

static void *forget_past(void *user) {
    qn__float_state_set();
    for (qn__commons *past = user; past; past = past->before) {
        qn__common_forget(&past->common[0]);
        qn__common_forget(&past->common[1]);
    }
    return NULL;
}

static void await_forgetting(qn_cluster *c) {
    if (c->forgetting)
        pthread_join(c->forgets, NULL);
    c->forgetting = 0;
}

void qn__cluster_forget(qn_cluster *c) {
    await_forgetting(c);
    c->forgetting = qn__thread_start(&c->forgets, NULL, forget_past, c->commons->before) == 0;
    if (!c->forgetting)
        forget_past(c->commons->before);
}

qn_status qn__cluster_prepare(qn_cluster *c, qn__transport *transport, const qn__ranks *present,
                              qn__commons **out, qn_error *err) {
    qn__reducer *next = &c->slot[c->reducer == &c->slot[0]];
    qn__commons *commons = qn__alloc(1, sizeof *commons, err);
    *out = NULL;
    if (!commons)
        return QN_MEMORY;
    commons->common[0].file = commons->common[1].file = -1;
    qn_status status = qn__common_open(&commons->common[0], -1, 0, 1, err);
    if (status == QN_OK)
        status = qn__reducer_open(next, transport, c->rendezvous.ranks, c->rendezvous.rank, present,
                                  c->name, c->patience, &commons->common[0], err);
    if (status == QN_OK)
        *out = commons;
    else
        qn__commons_close(commons);
    return status;
}

qn_status qn__cluster_start(qn_cluster *c, qn_error *err) {
    const qn__transport_events events = {.user = c,
                                         .message = on_message,
                                         .gone = on_gone,
                                         .evicted = on_evicted,
                                         .restored = on_restored,
                                         .tick = on_tick,
                                         .note = on_transport_note};
    fill_names(c);
    qn_status status = qn__rendezvous_listen(&c->rendezvous, &events, err);
    if (status == QN_OK)
        status = share_memory(c, err);
    return status == QN_OK && c->rendezvous.tries ? choose_carrier(c, err) : status;
}

static qn_status open_all(qn_cluster *c, qn_error *err) {
    qn_status status = open_names(c, err);
    if (status == QN_OK)
        status = qn__cluster_prepare(c, qn__rendezvous_transport(&c->rendezvous),
                                     &c->rendezvous.present, &c->commons, err);
    if (status != QN_OK)
        return status;
    c->reducer = &c->slot[0];
    return qn__cluster_start(c, err);
}

static void free_cluster(qn_cluster *c) {
    pthread_mutex_destroy(&c->listening);
    pthread_mutex_destroy(&c->supplying);
    pthread_rwlock_destroy(&c->connected);
    qn__run_history_release(&c->history);
    qn__free(c);
}

static qn_status join(const qn_cluster_options *options, qn_cluster **out, qn_error *err) {
    qn_cluster *c = qn__alloc(1, sizeof *c, err);
    if (!c)
        return QN_MEMORY;
    c->process = getpid();
    c->user = options->user;
    c->on_note = options->on_note;
    c->patience = options->rank_timeout > 0 ? options->rank_timeout : QN__RANK_TIMEOUT;
    pthread_mutex_init(&c->listening, NULL);
    pthread_mutex_init(&c->supplying, NULL);
    pthread_rwlock_init(&c->connected, NULL);
    qn_status status = qn__rendezvous_begin(options, &c->rendezvous, err);
    qn__float_state_set(); /* loaded libraries may have changed it */
    if (status != QN_OK || c->rendezvous.ranks == 0) {
        free_cluster(c);
        return status;
    }
    status = open_all(c, err);
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
    const int open = c->reducer && c->reducer->view;
    qn__door_close(c->door);
    if (open)
        qn__reducer_shut(c->reducer);
    qn__rendezvous_end(&c->rendezvous);
    if (open)
        qn__reducer_close(c->reducer);
    await_forgetting(c);
    qn__commons_close(c->commons);
    qn__text_release(&c->agreed);
    qn__free(c->machine);
    qn__free(c->local);
    qn__free(c->name);
    qn__free(c->name_text);
    free_cluster(c);
}

void qn_cluster_local(const qn_cluster *c, uint32_t *index, uint32_t *count) {
    uint32_t own = 0;
    const uint32_t all = c ? locals_of(c, 0, c->rendezvous.rank, &own) : 1;
    if (index)
        *index = own;
    if (count)
        *count = all;
}
