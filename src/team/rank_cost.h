/* What its share of a reduction costs a rank, learnt from its own clock: the cost that it tells the
 * other ranks, from which all shares follow (cluster/shares.h).
 *
 * The basis is the fit over the last calls (speed.h), which ignores single outliers. That fit is
 * wrong for a rank under a CPU quota: the kernel runs it at full speed for some milliseconds and
 * then stops it for many, so most calls meet no stop. Therefore the wall time of a longer window is
 * compared with what the fit says of the same calls. Updates count in this window as well. A rank
 * makes one in every step, so a rank without chunks is measured too. Where the window took clearly
 * longer, and several stalls account for it, the rank tells a higher cost: the mean over the
 * window, and more than that where a stall is longer than a step, because then no share of the
 * other ranks can hide it. Time in which the rank waits for others is in neither sum.
 *
 * A rank whose cost leaves it without chunks is tried again now and then. It waits until the trial
 * can take at most 2 % of the time since its last chunks. */
#ifndef QN_TEAM_RANK_COST_H
#define QN_TEAM_RANK_COST_H

#include "cluster/cluster.h"
#include "team/speed.h"

/* Sums over the last second or the last 16 reductions, whichever is longer; old terms fade. */
typedef struct qn__cost_window {
    double reductions, elapsed;     /* reductions, and seconds from reduction to reduction */
    double calls, chunks, seconds;  /* of shares */
    double updates, update_seconds; /* of updates */
    double stalled, squares;        /* seconds beyond what was expected; their squares */
} qn__cost_window;

typedef struct qn__rank_cost {
    qn__speed share;  /* of all workers together */
    qn__speed update; /* one chunk each */
    qn__cost known;
    uint64_t set; /* whose speed it is */
    qn__cost_window window;
    double at;   /* moment of the last reduction; 0: none yet */
    double idle; /* seconds since the last reduction with chunks */
    uint32_t skipped,
        hopes; /* reductions without a chunk; those of them in which a trial was due */
} qn__rank_cost;

/* After this rank's share of a reduction: `chunks` chunks took the workers of `set` so many seconds
 * of wall time. seconds 0: the time does not count. `now` is the moment, by the same clock always.
 */
void qn__rank_cost_share(qn__rank_cost *cost, uint64_t set, uint32_t chunks, double seconds,
                         double now);

/* After an update, which took so many seconds. */
void qn__rank_cost_update(qn__rank_cost *cost, double seconds);

/* Seconds of an update as a rule; 0: not known. */
double qn__rank_cost_of_update(const qn__rank_cost *cost);

/* The factor by which calls cost the run more than the fit says; at least 1. */
double qn__rank_cost_stretch(const qn__rank_cost *cost);

/* What to tell the others; each 0: not known. */
qn__cost qn__rank_cost_reported(const qn__rank_cost *cost);

#endif
