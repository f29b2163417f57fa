/* Values of wide columns as integers times powers of two, for sums of them and of their products.
 */
#ifndef QN_STATISTICS_EXACT_NUMBERS_H
#define QN_STATISTICS_EXACT_NUMBERS_H

#include "base/binary/float_bits.h"
#include "data/table/dates.h"
#include "data/table/wide.h"
#include "num/exact_sum.h"
#include <math.h>

/* m * 2^power, negated where `negative` is 1. */
typedef struct qn__exact_number {
    uint64_t m;
    int power, negative;
} qn__exact_number;

/* Sums hold cubes of numbers down to this power. */
enum { QN__EXACT_LEAST_POWER = -340 };

/* Of a finite number. */
static inline qn__exact_number qn__exact_of_real(double value) {
    const uint64_t bits = qn__double_bits(value);
    const int exponent = (int)(bits >> 52 & 0x7FF), normal = exponent > 0;
    return (qn__exact_number){.m = (bits & 0xFFFFFFFFFFFFF) | (uint64_t)normal << 52,
                              .power = exponent - 1074 - normal,
                              .negative = (int)(bits >> 63)};
}

static inline qn__exact_number qn__exact_of_whole(int64_t value) {
    return (qn__exact_number){.m = value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
                              .negative = value < 0};
}

/* Of a value that is not missing; those of QN__EXACT_MOMENT are microseconds. */
static inline qn__exact_number qn__exact_of(qn__exact kind, qn__wide_value value) {
    return kind == QN__EXACT_REAL ? qn__exact_of_real(value.real) : qn__exact_of_whole(value.whole);
}

static inline int qn__exact_is_missing(qn__exact kind, qn__wide_value value) {
    return kind == QN__EXACT_REAL ? isnan(value.real) : value.whole == QN__WIDE_MISSING;
}

/* a * b in halves of 64 bits. Not every processor has integers of 128 bits. */
static inline void qn__exact_multiply(uint64_t a, uint64_t b, uint64_t half[2]) {
    const uint64_t mask = UINT32_MAX;
    const uint64_t low = (a & mask) * (b & mask), high = (a >> 32) * (b >> 32);
    const uint64_t one = (a >> 32) * (b & mask), other = (a & mask) * (b >> 32);
    const uint64_t middle = (low >> 32) + (one & mask) + (other & mask);
    half[0] = (low & mask) | middle << 32;
    half[1] = high + (one >> 32) + (other >> 32) + (middle >> 32);
}

/* Adds a * b * 2^power, or subtracts it. */
static inline void qn__exact_add_product(qn__exact_sum *sum, uint64_t a, uint64_t b, int power,
                                         int negative) {
    uint64_t product[2];
    qn__exact_multiply(a, b, product);
    qn__exact_add_scaled(sum, product[0], power, negative);
    if (product[1] > 0)
        qn__exact_add_scaled(sum, product[1], power + 64, negative);
}

/* Results in days are those in microseconds divided by this. */
static inline double qn__exact_unit(qn__exact kind) {
    return kind == QN__EXACT_MOMENT ? (double)QN__DAY_MICROSECONDS : 1.0;
}

/* Whether statistics take the exact values of column k: not where one is so near to 0 that its cube
 * is beyond the sums. Column k may be the label. */
int qn__exact_counts(const qn_data *data, uint32_t k);

#endif
