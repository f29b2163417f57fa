/* The cost of a worker's calls, measured: a call over n grains takes start + n * each seconds.
 * `start` is zero on a CPU; on a GPU it is a launch with its synchronisation.
 *
 * The fit uses medians over the last dozen calls, so that a single disturbed call changes nothing.
 * Three calls in a row that all deviate from the older ones are a new speed, and the older ones are
 * discarded. */
#ifndef QN_TEAM_SPEED_H
#define QN_TEAM_SPEED_H

#include <stdint.h>

enum { QN__SPEED_CALLS = 12 };

typedef struct qn__speed {
    double start, each; /* seconds; each 0: unknown */
    double spread;      /* relative deviation of a call's time from the fit */
    uint32_t calls;     /* total since the last reset */
    uint32_t held;      /* number of calls below */
    int stale;          /* there were calls since the last fit */
    uint32_t grains[QN__SPEED_CALLS];
    double seconds[QN__SPEED_CALLS];
} qn__speed;

/* Discards all calls. */
void qn__speed_reset(qn__speed *speed);

/* A call over `grains` grains took `seconds`. The very first call includes one-time costs and
 * counts only until there is a second. */
void qn__speed_add(qn__speed *speed, uint32_t grains, double seconds);

/* Updates start, each and spread. */
void qn__speed_fit(qn__speed *speed);

/* Predicted seconds of a call over `grains` grains. */
double qn__speed_of(const qn__speed *speed, double grains);

/* The size of a call that would separate start and each; 0: not needed. */
uint32_t qn__speed_wants(const qn__speed *speed);

/* Median of count values, at least 1; sorts them. */
double qn__median(double *values, uint32_t count);

#endif
