/* The prelude of the kernel text for OpenCL C 1.2. The host adds options (kernels.h,
 * qn__kernel_options) and defines:
 *
 *   QN_CORRECT_DIVIDE  division and square root are correctly rounded by a build option
 *   QN_ATOMICS64       64-bit integer atomics (cl_khr_int64_base_atomics)
 *   QN_DOT             products of packed bytes (cl_khr_integer_dot_product)
 *   QN_VECTORS         the device is a CPU: the program has the vector kernels
 *
 *   QN_SIMULATED       the device is Oclgrind, which lacks some functions of clang and rounds
 *                      64-bit integers to floats twice */
#define QN_KERNEL_TEXT 1
#pragma OPENCL FP_CONTRACT OFF
#ifdef QN_ATOMICS64
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

typedef ulong qn_u64;
typedef long qn_i64;
typedef uint qn_u32;
typedef int qn_i32;
typedef uchar qn_u8;
typedef float2 qn_float2;
typedef float4 qn_float4;
typedef int2 qn_int2;
typedef int4 qn_int4;

#define QN_KERNEL(lanes) __kernel __attribute__((reqd_work_group_size(lanes, 1, 1))) void
#define QN_KERNEL_OF(lanes, groups) QN_KERNEL(lanes)
#define QN_FN static inline
#define QN_GLOBAL __global
#define QN_LOCAL __local
#define QN_LOCAL_POINTER __local
#define QN_RESTRICT restrict
#define QN_UNROLL _Pragma("unroll")
#define QN_ROLLED _Pragma("nounroll")

#define qn_lane() ((qn_u32)get_local_id(0))
#define qn_group(d) ((qn_u32)get_group_id(d))
#define qn_groups(d) ((qn_u32)get_num_groups(d))
#define qn_barrier() barrier(CLK_LOCAL_MEM_FENCE)
#define qn_barrier_global() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

#define qn_as_u32(x) as_uint(x)
#define qn_as_i32(x) as_int(x)
#define qn_as_float(i) as_float(i)
#define qn_mul_high(a, b) mul_hi((qn_u32)(a), (qn_u32)(b))
#define qn_fma(a, b, c) fma(a, b, c)
#define qn_abs(x) fabs(x)
#define qn_rint(x) rint(x)
#ifndef QN_CONVERT_IN_THIRDS
#define qn_i64_of(x) convert_long(qn_rint(x))
#endif
#ifdef QN_SIMULATED
static inline float qn_float_of(qn_i64 i) {
    qn_u64 size = i < 0 ? -(qn_u64)i : (qn_u64)i;
    const qn_u32 drop = clz(size) < 40ul ? 40u - (qn_u32)clz(size) : 0u; /* leaves 24 bits */
    const qn_u64 rest = size & (((qn_u64)1 << drop) - 1u), middle = ((qn_u64)1 << drop) >> 1;
    size >>= drop;
    if (drop != 0u && (rest > middle || (rest == middle && (size & 1u) != 0u)))
        ++size;
    const float magnitude = (float)(qn_u32)size * as_float((drop + 127u) << 23);
    return i < 0 ? -magnitude : magnitude;
}
#else
#define qn_float_of(i) convert_float_rte((qn_i64)(i))
#endif
#define qn_i32_of(x) convert_int_rte(x)
#ifdef QN_DOT
#define qn_dot(a, b, c) ((c) + dot_4x8packed_ss_int((qn_u32)(a), (qn_u32)(b)))
#endif
#ifdef QN_CORRECT_DIVIDE
#define qn_div(a, b) ((a) / (b))
#define qn_sqrt(a) sqrt(a)
#else
#define QN_DIVIDE_BY_INTEGERS 1
#endif

#define qn_atomic_max(p, v) ((void)atomic_max(p, v))
#define qn_atomic_add(p, v) ((void)atomic_add(p, v))
#ifdef QN_ATOMICS64
#define qn_atomic_add64(p, v) ((void)atom_add(p, v))
#else
#define qn_atomic_add64(p, v) ((void)(*(p) += (v)))
#endif
