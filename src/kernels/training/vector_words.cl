/* The operations of num/elementary.inc on sixteen numbers at a time in OpenCL's vectors, for CPU
 * devices. The condition that begins here ends in vector_loss.cl (program_opencl.cl). */
#ifdef QN_VECTORS
/* Arrays stay in registers only if their loops are fully unrolled, early in the compiler. */
#ifdef __clang__
#define QN_FULL _Pragma("clang loop unroll(full)")
#else
#define QN_FULL QN_UNROLL
#endif
/* Prefetches the 64 bytes at p into the L2 cache. Oclgrind lacks clang's function. */
#if defined(__clang__) && !defined(QN_SIMULATED)
#define qn_prefetch(p) __builtin_prefetch((QN_GLOBAL const void *)(p), 0, 2)
#else
#define qn_prefetch(p) prefetch(p, 1)
#endif
#define QN_INLINE static inline __attribute__((always_inline))

#define vf float16
#define vi int16
#undef V_FN
#define V_FN QN_INLINE
#undef V_NAME
#define V_NAME(f) qn_##f##_lanes

#define v_set(c) ((vf)(c))
#define vi_set(c) ((vi)(c))
#define v_add(a, b) ((a) + (b))
#define v_sub(a, b) ((a) - (b))
#define v_mul(a, b) ((a) * (b))
#define v_fma(a, b, c) fma(a, b, c)
#define v_fnma(a, b, c) fma(-(a), b, c)
#define v_min(a, b) v_sel_lt(a, b, a, b)
#define v_max(a, b) v_sel_lt(b, a, a, b)
#define v_sel_lt(a, b, x, y) select(y, x, (a) < (b))
#define v_sel_le(a, b, x, y) select(y, x, (a) <= (b))
#define v_bits(a) as_int16(a)
#define v_float(i) as_float16(i)
#define v_cvt(i) convert_float16(i)
#define vi_sub(a, b) as_int16(as_uint16(a) - as_uint16(b))
#define vi_and(a, b) ((a) & (b))
#define vi_or(a, b) ((a) | (b))
#define vi_shl(i, s) as_int16(as_uint16(i) << (s))
#define vi_sar(i, s) ((i) >> (s))
