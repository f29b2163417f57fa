/* An arena in the worker's one block of memory. A first pass counts bytes, and a second one with
 * the same calls hands the memory out. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_ARENA_H
#define QN_DEVICE_CPU_WORKER_CPU_ARENA_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__cpu_arena {
    char *base; /* NULL: bytes are counted only */
    size_t used;
    int overflow;
} qn__cpu_arena;

/* Arrays begin with a cache line, and have one between them. */
static inline void *qn__cpu_carve(qn__cpu_arena *a, size_t count, size_t size) {
    size_t bytes, end;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - 128 ||
        __builtin_add_overflow(a->used, (bytes + 63) / 64 * 64 + 64, &end)) {
        a->overflow = 1;
        return NULL;
    }
    void *at = a->base ? a->base + a->used : NULL;
    a->used = end;
    return at;
}

#endif
