/* Simulated ranks: their transports deliver messages by a simulated clock, and a test decides when
 * ranks die, fall silent or are partitioned. One thread. The same seed gives the same course on
 * every machine.
 *
 *       sim_net net;
 *       sim_begin(&net, 5, seed, 20.0);
 *       sim_listen(&net, r, &events);    each rank; net.rank[r].transport is its transport
 *       sim_at(&net, 0.5, what_happens_then, user);
 *       sim_kill(&net, 3);               or _vanish, _leave, _pause, _cut, _heal
 *       sim_run(&net, 100.0);            or _step, or _settle
 *       sim_end(&net);                   every buffer must have been dropped
 *
 * As with the socket transport, messages between two ranks arrive complete and in order. The event
 * that a rank is gone comes after its messages. When a rank reports another as silent, that one
 * gets the same report about the first, and neither gets a report of the other's death. */
#ifndef QN_CLUSTER_TRANSPORT_SIMULATED_TRANSPORT_TEST_H
#define QN_CLUSTER_TRANSPORT_SIMULATED_TRANSPORT_TEST_H

#include "base/memory.h"
#include "cluster/transport/ranks.h"
#include "cluster/transport/transport.h"
#include "num/philox.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum sim_kind {
    SIM_MESSAGE,
    SIM_EVICT, /* an eviction */
    SIM_LOST,  /* the sender does not hear the receiver */
    SIM_GONE   /* the end of a process, or its goodbye */
} sim_kind;

typedef struct sim_message {
    struct sim_message *next;
    sim_kind kind;
    qn__loss_kind how;
    double due;
    qn__head head;
    qn__message_buffer *body;
    char why[64];
} sim_message;

/* One direction between two ranks. */
typedef struct sim_link {
    sim_message *first, *last;
    int cut;           /* nothing is delivered, but it is kept */
    int closed;        /* the sender sends no more messages */
    int reported;      /* the receiver counts the sender as gone */
    double deaf_since; /* since when the receiver hears nothing; INFINITY: it does */
} sim_link;

typedef struct sim_rank {
    qn__transport transport;
    struct sim_net *net;
    uint32_t number;
    int ended;    /* dead or left */
    int vanished; /* no other rank was notified: its machine is gone */
    int paused;
    double paused_since, paused_until;
    qn__transport_events events;
} sim_rank;

typedef void (*sim_call)(struct sim_net *net, void *user);
typedef enum sim_what { AT_LINK, AT_CHECK, AT_TICK, AT_SOON, AT_WAKE, AT_CALL } sim_what;

typedef struct sim_event {
    double time;
    uint64_t order;
    sim_what what;
    uint32_t from, to;
    sim_call call;
    void *user;
} sim_event;

typedef struct sim_net {
    uint32_t ranks;
    double now, timeout;     /* rank_timeout */
    double delay, delay_now; /* of a message: usually up to `delay`, sometimes `delay_now` */
    double news;             /* seconds within which each rank learns of a death */
    int late_evicts;         /* a rank that was silent still receives its eviction when it wakes */
    uint64_t seed, drawn, order, messages;
    int64_t buffers; /* buffers in use */
    sim_rank *rank;
    sim_link *link; /* [from * ranks + to] */
    sim_event *heap;
    size_t events, capacity;
    size_t pending; /* events that are not ticks */
} sim_net;

/* ------------------------------------------------------------------------------- random numbers */

static inline uint32_t sim_draw(sim_net *net) {
    uint32_t word[4];
    qn__words(net->seed, 0, 7, 0, net->drawn++, 0, word);
    return word[0];
}

/* From 0 up to 1. */
static inline double sim_chance(sim_net *net) { return sim_draw(net) * 0x1p-32; }
static inline uint32_t sim_pick(sim_net *net, uint32_t count) {
    return (uint32_t)((uint64_t)sim_draw(net) * count >> 32);
}

/* --------------------------------------------------------------------------------------- events */

