/* Ranks that exist on paper only: their transports hand messages over by a clock that is made up,
 * and deaths, silences and cuts come when a test says so. One thread, and the same course for the
 * same seed on every machine.
 *
 *     pretend_net net;
 *     pretend_begin(&net, 5, seed, 20.0);
 *     pretend_listen(&net, r, &events);             each rank; its transport is
 * &net.rank[r].transport pretend_at(&net, 0.5, what_happens_then, user); pretend_kill(&net, 3); or
 * _vanish, _leave, _pause, _cut, _heal pretend_run(&net, 100.0);                      or _step, or
 * _settle pretend_end(&net);                             every buffer must have been dropped
 *
 * What it keeps to, as the real one does: messages between two ranks arrive whole, in order; first
 * those that a rank sent and then the news that it is gone; and when a rank was told that another
 * is silent, that one is told the same of it and never that it died. */
#ifndef QN_CLUSTER_TRANSPORT_SIMULATED_TRANSPORT_TEST_H
#define QN_CLUSTER_TRANSPORT_SIMULATED_TRANSPORT_TEST_H

#include "base/memory.h"
#include "cluster/transport/ranks.h"
#include "cluster/transport/transport.h"
#include "num/philox.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum pretend_kind {
    PRETEND_MESSAGE,
    PRETEND_EXPEL, /* the others go on without you */
    PRETEND_LOST,  /* I do not hear you */
    PRETEND_GONE   /* the end of a process, or its goodbye */
} pretend_kind;

typedef struct pretend_message {
    struct pretend_message *next;
    pretend_kind kind;
    qn__going how;
    double due;
    qn__head head;
    qn__message_buffer *body;
    char why[64];
} pretend_message;

/* What one rank sends to another. */
typedef struct pretend_link {
    pretend_message *first, *last;
    int cut;           /* nothing gets through, but it is kept */
    int closed;        /* the sender sends no more messages */
    int told;          /* the receiver knows the sender to be gone */
    double deaf_since; /* the receiver hears nothing; INFINITY: it does */
} pretend_link;

typedef struct pretend_rank {
    qn__transport transport;
    struct pretend_net *net;
    uint32_t number;
    int ended;    /* dead or left */
    int vanished; /* and nobody was told: its machine is gone */
    int paused;
    double paused_since, paused_until;
    qn__transport_events events;
} pretend_rank;

typedef void (*pretend_call)(struct pretend_net *net, void *user);
typedef enum pretend_what { AT_LINK, AT_CHECK, AT_TICK, AT_SOON, AT_WAKE, AT_CALL } pretend_what;

typedef struct pretend_event {
    double time;
    uint64_t order;
    pretend_what what;
    uint32_t from, to;
    pretend_call call;
    void *user;
} pretend_event;

typedef struct pretend_net {
    uint32_t ranks;
    double now, timeout;     /* rank_timeout */
    double delay, delay_now; /* of a message: usually up to `delay`, now and then `delay_now` */
    double news;             /* a death is told at each rank within so many seconds */
    int late_expels;         /* who was silent still finds an expulsion when it wakes */
    uint64_t seed, drawn, order, messages;
    int64_t buffers; /* held by anybody */
    pretend_rank *rank;
    pretend_link *link; /* [from * ranks + to] */
    pretend_event *heap;
    size_t events, room;
    size_t pending; /* of the events those that are no ticks */
} pretend_net;

/* ------------------------------------------------------------------------------------- chance */

static inline uint32_t pretend_draw(pretend_net *net) {
    uint32_t word[4];
    qn__words(net->seed, 0, 7, 0, net->drawn++, 0, word);
    return word[0];
}

/* From 0 up to 1. */
static inline double pretend_chance(pretend_net *net) { return pretend_draw(net) * 0x1p-32; }
static inline uint32_t pretend_pick(pretend_net *net, uint32_t count) {
    return (uint32_t)((uint64_t)pretend_draw(net) * count >> 32);
}

/* ------------------------------------------------------------------------------------- events */

