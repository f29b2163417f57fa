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
#include <stdint.h>

/* 200 bits: the double filter in bench/elementary_full.c has larger errors, so that MPFR's are
 * negligible. */
enum { QN__MPFR_BITS = 200 };

typedef struct qn__elementary {
    const char *name;
    float (*reference)(float);
    double (*near)(double); /* within 2^-45 relative, to select the inputs that need MPFR */
    int (*exact)(mpfr_t y, const mpfr_t x, mpfr_rnd_t round);
    double limit;   /* the error that the contract allows */
    int binade;     /* the unit is not below that of numbers from 2^binade on */
    uint32_t every; /* the test's sample is smaller by this factor */
} qn__elementary;

static int qn__mpfr_sigmoid(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_neg(y, x, round);
    mpfr_exp(y, y, round);
    mpfr_add_ui(y, y, 1, round);
    return mpfr_ui_div(y, 1, y, round);
}

static double qn__near_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

/* N(x), the normal distribution function. */
static void qn__mpfr_normal(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_sqrt_ui(y, 2, round);
    mpfr_div(y, x, y, round);
    mpfr_neg(y, y, round);
    mpfr_erfc(y, y, round);
    mpfr_div_2ui(y, y, 1, round);
}

static double qn__near_normal(double x) { return 0.5 * erfc(-x * 0x1.6a09e667f3bcdp-1); }

static int qn__mpfr_gelu(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    qn__mpfr_normal(y, x, round);
    return mpfr_mul(y, y, x, round);
}

static double qn__near_gelu(double x) { return x * qn__near_normal(x); }

/* N(x) + x e^(-x^2 / 2) / sqrt(2 pi) */
static int qn__mpfr_gelu_slope(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_t density, pi;
    mpfr_inits2(QN__MPFR_BITS, density, pi, (mpfr_ptr)0);
    mpfr_sqr(density, x, round);
    mpfr_div_si(density, density, -2, round);
    mpfr_exp(density, density, round);
    mpfr_const_pi(pi, round);
    mpfr_mul_2ui(pi, pi, 1, round);
    mpfr_sqrt(pi, pi, round);
    mpfr_div(density, density, pi, round);
    qn__mpfr_normal(pi, x, round);
    mpfr_fma(y, density, x, pi, round);
    mpfr_clears(density, pi, (mpfr_ptr)0);
    return 0;
}

static double qn__near_gelu_slope(double x) {
    return x * exp(-0.5 * x * x) * 0x1.9884533d43651p-2 + qn__near_normal(x);
}

/* 2 sqrt(2 / pi) (x + 0.044715 x^3), and its slope. */
static void qn__mpfr_bent(mpfr_t y, mpfr_t slope, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_t steep;
    mpfr_init2(steep, QN__MPFR_BITS);
    mpfr_const_pi(steep, round);
    mpfr_ui_div(steep, 8, steep, round);
    mpfr_sqrt(steep, steep, round);
    mpfr_sqr(y, x, round);
    mpfr_mul_ui(y, y, 44715, round);
    mpfr_div_ui(y, y, 1000000, round);
    mpfr_mul_ui(slope, y, 3, round);
    mpfr_add_ui(slope, slope, 1, round);
    mpfr_mul(slope, slope, steep, round);
    mpfr_add_ui(y, y, 1, round);
    mpfr_mul(y, y, x, round);
    mpfr_mul(y, y, steep, round);
    mpfr_clear(steep);
}

static int qn__mpfr_gelu_tanh(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_t slope;
    mpfr_init2(slope, QN__MPFR_BITS);
    qn__mpfr_bent(y, slope, x, round);
    qn__mpfr_sigmoid(y, y, round);
    mpfr_clear(slope);
    return mpfr_mul(y, y, x, round);
}

static double qn__near_bent(double x) { return 0x1.9884533d43651p+0 * (x + 0.044715 * x * x * x); }

static double qn__near_gelu_tanh(double x) { return x * qn__near_sigmoid(qn__near_bent(x)); }

