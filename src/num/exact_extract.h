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

/* The sums of the levels. 0: something is left. */
QN_EXTRACT static inline int extract(const double *x, size_t count, int top,
                                     double level[QN__EXACT_LEVELS]) {
    lanes by[QN__EXACT_LEVELS], sum[QN__EXACT_LEVELS][CHAINS] = {{{0}}};
    masks rest[CHAINS] = {{0}}, left = {0};
    for (int l = 0; l < QN__EXACT_LEVELS; l++) {
        const double one = ldexp(1.5, top + SPARE_BITS - l * LEVEL_BITS);
        for (size_t k = 0; k < QN_LANES; k++)
            by[l][k] = one;
    }
    for (size_t i = 0; i < count; i += STEP)
        for (size_t c = 0; c < CHAINS; c++) {
            lanes r = lanes_at(x + i + c * QN_LANES);
            for (int l = 0; l < QN__EXACT_LEVELS; l++) {
                const lanes q = (r + by[l]) - by[l];
                sum[l][c] += q;
                r -= q;
            }
            rest[c] |= (masks)r;
        }
    for (int l = 0; l < QN__EXACT_LEVELS; l++) {
        level[l] = 0;
        for (size_t c = 0; c < CHAINS; c++)
            for (size_t k = 0; k < QN_LANES; k++)
                level[l] += sum[l][c][k];
    }
    for (size_t c = 0; c < CHAINS; c++)
        left |= rest[c];
    for (size_t k = 0; k < QN_LANES; k++)
        if (left[k])
            return 0;
    return 1;
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
