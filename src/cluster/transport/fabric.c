/* The transport over sockets and a carrier: messages in both directions, and leaving the carrier.
 */
#include "cluster/transport/fabric_state.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "cluster/transport/wire.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { NOTICE_BYTES = 24 };

/* ----------------------------------------------------------------------------------------- jobs */

int qn__fabric_unlist(qn__fabric_job **list, qn__fabric_job *job) {
    while (*list && *list != job)
        list = &(*list)->next;
    if (!*list)
        return 0;
    *list = job->next;
    job->listed = 0;
    return 1;
}

void qn__fabric_free(qn__fabric_job *job) {
    if (job->listed || job->with_thread)
        return;
    qn__buffer_drop(job->body);
    qn__free(job);
}

static qn__fabric_job *find(qn__fabric_job *list, uint64_t number) {
    while (list && list->number != number)
        list = list->next;
    return list;
}

/* Lists a job, and queues it for the thread unless the carrier was left. */
static void add(qn__fabric *f, qn__fabric_job **list, qn__fabric_job *job) {
    while (*list)
        list = &(*list)->next;
    *list = job;
    job->listed = 1;
    if (f->left || f->stopping > 1)
        return;
    job->with_thread = 1;
    ++f->transfers;
    *f->queue_end = job;
    f->queue_end = &job->queued;
    pthread_cond_signal(&f->more);
}

static qn__fabric_job *job_of(uint32_t peer, const qn__head *head, qn__message_buffer *body) {
    qn__fabric_job *job = qn__alloc(1, sizeof *job, NULL);
    if (job)
        *job = (qn__fabric_job){.peer = peer, .head = *head, .body = body, .since = qn__now()};
    return job;
}

/* ---------------------------------------------------------------------------------------- sends */

static void tell(qn__fabric *f, uint32_t to, uint32_t type, uint64_t number) {
    const qn__head head = {.type = type, .number = {number}};
    f->base->calls->send(f->base, to, &head, NULL);
}

/* The notice of a job, which has the head of its message. */
static int send_notice(qn__fabric *f, const qn__fabric_job *job) {
    qn__message_buffer *body = f->base->calls->buffer(f->base, NOTICE_BYTES);
    qn__head head = job->head;
    if (!body)
        return 0;
    qn__put_u32(body->data, head.type);
    qn__put_u32(body->data + 4, job->number);
    qn__put_u64(body->data + 8, job->body->bytes);
    qn__put_u64(body->data + 16, job->mac);
    head.type = QN__FABRIC_NOTICE;
    head.bytes = NOTICE_BYTES;
    f->base->calls->send(f->base, job->peer, &head, body);
    return 1;
}

int qn__fabric_carry(qn__fabric *f, uint32_t to, const qn__head *head, qn__message_buffer *body) {
    qn__fabric_peer *peer = &f->peer[to];
    qn__fabric_job *job = job_of(to, head, body);
    if (!job)
        return 0;
    job->mac = qn__siphash_lanes(&peer->own, body->data, body->bytes);
    pthread_mutex_lock(&f->lock);
    job->number = peer->sent + 1;
    const int goes = !f->left && !f->stopping && !peer->gone && !peer->stops && send_notice(f, job);
    if (goes) {
        ++peer->sent;
        add(f, &peer->leaving, job);
    }
    pthread_mutex_unlock(&f->lock);
    if (!goes)
        qn__free(job);
    return goes;
}

static void fabric_send(qn__transport *base, uint32_t to, const qn__head *head,
                        qn__message_buffer *body) {
    qn__fabric *f = qn__fabric_of(base);
    const int may = body && body->bytes >= QN__FABRIC_LEAST && body->bytes <= INT_MAX &&
                    head->type >= QN__BULK_FIRST && head->type <= QN__BULK_LAST && to < f->ranks &&
                    f->peer[to].far && qn__fabric_is_used(f);
    if (!may || !qn__fabric_carry(f, to, head, body))
        f->base->calls->send(f->base, to, head, body);
}

/* -------------------------------------------------------------------------------------- leaving */

/* What the others have not received goes by sockets. Under the lock. */
static void send_again(qn__fabric *f, uint32_t to) {
    for (const qn__fabric_job *job = f->peer[to].leaving; job; job = job->next) {
        const qn__head head = {
            .type = QN__FABRIC_BODY, .number = {job->number}, .bytes = job->body->bytes};
        f->base->calls->send(f->base, to, &head, qn__buffer_hold(job->body));
    }
}

