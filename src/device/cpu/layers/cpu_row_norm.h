/* Normalisation of each pixel by itself (docs/exactness.md 24.13): the functions of layers that do
 * so, and what they share with rmsnorm. */
#ifndef QN_DEVICE_CPU_LAYERS_CPU_ROW_NORM_H
#define QN_DEVICE_CPU_LAYERS_CPU_ROW_NORM_H

#include "device/cpu/worker/cpu_kinds.h"

enum { QN__NORM_ROWS = 32 }; /* of a task, at most */

/* Takes the next task: rows from *first on. Returns their number, 0 at the end. */
uint32_t qn__cpu_take_norm_rows(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *layer,
                                uint32_t phase, uint32_t *first);

/* Where rows from `first` on begin in an array whose panels have `stride` floats. */
static inline size_t qn__cpu_norm_at(uint32_t panel, uint32_t first, size_t stride) {
    return panel * stride + (size_t)first * QN__PANEL;
}

void qn__cpu_row_norm_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_row_norm_backward(const qn__cpu_pass *pass, int thread, uint32_t layer,
                               uint32_t phase);
int qn__cpu_row_norm_sums(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel);
void qn__cpu_row_norm_carve(qn__cpu_arena *arena, const qn__worker *worker, qn__cpu_layer *layer);

#endif