static inline int pretend_before(const pretend_event *a, const pretend_event *b) {
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static inline void pretend_plan(pretend_net *net, pretend_event event) {
    size_t i = net->events++;
    if (net->events > net->room) {
        net->room = net->room ? 2 * net->room : 256;
        net->heap = realloc(net->heap, net->room * sizeof *net->heap);
        if (!net->heap)
            abort();
    }
    event.order = net->order++;
    net->pending += event.what != AT_TICK;
    for (; i > 0 && pretend_before(&event, &net->heap[(i - 1) / 2]); i = (i - 1) / 2)
        net->heap[i] = net->heap[(i - 1) / 2];
    net->heap[i] = event;
}

static inline pretend_event pretend_next(pretend_net *net) {
    const pretend_event first = net->heap[0], last = net->heap[--net->events];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < net->events; i = child) {
        child +=
            child + 1 < net->events && pretend_before(&net->heap[child + 1], &net->heap[child]);
        if (!pretend_before(&net->heap[child], &last))
            break;
        net->heap[i] = net->heap[child];
    }
    net->heap[i] = last;
    net->pending -= first.what != AT_TICK;
    return first;
}

static inline void pretend_at(pretend_net *net, double time, pretend_call call, void *user) {
    pretend_plan(net, (pretend_event){.time = time, .what = AT_CALL, .call = call, .user = user});
}

static inline pretend_link *pretend_between(pretend_net *net, uint32_t from, uint32_t to) {
    return &net->link[(size_t)from * net->ranks + to];
}

/* ------------------------------------------------------------------------------------ messages */

static inline void pretend_burn(pretend_message *message) {
    qn__buffer_drop(message->body);
    qn__free(message);
}

static inline void pretend_put(pretend_net *net, uint32_t from, uint32_t to,
                               const pretend_message *text, double after) {
    pretend_link *link = pretend_between(net, from, to);
    pretend_message *message = qn__alloc(1, sizeof *message, NULL);
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
    pretend_plan(net, (pretend_event){message->due, 0, AT_LINK, from, to, NULL, NULL});
}

static inline double pretend_delay(pretend_net *net) {
    return pretend_chance(net) * (pretend_pick(net, 16) ? net->delay : net->delay_now);
}

/* `a` no longer hears `b`, and says so. */
static inline void pretend_lose(pretend_net *net, uint32_t a, uint32_t b) {
    pretend_rank *rank = &net->rank[a];
    pretend_between(net, b, a)->told = 1;
    pretend_between(net, a, b)->closed = 1;
    pretend_put(net, a, b, &(pretend_message){.kind = PRETEND_LOST}, pretend_delay(net));
    rank->events.gone(rank->events.user, b, QN__GONE_SILENT);
}

static inline void pretend_open(pretend_net *net, uint32_t from, uint32_t to,
                                pretend_message *message) {
    pretend_rank *rank = &net->rank[to];
    pretend_link *link = pretend_between(net, from, to);
    const int known = link->told;
    qn__message_buffer *body = message->body;
    message->body = NULL;
    if (message->kind == PRETEND_MESSAGE && !known) {
        ++net->messages;
        rank->events.message(rank->events.user, from, &message->head, body);
        body = NULL;
    } else if (message->kind == PRETEND_EXPEL && (!known || net->late_expels)) {
        link->told = 1;
        pretend_between(net, to, from)->closed = 1;
        rank->events.expelled(rank->events.user, from, message->why);
        if (!known)
            rank->events.gone(rank->events.user, from, QN__GONE_SILENT);
    } else if ((message->kind == PRETEND_LOST || message->kind == PRETEND_GONE) && !known) {
        link->told = 1;
        pretend_between(net, to, from)->closed = 1;
        rank->events.gone(rank->events.user, from,
                          message->kind == PRETEND_LOST ? QN__GONE_SILENT : message->how);
    }
    qn__buffer_drop(body);
}

static inline void pretend_deliver(pretend_net *net, uint32_t from, uint32_t to) {
    pretend_link *link = pretend_between(net, from, to);
    pretend_message *message = link->first;
    if (!message || link->cut || net->rank[to].paused || message->due > net->now)
        return;
    link->first = message->next;
    if (!link->first)
        link->last = NULL;
    if (!net->rank[to].ended)
        pretend_open(net, from, to, message);
    pretend_burn(message);
}

