/* What a worker's calls cost, learnt from them: a call over n grains takes start + n * each
 * seconds. Starting costs nothing on a CPU, and a launch with its waits on a GPU.
 *
 * The last dozen calls count, and medians over them, so that a call that something disturbed
 * changes nothing; three calls in a row that all lie beside what the older ones say are a new
 * speed, and the older ones are forgotten. */
#ifndef QN_TEAM_SPEED_H
#define QN_TEAM_SPEED_H

#include <stdint.h>

enum { QN__SPEED_CALLS = 12 };

typedef struct qn__speed {
    double start, each; /* seconds; each 0: not yet known */
    double spread;      /* of a call's time beside the formula, as a part of it */
    uint32_t calls;     /* seen in all since the last reset */
    uint32_t held;      /* of them, below */
    int stale;          /* calls came since the last fit */
    uint32_t grains[QN__SPEED_CALLS];
    double seconds[QN__SPEED_CALLS];
} qn__speed;

/* Forgets everything. */
void qn__speed_reset(qn__speed *speed);

/* A call over `grains` grains took `seconds`. The first call of all, which pays for what is made at
 * first use, counts only until there is a second. */
void qn__speed_add(qn__speed *speed, uint32_t grains, double seconds);

/* Brings start, each and spread up to date. */
void qn__speed_fit(qn__speed *speed);

/* Seconds that a call over `grains` grains should take. */
double qn__speed_of(const qn__speed *speed, double grains);

/* Grains of a call that would tell start and each apart; 0: those that there were do. */
uint32_t qn__speed_wants(const qn__speed *speed);

/* Median of count values, at least 1, which it puts in order. */
double qn__median(double *values, uint32_t count);

#endif
