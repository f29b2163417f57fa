/* The elementary functions over arrays, one form for each instruction set.
 *
 * y[i] = f(x[i]) for i = 0 .. n-1, with the bits of the scalar reference in num/elementary.h, for
 * every n and alignment. x and y hold n floats each; they are the same array or do not overlap. n
 * may be 0. No memory outside the arrays is accessed.
 *
 * The qn_ functions and the tables set the floating-point state that they need and restore the
 * caller's. The qn__ functions are for kernels, whose threads have set that state already.
 *
 * Calling a form on a processor without its instruction set ends the process: check first. */
#ifndef QN_DEVICE_CPU_FLOAT_MAP_H
#define QN_DEVICE_CPU_FLOAT_MAP_H

#include <stddef.h>

typedef void qn__map_function(size_t n, const float *x, float *y);

/* z[i] = f(z[i]), in place, and slope[i] its derivative at the old z[i]. */
typedef void qn__slope_function(size_t n, float *z, float *slope);

/* The functions: ITEM(exp, ...) and so on. */
#define QN__MAPS(ITEM, ...)                                                                        \
    ITEM(exp, __VA_ARGS__)                                                                         \
    ITEM(log, __VA_ARGS__)                                                                         \
    ITEM(tanh, __VA_ARGS__)                                                                        \
    ITEM(sigmoid, __VA_ARGS__)                                                                     \
    ITEM(gelu, __VA_ARGS__)                                                                        \
    ITEM(gelu_slope, __VA_ARGS__)                                                                  \
    ITEM(gelu_tanh, __VA_ARGS__)                                                                   \
    ITEM(gelu_tanh_slope, __VA_ARGS__)                                                             \
    ITEM(silu, __VA_ARGS__)                                                                        \
    ITEM(silu_slope, __VA_ARGS__)

/* Those that multiply their argument by a number. Their derivatives share most operations. */
#define QN__GATED_MAPS(ITEM, ...)                                                                  \
    ITEM(gelu, __VA_ARGS__)                                                                        \
    ITEM(gelu_tanh, __VA_ARGS__)                                                                   \
    ITEM(silu, __VA_ARGS__)

/* The forms of one instruction set. */
#define QN__MAP_MEMBER(f, type) type *f;
typedef struct qn__maps {
    const char *name; /* "scalar", "avx2", "avx512", "neon" */
    QN__MAPS(QN__MAP_MEMBER, qn__map_function)
} qn__maps;

/* For every machine; slow if the compiler may not use an fma instruction. Those of the other
 * instruction sets are in the rows of device/cpu/cpu_isa.c. */
extern const qn__maps qn__maps_scalar;

#endif
