/* Optimisers: the reference update of one parameter, and the table of them. docs/exactness.md
 * section 9. */
#ifndef QN_NUM_OPTIMISE_H
#define QN_NUM_OPTIMISE_H

#include "num/program.h"

/* Updates one parameter. `w` and the optimiser's state `s0`, `s1` (ignored beyond its slots) are
 * changed in place. `sum` is the gradient's sum. `decays`: whether
 * weight decay acts on it. */
void qn__update_one(const qn__program *program, const qn__update *update, int decays, int64_t sum,
                    float *w, float *s0, float *s1);

/* Updates one running average (17.8) by the sum of what the grains contributed to it. */
void qn__update_running(const qn__update *update, float rate, int64_t sum, float *average);

/* Moves the average of a parameter towards it (24.63). */
void qn__update_average(const qn__update *update, float parameter, float *average);

/* The share of a parameter in its average, after so many steps. */
float qn__average_share(float ema, uint64_t steps);

/* The powers P1, P2 that Adam keeps from step to step (9.5). */
typedef struct qn__adam_powers {
    float p1, p2;
} qn__adam_powers;

/* The numbers of the step's update over `items` items at the rate `rate`; advances the powers. */
void qn__update_begin(const qn__program *program, float rate, uint64_t items,
                      qn__adam_powers *powers, qn__update *update);

#endif
