/* Exact sums of binary64 numbers, and results that are rounded once from them: means, deviations,
 * shares of weights.
 *
 * A sum is a fixed-point integer wide enough for every binary64, stored as 32-bit digits in 64-bit
 * limbs, with space for carries. Adding is exact, so the order does not matter; two sums add limb
 * by limb, so parts may be summed anywhere and merged in any order. A float32, the square of one
 * and a 53-bit integer are all exact binary64 numbers. */
#ifndef QN_NUM_EXACT_SUM_H
#define QN_NUM_EXACT_SUM_H

#include "num/natural.h"
#include <stdint.h>

/* Limb i counts units of 2^(32 i - 1088): 66 limbs reach 2^1024, two more hold the sum of 2^62. */
#define QN__EXACT_LIMBS 68
#define QN__EXACT_SCALE 1088

typedef struct qn__exact_sum {
    int64_t limb[QN__EXACT_LIMBS];
    uint32_t pending; /* additions since the last carry propagation */
} qn__exact_sum;

/* An empty sum is all zero bytes: = {0}. */

/* Adds a finite number. */
void qn__exact_add(qn__exact_sum *sum, double value);
/* Adds any unsigned integer. */
void qn__exact_add_u64(qn__exact_sum *sum, uint64_t value);
/* Adds value * 2^power, or subtracts it; -1088 <= power <= 800. */
void qn__exact_add_scaled(qn__exact_sum *sum, uint64_t value, int power, int negative);
/* Adds another sum, after propagating its carries. */
void qn__exact_merge(qn__exact_sum *sum, qn__exact_sum *other);

/* Widens the range *first .. *end - 1 (both 0: none) to all limbs of a sum that are not 0, after
 * giving it as few as it can have. They are then within 2^32 of 0, so that sums of limbs of 2^30
 * sums fit. */
void qn__exact_limbs(qn__exact_sum *sum, uint32_t *first, uint32_t *end);

/* The magnitude of a sum as a natural number; returns its sign, -1, 0 or 1. */
int qn__exact_magnitude(qn__exact_sum *sum, qn__natural *out);

/* RN(S / n): the float32 nearest to the exact mean, ties to even, an infinity beyond its range; a
 * zero is +0. 1 <= n < 2^48. */
float qn__exact_mean(qn__exact_sum *sum, uint64_t n);

/* RN(sqrt((n*Q - S*S) / (n*n))) for the sum S of n numbers and the sum Q of their squares, rounded
 * once from the exact real number. 1 <= n < 2^48; Q and S must be of the same numbers, with exact
 * squares. */
float qn__exact_deviation(qn__exact_sum *sum, qn__exact_sum *squares, uint64_t n);

/* 1, 0 or -1: the first sum is greater than the second, equal or less. */
int qn__exact_compare(qn__exact_sum *sum, qn__exact_sum *other);

/* w * x * x, exact: its mantissa has up to 72 bits, so that it is added in two parts. */
void qn__exact_add_square(qn__exact_sum *sum, float x, float w);

/* RN(S / W), as qn__exact_mean, for sums S of w * x and W > 0 of w, of weights w from 0. */
float qn__exact_weighted_mean(qn__exact_sum *sum, qn__exact_sum *weights);

/* RN(sqrt((W*Q - S*S) / (W*W))), as qn__exact_deviation; Q is the sum of w * x * x. */
float qn__exact_weighted_deviation(qn__exact_sum *sum, qn__exact_sum *squares,
                                   qn__exact_sum *weights);

/* Replaces each of n weights by RN(w * n / W); W > 0 is their exact sum. 1 <= n < 2^48. */
void qn__exact_shares(qn__exact_sum *weights, uint64_t n, float *w);

#endif
