/* The errors of the layer below a dense layer of features, in float32 (docs/exactness.md 8.4):
 *
 *     e[item][input] = chain over outputs o of delta[item][o] * weight[o][input]
 *
 * The forward pass keeps 16 outputs of one input side by side, because they are computed together.
 * Here 16 inputs are computed together. So a task first transposes the weights of one panel of
 * inputs to its core's scratch memory, and all rows of the batch then use them from its cache.
 * Layers with pictures have their errors from cpu_walk_phases.c, integers from cpu_intgemm.c. */
#include "device/cpu/worker/cpu_worker.h"

void qn__cpu_transpose(const qn__cpu_layer *layer, uint32_t panel, float *to) {
    const size_t weights = (size_t)layer->in_panels * QN__PANEL * QN__PANEL;
    const float *from = layer->weights + (size_t)panel * QN__PANEL * QN__PANEL;
    uint32_t left = layer->layer->out;
    for (; left > 0; from += weights, to += QN__PANEL * QN__PANEL) {
        const uint32_t outputs = left < QN__PANEL ? left : QN__PANEL;
        left -= outputs;
        for (uint32_t o = 0; o < outputs; ++o)
            for (uint32_t k = 0; k < QN__PANEL; ++k)
                to[o * QN__PANEL + k] = from[k * QN__PANEL + o];
    }
}

void qn__cpu_errors(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer, uint32_t panel,
                    const float *transposed, uint32_t first, uint32_t rows) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l->below;
    const size_t at = panel * below->out_stride + (size_t)first * QN__PANEL;
    float *error = qn__cpu_passes(l) + at;
    w->kernels->matmul(rows, &l->backward, l->error + (size_t)first * QN__PANEL, transposed, 0,
                       error, 0, NULL, 1);
    qn__cpu_after_errors(pass, core, layer, panel, first, rows);
}

void qn__cpu_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    qn__cpu_core *core = &w->core[thread];
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grid grid = {l->in_panels, 1, 1};
    for (uint32_t panel, row; qn__cpu_take(w, thread, phase, grid, &panel, &row);) {
        qn__cpu_transpose(l, panel, core->scratch);
        qn__cpu_errors(pass, core, layer, panel, core->scratch, 0, l->rows);
    }
}
