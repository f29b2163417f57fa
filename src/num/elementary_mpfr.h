/* The error of an elementary function, measured with MPFR. For tests and benchmarks; the library
 * does not include it. Needs QN_HAVE_MPFR and linking with mpfr and gmp.
 *
 * An error is given in units in the last place of the correctly rounded result: 2^-149 where that
 * is subnormal or zero. Correct rounding has errors of at most 0.5. */
#ifndef QN_NUM_ELEMENTARY_MPFR_H
#define QN_NUM_ELEMENTARY_MPFR_H

#include "num/elementary.h"

#include <math.h>
#include <mpfr.h>

/* 200 bits: the double filter in bench/elementary_full.c has larger errors, so that MPFR's are
 * negligible. */
enum { QN__MPFR_BITS = 200 };

typedef struct qn__elementary {
    const char *name;
    float (*reference)(float);
    double (*near)(double); /* within 2^-49 relative, to select the inputs that need MPFR */
    int (*exact)(mpfr_t y, const mpfr_t x, mpfr_rnd_t round);
    double limit; /* the error that the contract allows */
} qn__elementary;

static int qn__mpfr_sigmoid(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_neg(y, x, round);
    mpfr_exp(y, y, round);
    mpfr_add_ui(y, y, 1, round);
    return mpfr_ui_div(y, 1, y, round);
}

static double qn__near_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static const qn__elementary qn__elementaries[] = {
    {"exp", qn__exp, exp, mpfr_exp, 1.0},
    {"log", qn__log, log, mpfr_log, 1.0},
    {"tanh", qn__tanh, tanh, mpfr_tanh, 1.5},
    {"sigmoid", qn__sigmoid, qn__near_sigmoid, qn__mpfr_sigmoid, 1.5},
};
enum { QN__ELEMENTARIES = sizeof qn__elementaries / sizeof *qn__elementaries };

/* |y - exact| in ulps of `exact` rounded to float; infinite when only one of the two is NaN or
 * infinite, or when a zero has the wrong sign. */
static inline double qn__ulps_from(float y, const mpfr_t exact) {
    const float right = mpfr_get_flt(exact, MPFR_RNDN);
    if (isnan(right) || isnan(y))
        return isnan(right) && isnan(y) ? 0.0 : (double)INFINITY;
    if (isinf(right) || isinf(y))
        return right == y ? 0.0 : (double)INFINITY;
    if (right == 0.0f && y == 0.0f)
        return !signbit(right) == !signbit(y) ? fabs(mpfr_get_d(exact, MPFR_RNDN)) * 0x1p149
                                              : (double)INFINITY;
    const int binade = right == 0.0f || ilogbf(right) < -126 ? -126 : ilogbf(right);
    mpfr_t error;
    mpfr_init2(error, QN__MPFR_BITS);
    mpfr_set_flt(error, y, MPFR_RNDN);
    mpfr_sub(error, error, exact, MPFR_RNDN);
    mpfr_mul_2si(error, error, 23 - binade, MPFR_RNDN);
    const double ulps = fabs(mpfr_get_d(error, MPFR_RNDN));
    mpfr_clear(error);
    return ulps;
}

/* The error of y as the value of f at x. */
static inline double qn__ulps_wrong(const qn__elementary *f, float x, float y) {
    mpfr_t at, exact;
    mpfr_init2(at, 24);
    mpfr_init2(exact, QN__MPFR_BITS);
    mpfr_set_flt(at, x, MPFR_RNDN);
    f->exact(exact, at, MPFR_RNDN);
    const double ulps = qn__ulps_from(y, exact);
    mpfr_clear(exact);
    mpfr_clear(at);
    return ulps;
}

#endif
