/* Loops over a tile's vectors must be unrolled, and functions inlined where the size of the tile is
 * a constant, so that the accumulators are kept in registers. */
#ifndef QN_DEVICE_CPU_FLOAT_UNROLL_H
#define QN_DEVICE_CPU_FLOAT_UNROLL_H

#define INLINE static inline __attribute__((always_inline))

#if defined(__clang__)
#define UNROLL_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#define UNROLL_BY_4(...) _Pragma("clang loop unroll_count(4)") for (__VA_ARGS__)
#else
#define UNROLL_FOR(...) _Pragma("GCC unroll 16") for (__VA_ARGS__)
#define UNROLL_BY_4(...) _Pragma("GCC unroll 4") for (__VA_ARGS__)
#endif

#endif