static inline int sim_before(const sim_event *a, const sim_event *b) {
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static inline void sim_plan(sim_net *net, sim_event event) {
    size_t i = net->events++;
    if (net->events > net->capacity) {
        net->capacity = net->capacity ? 2 * net->capacity : 256;
        net->heap = realloc(net->heap, net->capacity * sizeof *net->heap);
        if (!net->heap)
            abort();
    }
    event.order = net->order++;
    net->pending += event.what != AT_TICK;
    for (; i > 0 && sim_before(&event, &net->heap[(i - 1) / 2]); i = (i - 1) / 2)
        net->heap[i] = net->heap[(i - 1) / 2];
    net->heap[i] = event;
}

static inline sim_event sim_next(sim_net *net) {
    const sim_event first = net->heap[0], last = net->heap[--net->events];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < net->events; i = child) {
        child += child + 1 < net->events && sim_before(&net->heap[child + 1], &net->heap[child]);
        if (!sim_before(&net->heap[child], &last))
            break;
        net->heap[i] = net->heap[child];
    }
    net->heap[i] = last;
    net->pending -= first.what != AT_TICK;
    return first;
}

static inline void sim_at(sim_net *net, double time, sim_call call, void *user) {
    sim_plan(net, (sim_event){.time = time, .what = AT_CALL, .call = call, .user = user});
}

static inline sim_link *sim_between(sim_net *net, uint32_t from, uint32_t to) {
    return &net->link[(size_t)from * net->ranks + to];
}

/* ------------------------------------------------------------------------------------- messages */

static inline void sim_free_message(sim_message *message) {
    qn__buffer_drop(message->body);
    qn__free(message);
}

static inline void sim_put(sim_net *net, uint32_t from, uint32_t to, const sim_message *text,
                           double after) {
    sim_link *link = sim_between(net, from, to);
    sim_message *message = qn__alloc(1, sizeof *message, NULL);
    if (!message)
        abort();
    *message = *text;
    message->due = net->now + after;
    if (link->last && message->due < link->last->due)
        message->due = link->last->due;
    if (link->last)
        link->last->next = message;
    else
        link->first = message;
    link->last = message;
    sim_plan(net, (sim_event){message->due, 0, AT_LINK, from, to, NULL, NULL});
}

static inline double sim_delay(sim_net *net) {
    return sim_chance(net) * (sim_pick(net, 16) ? net->delay : net->delay_now);
}

/* `a` no longer hears `b`, and reports it. */
static inline void sim_lose(sim_net *net, uint32_t a, uint32_t b) {
    sim_rank *rank = &net->rank[a];
    sim_between(net, b, a)->reported = 1;
    sim_between(net, a, b)->closed = 1;
    sim_put(net, a, b, &(sim_message){.kind = SIM_LOST}, sim_delay(net));
    rank->events.gone(rank->events.user, b, QN__GONE_SILENT);
}

static inline void sim_open(sim_net *net, uint32_t from, uint32_t to, sim_message *message) {
    sim_rank *rank = &net->rank[to];
    sim_link *link = sim_between(net, from, to);
    const int known = link->reported;
    qn__message_buffer *body = message->body;
    message->body = NULL;
    if (message->kind == SIM_MESSAGE && !known) {
        ++net->messages;
        rank->events.message(rank->events.user, from, &message->head, body);
        body = NULL;
    } else if (message->kind == SIM_EVICT && (!known || net->late_evicts)) {
        link->reported = 1;
        sim_between(net, to, from)->closed = 1;
        rank->events.evicted(rank->events.user, from, message->why);
        if (!known)
            rank->events.gone(rank->events.user, from, QN__GONE_SILENT);
    } else if ((message->kind == SIM_LOST || message->kind == SIM_GONE) && !known) {
        link->reported = 1;
        sim_between(net, to, from)->closed = 1;
        rank->events.gone(rank->events.user, from,
                          message->kind == SIM_LOST ? QN__GONE_SILENT : message->how);
    }
    qn__buffer_drop(body);
}

static inline void sim_deliver(sim_net *net, uint32_t from, uint32_t to) {
    sim_link *link = sim_between(net, from, to);
    sim_message *message = link->first;
    if (!message || link->cut || net->rank[to].paused || message->due > net->now)
        return;
    link->first = message->next;
    if (!link->first)
        link->last = NULL;
    if (!net->rank[to].ended)
        sim_open(net, from, to, message);
    sim_free_message(message);
}

