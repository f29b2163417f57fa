/* Exact sums of a block of doubles, by the extraction of num/products.c in three levels. What
 * includes this file defines QN_LANES, the numbers of a vector, and QN_EXTRACT, the attribute of
 * its functions.
 *
 * Let |x| < 2^top. Adding and subtracting 1.5 * 2^(top + 10) splits x into q, a multiple of
 * 2^(top - 42), and r = x - q, |r| <= 2^(top - 43). 1024 such q have an exact sum in binary64, in
 * any order, so the loop may use vectors. The same splits r, and then what is left of it. Nothing
 * is left after three levels where all numbers lie within 73 powers of two. */
#ifndef QN_NUM_EXACT_EXTRACT_H
#define QN_NUM_EXACT_EXTRACT_H

#include "num/exact_block_parts.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef double lanes __attribute__((vector_size(8 * QN_LANES)));
typedef uint64_t words __attribute__((vector_size(8 * QN_LANES)));
typedef int64_t masks __attribute__((vector_size(8 * QN_LANES)));
enum { CHAINS = 4, STEP = QN_LANES * CHAINS, LEVEL_BITS = 42, SPARE_BITS = 10 };
_Static_assert((int)QN__EXACT_STEP % (int)STEP == 0, "blocks must have whole steps");
/* Powers of two between which no operation of the extraction overflows, and none loses a bit. */
enum { LOWEST = -900, HIGHEST = 1000 };

QN_EXTRACT static inline lanes lanes_at(const double *x) {
    lanes a;
    memcpy(&a, x, sizeof a);
    return a;
}

/* The greatest magnitude of STEP * n numbers. NaN is overlooked: its rest is not 0. */
QN_EXTRACT static inline double greatest(const double *x, size_t count) {
    const masks magnitude = (masks){0} + INT64_MAX;
    lanes most[CHAINS] = {{0}};
    double result = 0;
    for (size_t i = 0; i < count; i += STEP)
        for (size_t c = 0; c < CHAINS; c++) {
            const lanes a = (lanes)((masks)lanes_at(x + i + c * QN_LANES) & magnitude);
            const masks more = (masks)(a > most[c]);
            most[c] = (lanes)(((masks)a & more) | ((masks)most[c] & ~more));
        }
    for (size_t c = 0; c < CHAINS; c++)
        for (size_t k = 0; k < QN_LANES; k++)
            result = most[c][k] > result ? most[c][k] : result;
    return result;
}

/* The sums of the levels. 0: something is left. An addition of 1.5 * 2^e, with which a level
 * begins, gives a number of the same binade, so q is the difference of both as integers, in
 * multiples of 2^(e - 52). These are added as integers: a processor has more units for them than
 * for doubles. */
QN_EXTRACT static inline int extract(const double *x, size_t count, int top,
                                     double level[QN__EXACT_LEVELS]) {
    lanes by[QN__EXACT_LEVELS];
    words sum[QN__EXACT_LEVELS] = {{0}}, rest = {0};
    int exponent[QN__EXACT_LEVELS];
    for (int l = 0; l < QN__EXACT_LEVELS; l++) {
        exponent[l] = top + SPARE_BITS - l * LEVEL_BITS;
        const double power = ldexp(1.5, exponent[l]);
        by[l] = (lanes){0} + power;
    }
    for (size_t i = 0; i < count; i += QN_LANES) {
        lanes r = lanes_at(x + i);
        for (int l = 0; l < QN__EXACT_LEVELS; l++) {
            const lanes t = r + by[l];
            sum[l] += (words)t;
            r -= t - by[l];
        }
        rest |= (words)r;
    }
    uint64_t left = 0;
    for (size_t k = 0; k < QN_LANES; k++)
        left |= rest[k];
    for (int l = 0; l < QN__EXACT_LEVELS; l++) {
        uint64_t all = 0 - count * ((words)by[l])[0];
        for (size_t k = 0; k < QN_LANES; k++)
            all += sum[l][k];
        level[l] = ldexp((double)(int64_t)all, exponent[l] - 52);
    }
    return left == 0;
}

QN_EXTRACT static inline int extract_block(const double *x, size_t count,
                                           double level[QN__EXACT_LEVELS]) {
    const double most = greatest(x, count);
    int top = HIGHEST + 1;
    if (isfinite(most))
        frexp(most, &top);
    return top >= LOWEST && top <= HIGHEST && extract(x, count, top, level);
}

#endif
