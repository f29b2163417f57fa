/* rmsnorm: docs/exactness.md 25.30. A task has some pixels of items. It sums their channels, panel
 * after panel, and then goes back over the panels while they are in a cache. So values are read
 * about once from memory. Of the forward pass r of each pixel is kept: norm.inverse. */
#include "device/cpu/layers/cpu_row_norm.h"
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_norms.h"
#include "num/norm.h"

static const float *weight_of(const qn__cpu_layer *l, uint32_t panel) {
    return l->bias + (size_t)panel * QN__PANEL;
}

static void measure(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t first,
                    uint32_t rows) {
    const float *x = qn__cpu_input(pass, l) + qn__cpu_norm_at(0, first, l->in_stride);
    float *r = l->norm.inverse + first;
    const float count = (float)l->layer->vector;
    pass->worker->kernels->rms_sums(rows, l->layer->vector, NULL, x, l->in_stride, x, l->in_stride,
                                    r);
    for (uint32_t i = 0; i < rows; ++i)
        r[i] = qn__norm_inverse(r[i] / count, l->layer->norm_epsilon);
}

static void forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    for (uint32_t first, rows;
         (rows = qn__cpu_take_norm_rows(pass, thread, l, phase, &first)) > 0;) {
        measure(pass, l, first, rows);
        for (uint32_t panel = l->out_panels; panel-- > 0;) {
            float *out = l->output + qn__cpu_norm_at(panel, first, l->out_stride);
            pass->worker->kernels->rms_normalise(
                rows, qn__cpu_input(pass, l) + qn__cpu_norm_at(panel, first, l->in_stride),
                l->norm.inverse + first, weight_of(l, panel), out);
            qn__cpu_norm_finish(pass, thread, layer, panel, first, rows, out);
        }
    }
}

static void backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l->below;
    const float count = (float)l->layer->vector;
    for (uint32_t first, rows;
         (rows = qn__cpu_take_norm_rows(pass, thread, l, phase, &first)) > 0;) {
        const float *r = l->norm.inverse + first;
        float slope[QN__NORM_ROWS];
        w->kernels->rms_sums(rows, l->layer->vector, weight_of(l, 0),
                             l->error + qn__cpu_norm_at(0, first, l->out_stride), l->out_stride,
                             l->input + qn__cpu_norm_at(0, first, l->in_stride), l->in_stride,
                             slope);
        for (uint32_t i = 0; i < rows; ++i)
            slope[i] = slope[i] * r[i] * r[i] / count;
        for (uint32_t panel = l->out_panels; panel-- > 0;) {
            w->kernels->rms_errors(rows, l->error + qn__cpu_norm_at(panel, first, l->out_stride),
                                   l->input + qn__cpu_norm_at(panel, first, l->in_stride), r, slope,
                                   weight_of(l, panel),
                                   qn__cpu_passes(l) +
                                       qn__cpu_norm_at(panel, first, below->out_stride));
            qn__cpu_after_errors(pass, &w->core[thread], layer, panel, first, rows);
            if (w->bits)
                qn__cpu_note_passed(pass, layer, first, rows, panel, 1);
        }
    }
}

static int sums_of_panel(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t grain = w->program->grain, all = pass->batch->items;
    int64_t sums[QN__PANEL] = {0};
    float partial[QN__PANEL];
    for (uint32_t item = 0; item < all; item += grain) {
        const uint32_t items = all - item < grain ? all - item : grain;
        w->kernels->rms_partials(items, l->out_pixels, (size_t)all * QN__PANEL,
                                 l->error + qn__cpu_norm_at(panel, item, l->out_stride),
                                 l->input + qn__cpu_norm_at(panel, item, l->in_stride),
                                 l->norm.inverse + item, partial);
        if (qn__cpu_add_partials(w, 1, QN__PANEL, partial, sums))
            return 1;
        if (all - item <= grain)
            break; /* a grain may be as large as numbers are */
    }
    qn__cpu_norm_put(pass, l, panel, 0, sums);
    return 0;
}

static void carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    l->norm.inverse = qn__cpu_carve(a, w->capacity, l->out_pixels * sizeof(float));
}

const qn__cpu_kind qn__cpu_rmsnorm = {.forward = forward,
                                      .backward = backward,
                                      .sums = sums_of_panel,
                                      .carve = carve,
                                      .reads_input = 1};
