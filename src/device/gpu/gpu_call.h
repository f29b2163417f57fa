/* Grids, and the arguments of one launch, in the order of kernels/kernels.h. */
#ifndef QN_DEVICE_GPU_GPU_CALL_H
#define QN_DEVICE_GPU_GPU_CALL_H

#include "device/gpu/gpu.h"

enum { QN__GPU_ARGUMENTS = 22 }; /* at least as many as any kernel takes */

typedef struct qn__gpu_call {
    uint32_t count;
    qn__gpu_argument argument[QN__GPU_ARGUMENTS];
} qn__gpu_call;

/* Adds arguments of one type, in the order of the kernel's: QN__PUSH_WIDE(&call, first, count). The
 * array that each call makes counts them, and the compiler checks their type. */
#define QN__PUSH(CALL, TYPE, FUNCTION, ...)                                                        \
    FUNCTION(CALL, (TYPE const[]){__VA_ARGS__}, sizeof((TYPE const[]){__VA_ARGS__}) / sizeof(TYPE))
#define QN__PUSH_MEMORY(CALL, ...)                                                                 \
    QN__PUSH(CALL, const qn__gpu_memory *, qn__push_memory, __VA_ARGS__)
#define QN__PUSH_NUMBERS(CALL, ...) QN__PUSH(CALL, uint32_t, qn__push_numbers, __VA_ARGS__)
#define QN__PUSH_WIDE(CALL, ...) QN__PUSH(CALL, uint64_t, qn__push_wide, __VA_ARGS__)
#define QN__PUSH_FLOATS(CALL, ...) QN__PUSH(CALL, float, qn__push_floats, __VA_ARGS__)

static inline void qn__push_memory(qn__gpu_call *call, const qn__gpu_memory *const *memory,
                                   size_t count) {
    for (size_t i = 0; i < count; ++i)
        call->argument[call->count++] = (qn__gpu_argument){.kind = 'M', .value.memory = memory[i]};
}

static inline void qn__push_numbers(qn__gpu_call *call, const uint32_t *value, size_t count) {
    for (size_t i = 0; i < count; ++i)
        call->argument[call->count++] = (qn__gpu_argument){.kind = 'u', .value.u = value[i]};
}

static inline void qn__push_wide(qn__gpu_call *call, const uint64_t *value, size_t count) {
    for (size_t i = 0; i < count; ++i)
        call->argument[call->count++] = (qn__gpu_argument){.kind = 'U', .value.U = value[i]};
}

static inline void qn__push_floats(qn__gpu_call *call, const float *value, size_t count) {
    for (size_t i = 0; i < count; ++i)
        call->argument[call->count++] = (qn__gpu_argument){.kind = 'f', .value.f = value[i]};
}

/* Floats from one row of a matrix to the next. */
static inline uint64_t qn__gpu_ld(uint64_t n) { return (n + QN_LD - 1) / QN_LD * QN_LD; }

static inline uint64_t qn__gpu_pieces(uint64_t work, uint64_t each) {
    return (work + each - 1) / each;
}

/* The grid of a kernel that is not a product, over `work` pieces of work. */
static inline void qn__gpu_grid(qn__kernel kernel, uint64_t work, uint32_t groups[3]) {
    const uint32_t share = qn__kernel_shape_of(kernel)->share;
    groups[0] = share ? (uint32_t)qn__gpu_pieces(work, share) : 1;
    groups[1] = groups[2] = 1;
}

/* The grid of a variant of a product whose result is rows x columns. */
static inline void qn__gpu_tiles(qn__kernel kernel, uint64_t rows, uint64_t columns,
                                 uint32_t groups[3]) {
    const qn__kernel_shape *shape = qn__kernel_shape_of(kernel);
    groups[0] = (uint32_t)qn__gpu_pieces(columns, shape->tile_columns);
    groups[1] = (uint32_t)qn__gpu_pieces(rows, shape->tile_rows);
    groups[2] = 1;
}

#endif
