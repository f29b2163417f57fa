/* The functions of user kernels as loops over arrays, compiled from their text for AVX2 where the
 * processor is an x86: what a compiled kernel runs. Benchmarks include this header once. */
#ifndef QN_BENCH_FUNCTIONS_NATIVE_H
#define QN_BENCH_FUNCTIONS_NATIVE_H

#include "kernels/runtime/elementary_functions.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/step.h"

#if defined __x86_64__ && defined __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#elif defined __x86_64__
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#pragma GCC optimize("O3", "no-trapping-math")
#endif

/* Inside, because functions of other options are not inlined. */
#include "kernels/runtime/prelude_c.h"
/* As in a compiled kernel: a loop that calls a function is not vectorised. */
#undef QN_FN
#define QN_FN static inline __attribute__((always_inline, unused))

#include "kernels/runtime/math.cl"

#define LOOP_OF_ONE(name)                                                                          \
    static void native_f32_##name(int n, const float *restrict x, float *restrict out) {           \
        for (int i = 0; i < n; i++)                                                                \
            out[i] = qn_f32_##name(x[i]);                                                          \
    }                                                                                              \
    static void native_f64_##name(int n, const double *restrict x, double *restrict out) {         \
        for (int i = 0; i < n; i++)                                                                \
            out[i] = qn_f64_##name(x[i]);                                                          \
    }
#define LOOP_OF_TWO(name)                                                                          \
    static void native_f32_##name(int n, const float *restrict x, const float *restrict y,         \
                                  float *restrict out) {                                           \
        for (int i = 0; i < n; i++)                                                                \
            out[i] = qn_f32_##name(x[i], y[i]);                                                    \
    }                                                                                              \
    static void native_f64_##name(int n, const double *restrict x, const double *restrict y,       \
                                  double *restrict out) {                                          \
        for (int i = 0; i < n; i++)                                                                \
            out[i] = qn_f64_##name(x[i], y[i]);                                                    \
    }
QN__FUNCTIONS_OF_ONE(LOOP_OF_ONE)
QN__FUNCTIONS_OF_TWO(LOOP_OF_TWO)
#undef LOOP_OF_ONE
#undef LOOP_OF_TWO

#if defined __x86_64__ && defined __clang__
#pragma clang attribute pop
#elif defined __x86_64__
#pragma GCC pop_options
#endif

/* 0 where this processor lacks the instructions that the loops are compiled for. */
static int native_runs(void) {
#if defined __x86_64__
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 1;
#endif
}

#endif