/* Schedules the messages of a link that is open again. A death that was not noticed for long is not
 * certain. */
static inline void sim_reopen(sim_net *net, uint32_t from, uint32_t to, double closed) {
    for (sim_message *l = sim_between(net, from, to)->first; l; l = l->next) {
        const double soon = net->now + sim_chance(net) * net->delay;
        if (l->kind == SIM_GONE && closed > 0.5 * net->timeout && l->how == QN__GONE_DEAD)
            l->how = QN__GONE_SILENT;
        if (l->due < soon)
            l->due = soon;
        if (l->next && l->next->due < l->due)
            l->next->due = l->due;
        sim_plan(net, (sim_event){l->due, 0, AT_LINK, from, to, NULL, NULL});
    }
}

/* --------------------------------------------------------------------------------- connectivity */

static inline void sim_hearing(sim_net *net, uint32_t from, uint32_t to) {
    sim_link *link = sim_between(net, from, to);
    const sim_rank *sender = &net->rank[from];
    const int deaf = link->cut || sender->paused || sender->vanished;
    if (!deaf) {
        link->deaf_since = INFINITY;
    } else if (link->deaf_since == INFINITY) {
        link->deaf_since = net->now;
        sim_plan(net, (sim_event){net->now + net->timeout * (1 + 0.05 * sim_chance(net)), 0,
                                  AT_CHECK, from, to, NULL, NULL});
    }
}

static inline void sim_check(sim_net *net, uint32_t from, uint32_t to) {
    const sim_link *link = sim_between(net, from, to);
    if (!net->rank[to].ended && !net->rank[to].paused && !link->reported &&
        link->deaf_since + net->timeout <= net->now)
        sim_lose(net, to, from);
}

static inline void sim_waken(sim_net *net, uint32_t r) {
    sim_rank *rank = &net->rank[r];
    const double slept = net->now - rank->paused_since;
    if (!rank->paused || rank->paused_until > net->now)
        return;
    rank->paused = 0;
    for (uint32_t i = 0; i < net->ranks; ++i)
        if (i != r) {
            sim_hearing(net, r, i);
            sim_reopen(net, i, r, slept);
            if (sim_between(net, i, r)->deaf_since < INFINITY)
                sim_plan(net, (sim_event){net->now + net->timeout * sim_chance(net), 0, AT_CHECK, i,
                                          r, NULL, NULL});
        }
    sim_plan(net, (sim_event){net->now, 0, AT_SOON, r, r, NULL, NULL});
}

/* --------------------------------------------------------------------------------------- faults */

/* Suspends the rank's process for so many seconds. */
static inline void sim_pause(sim_net *net, uint32_t r, double seconds) {
    sim_rank *rank = &net->rank[r];
    if (rank->ended)
        return;
    if (!rank->paused)
        rank->paused_since = net->now, rank->paused_until = net->now;
    rank->paused = 1;
    if (rank->paused_until < net->now + seconds)
        rank->paused_until = net->now + seconds;
    for (uint32_t i = 0; i < net->ranks; ++i)
        if (i != r)
            sim_hearing(net, r, i);
    sim_plan(net, (sim_event){rank->paused_until, 0, AT_WAKE, r, r, NULL, NULL});
}

/* Undelivered messages of a rank may be lost from some message on, but not its reports of losses
 * and evictions. */
static inline void sim_truncate(sim_net *net, uint32_t from, uint32_t to) {
    sim_link *link = sim_between(net, from, to);
    uint32_t messages = 0, kept = 0;
    for (sim_message *l = link->first; l; l = l->next, ++messages)
        if (l->kind != SIM_MESSAGE)
            kept = messages + 1;
    const uint32_t keep = sim_pick(net, 2) ? messages : sim_pick(net, messages + 1);
    kept = keep > kept ? keep : kept;
    sim_message **at = &link->first, *last = NULL;
    for (uint32_t i = 0; i < kept && *at; ++i)
        last = *at, at = &(*at)->next;
    while (*at) {
        sim_message *l = *at;
        *at = l->next;
        sim_free_message(l);
    }
    link->last = last;
}

