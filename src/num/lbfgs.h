/* L-BFGS over a function that is evaluated elsewhere (docs/exactness.md 17.14): the recursion, the
 * orthants of an L1 penalty, the line search. All in scalar double, in a fixed order. */
#ifndef QN_NUM_LBFGS_H
#define QN_NUM_LBFGS_H

#include "base/error.h"
#include <stdint.h>

/* Pairs of differences that it remembers. */
enum { QN__LBFGS_PAIRS = 10 };

/* Computes the smooth part of the function at `point` (n floats) and its gradient (n doubles), both
 * without penalties. QN_NUMERIC: a number left its range there. */
typedef qn_status (*qn__lbfgs_fn)(void *user, const float *point, double *value, double *gradient,
                                  qn_error *err);

typedef struct qn__lbfgs {
    uint64_t n;
    const uint8_t *penal; /* n: 1 for a parameter with penalties; the caller's */
    double l2, l1, tolerance;
    float *point;   /* n: the current point */
    float *trial;   /* n: where the function is evaluated; the caller's */
    float *history; /* 2 * QN__LBFGS_PAIRS arrays of n: of each pair, oldest first, the step and the
                       difference of the gradients */
    uint32_t pairs;
    int known;        /* 1: value and gradient are those of the point */
    double value;     /* with penalties */
    double *gradient; /* n: with the L2 penalty */
    double largest;   /* the largest component of the gradient, as 17.14 says; valid if `known` */
    double *slope, *direction, *next; /* n each: scratch */
    double rho[QN__LBFGS_PAIRS];
} qn__lbfgs;

/* Space for n parameters. `penal` and `trial` are borrowed. QN_MEMORY: nothing to release. */
qn_status qn__lbfgs_create(qn__lbfgs *of, uint64_t n, const uint8_t *penal, float *trial,
                           qn_error *err);
void qn__lbfgs_release(qn__lbfgs *of);

/* Bytes that qn__lbfgs_create takes for each parameter. */
uint64_t qn__lbfgs_bytes(void);

/* Evaluates the function at the point, unless `known`. Fails as `evaluate` does. */
qn_status qn__lbfgs_begin(qn__lbfgs *of, qn__lbfgs_fn evaluate, void *user, qn_error *err);

/* 1: the largest component of the gradient is at most the tolerance. After qn__lbfgs_begin. */
int qn__lbfgs_converged(const qn__lbfgs *of);

/* One iteration from a point that is not a minimum: a direction, and a step along it. *moved is 0
 * where no step was found; then the point is as before, and the history is empty. In the end the
 * trial is the point, which need not be what was evaluated last. */
qn_status qn__lbfgs_iterate(qn__lbfgs *of, qn__lbfgs_fn evaluate, void *user, int *moved,
                            qn_error *err);

/* Computes what follows from `history` (rho), after that was filled from a checkpoint. */
void qn__lbfgs_restored(qn__lbfgs *of);

#endif
