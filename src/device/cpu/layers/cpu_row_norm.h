/* Normalisation of each pixel by itself (docs/exactness.md 24.13): the functions of layers that do
 * so. */
#ifndef QN_DEVICE_CPU_LAYERS_CPU_ROW_NORM_H
#define QN_DEVICE_CPU_LAYERS_CPU_ROW_NORM_H

#include "device/cpu/worker/cpu_kinds.h"

void qn__cpu_row_norm_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase);
void qn__cpu_row_norm_backward(const qn__cpu_pass *pass, int thread, uint32_t layer,
                               uint32_t phase);
int qn__cpu_row_norm_sums(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel);
void qn__cpu_row_norm_carve(qn__cpu_arena *arena, const qn__worker *worker, qn__cpu_layer *layer);

#endif
