#include "num/sums.h"

#include <math.h>

int64_t qn__to_units(float x) {
    /* rintf follows the rounding mode: to nearest, ties to even (base/system/float_state.h). */
    return (int64_t)rintf(x);
}

float qn__from_units(int64_t sum) { return (float)sum; }

int qn__tally_add(qn__tally *to, const qn__tally *more) {
    int64_t loss;
    if (__builtin_add_overflow(to->loss, more->loss, &loss))
        return -1;
    to->loss = loss;
    to->correct += more->correct;
    to->items += more->items;
    return 0;
}

float qn__partial_limit(uint64_t grains) {
    int h = 1;
    while (((uint64_t)1 << h) < grains)
        ++h;
    return ldexpf(1.0f, 62 - h);
}
