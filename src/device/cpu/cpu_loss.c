/* The last layer: its product, activation, loss and error, item by item; and errors on their way
 * down. */
#include "device/cpu/cpu_worker.h"
#include "num/elementary.h"
#include "num/sums.h"
#include <math.h>
#include <string.h>

enum { LAST_ITEMS = 12 };

/* Items of one task of the last phase: at most LAST_ITEMS, and such that the tasks part evenly
 * among the threads. */
static uint32_t last_block(uint32_t items, uint32_t threads) {
    const uint32_t share = (items + threads - 1) / threads;
    const uint32_t tasks = (share + LAST_ITEMS - 1) / LAST_ITEMS;
    return (share + tasks - 1) / tasks;
}

/* 6.4, over row[0 .. out-1]; returns the maximum and the sum. */
static void softmax(const qn__cpu_kernels *k, uint32_t out, float *row, float *max, float *sum) {
    float m = row[0], s;
    for (uint32_t j = 1; j < out; ++j)
        m = row[j] > m ? row[j] : m;
    for (uint32_t j = 0; j < out; ++j)
        row[j] = row[j] - m;
    k->exp(out, row, row);
    s = row[0];
    for (uint32_t j = 1; j < out; ++j)
        s = s + row[j];
    for (uint32_t j = 0; j < out; ++j)
        row[j] = row[j] / s;
    *max = m;
    *sum = s;
}

/* 8.3: from g = dL/dy in `g` to delta, in place, for a last layer with softmax. */
static void back_softmax(uint32_t out, const float *y, float *g) {
    float c = 0.0f;
    for (uint32_t j = 0; j < out; ++j)
        c = fmaf(g[j], y[j], c);
    for (uint32_t j = 0; j < out; ++j)
        g[j] = y[j] * (g[j] - c);
}

static int32_t best(uint32_t out, const float *y) {
    uint32_t class = 0;
    for (uint32_t j = 1; j < out; ++j)
        class = y[j] > y[class] ? j : class;
    return (int32_t) class;
}

/* 7.2, 7.3, 8.2, 8.3. `y` holds the outputs, `delta` (room for a padded row) gets the error. */
static float loss_and_error(const qn__program *p, const qn__cpu_kernels *k, const qn__layer *l,
                            uint32_t label, float at_label, float max, float sum, const float *y,
                            float *delta) {
    const float unit = ldexpf(1.0f, (int)p->unit);
    const size_t padded = (l->out + QN__PANEL - 1) / QN__PANEL * QN__PANEL;
    float loss = 0.0f;
    memset(delta + l->out, 0, (padded - l->out) * sizeof *delta);
    for (uint32_t j = 0; j < l->out; ++j)
        delta[j] = y[j] - (j == label ? 1.0f : 0.0f);
    if (p->loss == QN__LOSS_CROSS_ENTROPY) {
        for (uint32_t j = 0; j < l->out; ++j)
            delta[j] = delta[j] * unit;
        return qn__log(sum) - (at_label - max);
    }
    for (uint32_t j = 0; j < l->out; ++j) {
        loss = fmaf(delta[j], delta[j], loss);
        delta[j] = (2.0f * delta[j]) * unit;
    }
    if (l->activation == QN__ACT_SOFTMAX)
        back_softmax(l->out, y, delta);
    else
        k->derive(l->activation, padded, y, delta);
    return loss;
}

static void spread(const float *row, float *panels, uint32_t count, size_t stride, uint32_t item) {
    for (uint32_t p = 0; p < count; ++p)
        memcpy(panels + p * stride + (size_t)item * QN__PANEL, row + p * QN__PANEL,
               QN__PANEL * sizeof *row);
}

void qn__cpu_loss(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t item) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const qn__cpu_layer *l = &w->layer[last];
    const uint32_t out = l->layer->out;
    const size_t padded = (size_t)l->out_panels * QN__PANEL, stride = pass->stride;
    const qn__feed *feed = pass->batch->feed;
    float *row = core->row, *delta = core->row + padded, max = 0.0f, sum = 1.0f, at_label = 0.0f;
    uint32_t label = 0;
    for (uint32_t p = 0; p < l->out_panels; ++p)
        memcpy(row + p * QN__PANEL, l->output + p * stride + (size_t)item * QN__PANEL,
               QN__PANEL * sizeof *row);
    if (feed->labels) {
        label = (uint32_t)feed->labels[qn__cpu_item(pass->batch, item)];
        at_label = row[label];
    }
    if (l->layer->activation == QN__ACT_SOFTMAX)
        softmax(w->kernels, out, row, &max, &sum);
    else
        w->kernels->activate(l->layer->activation, padded, row);
    w->chosen[item] = best(out, row);
    if (feed->labels)
        w->loss[item] =
            loss_and_error(w->program, w->kernels, l->layer, label, at_label, max, sum, row, delta);
    if (pass->training)
        spread(delta, l->error, l->out_panels, stride, item);
    else
        spread(row, l->output, l->out_panels, stride, item);
}

