/* The words of the kernel text in CUDA C++, as NVRTC takes it. Division, square root, fma and the
 * conversions are the intrinsics whose rounding is in their name. */
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
/* 16 conversions to 64 bits a cycle on these, 2 on all others, says the CUDA C Programming Guide. */
#if __CUDA_ARCH__ == 700 || __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || \
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
#define qn_div(a, b) __fdiv_rn(a, b)
#define qn_sqrt(a) __fsqrt_rn(a)

#define qn_atomic_max(p, v) ((void)atomicMax(p, v))
#define qn_atomic_add64(p, v) ((void)atomicAdd((qn_u64 *)(p), (qn_u64)(v)))
