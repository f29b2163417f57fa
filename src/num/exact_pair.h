/* Sums in two numbers, high + low.
 *
 * An addition a + b = s + e of two numbers with its error e is exact (Knuth's TwoSum), unless it
 * overflows: then e is NaN. A number is added to `high`, the error to `low`. What that loses is 0
 * while the numbers that are added span less than some 100 bits, and the pair then is the exact
 * sum.
 */
#ifndef QN_NUM_EXACT_PAIR_H
#define QN_NUM_EXACT_PAIR_H

#include "num/exact_sum.h"

typedef struct qn__pair {
    double high, low;
} qn__pair;

static inline double qn__two_sum(double a, double b, double *error) {
    const double s = a + b, part = s - a;
    *error = (a - (s - part)) + (b - part);
    return s;
}

/* Adds x. Returns the rounding error that the pair cannot hold: 0 if the pair is exact. If it is
 * not 0 (NaN after an overflow or for an infinite x), the caller restores the pair as it was
 * before. */
static inline double qn__pair_add(qn__pair *pair, double x) {
    double error, lost;
    pair->high = qn__two_sum(pair->high, x, &error);
    pair->low = qn__two_sum(pair->low, error, &lost);
    return lost;
}

/* Adds a pair to a sum, and makes it zero. */
static inline void qn__exact_add_pair(qn__exact_sum *sum, qn__pair *pair) {
    qn__exact_add(sum, pair->high);
    qn__exact_add(sum, pair->low);
    *pair = (qn__pair){0, 0};
}

#endif