void qn__cpu_transpose(const qn__cpu_layer *layer, uint32_t panel, float *to) {
    const size_t weights = (size_t)layer->in_panels * QN__PANEL * QN__PANEL;
    const float *from = layer->weights + (size_t)panel * QN__PANEL * QN__PANEL;
    for (uint32_t p = 0; p < layer->out_panels; ++p, from += weights, to += QN__PANEL * QN__PANEL)
        for (uint32_t o = 0; o < QN__PANEL; ++o)
            for (uint32_t k = 0; k < QN__PANEL; ++k)
                to[o * QN__PANEL + k] = from[k * QN__PANEL + o];
}

void qn__cpu_errors(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer, uint32_t panel,
                    const float *transposed, uint32_t first, uint32_t rows) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l - 1;
    const size_t stride = pass->stride, at = panel * stride + (size_t)first * QN__PANEL;
    const size_t count = (size_t)rows * QN__PANEL;
    float *error = below->error + at;
    w->kernels->matmul(rows, l->layer->out, l->error + (size_t)first * QN__PANEL, stride,
                       transposed, 0, error, 0, NULL, 1);
    if (below->dropped)
        qn__cpu_dropout(pass, layer - 1, panel, first, rows, error, error);
    w->kernels->derive(below->layer->activation, count, below->output + at, error);
    const uint32_t bits = w->kernels->greatest(count, error);
    if (bits > core->greatest_error[layer - 1])
        core->greatest_error[layer - 1] = bits;
}

void qn__cpu_last(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__worker *w = pass->worker;
    qn__cpu_core *core = &w->core[thread];
    const uint32_t last = w->program->layers - 1;
    const qn__cpu_layer *l = &w->layer[last];
    const size_t stride = pass->stride;
    const size_t weights = (size_t)l->in_panels * QN__PANEL * QN__PANEL;
    const float *input = last == 0        ? w->inputs[w->current]
                         : pass->training ? l->input
                                          : w->layer[last - 1].output;
    const int fused = pass->training && last > 0 && l->layer->out <= QN__FUSE_OUTPUTS;
    /* The inputs of a first layer were packed when they were fetched, in blocks of 16. */
    const uint32_t block =
        w->bits && last == 0 ? QN__PANEL : last_block(pass->items, (uint32_t)w->threads);
    const qn__cpu_grid grid = {(pass->items + block - 1) / block, 1, 1};
    for (uint32_t task, row; qn__cpu_take(w, thread, phase, grid, &task, &row);) {
        const uint32_t first = task * block;
        const uint32_t rows = pass->items - first < block ? pass->items - first : block;
        if (w->bits)
            qn__cpu_whole_last(pass, core, first, rows, input);
        else
            w->kernels->matmul(rows, l->layer->in, input + (size_t)first * QN__PANEL, stride,
                               l->weights, weights, l->output + (size_t)first * QN__PANEL, stride,
                               l->bias, l->out_panels);
        for (uint32_t i = first; i < first + rows; ++i)
            qn__cpu_loss(pass, core, i);
        if (!pass->training)
            continue;
        if (w->bits) {
            w->kernels->fixed->greatest(rows, l->layer->out, l->error + (size_t)first * QN__PANEL,
                                        stride, NULL, l->whole.error.greatest + first);
            if (fused)
                qn__cpu_whole_fused(pass, core, first, rows);
            continue;
        }
        for (uint32_t p = 0; p < l->out_panels; ++p) {
            const uint32_t bits = w->kernels->greatest(
                (size_t)rows * QN__PANEL, l->error + p * stride + (size_t)first * QN__PANEL);
            if (bits > core->greatest_error[last])
                core->greatest_error[last] = bits;
        }
        for (uint32_t panel = 0; fused && panel < l->in_panels; ++panel) {
            qn__cpu_transpose(l, panel, core->scratch);
            qn__cpu_errors(pass, core, last, panel, core->scratch, first, rows);
        }
    }
}

void qn__cpu_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    qn__cpu_core *core = &w->core[thread];
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grid grid = {l->in_panels, 1, 1};
    for (uint32_t panel, row; qn__cpu_take(w, thread, phase, grid, &panel, &row);) {
        qn__cpu_transpose(l, panel, core->scratch);
        qn__cpu_errors(pass, core, layer, panel, core->scratch, 0, pass->items);
    }
}
