/* position learned: a parameter of each channel at each position is added (docs/exactness.md
 * 25.12). */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include <string.h>

/* A row is a position of an item, items fastest. */
static void add_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                    const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const float *from = qn__cpu_input(pass, l) + panel * l->in_stride + run->row * QN__PANEL;
    const float *own = l->bias + (size_t)panel * l->vector_pixels * QN__PANEL;
    (void)thread;
    for (uint32_t i = 0; i < run->rows; ++i, from += QN__PANEL, to += QN__PANEL) {
        const size_t at = qn__cpu_position_of(pass, run->row + i);
        for (uint32_t c = 0; c < QN__PANEL; ++c)
            to[c] = from[c] + own[at * QN__PANEL + c];
    }
}

static void pass_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                     const qn__cpu_walk_run *run, uint32_t panel, float *error) {
    (void)pass;
    (void)thread;
    memcpy(error, l->error + panel * l->out_stride + run->row * QN__PANEL,
           (size_t)run->rows * QN__PANEL * sizeof *error);
}

static int sum_position(const qn__cpu_pass *pass, const float *error, int64_t *sums) {
    const qn__worker *w = pass->worker;
    const uint32_t grain = w->program->grain, all = pass->batch->items;
    float partial[QN__PANEL];
    for (uint32_t item = 0; item < all; item += grain) {
        const uint32_t items = all - item < grain ? all - item : grain;
        w->kernels->bias_partials(items, items, 1, 0, error + (size_t)item * QN__PANEL, partial);
        if (qn__cpu_add_partials(w, 1, QN__PANEL, partial, sums))
            return 1;
        if (all - item <= grain)
            break; /* a grain may be as large as numbers are */
    }
    return 0;
}

static int sums_of_panel(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    const size_t apart = (size_t)pass->batch->items * QN__PANEL;
    for (uint32_t at = 0; at < l->vector_pixels; ++at) {
        int64_t sums[QN__PANEL] = {0};
        if (sum_position(pass, l->error + panel * l->out_stride + at * apart, sums))
            return 1;
        qn__cpu_norm_put(pass, l, panel, at, sums);
    }
    return 0;
}

const qn__cpu_kind qn__cpu_position = {.forward = qn__cpu_walk_forward,
                                       .backward = qn__cpu_walk_backward,
                                       .run = add_run,
                                       .run_back = pass_run,
                                       .sums = sums_of_panel,
                                       .leads = 1};
