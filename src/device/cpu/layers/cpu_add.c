/* The end of a residual block: the sum of two outputs (docs/exactness.md 17.7).
 *
 *     block's input --- main path ----- b ---- add ---> outputs
 *            \________ shortcut ______ a ____/
 *
 * Its errors go to both paths unchanged. So no array is copied where it need not be: the last layer
 * of a path without an activation shares the errors of its add (error_of). A batchnorm there adds
 * at once (`add`), and in predictions an add follows the layer that it reads (cpu_follow.c). */
#include "device/cpu/worker/cpu_kinds.h"
#include <string.h>

/* 17.7: the sum of two outputs, rows of one panel. */
static void run_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    (void)thread;
    const qn__cpu_kernels *k = pass->worker->kernels;
    const size_t count = (size_t)run->rows * QN__PANEL;
    const size_t at = panel * l->in_stride + run->row * QN__PANEL;
    k->sum(count, qn__cpu_input(pass, l) + at, qn__cpu_second(pass, l) + at, to);
}

/* In place. Only the sum of two -0 is -0. */
static uint32_t follow(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel, size_t at,
                       uint32_t rows, int *plain, float *out) {
    const qn__cpu_kernels *k = pass->worker->kernels;
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    const size_t count = (size_t)rows * QN__PANEL;
    (void)panel;
    *plain = 0;
    k->sum(count, out, qn__cpu_beside(pass, l, l - 1) + at, out);
    return layer;
}

/* The errors of an add go to the last layers of both paths, unless these share them. A shortcut
 * without layers reads them there: see `gives`. */
static void backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    qn__cpu_layer *const to[2] = {l->below, l->layer->skip ? l->other : NULL};
    const qn__cpu_grid grid = {qn__cpu_runs(&l->inputs), l->in_panels, 1};
    for (uint32_t index, panel; qn__cpu_take(w, thread, phase, grid, &index, &panel);) {
        const qn__cpu_walk_run run = qn__cpu_run_at(&l->inputs, index);
        const size_t at = panel * l->out_stride + run.row * QN__PANEL;
        for (int i = 0; i < 2; ++i) {
            if (!to[i] || to[i]->error == l->error)
                continue;
            memcpy(to[i]->error + at, l->error + at, (size_t)run.rows * QN__PANEL * sizeof(float));
            const uint32_t path = (uint32_t)(to[i] - w->layer);
            qn__cpu_finish_errors(pass, &w->core[thread], path, panel, (uint32_t)run.row, run.rows);
            if (w->bits)
                qn__cpu_note_errors(pass, path, run.row, run.rows, panel, 1);
        }
    }
}

const qn__cpu_kind qn__cpu_residual = {.forward = qn__cpu_walk_forward,
                                       .backward = backward,
                                       .run = run_forward,
                                       .follow = follow,
                                       .leads = 1,
                                       .passes_on = 1};
