/* Exact order statistics of float32 numbers: the number of a rank, and how many lie below a number.
 *
 *     qn__order_take(order, values, count);       counts the numbers by their upper 16 bits
 *     qn__order_want_rank(order, count / 2);      what will be asked
 *     qn__order_want_number(order, 0.5f);
 *     qn__order_collect(order, values);           sorts the numbers that matter for it
 *     qn__order_rank(order, count / 2); qn__order_below(order, 0.5f);
 *
 * So two passes over the numbers answer many questions, without sorting all of them. */
#ifndef QN_NUM_ORDER_H
#define QN_NUM_ORDER_H

#include "base/binary/float_bits.h"
#include "base/error.h"
#include <stddef.h>
#include <stdint.h>

/* Converts a float, which is not -0, to an unsigned integer with the same order; and back. */
static inline uint32_t qn__order_key(float value) {
    const uint32_t bits = qn__float_bits(value);
    return bits ^ ((0 - (bits >> 31)) | 0x80000000);
}

static inline float qn__order_value(uint32_t key) {
    return qn__float_of_bits(key ^ (((key >> 31) - 1) | 0x80000000));
}

typedef struct qn__order qn__order;

/* For up to `most` numbers. Uses 4 bytes for each of the numbers that matter, and 2 MiB. NULL when
 * memory is short. */
qn__order *qn__order_create(size_t most, qn_error *err);
void qn__order_free(qn__order *order); /* accepts NULL */

/* `count` finite numbers, none of them -0. They may change after qn__order_collect. */
void qn__order_take(qn__order *order, const float *values, size_t count);
/* A rank from 0 to count - 1. */
void qn__order_want_rank(qn__order *order, size_t rank);
void qn__order_want_number(qn__order *order, float number);
void qn__order_collect(qn__order *order, const float *values);

/* The number with `rank` numbers before it in ascending order, which was wanted. */
float qn__order_rank(const qn__order *order, size_t rank);
/* How many are below a number that was wanted, which is not -0. */
size_t qn__order_below(const qn__order *order, float number);

#endif
