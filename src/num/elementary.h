/* Quern's own elementary functions: the scalar reference.
 *
 * Each is a fixed sequence of float32 operations (docs/exactness.md, section 13), so a result is
 * the same on every machine. The vector forms in device/cpu/float/map.h and the GPU kernels are the
 * same text and give the same bits. These functions are for few numbers, and for tests.
 *
 * All accept every float. A NaN gives a NaN, whose sign and payload are undefined. Subnormal
 * numbers are kept: callers have the floating-point state of base/system/float_state.h. */
#ifndef QN_NUM_ELEMENTARY_H
#define QN_NUM_ELEMENTARY_H

/* e^x: +inf from 0x1.62e43p+6 (88.72284) on, +0 where it is below half the smallest subnormal. */
float qn__exp(float x);

/* Natural logarithm: -inf for either zero, NaN below zero, +inf for +inf. */
float qn__log(float x);

/* Hyperbolic tangent: exactly odd, also for -0; at most 1 in magnitude. */
float qn__tanh(float x);

/* 1 / (1 + e^-x), between 0 and 1 inclusive; accurate for large negative x too, where it becomes
 * subnormal and then +0. */
float qn__sigmoid(float x);

/* cos(pi t), for 0 <= t <= 1 only. Exact at 0, 1/2 and 1. */
float qn__cospi(float t);

/* z times the normal distribution function of z (docs/exactness.md 17.2), and its derivative. */
float qn__gelu(float z);
float qn__gelu_slope(float z);

/* The approximation of gelu by a tanh of a polynomial (25.80), and its derivative. */
float qn__gelu_tanh(float z);
float qn__gelu_tanh_slope(float z);

/* z times sigmoid z, and its derivative. */
float qn__silu(float z);
float qn__silu_slope(float z);

#endif
