/* layerscale: docs/exactness.md 24.14. It is a normalisation without means: the kernels of
 * batchnorm compute it from means and biases of +0. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_norms.h"

static const float zeros[QN__PANEL];

static void scale_rows(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                       uint32_t rows, const float *from, float *to) {
    pass->worker->kernels->normalise(rows, 0, from, zeros, l->bias + (size_t)panel * QN__PANEL,
                                     zeros, NULL, QN__ACT_NONE, to);
}

static void scale_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                      const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    (void)thread;
    scale_rows(pass, l, panel, run->rows,
               qn__cpu_input(pass, l) + panel * l->in_stride + run->row * QN__PANEL, to);
}

static void scale_run_back(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                           const qn__cpu_walk_run *run, uint32_t panel, float *error) {
    (void)thread;
    scale_rows(pass, l, panel, run->rows, l->error + panel * l->out_stride + run->row * QN__PANEL,
               error);
}

static int scale_sums(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t grain = w->program->grain, all = pass->batch->items;
    const size_t apart = (size_t)all * QN__PANEL;
    int64_t sums[QN__PANEL] = {0};
    float partial[QN__PANEL], errors[QN__PANEL];
    for (uint32_t item = 0; item < all; item += grain) {
        const uint32_t items = all - item < grain ? all - item : grain;
        const size_t at = (size_t)item * QN__PANEL;
        w->kernels->slopes(items, l->out_pixels, apart, l->error + panel * l->out_stride + at,
                           l->input + panel * l->in_stride + at, zeros, errors, partial);
        if (qn__cpu_add_partials(w, 1, QN__PANEL, partial, sums))
            return 1;
        if (all - item <= grain)
            break; /* a grain may be as large as numbers are */
    }
    qn__cpu_norm_put(pass, l, panel, 0, sums);
    return 0;
}

const qn__cpu_kind qn__cpu_layerscale = {.forward = qn__cpu_walk_forward,
                                         .backward = qn__cpu_walk_backward,
                                         .run = scale_run,
                                         .run_back = scale_run_back,
                                         .sums = scale_sums,
                                         .leads = 1,
                                         .reads_input = 1};
