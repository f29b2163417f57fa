/* Simulated workers: the queue of grains runs against a simulated clock, so its behaviour at given
 * speeds is the same on every machine. For plans, tests and bench/balance. */
#ifndef QN_TEAM_VIRTUAL_H
#define QN_TEAM_VIRTUAL_H

#include "team/queue.h"

/* Measured times of calls of some sizes, smallest first; linear interpolation between them and
 * beyond the last. */
enum { QN__VIRTUAL_CALLS = 16 };
typedef struct qn__virtual_calls {
    uint32_t count; /* 0: not measured */
    double grains[QN__VIRTUAL_CALLS], seconds[QN__VIRTUAL_CALLS];
} qn__virtual_calls;

typedef struct qn__virtual_worker {
    double start, rate;            /* seconds of a call beside its grains; grains per second */
    const qn__virtual_calls *took; /* measured times of calls, scaled so that the longest runs at
                                      `rate`; NULL: start and rate */
    double noise;                  /* maximum relative deviation of a call's time */
    double change_at;              /* time at which the rate becomes change_rate; 0: never */
    double change_rate;
    double period, quota; /* a CPU quota: the worker runs for quota * period of each period, in one
                             burst, and then stops until the next one; period 0: no quota */
    uint64_t calls, grains;
    double busy; /* total seconds in calls */
    /* Of the current step. */
    double free_at;
    qn__chunk chunk;
    double call_seconds;
    int state;
    uint32_t number;   /* with the worker's index, the key of its noise */
    double turn, used; /* the current period, and the seconds of its quota that are used */
} qn__virtual_worker;

/* One step of `grains` grains, shared by the workers of `set`, which all begin at *clock;
 * afterwards *clock is the time at which the last one has finished. 0, or -1 if out of memory. */
int qn__virtual_step(qn__queue *queue, qn__virtual_worker *worker, uint32_t workers, uint64_t set,
                     uint32_t grains, double *clock);

/* Wall seconds that `seconds` of computing take the worker from time `moment` on; what exceeds its
 * quota continues in further periods. */
double qn__virtual_wall(qn__virtual_worker *worker, double moment, double seconds);

/* Seconds of a call over `grains` grains, as measured. */
double qn__virtual_took(const qn__virtual_calls *calls, double grains);

/* A lower bound of the work's seconds, as if it were divisible at will: all rates together, from
 * `begun` on. The start of calls does not count. */
double qn__virtual_bound(const qn__virtual_worker *worker, uint32_t workers, double grains,
                         double begun);

#endif
