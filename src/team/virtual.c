#include "team/virtual.h"

#include "num/philox.h"
#include <math.h>

/* The activity of a worker in a step. */
enum { ASKS, COMPUTES, WAITS, GONE };

double qn__virtual_took(const qn__virtual_calls *c, double grains) {
    uint32_t i = 1;
    if (c->count < 2 || grains <= c->grains[0])
        return grains * c->seconds[0] / c->grains[0];
    while (i + 1 < c->count && grains > c->grains[i])
        ++i;
    const double slope = (c->seconds[i] - c->seconds[i - 1]) / (c->grains[i] - c->grains[i - 1]);
    return c->seconds[i] + (grains - c->grains[i]) * slope;
}

double qn__virtual_wall(qn__virtual_worker *w, double moment, double seconds) {
    const double quota = w->quota * w->period;
    double now = moment;
    if (!(w->period > 0))
        return seconds;
    while (seconds > 0) {
        const double turn = fmax(w->turn, floor(now / w->period)), end = (turn + 1) * w->period;
        w->used = turn > w->turn ? 0 : w->used;
        w->turn = turn;
        const double free = fmax(0, fmin(quota - w->used, end - now));
        if (seconds <= free) {
            w->used += seconds;
            return now + seconds - moment;
        }
        seconds -= free;
        now = end;
        w->turn = turn + 1;
        w->used = 0;
    }
    return now - moment;
}

/* Seconds of a call over `grains` grains that begins at time `moment`. */
static double call_seconds(qn__virtual_worker *w, uint32_t worker, double grains, double moment) {
    uint32_t word[4];
    double whole = w->start + grains / w->rate;
    const double start = w->took ? 0 : w->start;
    if (w->took) {
        const uint32_t last = w->took->count - 1;
        whole = qn__virtual_took(w->took, grains) * w->took->grains[last] /
                (w->took->seconds[last] * w->rate);
    }
    double seconds = whole;
    if (w->change_at > 0 && moment >= w->change_at)
        seconds = start + (whole - start) * w->rate / w->change_rate;
    else if (w->change_at > 0 && moment + whole > w->change_at)
        seconds =
            w->change_at - moment + (moment + whole - w->change_at) * w->rate / w->change_rate;
    qn__words(w->number + worker, 0, 0, 0, w->calls++, 0, word);
    seconds *= 1.0 + w->noise * (word[0] * 0x1p-31 - 1.0);
    return qn__virtual_wall(w, moment, seconds);
}

static void ask(qn__queue *q, qn__virtual_worker *w, uint32_t worker, double now) {
    switch (qn__queue_try(q, worker, now, &w->chunk)) {
    case 1:
        w->call_seconds = call_seconds(w, worker, w->chunk.count, now);
        w->free_at = now + w->call_seconds;
        w->busy += w->call_seconds;
        w->grains += w->chunk.count;
        w->state = COMPUTES;
        break;
    case 0:
        w->state = GONE;
        break;
    default: /* checks again after a while, or after an earlier change */
        w->state = WAITS;
        w->free_at = now + 0.25 / w->rate;
    }
}

int qn__virtual_step(qn__queue *q, qn__virtual_worker *w, uint32_t workers, uint64_t set,
                     uint32_t grains, double *clock) {
    if (qn__queue_fill(q, grains, set) != 0)
        return -1;
    for (uint32_t i = 0; i < workers; ++i) {
        w[i].state = set >> i & 1 ? ASKS : GONE;
        w[i].free_at = *clock;
    }
    for (;;) {
        uint32_t next = workers;
        for (uint32_t i = 0; i < workers; ++i)
            if (w[i].state != GONE && (next == workers || w[i].free_at < w[next].free_at))
                next = i;
        if (next == workers)
            return 0;
        const double now = w[next].free_at;
        if (w[next].state == COMPUTES) {
            qn__queue_done(q, next, w[next].chunk, w[next].call_seconds);
            *clock = fmax(*clock, now);
            for (uint32_t i = 0; i < workers; ++i)
                if (w[i].state == WAITS)
                    w[i].free_at = now;
        }
        ask(q, &w[next], next, now);
    }
}

double qn__virtual_bound(const qn__virtual_worker *w, uint32_t workers, double grains,
                         double begun) {
    double now = begun;
    for (;;) {
        double rate = 0, change = INFINITY;
        for (uint32_t i = 0; i < workers; ++i) {
            const int changed = w[i].change_at > 0 && now >= w[i].change_at;
            rate += (changed ? w[i].change_rate : w[i].rate) * (w[i].period > 0 ? w[i].quota : 1);
            if (w[i].change_at > now)
                change = fmin(change, w[i].change_at);
        }
        if (now + grains / rate <= change)
            return now + grains / rate - begun;
        grains -= (change - now) * rate;
        now = change;
    }
}
