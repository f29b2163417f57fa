/* The ends of blocks whose errors are not those of their outputs: a product, a concatenation. */
#ifndef QN_DEVICE_CPU_LAYERS_CPU_JOIN_H
#define QN_DEVICE_CPU_LAYERS_CPU_JOIN_H

#include "device/cpu/worker/cpu_kinds.h"

/* One of the two outputs that a joining layer reads: values, floats between two panels, pixels. */
typedef struct qn__cpu_joined {
    const float *values;
    size_t stride;
    uint32_t pixels;
} qn__cpu_joined;

/* `second` 0: that of the first path. */
qn__cpu_joined qn__cpu_joined_of(const qn__cpu_pass *pass, const qn__cpu_layer *l, int second);

/* Errors of both outputs, for some rows of a panel at a time: kind->part_back. */
void qn__cpu_join_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);

#endif
