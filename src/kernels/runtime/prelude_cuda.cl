/* The prelude of the kernel text for CUDA C++, compiled by NVRTC. Division, square root, fma and
 * the conversions are intrinsics with a defined rounding. */
#define QN_KERNEL_TEXT 1
typedef unsigned long long qn_u64;
typedef long long qn_i64;
typedef unsigned int qn_u32;
typedef int qn_i32;
typedef unsigned char qn_u8;
typedef float2 qn_float2;
typedef float4 qn_float4;
typedef int2 qn_int2;
typedef int4 qn_int4;

#define QN_KERNEL(lanes) extern "C" __global__ void __launch_bounds__(lanes)
#define QN_KERNEL_OF(lanes, groups) extern "C" __global__ void __launch_bounds__(lanes, groups)
#define QN_FN static __device__ __forceinline__
#define QN_GLOBAL
#define QN_LOCAL __shared__
#define QN_LOCAL_POINTER
#define QN_RESTRICT __restrict__
#define QN_UNROLL _Pragma("unroll")
#define QN_ROLLED _Pragma("unroll 1")

#define qn_lane() ((qn_u32)threadIdx.x)
#define qn_group(d) ((qn_u32)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))
#define qn_groups(d) ((qn_u32)((d) == 0 ? gridDim.x : (d) == 1 ? gridDim.y : gridDim.z))
#define qn_barrier() __syncthreads()
#define qn_barrier_global() __syncthreads()

#define qn_as_u32(x) __float_as_uint(x)
#define qn_as_i32(x) __float_as_int(x)
#define qn_as_float(i) __int_as_float((qn_i32)(i))
#define qn_mul_high(a, b) __umulhi(a, b)
#define qn_fma(a, b, c) __fmaf_rn(a, b, c)
#define qn_abs(x) fabsf(x)
/* These convert 16 numbers to 64 bits a cycle, all others 2, by the CUDA C Programming Guide. */
#if __CUDA_ARCH__ == 700 || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 ||                        \
    (__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1100)
#define qn_i64_of(x) __float2ll_rn(x)
#else
#define QN_CONVERT_IN_THIRDS 1
#endif
#define qn_float_of(i) __ll2float_rn(i)
#define qn_i32_of(x) __float2int_rn(x)
#if __CUDA_ARCH__ >= 610
#define qn_dot(a, b, c) __dp4a(a, b, c)
#endif
/* a * b + c as one mad instruction, for products that must not use __dp4a: the compiler would turn
 * plain C++ into __dp4a. */
QN_FN qn_i32 qn_multiply_add(qn_i32 a, qn_i32 b, qn_i32 c) {
    qn_i32 d;
    asm("mad.lo.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
#define qn_multiply_add(a, b, c) qn_multiply_add(a, b, c)
/* Matrix instructions for bytes (matrix_words.cl), and asynchronous copies of 16 bytes to local
 * memory. qn_copies_end closes a group of the copies that a lane started. qn_copies_wait(n) waits
 * for all but the last n groups of the lane. */
#define qn_matrix_begin(a, b)
#define qn_matrix_end()
#if __CUDA_ARCH__ >= 800
QN_FN void qn_matrix(qn_i32 *d, const qn_i32 *a, const qn_i32 *b) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#define qn_matrix(d, a, b) qn_matrix(d, a, b)
QN_FN void qn_copy(qn_i32 *to, const qn_i32 *from, qn_u32 inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"((qn_u32)__cvta_generic_to_shared(to)), "l"(from), "r"(inside * 16u)
                 : "memory");
}
#define qn_copies_end() asm volatile("cp.async.commit_group;" : : : "memory")
#define qn_copies_wait(n) asm volatile("cp.async.wait_group %0;" : : "n"(n) : "memory")
#elif __CUDA_ARCH__ >= 750
QN_FN void qn_matrix_quarter(qn_i32 *d, const qn_i32 *a, const qn_i32 *b) {
    asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+r"(d[0]), "+r"(d[1])
                 : "r"(a[0]), "r"(b[0]));
}
#define qn_matrix_quarter(d, a, b) qn_matrix_quarter(d, a, b)
QN_FN void qn_copy(qn_i32 *to, const qn_i32 *from, qn_u32 inside) {
    *(int4 *)to = inside != 0u ? *(const int4 *)from : make_int4(0, 0, 0, 0);
}
#define qn_copies_end()
#define qn_copies_wait(n)
#endif
#define qn_div(a, b) __fdiv_rn(a, b)
#define qn_sqrt(a) __fsqrt_rn(a)

#define qn_atomic_max(p, v) ((void)atomicMax(p, v))
#define qn_atomic_add(p, v) ((void)atomicAdd(p, v))
#define qn_atomic_add64(p, v) ((void)atomicAdd((qn_u64 *)(p), (qn_u64)(v)))