/* What lies in a link that is open again may come now; a death of which nobody heard for long is
 * not certain. */
static inline void pretend_reopen(pretend_net *net, uint32_t from, uint32_t to, double closed) {
    for (pretend_message *l = pretend_between(net, from, to)->first; l; l = l->next) {
        const double soon = net->now + pretend_chance(net) * net->delay;
        if (l->kind == PRETEND_GONE && closed > 0.5 * net->timeout && l->how == QN__GONE_DEAD)
            l->how = QN__GONE_SILENT;
        if (l->due < soon)
            l->due = soon;
        if (l->next && l->next->due < l->due)
            l->next->due = l->due;
        pretend_plan(net, (pretend_event){l->due, 0, AT_LINK, from, to, NULL, NULL});
    }
}

/* ------------------------------------------------------------------------- who hears whom */

static inline void pretend_hearing(pretend_net *net, uint32_t from, uint32_t to) {
    pretend_link *link = pretend_between(net, from, to);
    const pretend_rank *sender = &net->rank[from];
    const int deaf = link->cut || sender->paused || sender->vanished;
    if (!deaf) {
        link->deaf_since = INFINITY;
    } else if (link->deaf_since == INFINITY) {
        link->deaf_since = net->now;
        pretend_plan(net,
                     (pretend_event){net->now + net->timeout * (1 + 0.05 * pretend_chance(net)), 0,
                                     AT_CHECK, from, to, NULL, NULL});
    }
}

static inline void pretend_check(pretend_net *net, uint32_t from, uint32_t to) {
    const pretend_link *link = pretend_between(net, from, to);
    if (!net->rank[to].ended && !net->rank[to].paused && !link->told &&
        link->deaf_since + net->timeout <= net->now)
        pretend_lose(net, to, from);
}

static inline void pretend_waken(pretend_net *net, uint32_t r) {
    pretend_rank *rank = &net->rank[r];
    const double slept = net->now - rank->paused_since;
    if (!rank->paused || rank->paused_until > net->now)
        return;
    rank->paused = 0;
    for (uint32_t i = 0; i < net->ranks; ++i)
        if (i != r) {
            pretend_hearing(net, r, i);
            pretend_reopen(net, i, r, slept);
            if (pretend_between(net, i, r)->deaf_since < INFINITY)
                pretend_plan(net, (pretend_event){net->now + net->timeout * pretend_chance(net), 0,
                                                  AT_CHECK, i, r, NULL, NULL});
        }
    pretend_plan(net, (pretend_event){net->now, 0, AT_SOON, r, r, NULL, NULL});
}

/* ---------------------------------------------------------------------------- what may happen */

/* The rank's process stands still for so many seconds. */
static inline void pretend_pause(pretend_net *net, uint32_t r, double seconds) {
    pretend_rank *rank = &net->rank[r];
    if (rank->ended)
        return;
    if (!rank->paused)
        rank->paused_since = net->now, rank->paused_until = net->now;
    rank->paused = 1;
    if (rank->paused_until < net->now + seconds)
        rank->paused_until = net->now + seconds;
    for (uint32_t i = 0; i < net->ranks; ++i)
        if (i != r)
            pretend_hearing(net, r, i);
    pretend_plan(net, (pretend_event){rank->paused_until, 0, AT_WAKE, r, r, NULL, NULL});
}

/* What a rank sent and has not arrived may be lost from some message on, but not that it lost or
 * expelled somebody. */
static inline void pretend_truncate(pretend_net *net, uint32_t from, uint32_t to) {
    pretend_link *link = pretend_between(net, from, to);
    uint32_t messages = 0, kept = 0;
    for (pretend_message *l = link->first; l; l = l->next, ++messages)
        if (l->kind != PRETEND_MESSAGE)
            kept = messages + 1;
    const uint32_t keep = pretend_pick(net, 2) ? messages : pretend_pick(net, messages + 1);
    kept = keep > kept ? keep : kept;
    pretend_message **at = &link->first, *last = NULL;
    for (uint32_t i = 0; i < kept && *at; ++i)
        last = *at, at = &(*at)->next;
    while (*at) {
        pretend_message *l = *at;
        *at = l->next;
        pretend_burn(l);
    }
    link->last = last;
}

