/* To be read together with docs/exactness.md 15, like reference.c. */
#include "num/intgemm_reference.h"

#include <string.h>

uint32_t qn__absmax(uint64_t count, const float *v, uint64_t stride) {
    uint32_t absmax = 0;
    for (uint64_t i = 0; i < count; ++i) {
        uint32_t bits;
        memcpy(&bits, v + i * stride, sizeof bits);
        bits &= 0x7fffffffu;
        absmax = bits > absmax ? bits : absmax;
    }
    return absmax;
}

int qn__intgemm_units(int64_t n, int64_t s, float limit, int64_t *units) {
    const int64_t bound = ilogbf(limit) - s; /* |n| must be below 2^bound */
    const uint64_t size = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    if (n == 0 || s < -63) {
        *units = 0; /* |n| is below 2^63, so n * 2^s is below 1/2 */
        return 1;
    }
    if (bound < 0 || (bound < 64 && size >> bound != 0))
        return 0;
    if (s >= 0) {
        *units = n * (INT64_C(1) << s);
        return 1;
    }
    /* The quotient, rounded down, and the remainder, which is not negative. */
    const uint64_t unit = UINT64_C(1) << -s, half = unit >> 1, rest = (uint64_t)n & (unit - 1);
    const int64_t whole = n >> -s;
    *units = whole + (rest > half || (rest == half && (whole & 1)));
    return 1;
}
