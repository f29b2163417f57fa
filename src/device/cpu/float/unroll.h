/* Loops over a tile's vectors must vanish, so that the accumulators become registers. */
#ifndef QN_DEVICE_CPU_FLOAT_UNROLL_H
#define QN_DEVICE_CPU_FLOAT_UNROLL_H

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#endif