static inline void pretend_finish(pretend_net *net, uint32_t r, int silently, qn__going how) {
    pretend_rank *rank = &net->rank[r];
    if (rank->ended)
        return;
    rank->ended = 1;
    rank->paused = 0;
    rank->vanished = silently;
    for (uint32_t i = 0; i < net->ranks; ++i) {
        if (i == r)
            continue;
        if (how != QN__GONE_LEFT)
            pretend_truncate(net, r, i);
        pretend_hearing(net, r, i);
        if (!silently)
            pretend_put(net, r, i, &(pretend_message){.kind = PRETEND_GONE, .how = how},
                        net->news * pretend_chance(net));
    }
}

/* Its process ends; the system closes its connections. */
static inline void pretend_kill(pretend_net *net, uint32_t r) {
    pretend_finish(net, r, 0, QN__GONE_DEAD);
}
/* Its machine ends; nobody is told. */
static inline void pretend_vanish(pretend_net *net, uint32_t r) {
    pretend_finish(net, r, 1, QN__GONE_DEAD);
}
/* It says goodbye. */
static inline void pretend_leave(pretend_net *net, uint32_t r) {
    pretend_finish(net, r, 0, QN__GONE_LEFT);
}

/* From now on nothing gets from `from` to `to`. */
static inline void pretend_cut_way(pretend_net *net, uint32_t from, uint32_t to) {
    pretend_between(net, from, to)->cut = 1;
    pretend_hearing(net, from, to);
}

/* Neither way between the ranks of `side` and all others. */
static inline void pretend_cut(pretend_net *net, const qn__ranks *side) {
    for (uint32_t a = 0; a < net->ranks; ++a)
        for (uint32_t b = 0; b < net->ranks; ++b)
            if (qn__ranks_has(side, a) != qn__ranks_has(side, b))
                pretend_cut_way(net, a, b);
}

/* All cuts are mended; what lay in them comes now, unless the other was given up. */
static inline void pretend_heal(pretend_net *net) {
    for (uint32_t a = 0; a < net->ranks; ++a)
        for (uint32_t b = 0; b < net->ranks; ++b) {
            pretend_link *link = pretend_between(net, a, b);
            if (!link->cut)
                continue;
            const double closed = net->now - link->deaf_since;
            link->cut = 0;
            pretend_hearing(net, a, b);
            pretend_reopen(net, a, b, closed);
        }
}

/* ----------------------------------------------------------------------------------- the
 * transports */

static inline pretend_rank *pretend_of(qn__transport *transport) {
    return (pretend_rank *)transport;
}

static inline qn__message_buffer *pretend_buffer(qn__transport *transport, uint64_t bytes) {
    qn__message_buffer *buffer = qn__buffer_create(transport, bytes);
    pretend_of(transport)->net->buffers += buffer != NULL;
    return buffer;
}

static inline void pretend_recycle(qn__transport *transport, qn__message_buffer *buffer) {
    --pretend_of(transport)->net->buffers;
    qn__free(buffer);
}

static inline void pretend_send(qn__transport *transport, uint32_t to, const qn__head *head,
                                qn__message_buffer *body) {
    const pretend_rank *rank = pretend_of(transport);
    pretend_net *net = rank->net;
    if (rank->ended || net->rank[to].ended || pretend_between(net, rank->number, to)->closed) {
        qn__buffer_drop(body);
        return;
    }
    pretend_put(net, rank->number, to,
                &(pretend_message){.kind = PRETEND_MESSAGE, .head = *head, .body = body},
                pretend_delay(net));
}

static inline void pretend_expel(qn__transport *transport, uint32_t to, const char *why) {
    const pretend_rank *rank = pretend_of(transport);
    pretend_net *net = rank->net;
    pretend_message message = {.kind = PRETEND_EXPEL};
    strncpy(message.why, why, sizeof message.why - 1);
    if (rank->ended)
        return;
    pretend_between(net, to, rank->number)->told = 1;
    pretend_between(net, rank->number, to)->closed = 1;
    pretend_put(net, rank->number, to, &message, pretend_delay(net));
}