/* s + x s (1 - s) v' with s = sigmoid v; 1 - s is sigmoid -v */
static int qn__mpfr_gelu_tanh_slope(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_t slope, other;
    mpfr_inits2(QN__MPFR_BITS, slope, other, (mpfr_ptr)0);
    qn__mpfr_bent(y, slope, x, round);
    mpfr_neg(other, y, round);
    qn__mpfr_sigmoid(other, other, round);
    qn__mpfr_sigmoid(y, y, round);
    mpfr_mul(other, other, x, round);
    mpfr_mul(other, other, slope, round);
    mpfr_add_ui(other, other, 1, round);
    mpfr_mul(y, y, other, round);
    mpfr_clears(slope, other, (mpfr_ptr)0);
    return 0;
}

static double qn__near_gelu_tanh_slope(double x) {
    const double v = qn__near_bent(x), slope = 0x1.9884533d43651p+0 * (1.0 + 0.134145 * x * x);
    return qn__near_sigmoid(v) * (1.0 + x * slope * qn__near_sigmoid(-v));
}

static int qn__mpfr_silu(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    qn__mpfr_sigmoid(y, x, round);
    return mpfr_mul(y, y, x, round);
}

static double qn__near_silu(double x) { return x * qn__near_sigmoid(x); }

/* s + x s (1 - s) with s = sigmoid x; 1 - s is sigmoid -x */
static int qn__mpfr_silu_slope(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_t other;
    mpfr_init2(other, QN__MPFR_BITS);
    mpfr_neg(other, x, round);
    qn__mpfr_sigmoid(other, other, round);
    mpfr_mul(other, other, x, round);
    mpfr_add_ui(other, other, 1, round);
    qn__mpfr_sigmoid(y, x, round);
    mpfr_mul(y, y, other, round);
    mpfr_clear(other);
    return 0;
}

static double qn__near_silu_slope(double x) {
    return qn__near_sigmoid(x) * (1.0 + x * qn__near_sigmoid(-x));
}

/* The slopes have zeros, near which no relative error is bounded. */
static const qn__elementary qn__elementaries[] = {
    {"exp", qn__exp, exp, mpfr_exp, 1.0, -126, 1},
    {"log", qn__log, log, mpfr_log, 1.0, -126, 1},
    {"tanh", qn__tanh, tanh, mpfr_tanh, 1.5, -126, 1},
    {"sigmoid", qn__sigmoid, qn__near_sigmoid, qn__mpfr_sigmoid, 1.5, -126, 1},
    {"gelu", qn__gelu, qn__near_gelu, qn__mpfr_gelu, 7.5, -122, 32},
    {"gelu_slope", qn__gelu_slope, qn__near_gelu_slope, qn__mpfr_gelu_slope, 4.5, -1, 32},
    {"gelu_tanh", qn__gelu_tanh, qn__near_gelu_tanh, qn__mpfr_gelu_tanh, 153.5, -100, 32},
    {"gelu_tanh_slope", qn__gelu_tanh_slope, qn__near_gelu_tanh_slope, qn__mpfr_gelu_tanh_slope,
     17.0, -1, 32},
    {"silu", qn__silu, qn__near_silu, qn__mpfr_silu, 2.5, -119, 32},
    {"silu_slope", qn__silu_slope, qn__near_silu_slope, qn__mpfr_silu_slope, 8.0, -1, 32},
};
enum { QN__ELEMENTARIES = sizeof qn__elementaries / sizeof *qn__elementaries };

/* |y - exact| in ulps of `exact` rounded to float, not below those of 2^least. Infinite when only
 * one of the two is NaN or infinite, or when a zero has the wrong sign and least is -126. */
static inline double qn__ulps_from(float y, const mpfr_t exact, int least) {
    const float right = mpfr_get_flt(exact, MPFR_RNDN);
    if (isnan(right) || isnan(y))
        return isnan(right) && isnan(y) ? 0.0 : (double)INFINITY;
    if (isinf(right) || isinf(y))
        return right == y ? 0.0 : (double)INFINITY;
    if (right == 0.0f && y == 0.0f && least == -126)
        return !signbit(right) == !signbit(y) ? fabs(mpfr_get_d(exact, MPFR_RNDN)) * 0x1p149
                                              : (double)INFINITY;
    const int own = right == 0.0f ? least : ilogbf(right), binade = own < least ? least : own;
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
    const double ulps = qn__ulps_from(y, exact, f->binade);
    mpfr_clear(exact);
    mpfr_clear(at);
    return ulps;
}

#endif
