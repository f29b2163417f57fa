/* Workers that exist on paper only: the queue of grains runs against a clock that is made up, so
 * what it does with given speeds is the same on every machine. For plans, for the tests and for
 * bench/balance. */
#ifndef QN_TEAM_VIRTUAL_H
#define QN_TEAM_VIRTUAL_H

#include "team/queue.h"

/* What calls of some sizes took, the smallest first. Between two sizes, and beyond the last, a call
 * takes what a straight line says. */
enum { QN__VIRTUAL_CALLS = 16 };
typedef struct qn__virtual_calls {
    uint32_t count; /* 0: not measured */
    double grains[QN__VIRTUAL_CALLS], seconds[QN__VIRTUAL_CALLS];
} qn__virtual_calls;

typedef struct qn__virtual_worker {
    double start, rate;            /* seconds of a call beside its grains; grains a second */
    const qn__virtual_calls *took; /* what calls took, where that was measured: stretched so that
                                      the longest goes at `rate`; NULL: start and rate */
    double noise;                  /* a call's time lies up to this part beside what they say */
    double change_at;              /* moment at which the rate becomes change_rate; 0: never */
    double change_rate;
    double period, quota; /* a CPU quota: it runs for quota * period of each period, in one burst,
                             and then stands still until the next one; period 0: no quota */
    uint64_t calls, grains;
    double busy; /* seconds in calls, in all */
    /* Of the step under way. */
    double free_at;
    qn__chunk chunk;
    double call_seconds;
    int state;
    uint32_t number;   /* with the worker's place, what its noise is drawn by */
    double turn, used; /* the period, and what was used of its quota, in seconds */
} qn__virtual_worker;

/* One step of `grains` grains, shared by the workers of `set`, that all begin together at *clock,
 * which then is the moment at which the last one is done. Returns 0, or -1 when memory was short.
 */
int qn__virtual_step(qn__queue *queue, qn__virtual_worker *worker, uint32_t workers, uint64_t set,
                     uint32_t grains, double *clock);

/* Seconds on the clock that `seconds` of computing take the worker from `moment` on, which more
 * than its quota spreads over further periods. */
double qn__virtual_wall(qn__virtual_worker *worker, double moment, double seconds);

/* Seconds of a call over `grains` grains, by what was measured. */
double qn__virtual_took(const qn__virtual_calls *calls, double grains);

/* Seconds that the work would take at least, if it could be cut as finely as one likes: all rates
 * together, from `begun` on. Starts of calls are part of what the queue has to deal with. */
double qn__virtual_bound(const qn__virtual_worker *worker, uint32_t workers, double grains,
                         double begun);

#endif
