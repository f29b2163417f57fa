/* Quotients of integers and exact sums. RD(x) is x rounded once to the nearest binary64
 * (docs/exactness.md 18). */
#ifndef QN_NUM_RATIO_H
#define QN_NUM_RATIO_H

#include "num/exact_sum.h"
#include <stdint.h>

/* RD(a / b), b > 0. */
double qn__ratio_of(uint64_t a, uint64_t b);

/* RD(S / b), b > 0; or RD(sqrt(S / b)) for S >= 0. */
double qn__ratio_of_sum(qn__exact_sum *sum, uint64_t b);
double qn__ratio_root(qn__exact_sum *sum, uint64_t b);

/* RD(S / T), T > 0. */
double qn__ratio_of_sums(qn__exact_sum *sum, qn__exact_sum *total);

/* Adds a * b, and value * factor; value is finite. Both are exact. */
void qn__ratio_add_product(qn__exact_sum *sum, uint64_t a, uint64_t b);
void qn__ratio_add_times(qn__exact_sum *sum, double value, uint64_t factor);

/* RD(1 - E / (Q - S S / w)) for sums of w items: E of squared errors, S of labels and Q of their
 * squares. NaN where all labels are equal. */
double qn__ratio_explained(qn__exact_sum *errors, qn__exact_sum *labels, qn__exact_sum *squares,
                           uint64_t w);

#endif
