/* The errors of the functions of elementary_functions.h, measured with MPFR. For tests and
 * benchmarks; the library does not include it. Needs QN_HAVE_MPFR and linking with mpfr and gmp.
 *
 * An error is in units in the last place of the correctly rounded result, which are those of
 * subnormal numbers where it is subnormal or zero. */
#ifndef QN_KERNELS_RUNTIME_ELEMENTARY_FUNCTIONS_MPFR_H
#define QN_KERNELS_RUNTIME_ELEMENTARY_FUNCTIONS_MPFR_H

#include "kernels/runtime/elementary_functions.h"

#include <math.h>
#include <mpfr.h>
#include <stdint.h>

/* Twice the bits of a double and some: errors of MPFR's own rounding do not show. */
enum { QN__FUNCTION_BITS = 160 };

/* limit[0] and [1]: the errors that section 21.2 allows in binary32 and binary64. */
typedef struct qn__function_of_one {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    double (*near)(double); /* of libm, to select the inputs that need MPFR */
    int (*exact)(mpfr_t y, const mpfr_t x, mpfr_rnd_t round);
    double limit[2];
} qn__function_of_one;

typedef struct qn__function_of_two {
    const char *name;
    float (*f32)(float, float);
    double (*f64)(double, double);
    int (*exact)(mpfr_t z, const mpfr_t x, const mpfr_t y, mpfr_rnd_t round);
    double limit[2];
} qn__function_of_two;

static inline double qn__near_normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }

static inline int qn__exact_normcdf(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) {
    mpfr_t root;
    mpfr_init2(root, 2 * QN__FUNCTION_BITS);
    mpfr_sqrt_ui(root, 2, round);
    mpfr_div(root, x, root, round);
    mpfr_neg(root, root, round);
    mpfr_erfc(y, root, round);
    mpfr_clear(root);
    return mpfr_div_2ui(y, y, 1, round);
}

#define QN__FUNCTION(name) #name, qn__f32_##name, qn__f64_##name
static const qn__function_of_one qn__functions_of_one[] = {
    {QN__FUNCTION(sqrt), sqrt, mpfr_sqrt, {0.5, 0.5}},
    {QN__FUNCTION(cbrt), cbrt, mpfr_cbrt, {0.51, 0.51}},
    {QN__FUNCTION(exp), exp, mpfr_exp, {1.0, 1.1}},
    {QN__FUNCTION(log), log, mpfr_log, {1.0, 0.9}},
    {QN__FUNCTION(sin), sin, mpfr_sin, {0.8, 0.8}},
    {QN__FUNCTION(cos), cos, mpfr_cos, {0.8, 0.8}},
    {QN__FUNCTION(tan), tan, mpfr_tan, {0.8, 0.8}},
    {QN__FUNCTION(atan), atan, mpfr_atan, {0.7, 0.7}},
    {QN__FUNCTION(erf), erf, mpfr_erf, {1.4, 1.3}},
    {QN__FUNCTION(erfc), erfc, mpfr_erfc, {1.3, 1.3}},
    {QN__FUNCTION(normcdf), qn__near_normcdf, qn__exact_normcdf, {1.3, 1.3}},
    {QN__FUNCTION(tanh), tanh, mpfr_tanh, {1.1, 1.1}},
    {QN__FUNCTION(exp2), exp2, mpfr_exp2, {0.8, 0.8}},
    {QN__FUNCTION(expm1), expm1, mpfr_expm1, {1.2, 1.4}},
    {QN__FUNCTION(log2), log2, mpfr_log2, {0.6, 0.6}},
    {QN__FUNCTION(log10), log10, mpfr_log10, {0.6, 0.6}},
    {QN__FUNCTION(log1p), log1p, mpfr_log1p, {0.7, 0.7}},
    {QN__FUNCTION(asin), asin, mpfr_asin, {1.0, 0.7}},
    {QN__FUNCTION(acos), acos, mpfr_acos, {1.0, 0.7}},
    {QN__FUNCTION(sinh), sinh, mpfr_sinh, {1.2, 1.4}},
    {QN__FUNCTION(cosh), cosh, mpfr_cosh, {0.9, 0.9}},
};
static const qn__function_of_two qn__functions_of_two[] = {
    {QN__FUNCTION(pow), mpfr_pow, {0.8, 0.8}},
    {QN__FUNCTION(atan2), mpfr_atan2, {0.7, 0.7}},
    {QN__FUNCTION(hypot), mpfr_hypot, {0.76, 0.76}},
};
enum {
    QN__FUNCTIONS_ONE = sizeof qn__functions_of_one / sizeof *qn__functions_of_one,
    QN__FUNCTIONS_TWO = sizeof qn__functions_of_two / sizeof *qn__functions_of_two
};

/* |y - exact| in ulps; `digits` is 24 or 53. Infinite when only one of the two is NaN or infinite
 * in the format, or when a zero has the wrong sign. */
static inline double qn__function_ulps(double y, const mpfr_t exact, int digits) {
    const double right =
        digits == 24 ? (double)mpfr_get_flt(exact, MPFR_RNDN) : mpfr_get_d(exact, MPFR_RNDN);
    if (isnan(right) || isnan(y))
        return isnan(right) && isnan(y) ? 0.0 : (double)INFINITY;
    if (isinf(right) || isinf(y))
        return right == y ? 0.0 : (double)INFINITY;
    if (right == 0.0 && y == 0.0 && !signbit(right) != !signbit(y))
        return (double)INFINITY;
    const int least = digits == 24 ? -126 : -1022;
    const int own = right == 0.0 ? least : ilogb(right), binade = own < least ? least : own;
    mpfr_t error;
    mpfr_init2(error, QN__FUNCTION_BITS);
    mpfr_set_d(error, y, MPFR_RNDN);
    mpfr_sub(error, error, exact, MPFR_RNDN);
    mpfr_mul_2si(error, error, digits - 1 - binade, MPFR_RNDN);
    const double ulps = fabs(mpfr_get_d(error, MPFR_RNDN));
    mpfr_clear(error);
    return ulps;
}

static inline double qn__ulps_of_one(const qn__function_of_one *f, double x, double y, int digits) {
    mpfr_t at, exact;
    mpfr_init2(at, 53);
    mpfr_init2(exact, QN__FUNCTION_BITS);
    mpfr_set_d(at, x, MPFR_RNDN);
    f->exact(exact, at, MPFR_RNDN);
    const double ulps = qn__function_ulps(y, exact, digits);
    mpfr_clear(exact);
    mpfr_clear(at);
    return ulps;
}

static inline double qn__ulps_of_two(const qn__function_of_two *f, double x, double y, double z,
                                     int digits) {
    mpfr_t first, second, exact;
    mpfr_init2(first, 53);
    mpfr_init2(second, 53);
    mpfr_init2(exact, QN__FUNCTION_BITS);
    mpfr_set_d(first, x, MPFR_RNDN);
    mpfr_set_d(second, y, MPFR_RNDN);
    f->exact(exact, first, second, MPFR_RNDN);
    const double ulps = qn__function_ulps(z, exact, digits);
    mpfr_clear(exact);
    mpfr_clear(second);
    mpfr_clear(first);
    return ulps;
}

#endif
