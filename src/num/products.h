/* Exact sums of products of two columns of numbers, such as those of a covariance. */
#ifndef QN_NUM_PRODUCTS_H
#define QN_NUM_PRODUCTS_H

#include "num/exact_sum.h"
#include <stddef.h>

/* Numbers of a block at most. */
#define QN__PRODUCTS_BLOCK 1024

/* A block of a column. All |x| < 2^top, and each x is a whole multiple of 2^unit. */
typedef struct qn__factor {
    double x[QN__PRODUCTS_BLOCK];
    int top, unit;
} qn__factor;

/* Converts `count` finite numbers. The rest of the block becomes 0. */
void qn__factor_set(qn__factor *f, const float *values, size_t count);
/* The squares of a block. */
void qn__factor_square(const qn__factor *f, qn__factor *out);

/* Adds the exact sum of all products x * y. Each product has at most 53 bits: two float32, or a
 * square and a number that is 0 or 1. */
void qn__factor_multiply(const qn__factor *x, const qn__factor *y, qn__exact_sum *sum);

#endif
