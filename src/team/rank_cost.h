/* The cost of a rank's share of a reduction, measured by its own clock. It is sent to the other
 * ranks, and all shares follow from it (cluster/reduction/shares.h).
 *
 * The basis is a fit over the last calls (speed.h), which ignores single outliers. That fit is
 * wrong for a rank under a CPU quota: the kernel runs it at full speed for some milliseconds and
 * then stops it for many, so most calls meet no stop. Therefore the wall time of a longer window is
 * compared with the fit for the same calls. Updates count in this window as well: a rank makes one
 * in every step, so a rank without chunks is measured too. If the window took clearly longer, and
 * several stalls account for it, the rank reports a higher cost. That is the mean over the window,
 * or more if a stall is longer than a step, because then no share of the other ranks can hide it.
 * Time in which the rank waits for others is in neither sum.
 *
 * A rank whose cost leaves it without chunks is tried again periodically, so rarely that a trial
 * takes at most 2 % of the time since its last chunks. After its first call, which includes
 * one-time costs, it is tried again at once. */
#ifndef QN_TEAM_RANK_COST_H
#define QN_TEAM_RANK_COST_H

#include "cluster/cluster.h"
#include "team/speed.h"

/* Sums over the last second or the last 16 reductions, whichever is longer; old terms fade. */
typedef struct qn__cost_window {
    double reductions, elapsed;     /* number of reductions, and seconds from one to the next */
    double calls, chunks, seconds;  /* of shares */
    double updates, update_seconds; /* of updates */
    double stalled, squares;        /* seconds beyond the fit; their squares */
} qn__cost_window;

typedef struct qn__rank_cost {
    qn__speed share;  /* of all workers together */
    qn__speed update; /* one chunk each */
    qn__cost known;
    uint64_t set; /* of the workers whose speed it is */
    qn__cost_window window;
    double at;   /* time of the last reduction; 0: none yet */
    double idle; /* seconds since the last reduction with chunks */
    uint32_t skipped,
        hopes;      /* reductions without a chunk; those of them in which a trial was due */
    uint32_t calls; /* measured, of any workers */
} qn__rank_cost;

/* After this rank's share of a reduction: the workers of `set` took `seconds` of wall time for
 * `chunks` chunks; 0 seconds: not measured. `now`: the time, always by the same clock. */
void qn__rank_cost_share(qn__rank_cost *cost, uint64_t set, uint32_t chunks, double seconds,
                         double now);

/* After an update of `seconds`. */
void qn__rank_cost_update(qn__rank_cost *cost, double seconds);

/* Usual seconds of an update; 0: unknown. */
double qn__rank_cost_of_update(const qn__rank_cost *cost);

/* The factor, at least 1, by which calls cost the run more than the fit says. */
double qn__rank_cost_stretch(const qn__rank_cost *cost);

/* The cost to send to the other ranks; each 0: unknown. */
qn__cost qn__rank_cost_reported(const qn__rank_cost *cost);

#endif
