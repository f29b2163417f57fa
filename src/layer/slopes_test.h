/* Derivatives of a normalisation in doubles, by differences. After <cmocka.h>. */
#ifndef QN_LAYER_SLOPES_TEST_H
#define QN_LAYER_SLOPES_TEST_H

#include "num/philox.h"
#include <math.h>

/* Number i of a stream, from -1 to 1. */
static inline float drawn(uint32_t stream, uint32_t i) {
    uint32_t word[4];
    qn__words(5, 9, stream, 0, i, 0, word);
    return (float)(word[0] * 0x1p-31 - 1.0);
}

/* The sum of g times the outputs, of parameters and inputs. */
typedef double loss_function(const double *p, const double *a, const float *g);

/* The derivative by *of, which is one of p or a. */
static inline double slope(loss_function *loss_of, const double *p, const double *a, const float *g,
                           double *of) {
    const double here = *of, step = 1e-6;
    *of = here + step;
    const double up = loss_of(p, a, g);
    *of = here - step;
    const double result = (up - loss_of(p, a, g)) / (2 * step);
    *of = here;
    return result;
}

static inline void expect_near(const char *what, uint32_t i, double got, double want) {
    if (fabs(got - want) > 2e-5 * (1 + fabs(want)))
        fail_msg("%s %u is %g, in doubles %g", what, i, got, want);
}

#endif