static inline void sim_finish(sim_net *net, uint32_t r, int silently, qn__loss_kind how) {
    sim_rank *rank = &net->rank[r];
    if (rank->ended)
        return;
    rank->ended = 1;
    rank->paused = 0;
    rank->vanished = silently;
    for (uint32_t i = 0; i < net->ranks; ++i) {
        if (i == r)
            continue;
        if (how != QN__GONE_LEFT)
            sim_truncate(net, r, i);
        sim_hearing(net, r, i);
        if (!silently)
            sim_put(net, r, i, &(sim_message){.kind = SIM_GONE, .how = how},
                    net->news * sim_chance(net));
    }
}

/* Its process ends; the system closes its connections. */
static inline void sim_kill(sim_net *net, uint32_t r) { sim_finish(net, r, 0, QN__GONE_DEAD); }
/* Its machine ends; no rank is notified. */
static inline void sim_vanish(sim_net *net, uint32_t r) { sim_finish(net, r, 1, QN__GONE_DEAD); }
/* It says goodbye. */
static inline void sim_leave(sim_net *net, uint32_t r) { sim_finish(net, r, 0, QN__GONE_LEFT); }

/* From now on nothing is delivered from `from` to `to`. */
static inline void sim_cut_way(sim_net *net, uint32_t from, uint32_t to) {
    sim_between(net, from, to)->cut = 1;
    sim_hearing(net, from, to);
}

/* A partition: nothing is delivered between the ranks of `side` and all others. */
static inline void sim_cut(sim_net *net, const qn__ranks *side) {
    for (uint32_t a = 0; a < net->ranks; ++a)
        for (uint32_t b = 0; b < net->ranks; ++b)
            if (qn__ranks_has(side, a) != qn__ranks_has(side, b))
                sim_cut_way(net, a, b);
}

/* Heals all cuts; kept messages are delivered now, unless the peer was given up. */
static inline void sim_heal(sim_net *net) {
    for (uint32_t a = 0; a < net->ranks; ++a)
        for (uint32_t b = 0; b < net->ranks; ++b) {
            sim_link *link = sim_between(net, a, b);
            if (!link->cut)
                continue;
            const double closed = net->now - link->deaf_since;
            link->cut = 0;
            sim_hearing(net, a, b);
            sim_reopen(net, a, b, closed);
        }
}

/* ----------------------------------------------------------------------------------- transports */

static inline sim_rank *sim_of(qn__transport *transport) { return (sim_rank *)transport; }

static inline qn__message_buffer *sim_buffer(qn__transport *transport, uint64_t bytes) {
    qn__message_buffer *buffer = qn__buffer_create(transport, bytes);
    sim_of(transport)->net->buffers += buffer != NULL;
    return buffer;
}

static inline void sim_recycle(qn__transport *transport, qn__message_buffer *buffer) {
    --sim_of(transport)->net->buffers;
    qn__free(buffer);
}

static inline void sim_send(qn__transport *transport, uint32_t to, const qn__head *head,
                            qn__message_buffer *body) {
    const sim_rank *rank = sim_of(transport);
    sim_net *net = rank->net;
    if (rank->ended || net->rank[to].ended || sim_between(net, rank->number, to)->closed) {
        qn__buffer_drop(body);
        return;
    }
    sim_put(net, rank->number, to, &(sim_message){.kind = SIM_MESSAGE, .head = *head, .body = body},
            sim_delay(net));
}

static inline void sim_evict(qn__transport *transport, uint32_t to, const char *why) {
    const sim_rank *rank = sim_of(transport);
    sim_net *net = rank->net;
    sim_message message = {.kind = SIM_EVICT};
    strncpy(message.why, why, sizeof message.why - 1);
    if (rank->ended)
        return;
    sim_between(net, to, rank->number)->reported = 1;
    sim_between(net, rank->number, to)->closed = 1;
    sim_put(net, rank->number, to, &message, sim_delay(net));
}

