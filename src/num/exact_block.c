/* Exact sums of blocks, by the extraction of num/products.c in two levels.
 *
 * Let |x| < 2^top. Adding and subtracting 1.5 * 2^(top + 10) splits x into q, a multiple of
 * 2^(top - 42), and r = x - q, |r| <= 2^(top - 43). 1024 such q have an exact sum in binary64, in
 * any order, so the loop may use vectors. The same splits r into a multiple of 2^(top - 84) and a
 * rest. The rest is 0 where all numbers lie within 31 powers of two; else each is added alone. */
#include "num/exact_block.h"
#include <math.h>
#include <string.h>

/* Two numbers are what every 64-bit processor has in one register. */
typedef double lanes __attribute__((vector_size(16)));
typedef int64_t masks __attribute__((vector_size(16)));
enum { LANES = 2, CHAINS = 4, STEP = LANES * CHAINS, BLOCK = 1024 };
/* Powers of two between which no operation of the extraction overflows, and none loses a bit. */
enum { LOWEST = -900, HIGHEST = 1000 };

static lanes at(const double *x) {
    lanes a;
    memcpy(&a, x, sizeof a);
    return a;
}

/* The greatest magnitude of STEP * n numbers. NaN is overlooked: its rest is not 0. */
static double greatest(const double *x, size_t count) {
    const masks magnitude = {INT64_MAX, INT64_MAX};
    lanes most[CHAINS] = {{0}};
    double result = 0;
    for (size_t i = 0; i < count; i += STEP)
        for (size_t c = 0; c < CHAINS; c++) {
            const masks a = (masks)at(x + i + c * LANES) & magnitude,
                        more = (masks)((lanes)a > most[c]);
            most[c] = (lanes)((a & more) | ((masks)most[c] & ~more));
        }
    for (size_t c = 0; c < CHAINS; c++)
        for (size_t k = 0; k < LANES; k++)
            result = most[c][k] > result ? most[c][k] : result;
    return result;
}

static double total(const lanes chain[CHAINS]) {
    double sum = 0;
    for (size_t c = 0; c < CHAINS; c++)
        for (size_t k = 0; k < LANES; k++)
            sum += chain[c][k];
    return sum;
}

/* Adds STEP * n numbers below 2^top, at most BLOCK, if two levels hold them: else returns 0. */
static int extract(qn__exact_sum *sum, const double *x, size_t count, int top) {
    const double first = ldexp(1.5, top + 10), second = ldexp(1.5, top - 32);
    const lanes a = {first, first}, b = {second, second};
    lanes high[CHAINS] = {{0}}, low[CHAINS] = {{0}};
    masks rest[CHAINS] = {{0}};
    for (size_t i = 0; i < count; i += STEP)
        for (size_t c = 0; c < CHAINS; c++) {
            const lanes v = at(x + i + c * LANES), q = (v + a) - a, r = v - q, s = (r + b) - b;
            high[c] += q;
            low[c] += s;
            rest[c] |= (masks)(r - s);
        }
    for (size_t c = 0; c < CHAINS; c++)
        for (size_t k = 0; k < LANES; k++)
            if (rest[c][k])
                return 0;
    qn__exact_add(sum, total(high));
    qn__exact_add(sum, total(low));
    return 1;
}

static size_t add_each(qn__exact_sum *sum, const double *x, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(x[i]))
            return i;
        qn__exact_add(sum, x[i]);
    }
    return count;
}

static size_t add_block(qn__exact_sum *sum, const double *x, size_t count) {
    const size_t even = count - count % STEP;
    const double most = greatest(x, even);
    int top = HIGHEST + 1;
    if (isfinite(most))
        frexp(most, &top);
    const int done = top >= LOWEST && top <= HIGHEST && extract(sum, x, even, top);
    const size_t from = done ? even : 0;
    return from + add_each(sum, x + from, count - from);
}

size_t qn__exact_add_doubles(qn__exact_sum *sum, const double *values, size_t count) {
    for (size_t i = 0; i < count; i += BLOCK) {
        const size_t some = count - i < BLOCK ? count - i : BLOCK;
        const size_t added = add_block(sum, values + i, some);
        if (added < some)
            return i + added;
    }
    return count;
}

size_t qn__exact_add_floats(qn__exact_sum *sum, const float *values, size_t count) {
    double wide[256];
    const size_t most = sizeof wide / sizeof *wide;
    for (size_t i = 0; i < count; i += most) {
        const size_t some = count - i < most ? count - i : most;
        for (size_t k = 0; k < some; k++)
            wide[k] = (double)values[i + k];
        const size_t added = add_block(sum, wide, some);
        if (added < some)
            return i + added;
    }
    return count;
}

/* Halves of 32 bits: 2^20 of them fit 64 bits. */
void qn__exact_add_integers(qn__exact_sum *sum, const uint64_t *values, size_t count,
                            int is_signed) {
    const size_t most = (size_t)1 << 20;
    for (size_t i = 0; i < count; i += most) {
        const size_t end = count - i < most ? count : i + most;
        uint64_t low = 0, high = 0, negative = 0;
        for (size_t k = i; k < end; k++) {
            low += values[k] & 0xFFFFFFFF;
            high += values[k] >> 32;
            negative += values[k] >> 63;
        }
        qn__exact_add_scaled(sum, low, 0, 0);
        qn__exact_add_scaled(sum, high, 32, 0);
        if (is_signed)
            qn__exact_add_scaled(sum, negative, 64, 1);
    }
}
