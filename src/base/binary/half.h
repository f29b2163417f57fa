/* Half precision numbers, IEEE-754 binary16. */
#ifndef QN_BASE_BINARY_HALF_H
#define QN_BASE_BINARY_HALF_H

#include <math.h>
#include <stdint.h>

/* The value, exactly. */
static inline double qn__half_value(uint16_t half) {
    /* 1 bit of sign, 5 of exponent, 10 of fraction */
    const int exponent = half >> 10 & 31, fraction = half & 1023;
    double value;
    if (exponent == 31)
        value = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = fraction / 16777216.0; /* 2^24 */
    else
        value = (double)((uint64_t)(1024 + fraction) << exponent) / 33554432.0; /* 2^25 */
    return half >> 15 ? -value : value;
}

#endif
