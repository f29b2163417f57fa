/* Normalisation of each pixel by itself: docs/exactness.md 24.13. A task has some pixels of items.
 * It sums their channels, panel after panel, and then goes back over the panels while they are in a
 * cache. So values are read about once from memory. Of the forward pass two numbers of each pixel
 * are kept: norm.mean and norm.inverse. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_norms.h"
#include "device/cpu/layers/cpu_row_norm.h"
#include "num/norm.h"
#include <math.h>

enum { WEIGHT, BIAS, ROWS = QN__NORM_ROWS, GRAINS = 16 }; /* grains summed by one call */

uint32_t qn__cpu_take_norm_rows(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                                uint32_t phase, uint32_t *first) {
    const qn__cpu_grid grid = {(l->rows + ROWS - 1) / ROWS, 1, 1};
    uint32_t task, row;
    if (!qn__cpu_take(pass->worker, thread, phase, grid, &task, &row))
        return 0;
    *first = task * ROWS;
    return l->rows - *first < ROWS ? l->rows - *first : ROWS;
}

static const float *vector_of(const qn__cpu_layer *l, uint32_t vector, uint32_t panel) {
    return l->bias + vector * l->vector + (size_t)panel * QN__PANEL;
}

static void measure(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t first,
                    uint32_t rows) {
    const qn__cpu_kernels *kernels = pass->worker->kernels;
    const float *x = qn__cpu_input(pass, l) + qn__cpu_norm_at(0, first, l->in_stride);
    const uint32_t channels = l->layer->from.channels;
    const float count = (float)channels;
    float *mean = l->norm.mean + first, *inverse = l->norm.inverse + first;
    float shift[ROWS], sum[ROWS], squares[ROWS];
    kernels->row_moments(rows, channels, x, l->in_stride, NULL, shift, NULL);
    for (uint32_t i = 0; i < rows; ++i)
        shift[i] = shift[i] / count;
    kernels->row_moments(rows, channels, x, l->in_stride, shift, sum, squares);
    for (uint32_t i = 0; i < rows; ++i) {
        const float u = sum[i] / count;
        const float w = qn__norm_squares(fmaf(-u, sum[i], squares[i]));
        mean[i] = shift[i] + u;
        inverse[i] = qn__norm_inverse(w / count, l->layer->norm_epsilon);
    }
}

void qn__cpu_row_norm_forward(const qn__cpu_pass *pass, int thread, uint32_t layer,
                              uint32_t phase) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    for (uint32_t first, rows;
         (rows = qn__cpu_take_norm_rows(pass, thread, l, phase, &first)) > 0;) {
        measure(pass, l, first, rows);
        for (uint32_t panel = l->out_panels; panel-- > 0;) {
            float *out = l->output + qn__cpu_norm_at(panel, first, l->out_stride);
            pass->worker->kernels->row_normalise(
                rows, qn__cpu_input(pass, l) + qn__cpu_norm_at(panel, first, l->in_stride),
                l->norm.mean + first, l->norm.inverse + first, vector_of(l, WEIGHT, panel),
                vector_of(l, BIAS, panel), out);
            qn__cpu_norm_finish(pass, thread, layer, panel, first, rows, out);
        }
    }
}

/* h and k of 17.9 of each row. */
static void find_slopes(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t first,
                        uint32_t rows, float *h, float *k) {
    const uint32_t channels = l->layer->from.channels;
    const float *r = l->norm.inverse + first, count = (float)channels;
    pass->worker->kernels->row_slopes(rows, channels, vector_of(l, WEIGHT, 0),
                                      l->error + qn__cpu_norm_at(0, first, l->out_stride),
                                      l->out_stride,
                                      l->input + qn__cpu_norm_at(0, first, l->in_stride),
                                      l->in_stride, l->norm.mean + first, h, k);
    for (uint32_t i = 0; i < rows; ++i) {
        h[i] = h[i] / count;
        k[i] = k[i] * r[i] * r[i] / count;
    }
}

/* Lanes after the last channel have no errors. */
static void clear_padding(const qn__cpu_layer *l, uint32_t panel, uint32_t rows, float *error) {
    const uint32_t used = l->layer->from.channels - panel * QN__PANEL;
    for (uint32_t i = 0; used < QN__PANEL && i < rows; ++i)
        for (uint32_t c = used; c < QN__PANEL; ++c)
            error[(size_t)i * QN__PANEL + c] = 0.0f;
}

void qn__cpu_row_norm_backward(const qn__cpu_pass *pass, int thread, uint32_t layer,
                               uint32_t phase) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l->below;
    for (uint32_t first, rows;
         (rows = qn__cpu_take_norm_rows(pass, thread, l, phase, &first)) > 0;) {
        float h[ROWS], k[ROWS];
        find_slopes(pass, l, first, rows, h, k);
        for (uint32_t panel = l->out_panels; panel-- > 0;) {
            float *error = qn__cpu_passes(l) + qn__cpu_norm_at(panel, first, below->out_stride);
            w->kernels->row_errors(rows, l->error + qn__cpu_norm_at(panel, first, l->out_stride),
                                   l->input + qn__cpu_norm_at(panel, first, l->in_stride),
                                   l->norm.mean + first, l->norm.inverse + first,
                                   vector_of(l, WEIGHT, panel), h, k, error);
            clear_padding(l, panel, rows, error);
            qn__cpu_after_errors(pass, &w->core[thread], layer, panel, first, rows);
            if (w->bits)
                qn__cpu_note_passed(pass, layer, first, rows, panel, 1);
        }
    }
}

int qn__cpu_row_norm_sums(const qn__cpu_pass *pass, uint32_t layer, uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t grain = w->program->grain, all = pass->batch->items;
    int64_t sums[2][QN__PANEL] = {{0}};
    float partial[2][GRAINS * QN__PANEL];
    for (uint32_t item = 0, n; item < all; item += n) {
        n = (all - item) / GRAINS < grain ? all - item : GRAINS * grain;
        w->kernels->row_partials(n, grain, l->out_pixels, (size_t)all * QN__PANEL,
                                 l->error + qn__cpu_norm_at(panel, item, l->out_stride),
                                 l->input + qn__cpu_norm_at(panel, item, l->in_stride),
                                 l->norm.mean + item, l->norm.inverse + item, partial[WEIGHT],
                                 partial[BIAS]);
        for (int v = WEIGHT; v <= BIAS; ++v)
            if (qn__cpu_add_partials(w, (n - 1) / grain + 1, QN__PANEL, partial[v], sums[v]))
                return 1;
    }
    for (uint32_t v = WEIGHT; v <= BIAS; ++v)
        qn__cpu_norm_put(pass, l, panel, v, sums[v]);
    return 0;
}

void qn__cpu_row_norm_carve(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const size_t pixel = l->out_pixels * sizeof(float);
    l->norm.mean = qn__cpu_carve(a, w->capacity, pixel);
    l->norm.inverse = qn__cpu_carve(a, w->capacity, pixel);
}
