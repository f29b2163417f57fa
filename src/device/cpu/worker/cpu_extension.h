/* What a worker keeps of sequences that grow (cpu_cache.c, cpu_extend.c). */
#ifndef QN_DEVICE_CPU_WORKER_CPU_EXTENSION_H
#define QN_DEVICE_CPU_WORKER_CPU_EXTENSION_H

#include <stdint.h>

/* Attention: the keys and values of all positions of a sequence so far, for each group of heads of
 * each sequence (cpu_cache.c). */
typedef struct qn__cpu_cache {
    float *keys, *values;
    uint8_t *infinite; /* 1: one of them is not finite */
    float *scales;     /* with integers, and `columns`: cpu_cache_integer.c */
    char *columns;
} qn__cpu_cache;

/* Rows of an extension that are neighbouring positions of a sequence. */
typedef struct qn__cpu_stretch {
    uint32_t row, rows, sequence, position;
} qn__cpu_stretch;

typedef struct qn__cpu_stretches {
    qn__cpu_stretch *at;
    uint32_t count;
} qn__cpu_stretches;

#endif