static inline void sim_wake(qn__transport *transport) {
    const sim_rank *rank = sim_of(transport);
    sim_plan(rank->net, (sim_event){rank->net->now + 1e-5, 0, AT_SOON, rank->number, rank->number,
                                    NULL, NULL});
}

/* Each rank's clock shows another time. */
static inline double sim_now(qn__transport *transport) {
    return sim_of(transport)->net->now + 1000.0 * sim_of(transport)->number;
}

/* -------------------------------------------------------------------------------------- network */

static inline void sim_begin(sim_net *net, uint32_t ranks, uint64_t seed, double timeout) {
    static const qn__transport_calls calls = {.buffer = sim_buffer,
                                              .send = sim_send,
                                              .evict = sim_evict,
                                              .wake = sim_wake,
                                              .now = sim_now,
                                              .recycle = sim_recycle};
    *net = (sim_net){.ranks = ranks,
                     .seed = seed,
                     .timeout = timeout,
                     .delay = 1e-4,
                     .delay_now = 5e-3,
                     .news = 2e-2,
                     .late_evicts = 1};
    net->rank = qn__alloc(ranks, sizeof *net->rank, NULL);
    net->link = qn__alloc((size_t)ranks * ranks, sizeof *net->link, NULL);
    if (!net->rank || !net->link)
        abort();
    for (uint32_t r = 0; r < ranks; ++r) {
        net->rank[r].transport.calls = &calls;
        net->rank[r].net = net;
        net->rank[r].number = r;
        for (uint32_t i = 0; i < ranks; ++i)
            sim_between(net, r, i)->deaf_since = INFINITY;
    }
}

/* Ticks begin as well; `events` is copied. */
static inline void sim_listen(sim_net *net, uint32_t r, const qn__transport_events *events) {
    net->rank[r].events = *events;
    sim_plan(net, (sim_event){net->now + net->timeout / 20 * sim_chance(net), 0, AT_TICK, r, r,
                              NULL, NULL});
}

static inline void sim_tick(sim_net *net, const sim_event *event) {
    sim_rank *rank = &net->rank[event->to];
    if (rank->ended)
        return;
    if (!rank->paused)
        rank->events.tick(rank->events.user, sim_now(&rank->transport));
    if (event->what == AT_TICK)
        sim_plan(net, (sim_event){net->now + net->timeout / 20, 0, AT_TICK, event->to, event->to,
                                  NULL, NULL});
}

/* The next event; 0 if there is none. */
static inline int sim_step(sim_net *net) {
    if (!net->events)
        return 0;
    const sim_event event = sim_next(net);
    net->now = event.time > net->now ? event.time : net->now;
    switch (event.what) {
    case AT_LINK:
        sim_deliver(net, event.from, event.to);
        break;
    case AT_CHECK:
        sim_check(net, event.from, event.to);
        break;
    case AT_TICK:
    case AT_SOON:
        sim_tick(net, &event);
        break;
    case AT_WAKE:
        sim_waken(net, event.to);
        break;
    case AT_CALL:
        event.call(net, event.user);
    }
    return 1;
}

/* All events up to that time. */
static inline void sim_run(sim_net *net, double until) {
    while (net->events && net->heap[0].time <= until)
        sim_step(net);
    net->now = until > net->now ? until : net->now;
}

/* Until only ticks are left, for at most so many seconds. 1: only ticks are left. */
static inline int sim_settle(sim_net *net, double seconds) {
    const double until = net->now + seconds;
    while (net->pending && net->heap[0].time <= until)
        sim_step(net);
    return net->pending == 0;
}

/* Frees what is left; the ranks must hold no buffer. Returns how many they hold. */
static inline int64_t sim_end(sim_net *net) {
    for (size_t i = 0; i < (size_t)net->ranks * net->ranks; ++i)
        while (net->link[i].first) {
            sim_message *message = net->link[i].first;
            net->link[i].first = message->next;
            sim_free_message(message);
        }
    free(net->heap);
    qn__free(net->rank);
    qn__free(net->link);
    return net->buffers;
}

#endif