static inline void pretend_wake(qn__transport *transport) {
    const pretend_rank *rank = pretend_of(transport);
    pretend_plan(rank->net, (pretend_event){rank->net->now + 1e-5, 0, AT_SOON, rank->number,
                                            rank->number, NULL, NULL});
}

/* Every rank's clock shows something else. */
static inline double pretend_now(qn__transport *transport) {
    return pretend_of(transport)->net->now + 1000.0 * pretend_of(transport)->number;
}

/* ------------------------------------------------------------------------------------- the net */

static inline void pretend_begin(pretend_net *net, uint32_t ranks, uint64_t seed, double timeout) {
    static const qn__transport_calls calls = {.buffer = pretend_buffer,
                                              .send = pretend_send,
                                              .expel = pretend_expel,
                                              .wake = pretend_wake,
                                              .now = pretend_now,
                                              .recycle = pretend_recycle};
    *net = (pretend_net){.ranks = ranks,
                         .seed = seed,
                         .timeout = timeout,
                         .delay = 1e-4,
                         .delay_now = 5e-3,
                         .news = 2e-2,
                         .late_expels = 1};
    net->rank = qn__alloc(ranks, sizeof *net->rank, NULL);
    net->link = qn__alloc((size_t)ranks * ranks, sizeof *net->link, NULL);
    if (!net->rank || !net->link)
        abort();
    for (uint32_t r = 0; r < ranks; ++r) {
        net->rank[r].transport.calls = &calls;
        net->rank[r].net = net;
        net->rank[r].number = r;
        for (uint32_t i = 0; i < ranks; ++i)
            pretend_between(net, r, i)->deaf_since = INFINITY;
    }
}

/* Ticks begin as well; `events` is copied. */
static inline void pretend_listen(pretend_net *net, uint32_t r,
                                  const qn__transport_events *events) {
    net->rank[r].events = *events;
    pretend_plan(net, (pretend_event){net->now + net->timeout / 20 * pretend_chance(net), 0,
                                      AT_TICK, r, r, NULL, NULL});
}

static inline void pretend_tick(pretend_net *net, const pretend_event *event) {
    pretend_rank *rank = &net->rank[event->to];
    if (rank->ended)
        return;
    if (!rank->paused)
        rank->events.tick(rank->events.user, pretend_now(&rank->transport));
    if (event->what == AT_TICK)
        pretend_plan(net, (pretend_event){net->now + net->timeout / 20, 0, AT_TICK, event->to,
                                          event->to, NULL, NULL});
}

/* The next event; 0 when there is none. */
static inline int pretend_step(pretend_net *net) {
    if (!net->events)
        return 0;
    const pretend_event event = pretend_next(net);
    net->now = event.time > net->now ? event.time : net->now;
    switch (event.what) {
    case AT_LINK:
        pretend_deliver(net, event.from, event.to);
        break;
    case AT_CHECK:
        pretend_check(net, event.from, event.to);
        break;
    case AT_TICK:
    case AT_SOON:
        pretend_tick(net, &event);
        break;
    case AT_WAKE:
        pretend_waken(net, event.to);
        break;
    case AT_CALL:
        event.call(net, event.user);
    }
    return 1;
}

/* Everything that happens up to that moment. */
static inline void pretend_run(pretend_net *net, double until) {
    while (net->events && net->heap[0].time <= until)
        pretend_step(net);
    net->now = until > net->now ? until : net->now;
}

/* Until nothing is under way but ticks; at most for so many seconds. 1: it is quiet. */
static inline int pretend_settle(pretend_net *net, double seconds) {
    const double until = net->now + seconds;
    while (net->pending && net->heap[0].time <= until)
        pretend_step(net);
    return net->pending == 0;
}

/* Frees what is left; no buffer may be held by the ranks any more. Returns how many are. */
static inline int64_t pretend_end(pretend_net *net) {
    for (size_t i = 0; i < (size_t)net->ranks * net->ranks; ++i)
        while (net->link[i].first) {
            pretend_message *message = net->link[i].first;
            net->link[i].first = message->next;
            pretend_burn(message);
        }
    free(net->heap);
    qn__free(net->rank);
    qn__free(net->link);
    return net->buffers;
}

#endif