/* Takes back what the thread has not begun. Under the lock. */
static void empty_queue(qn__fabric *f) {
    while (f->queue) {
        qn__fabric_job *job = f->queue;
        f->queue = job->queued;
        job->with_thread = 0;
        --f->transfers;
        qn__fabric_free(job);
    }
    f->queue_end = &f->queue;
}

void qn__fabric_leave(qn__fabric *f, const char *why) {
    pthread_mutex_lock(&f->lock);
    if (!f->left) {
        f->left = 1;
        empty_queue(f);
        if (why)
            snprintf(f->note, sizeof f->note, "the sums go by sockets from now on: %s", why);
        for (uint32_t to = 0; to < f->ranks; ++to)
            if (f->peer[to].far && !f->peer[to].gone) {
                tell(f, to, QN__FABRIC_LEAVE, 0);
                send_again(f, to);
            }
        pthread_cond_broadcast(&f->more);
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    f->base->calls->wake(f->base);
}

void qn__fabric_say_stop(qn__fabric *f) {
    for (uint32_t to = 0; to < f->ranks; ++to)
        if (f->peer[to].far && !f->peer[to].gone)
            tell(f, to, QN__FABRIC_STOP, 0);
}

/* Drops what was on its way between that rank and this one. Under the lock. */
static void forget(qn__fabric_job **list) {
    while (*list) {
        qn__fabric_job *job = *list;
        *list = job->next;
        job->listed = 0;
        qn__fabric_free(job);
    }
}

static void close_peer(qn__fabric *f, uint32_t rank, int is_lost) {
    pthread_mutex_lock(&f->lock);
    qn__fabric_peer *peer = &f->peer[rank];
    const int lost = is_lost && !peer->gone;
    peer->gone = 1;
    forget(&peer->leaving);
    forget(&peer->due);
    f->lost += lost != 0;
    const int leaves = lost && f->used && !f->survives;
    pthread_cond_broadcast(&f->more);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (leaves)
        qn__fabric_leave(f, "a rank was lost");
}

static void evict(qn__transport *base, uint32_t rank, const char *why) {
    qn__fabric *f = qn__fabric_of(base);
    if (rank < f->ranks)
        close_peer(f, rank, 1);
    f->base->calls->evict(f->base, rank, why);
}

/* ------------------------------------------------------------------------------------- messages */

/* Counts a message of a trial, and answers the last. */
static void take_probe(qn__fabric *f, uint32_t from, const qn__head *head) {
    qn__fabric_peer *peer = &f->peer[from];
    const qn__head answer = {.type = QN__FABRIC_ANSWER, .number = {head->number[0]}};
    if (head->number[0] != peer->trial) {
        peer->trial = head->number[0];
        peer->probes = 0;
    }
    if (++peer->probes == head->number[1])
        f->base->calls->send(f->base, from, &answer, NULL);
}

void qn__fabric_deliver(qn__fabric *f, uint32_t from, const qn__head *head,
                        qn__message_buffer *body) {
    if (head->type == QN__FABRIC_PROBE) {
        take_probe(f, from, head);
        qn__buffer_drop(body);
    } else {
        f->events.message(f->events.user, from, head, body);
    }
}

/* A body will come by the carrier. */
static void take_notice(qn__fabric *f, uint32_t from, const qn__head *head,
                        const qn__message_buffer *body) {
    qn__fabric_peer *peer = &f->peer[from];
    if (!body || body->bytes != NOTICE_BYTES)
        return;
    qn__head own = *head;
    own.type = qn__get_u32(body->data);
    own.bytes = qn__get_u64(body->data + 8);
    const int known =
        (own.type >= QN__BULK_FIRST && own.type <= QN__BULK_LAST) || own.type == QN__FABRIC_PROBE;
    if (!known || own.bytes < 1 || own.bytes > INT_MAX)
        return;
    qn__message_buffer *into = f->base->calls->buffer(f->base, own.bytes);
    qn__fabric_job *job = into ? job_of(from, &own, into) : NULL;
    if (!job) {
        qn__buffer_drop(into);
        return; /* out of memory: dropped, as the sockets do */
    }
    job->number = qn__get_u32(body->data + 4);
    job->mac = qn__get_u64(body->data + 16);
    job->receives = 1;
    pthread_mutex_lock(&f->lock);
    if (peer->gone)
        qn__fabric_free(job);
    else
        add(f, &peer->due, job);
    pthread_mutex_unlock(&f->lock);
}

static void take_arrived(qn__fabric *f, uint32_t from, uint64_t number) {
    pthread_mutex_lock(&f->lock);
    qn__fabric_job *job = find(f->peer[from].leaving, number);
    if (job) {
        qn__fabric_unlist(&f->peer[from].leaving, job);
        qn__fabric_free(job);
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
}

/* A body that the carrier did not bring. */
static void take_body(qn__fabric *f, uint32_t from, uint64_t number, qn__message_buffer *body) {
    qn__head head = {0};
    pthread_mutex_lock(&f->lock);
    qn__fabric_job *job = find(f->peer[from].due, number);
    const int fits = job && body && body->bytes == job->head.bytes;
    if (fits) {
        head = job->head;
        qn__fabric_unlist(&f->peer[from].due, job);
        qn__fabric_free(job);
    }
    pthread_mutex_unlock(&f->lock);
    if (!fits) {
        qn__buffer_drop(body);
        return;
    }
    tell(f, from, QN__FABRIC_ARRIVED, number);
    qn__fabric_deliver(f, from, &head, body);
}

/* That rank takes no more bodies of the carrier. */
static void take_stop(qn__fabric *f, uint32_t from) {
    pthread_mutex_lock(&f->lock);
    f->peer[from].stops = 1;
    if (!f->left)
        send_again(f, from);
    pthread_mutex_unlock(&f->lock);
}

static void take_answer(qn__fabric *f, uint64_t trial) {
    pthread_mutex_lock(&f->lock);
    f->answered = trial;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static void on_message(void *user, uint32_t from, const qn__head *head, qn__message_buffer *body) {
    qn__fabric *f = user;
    pthread_mutex_lock(&f->delivering);
    switch (head->type) {
    case QN__FABRIC_NOTICE:
        take_notice(f, from, head, body);
        qn__buffer_drop(body);
        break;
    case QN__FABRIC_BODY:
        take_body(f, from, head->number[0], body);
        break;
    case QN__FABRIC_ARRIVED:
        take_arrived(f, from, head->number[0]);
        qn__buffer_drop(body);
        break;
    case QN__FABRIC_LEAVE:
        qn__fabric_leave(f, NULL);
        qn__buffer_drop(body);
        break;
    case QN__FABRIC_STOP:
        take_stop(f, from);
        qn__buffer_drop(body);
        break;
    case QN__FABRIC_ANSWER:
        take_answer(f, head->number[0]);
        qn__buffer_drop(body);
        break;
    default:
        qn__fabric_deliver(f, from, head, body);
    }
    pthread_mutex_unlock(&f->delivering);
}

/* --------------------------------------------------------------------------------- other events */

static void on_gone(void *user, uint32_t rank, qn__loss_kind how) {
    qn__fabric *f = user;
    close_peer(f, rank, how != QN__GONE_LEFT);
    pthread_mutex_lock(&f->delivering);
    f->events.gone(f->events.user, rank, how);
    pthread_mutex_unlock(&f->delivering);
}

static void on_evicted(void *user, uint32_t by, const char *why) {
    qn__fabric *f = user;
    pthread_mutex_lock(&f->delivering);
    f->events.evicted(f->events.user, by, why);
    pthread_mutex_unlock(&f->delivering);
}

static void on_restored(void *user, uint32_t rank, double seconds, int damaged) {
    qn__fabric *f = user;
    pthread_mutex_lock(&f->delivering);
    if (f->events.restored)
        f->events.restored(f->events.user, rank, seconds, damaged);
    pthread_mutex_unlock(&f->delivering);
}

static int is_late(const qn__fabric *f, const qn__fabric_job *job, double now) {
    return job && now - job->since > f->patience;
}

/* Leaves the carrier if a body is too late. */
static void check_lateness(qn__fabric *f, double now) {
    char why[96];
    uint32_t late = f->ranks;
    pthread_mutex_lock(&f->lock);
    for (uint32_t r = 0; r < f->ranks && !f->left; ++r)
        if (is_late(f, f->peer[r].leaving, now) || is_late(f, f->peer[r].due, now))
            late = r;
    pthread_mutex_unlock(&f->lock);
    if (late == f->ranks)
        return;
    snprintf(why, sizeof why, "a message from or to rank %u took %.1f s", late, f->patience);
    qn__fabric_leave(f, why);
}

static void on_tick(void *user, double now) {
    qn__fabric *f = user;
    char note[sizeof f->note];
    check_lateness(f, now);
    pthread_mutex_lock(&f->lock);
    memcpy(note, f->note, sizeof note);
    f->note[0] = 0;
    pthread_mutex_unlock(&f->lock);
    pthread_mutex_lock(&f->delivering);
    if (note[0] && f->events.note)
        f->events.note(f->events.user, note);
    f->events.tick(f->events.user, now);
    pthread_mutex_unlock(&f->delivering);
}

/* ---------------------------------------------------------------------------------- other calls */

static qn__message_buffer *buffer(qn__transport *base, uint64_t bytes) {
    const qn__fabric *f = qn__fabric_of(base);
    return f->base->calls->buffer(f->base, bytes);
}

static void wake(qn__transport *base) {
    const qn__fabric *f = qn__fabric_of(base);
    f->base->calls->wake(f->base);
}

static double now_of(qn__transport *base) {
    const qn__fabric *f = qn__fabric_of(base);
    return f->base->calls->now(f->base);
}

static void recycle(qn__transport *base, qn__message_buffer *taken) {
    const qn__fabric *f = qn__fabric_of(base);
    f->base->calls->recycle(f->base, taken);
}

static const qn__transport_calls CALLS = {.buffer = buffer,
                                          .send = fabric_send,
                                          .evict = evict,
                                          .wake = wake,
                                          .now = now_of,
                                          .recycle = recycle};

/* ------------------------------------------------------------------------------- open and close */

qn_status qn__fabric_open(const qn__fabric_setup *setup, qn__fabric **out, qn_error *err) {
    qn__fabric *f = qn__alloc(1, sizeof *f, err);
    *out = NULL;
    if (!f)
        return QN_MEMORY;
    f->peer = qn__alloc(setup->ranks, sizeof *f->peer, err);
    if (!f->peer) {
        qn__free(f);
        return QN_MEMORY;
    }
    f->transport.calls = &CALLS;
    f->base = setup->base;
    f->ranks = setup->ranks;
    f->patience = setup->patience;
    f->queue_end = &f->queue;
    for (uint32_t r = 0; r < setup->ranks; ++r) {
        qn__frame_key key;
        f->peer[r].far = setup->far[r];
        qn__frame_keys(setup->key, setup->rank, r, &key);
        f->peer[r].own = key.body;
        qn__frame_keys(setup->key, r, setup->rank, &key);
        f->peer[r].theirs = key.body;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&f->changed, &monotonic);
    pthread_cond_init(&f->more, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&f->lock, NULL);
    pthread_mutex_init(&f->delivering, NULL);
    *out = f;
    return QN_OK;
}

qn__transport *qn__fabric_transport(qn__fabric *f) { return &f->transport; }

qn__transport_events qn__fabric_events(qn__fabric *f, const qn__transport_events *events) {
    f->events = *events;
    return (qn__transport_events){.user = f,
                                  .message = on_message,
                                  .gone = on_gone,
                                  .evicted = on_evicted,
                                  .tick = on_tick,
                                  .restored = on_restored};
}

void qn__fabric_use(qn__fabric *f) {
    pthread_mutex_lock(&f->lock);
    f->used = 1;
    pthread_mutex_unlock(&f->lock);
}

int qn__fabric_is_used(qn__fabric *f) {
    pthread_mutex_lock(&f->lock);
    const int is = f->used && !f->left;
    pthread_mutex_unlock(&f->lock);
    return is;
}

/* Fabrics that a library may still use. */
static qn__fabric *left_over;
static pthread_mutex_t left_over_lock = PTHREAD_MUTEX_INITIALIZER;

void qn__fabric_close(qn__fabric *f, int served) {
    if (!f)
        return;
    if (!served || f->transfers > 0 || f->stuck) {
        pthread_mutex_lock(&left_over_lock);
        f->before = left_over;
        left_over = f;
        pthread_mutex_unlock(&left_over_lock);
        return;
    }
    for (uint32_t r = 0; r < f->ranks; ++r) {
        forget(&f->peer[r].leaving);
        forget(&f->peer[r].due);
    }
    pthread_cond_destroy(&f->changed);
    pthread_cond_destroy(&f->more);
    pthread_mutex_destroy(&f->lock);
    pthread_mutex_destroy(&f->delivering);
    qn__free(f->peer);
    qn__free(f);
}
