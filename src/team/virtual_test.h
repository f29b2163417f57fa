/* Workers that exist on paper only: the queue of grains runs against a clock that is made up, so
 * what it does with given speeds is the same on every machine. For the tests and for
 * bench/balance. */
#ifndef QN_TEAM_VIRTUAL_TEST_H
#define QN_TEAM_VIRTUAL_TEST_H

#include "num/philox.h"
#include "team/queue.h"
#include <math.h>

typedef struct virtual_worker {
    double start, rate; /* seconds of a call beside its grains; grains a second */
    double noise;       /* a call's time lies up to this part beside what they say */
    double change_at;   /* moment at which the rate becomes change_rate; 0: never */
    double change_rate;
    uint64_t calls;
    double free_at; /* of the step under way */
    qn__chunk chunk;
    double call_seconds;
    int state;   /* asks, computes, waits, or has been told that there is nothing left */
    double busy; /* in all */
} virtual_worker;

enum { VIRTUAL_ASKS, VIRTUAL_COMPUTES, VIRTUAL_WAITS, VIRTUAL_GONE };

/* Seconds that a call over `grains` grains takes when it begins at `moment`. */
static double virtual_call(virtual_worker *w, uint32_t worker, double grains, double moment) {
    uint32_t word[4];
    double seconds = w->start + grains / w->rate;
    if (w->change_at > 0 && moment >= w->change_at)
        seconds = w->start + grains / w->change_rate;
    else if (w->change_at > 0 && moment + seconds > w->change_at)
        seconds =
            w->change_at - moment + (moment + seconds - w->change_at) * w->rate / w->change_rate;
    qn__words(worker, 0, 0, 0, w->calls++, 0, word);
    return seconds * (1.0 + w->noise * (word[0] * 0x1p-31 - 1.0));
}

static void virtual_ask(qn__queue *q, virtual_worker *w, uint32_t worker, double now) {
    switch (qn__queue_try(q, worker, now, &w->chunk)) {
    case 1:
        w->call_seconds = virtual_call(w, worker, w->chunk.count, now);
        w->free_at = now + w->call_seconds;
        w->busy += w->call_seconds;
        w->state = VIRTUAL_COMPUTES;
        break;
    case 0:
        w->state = VIRTUAL_GONE;
        break;
    default: /* a look a while later, unless something changes before that */
        w->state = VIRTUAL_WAITS;
        w->free_at = now + 0.25 / w->rate;
    }
}

/* One step of `grains` grains, shared by the workers of `set`, that all begin together at *clock,
 * which then is the moment at which the last one is done. */
static inline void virtual_step(qn__queue *q, virtual_worker *w, uint32_t workers, uint64_t set,
                                uint32_t grains, double *clock) {
    qn__queue_fill(q, grains, set);
    for (uint32_t i = 0; i < workers; ++i) {
        w[i].state = set >> i & 1 ? VIRTUAL_ASKS : VIRTUAL_GONE;
        w[i].free_at = *clock;
    }
    for (;;) {
        uint32_t next = workers;
        for (uint32_t i = 0; i < workers; ++i)
            if (w[i].state != VIRTUAL_GONE && (next == workers || w[i].free_at < w[next].free_at))
                next = i;
        if (next == workers)
            return;
        const double now = w[next].free_at;
        if (w[next].state == VIRTUAL_COMPUTES) {
            qn__queue_done(q, next, w[next].chunk, w[next].call_seconds);
            *clock = fmax(*clock, now);
            for (uint32_t i = 0; i < workers; ++i)
                if (w[i].state == VIRTUAL_WAITS)
                    w[i].free_at = now;
        }
        virtual_ask(q, &w[next], next, now);
    }
}

/* Seconds that the work would take at least, if it could be cut as finely as one likes: all rates
 * together, from `begun` on. Starts of calls are part of what the queue has to deal with. */
static inline double virtual_bound(const virtual_worker *w, uint32_t workers, double grains,
                                   double begun) {
    double now = begun;
    for (;;) {
        double rate = 0, change = INFINITY;
        for (uint32_t i = 0; i < workers; ++i) {
            const int changed = w[i].change_at > 0 && now >= w[i].change_at;
            rate += changed ? w[i].change_rate : w[i].rate;
            if (w[i].change_at > now)
                change = fmin(change, w[i].change_at);
        }
        if (now + grains / rate <= change)
            return now + grains / rate - begun;
        grains -= (change - now) * rate;
        now = change;
    }
}

#endif
