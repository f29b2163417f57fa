/* The prelude of the kernel text for C17, for tests that run the kernels as C, and for
 * elementary_functions.c, which includes math.cl and needs nothing that is declared here without a
 * body. The file that runs kernels continues with
 *
 *     #include "kernels/training/program.cl"
 *
 * and defines the functions declared below. Every kernel is then a function of the same name, with
 * the arguments of kernels.h as pointers and numbers. One thread runs the lanes of a group as
 * coroutines, which switch at qn_barrier only. Local memory is a static array of the thread. Groups
 * may run in several threads. */
#ifndef QN_KERNELS_RUNTIME_PRELUDE_C_H
#define QN_KERNELS_RUNTIME_PRELUDE_C_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Indices of the running lane. */
uint32_t qn_lane(void);
uint32_t qn_group(int direction);
uint32_t qn_groups(int direction);
/* Returns when all lanes of the group have called it. */
void qn_barrier(void);
#define qn_barrier_global() qn_barrier()

typedef uint8_t qn_u8;
typedef struct qn_float2 {
    _Alignas(8) float x;
    float y;
} qn_float2;
typedef struct qn_float4 {
    _Alignas(16) float x;
    float y, z, w;
} qn_float4;

typedef struct qn_int2 {
    _Alignas(8) int32_t x;
    int32_t y;
} qn_int2;
typedef struct qn_int4 {
    _Alignas(16) int32_t x;
    int32_t y, z, w;
} qn_int4;

#define QN_KERNEL(lanes) void
#define QN_KERNEL_OF(lanes, groups) void
#define QN_FN static inline
#define QN_GLOBAL
#define QN_LOCAL static _Thread_local
#define QN_LOCAL_POINTER
#define QN_RESTRICT restrict
#define QN_UNROLL
#define QN_ROLLED

static inline uint32_t qn_as_u32(float x) {
    uint32_t i;
    memcpy(&i, &x, sizeof i);
    return i;
}
static inline int32_t qn_as_i32(float x) { return (int32_t)qn_as_u32(x); }
static inline float qn_as_float_bits(uint32_t i) {
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}
#define qn_as_float(i) qn_as_float_bits((uint32_t)(i))
#define qn_mul_high(a, b) ((uint32_t)((uint64_t)(a) * (b) >> 32))
#define qn_fma(a, b, c) fmaf(a, b, c)
#define qn_abs(x) fabsf(x)
#ifndef QN_CONVERT_IN_THIRDS
static inline int64_t qn_i64_of(float x) { return (int64_t)rintf(x); }
#endif
static inline float qn_float_of(int64_t i) { return (float)i; }
static inline int32_t qn_i32_of(float x) { return (int32_t)rintf(x); }
/* With QN_DIVIDE_BY_INTEGERS defined, exact.cl does both by integer arithmetic. */
#ifndef QN_DIVIDE_BY_INTEGERS
#define qn_div(a, b) ((a) / (b))
#define qn_sqrt(a) sqrtf(a)
#endif

/* Matrix instructions among the 32 lanes of a warp; qn_quarters selects the quarter form. Copies
 * may be delayed until qn_copies_wait (prelude_cuda.cl). qn_matrix_begin receives the addresses of
 * the lane's words of both operands, which must not change until qn_matrix_end. */
int qn_quarters(void);
void qn_matrix_begin(const int32_t *a, const int32_t *b);
void qn_matrix_end(void);
void qn_matrix_whole(int32_t *d, const int32_t *a, const int32_t *b);
void qn_matrix_part(int32_t *d, const int32_t *a, const int32_t *b);
#define qn_matrix_quarter(d, a, b) qn_matrix_part(d, a, b)
#define qn_matrix(d, a, b)                                                                         \
    (qn_quarters() ? qn_matrix_of_quarters(d, a, b) : qn_matrix_whole(d, a, b))
void qn_copy(int32_t *to, const int32_t *from, uint32_t inside);
void qn_copies_end(void);
void qn_copies_wait(uint32_t but);

static inline void qn_atomic_max(uint32_t *p, uint32_t v) {
    uint32_t old = __atomic_load_n(p, __ATOMIC_RELAXED);
    while (old < v &&
           !__atomic_compare_exchange_n(p, &old, v, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}
#define qn_atomic_add64(p, v) ((void)__atomic_fetch_add(p, v, __ATOMIC_RELAXED))

#endif
