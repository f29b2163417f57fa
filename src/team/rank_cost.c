#include "team/rank_cost.h"

#include <math.h>

/* The window. A second has ten periods of a CPU quota, whose default is 100 ms. */
static const double WINDOW_SECONDS = 1, WINDOW_ROUNDS = 16;
/* A reduction after a longer pause, such as a validation, fades at most so many usual ones. */
static const double MOST_ROUNDS = 16;
/* Calls longer than the fit by this part are stalls. The window must exceed the fit by this part
 * too, and must have at least so many stalls of equal length, so that one disturbed call changes
 * nothing. */
static const double BEYOND = 0.25, STALLS = 3;
/* A rank without chunks is tried again after at least so many reductions, and when so many times
 * the cost of a chunk have passed. A trial costs at most two such chunks (see below), so 2 %. */
enum { TRY_AGAIN = 32 };
static const double PATIENCE = 100;

/* ---------------------------------------------------------------------------------- the window */

/* Fades the window. Returns how much of the `seconds` since the last reduction counts. */
static double fade(qn__cost_window *w, double seconds) {
    if (w->elapsed > 0)
        seconds = fmin(seconds, MOST_ROUNDS * w->elapsed / w->reductions);
    const double part = fmax(WINDOW_SECONDS / (WINDOW_SECONDS + seconds), 1 - 1 / WINDOW_ROUNDS);
    double *const sums[] = {&w->reductions,     &w->elapsed, &w->calls,
                            &w->chunks,         &w->seconds, &w->updates,
                            &w->update_seconds, &w->stalled, &w->squares};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; ++i)
        *sums[i] *= part;
    w->reductions += 1;
    w->elapsed += seconds;
    return seconds;
}

static void count_stall(qn__cost_window *w, double seconds, double expected) {
    if (!(expected > 0) || seconds <= expected * (1 + BEYOND))
        return;
    w->stalled += seconds - expected;
    w->squares += (seconds - expected) * (seconds - expected);
}

double qn__rank_cost_stretch(const qn__rank_cost *c) {
    const qn__cost_window *w = &c->window;
    const double fitted =
        w->calls * c->share.start + w->chunks * c->share.each + w->updates * c->update.each;
    const double beyond = fitted > 0 ? (w->seconds + w->update_seconds) / fitted - 1 : 0;
    const int lasting = w->stalled > 0 && w->stalled * w->stalled >= STALLS * w->squares;
    if (beyond <= BEYOND || !lasting || !(w->elapsed > 0))
        return 1;
    /* During a stall all others wait, once their own shares are finished. A stall longer than a
     * step costs them its whole length, not its mean over all steps. */
    const double stall = w->squares / w->stalled, step = w->elapsed / w->reductions;
    return 1 + beyond * fmax(1, stall / step);
}

/* ------------------------------------------------------------------------------- the reductions */

/* Discards measurements of shares: those of other workers, or from before a trial, say nothing
 * about the next ones. Stalls in updates are kept: they concern the whole rank. */
static void forget_shares(qn__rank_cost *c) {
    qn__cost_window *w = &c->window;
    qn__speed_reset(&c->share);
    w->calls = w->chunks = w->seconds = 0;
}

static void learn(qn__rank_cost *c, uint64_t set, uint32_t chunks, double seconds) {
    const int trial = c->hopes > 0;
    c->calls += c->calls < 2;
    if (set != c->set || trial)
        forget_shares(c);
    c->set = set;
    /* The first call of a set includes one-time costs. */
    if (c->share.calls > 0) {
        c->window.calls += 1;
        c->window.chunks += chunks;
        c->window.seconds += seconds;
        count_stall(&c->window, seconds, qn__speed_of(&c->share, chunks));
    }
    qn__speed_add(&c->share, chunks, seconds);
    qn__speed_fit(&c->share);
    if (c->share.calls > 1 || c->known.each <= 0 || trial) /* a trial counts at once */
        c->known = (qn__cost){c->share.start, c->share.each};
}

/* Whether the rank has been without chunks for so long that a trial is cheap. The only call so far
 * included one-time costs, so another one is due at once. */
static int is_due(const qn__rank_cost *c) {
    const double chunk =
        qn__rank_cost_stretch(c) * (c->known.start + c->known.each) + c->update.each;
    return c->calls == 1 || (c->skipped >= TRY_AGAIN && c->idle >= PATIENCE * chunk);
}

void qn__rank_cost_share(qn__rank_cost *c, uint64_t set, uint32_t chunks, double seconds,
                         double now) {
    const double passed = c->at > 0 ? fade(&c->window, fmax(0, now - c->at)) : 0;
    c->at = now;
    if (chunks > 0 && seconds > 0)
        learn(c, set, chunks, seconds);
    if (chunks > 0) {
        c->idle = 0;
        c->skipped = c->hopes = 0;
        return;
    }
    c->idle += passed;
    ++c->skipped;
    c->hopes = is_due(c) ? c->hopes + 1 : 0;
}

void qn__rank_cost_update(qn__rank_cost *c, double seconds) {
    if (c->update.calls > 0) {
        c->window.updates += 1;
        c->window.update_seconds += seconds;
        count_stall(&c->window, seconds, c->update.each);
    }
    qn__speed_add(&c->update, 1, seconds);
    qn__speed_fit(&c->update);
}

double qn__rank_cost_of_update(const qn__rank_cost *c) { return c->update.each; }

qn__cost qn__rank_cost_reported(const qn__rank_cost *c) {
    /* Halved in each reduction in which a trial is due, until the rank gets a chunk. That then
     * takes less than two chunks and two starts. */
    const double hope = ldexp(1, -(int)(c->hopes < 60 ? c->hopes : 60));
    const double stretch = qn__rank_cost_stretch(c);
    return (qn__cost){hope * (stretch * c->known.start + c->update.each),
                      hope * stretch * c->known.each};
}
