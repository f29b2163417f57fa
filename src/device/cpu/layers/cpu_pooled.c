/* pool: docs/exactness.md 25.38. A task has a panel of channels, and forward some items: it goes
 * through the positions of each item that count. */
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/pooled.h"
#include <string.h>

/* Items of a task. */
enum { ITEMS = 32 };

/* The positions of an item that are read. */
static qn__cover pooled_of(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t item) {
    const qn__layer own = qn__cpu_layer_of_item(pass->worker, l, item);
    return qn__pooled_cover(&own);
}

static size_t row_of(const qn__cpu_pass *pass, uint32_t position, uint32_t item) {
    return ((size_t)position * pass->batch->items + item) * QN__PANEL;
}

static void add_up(const float *from, size_t apart, qn__cover read, float *to) {
    const float share = qn__pooled_share(read);
    float sum[QN__PANEL] = {0};
    for (uint32_t t = read.begin; t < read.end; ++t)
        for (uint32_t c = 0; c < QN__PANEL; ++c)
            sum[c] = sum[c] + from[t * apart + c];
    for (uint32_t c = 0; c < QN__PANEL; ++c) {
        const float mean = sum[c] * share;
        to[c] = mean + 0.0f;
    }
}

/* The greatest values, and the first positions that have them. */
static void pick(const float *from, size_t apart, qn__cover read, float *best, uint32_t *at) {
    for (uint32_t c = 0; c < QN__PANEL; ++c) {
        best[c] = read.end > 0 ? from[c] : 0.0f;
        at[c] = 0;
    }
    for (uint32_t t = 1; t < read.end; ++t)
        for (uint32_t c = 0; c < QN__PANEL; ++c) {
            const float own = from[t * apart + c];
            const int more = own > best[c];
            best[c] = more ? own : best[c];
            at[c] = more ? t : at[c];
        }
}

static void forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t all = pass->batch->items;
    const size_t apart = (size_t)all * QN__PANEL;
    const qn__cpu_grid grid = {(all + ITEMS - 1) / ITEMS, l->out_panels, 1};
    for (uint32_t block, panel; qn__cpu_take(w, thread, phase, grid, &block, &panel);) {
        const uint32_t first = block * ITEMS, items = all - first < ITEMS ? all - first : ITEMS;
        float *to = l->output + panel * l->out_stride + (size_t)first * QN__PANEL;
        for (uint32_t i = 0; i < items; ++i) {
            const float *from =
                qn__cpu_input(pass, l) + panel * l->in_stride + row_of(pass, 0, first + i);
            const qn__cover read = pooled_of(pass, l, first + i);
            float best[QN__PANEL];
            uint32_t at[QN__PANEL];
            if (l->layer->pooling != QN__POOL_MAX) {
                add_up(from, apart, read, to + (size_t)i * QN__PANEL);
                continue;
            }
            pick(from, apart, read, best, at);
            for (uint32_t c = 0; c < QN__PANEL; ++c)
                to[(size_t)i * QN__PANEL + c] = best[c] + 0.0f;
        }
        qn__cpu_after_product(pass, thread, layer, panel, first, items, to);
        if (w->bits)
            qn__cpu_note_outputs(pass, layer, first, items, panel, 1);
    }
}

/* The errors of an item, which are 0 before. */
static void pass_item(const qn__cpu_pass *pass, const qn__cpu_layer *l, uint32_t panel,
                      uint32_t item, float *error) {
    const size_t apart = (size_t)pass->batch->items * QN__PANEL;
    const float *delta = l->error + panel * l->out_stride + (size_t)item * QN__PANEL;
    const qn__cover read = pooled_of(pass, l, item);
    if (read.end == 0)
        return;
    if (l->layer->pooling == QN__POOL_MAX) {
        float best[QN__PANEL];
        uint32_t at[QN__PANEL];
        pick(l->input + panel * l->in_stride + row_of(pass, 0, item), apart, read, best, at);
        for (uint32_t c = 0; c < QN__PANEL; ++c)
            error[at[c] * apart + c] = delta[c] + 0.0f;
        return;
    }
    float part[QN__PANEL];
    for (uint32_t c = 0; c < QN__PANEL; ++c) {
        const float share = delta[c] * qn__pooled_share(read);
        part[c] = share + 0.0f;
    }
    for (uint32_t t = read.begin; t < read.end; ++t)
        memcpy(error + t * apart, part, sizeof part);
}

static void backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t rows = l->in_pixels * pass->batch->items;
    const qn__cpu_grid grid = {1, l->in_panels, 1};
    for (uint32_t one, panel; qn__cpu_take(w, thread, phase, grid, &one, &panel);) {
        float *error = qn__cpu_passes(l) + panel * l->below->out_stride;
        memset(error, 0, (size_t)rows * QN__PANEL * sizeof *error);
        for (uint32_t i = 0; i < pass->batch->items; ++i)
            pass_item(pass, l, panel, i, error + (size_t)i * QN__PANEL);
        qn__cpu_after_errors(pass, &w->core[thread], layer, panel, 0, rows);
        if (w->bits)
            qn__cpu_note_passed(pass, layer, 0, rows, panel, 1);
    }
}

const qn__cpu_kind qn__cpu_pooled = {.forward = forward, .backward = backward, .reads_input = 1};
