/* Statistics of float32 numbers: exact sums of them, of their squares, cubes and products, and the
 * results, each rounded once to binary64 (docs/exactness.md 18).
 *
 * A sum does not depend on the order of the numbers, nor on how they are divided among calls. */
#ifndef QN_NUM_MOMENTS_H
#define QN_NUM_MOMENTS_H

#include "num/exact_sum.h"
#include <stddef.h>
#include <stdint.h>

/* Of `count` finite numbers x. All zero bytes: of none. */
typedef struct qn__moments {
    uint64_t count;
    qn__exact_sum first, second, third; /* sums of x, x*x and x*x*x */
} qn__moments;

/* Adds finite numbers. */
void qn__moments_add(qn__moments *m, const float *values, size_t count);
/* Adds the numbers of another; carries are propagated in both. */
void qn__moments_merge(qn__moments *m, qn__moments *other);

/* The results, with S, Q and C the sums, n the count. NaN where it is not defined: without numbers,
 * below two for `variance` and `deviation`, and below three or where all numbers are equal for
 * `skewness`. n < 2^48. A zero is +0. */
typedef struct qn__moments_results {
    double sum;              /* S */
    double mean;             /* S / n */
    double variance;         /* (n Q - S S) / (n (n - 1)) */
    double deviation;        /* the root of that */
    double deviation_of_all; /* the root of (n Q - S S) / (n n) */
    double skewness;         /* sqrt(n (n - 1)) / (n - 2) * m3 / m2^1.5, with m2 and m3 the central
                                moments divided by n */
} qn__moments_results;
void qn__moments_finish(qn__moments *m, qn__moments_results *out);

/* S / n rounded once, for the sum S of n > 0 numbers, n < 2^48. A zero is +0. */
double qn__moments_mean(uint64_t n, qn__exact_sum *sum);

/* What a covariance needs of one of its two columns of n numbers: the sum S with its sign, and n Q
 * - S S. */
typedef struct qn__moments_side {
    qn__natural sum, spread;
    int sign;
} qn__moments_side;
void qn__moments_side_of(uint64_t n, qn__exact_sum *sum, qn__exact_sum *squares,
                         qn__moments_side *out);

/* Covariance (n P - S T) / (n (n - 1)) and correlation (n P - S T) / sqrt((n Q - S S) (n R - T T))
 * of n pairs, with S and T the sums of both, Q and R those of their squares, and P that of their
 * products. NaN below two pairs, and the correlation where one side is constant. */
void qn__moments_pair(uint64_t n, const qn__moments_side *one, const qn__moments_side *other,
                      qn__exact_sum *products, double *covariance, double *correlation);

/* (a (2^bits - part) + b part) / 2^bits rounded once; part <= 2^bits, bits <= 80, given as two
 * words, the low one first. A zero is +0. */
double qn__moments_between(float a, float b, const uint64_t part[2], int bits);

/* (a (all - part) + b part) / all rounded once, for 0 <= part <= all < 2^48 and all > 0. */
double qn__moments_edge(float a, float b, uint64_t part, uint64_t all);

#endif
