/* The elementary functions over arrays, one form for each instruction set.
 *
 * y[i] = f(x[i]) for i = 0 .. n-1, with the bits of the scalar reference in num/elementary.h, for
 * every n and alignment. x and y hold n floats each; they are the same array or do not overlap. n
 * may be 0. No memory outside the arrays is accessed.
 *
 * The qn_ functions and the tables set the floating-point state that they need and restore the
 * caller's. The qn__ functions are for kernels, whose threads have set that state already.
 *
 * Calling a form on a processor without its instruction set ends the process: check first. Forms
 * that the target cannot have are not declared. */
#ifndef QN_DEVICE_CPU_FLOAT_MAP_H
#define QN_DEVICE_CPU_FLOAT_MAP_H

#include <stddef.h>

typedef void qn__map_function(size_t n, const float *x, float *y);

/* The forms of one instruction set. */
typedef struct qn__maps {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */
    qn__map_function *exp;
    qn__map_function *log;
    qn__map_function *tanh;
    qn__map_function *sigmoid;
} qn__maps;

/* For every machine; slow if the compiler may not use an fma instruction. */
qn__map_function qn_cpu_map_exp_f32_scalar;
qn__map_function qn_cpu_map_log_f32_scalar;
qn__map_function qn_cpu_map_tanh_f32_scalar;
qn__map_function qn_cpu_map_sigmoid_f32_scalar;
qn__map_function qn__cpu_map_exp_f32_scalar;
qn__map_function qn__cpu_map_log_f32_scalar;
qn__map_function qn__cpu_map_tanh_f32_scalar;
qn__map_function qn__cpu_map_sigmoid_f32_scalar;
extern const qn__maps qn__maps_scalar;

#if defined(__x86_64__)
/* AVX2 and FMA. */
qn__map_function qn_cpu_map_exp_f32_avx2;
qn__map_function qn_cpu_map_log_f32_avx2;
qn__map_function qn_cpu_map_tanh_f32_avx2;
qn__map_function qn_cpu_map_sigmoid_f32_avx2;
qn__map_function qn__cpu_map_exp_f32_avx2;
qn__map_function qn__cpu_map_log_f32_avx2;
qn__map_function qn__cpu_map_tanh_f32_avx2;
qn__map_function qn__cpu_map_sigmoid_f32_avx2;
extern const qn__maps qn__maps_avx2;

/* AVX-512 F, DQ, VL and BW. */
qn__map_function qn_cpu_map_exp_f32_avx512;
qn__map_function qn_cpu_map_log_f32_avx512;
qn__map_function qn_cpu_map_tanh_f32_avx512;
qn__map_function qn_cpu_map_sigmoid_f32_avx512;
qn__map_function qn__cpu_map_exp_f32_avx512;
qn__map_function qn__cpu_map_log_f32_avx512;
qn__map_function qn__cpu_map_tanh_f32_avx512;
qn__map_function qn__cpu_map_sigmoid_f32_avx512;
extern const qn__maps qn__maps_avx512;
#endif

#if defined(__aarch64__)
qn__map_function qn_cpu_map_exp_f32_neon;
qn__map_function qn_cpu_map_log_f32_neon;
qn__map_function qn_cpu_map_tanh_f32_neon;
qn__map_function qn_cpu_map_sigmoid_f32_neon;
qn__map_function qn__cpu_map_exp_f32_neon;
qn__map_function qn__cpu_map_log_f32_neon;
qn__map_function qn__cpu_map_tanh_f32_neon;
qn__map_function qn__cpu_map_sigmoid_f32_neon;
extern const qn__maps qn__maps_neon;
#endif

#endif
