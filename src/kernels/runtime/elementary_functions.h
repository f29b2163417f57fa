/* The functions that user kernels call, in C: the scalar reference. Their text, math.cl, is the
 * same in every language of kernels, and docs/exactness.md, section 21, defines each result bit.
 *
 * All accept every argument, give what annex F of C17 says for zeros, infinities and NaN, and one
 * NaN (7fc00000 or 7ff8000000000000). Subnormal numbers are kept: callers have the floating-point
 * state of base/system/float_state.h. The errors are in the table of section 21.2. */
#ifndef QN_KERNELS_RUNTIME_ELEMENTARY_FUNCTIONS_H
#define QN_KERNELS_RUNTIME_ELEMENTARY_FUNCTIONS_H

/* ROW(name) for each function of one argument, and of two. */
#define QN__FUNCTIONS_OF_ONE(ROW)                                                                  \
    ROW(sqrt)                                                                                      \
    ROW(cbrt)                                                                                      \
    ROW(exp)                                                                                       \
    ROW(log)                                                                                       \
    ROW(sin)                                                                                       \
    ROW(cos)                                                                                       \
    ROW(tan)                                                                                       \
    ROW(atan)                                                                                      \
    ROW(erf)                                                                                       \
    ROW(erfc)                                                                                      \
    ROW(normcdf)                                                                                   \
    ROW(tanh)                                                                                      \
    ROW(exp2)                                                                                      \
    ROW(expm1)                                                                                     \
    ROW(log2)                                                                                      \
    ROW(log10)                                                                                     \
    ROW(log1p)                                                                                     \
    ROW(asin)                                                                                      \
    ROW(acos)                                                                                      \
    ROW(sinh)                                                                                      \
    ROW(cosh)
#define QN__FUNCTIONS_OF_TWO(ROW) ROW(pow) ROW(atan2) ROW(hypot)

/* float qn__f32_sqrt(float x) and double qn__f64_sqrt(double x), ...; angles are in radians. */
#define QN__DECLARE(name)                                                                          \
    float qn__f32_##name(float x);                                                                 \
    double qn__f64_##name(double x);
QN__FUNCTIONS_OF_ONE(QN__DECLARE)
#undef QN__DECLARE

/* x^y, and the angle of the point (second, first), from -pi to pi. */
#define QN__DECLARE(name)                                                                          \
    float qn__f32_##name(float first, float second);                                               \
    double qn__f64_##name(double first, double second);
QN__FUNCTIONS_OF_TWO(QN__DECLARE)
#undef QN__DECLARE

#endif
