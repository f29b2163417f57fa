/* Exact sums of many numbers at once. */
#ifndef QN_NUM_EXACT_BLOCK_H
#define QN_NUM_EXACT_BLOCK_H

#include "num/exact_sum.h"
#include <stddef.h>

/* Adds numbers to a sum. Returns `count`, or the index of the first number that is infinite or NaN;
 * the sum is then undefined. */
size_t qn__exact_add_doubles(qn__exact_sum *sum, const double *values, size_t count);
size_t qn__exact_add_floats(qn__exact_sum *sum, const float *values, size_t count);

/* Adds integers of 64 bits, whose highest bit is the sign if `is_signed` is 1. */
void qn__exact_add_integers(qn__exact_sum *sum, const uint64_t *values, size_t count,
                            int is_signed);

#endif
