/* The last layer in slices, in float32: its products, and the gradient slice by slice
 * (cpu_slices.h). */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include <string.h>

enum { BLOCK = QN__PANEL * QN__PANEL, PIECE_ROWS = 96 };

/* What the last layer reads, and floats between two panels. */
static const float *inputs_of(const qn__cpu_pass *pass, const qn__cpu_slice *s, size_t *stride) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    *stride = qn__cpu_slice_is_together(pass, s) ? l->in_stride : s->stride;
    return qn__cpu_slice_is_together(pass, s)
               ? qn__cpu_input(pass, l) + (size_t)s->pixel * s->items * QN__PANEL
               : w->slices.input;
}

static void slice_inputs(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                         uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const float *input = qn__cpu_input(pass, l);
    const qn__cpu_grid grid = {l->in_panels, 1, 1};
    if (qn__cpu_slice_is_together(pass, s))
        return;
    for (uint32_t p, row; qn__cpu_take(w, thread, phase, grid, &p, &row);)
        qn__cpu_slice_copy(pass, s, 0, s->rows, input + p * l->in_stride,
                           w->slices.input + p * s->stride, 1);
}

/* Where the panels of a left operand begin: the chain of a product of depth k. */
static qn__cpu_chain chain_of(const qn__worker *w, int thread, uint32_t panels, size_t stride,
                              uint32_t k) {
    return (qn__cpu_chain){.k = k,
                           .a = qn__cpu_slice_panels(w, thread, panels, stride),
                           .b = w->weight_blocks,
                           .positive = 1};
}

/* Runs of rows by groups of panels. A thread takes all runs of a group, one after the other, so
 * that the group's weights are read from memory once. */
static qn__cpu_grid grid_of(const qn__worker *w, uint32_t panels, const qn__cpu_slice *s,
                            uint32_t *width) {
    const uint32_t runs = (s->rows + QN__RUN_ROWS - 1) / QN__RUN_ROWS;
    const uint32_t least = w->kernels->panels, threads = (uint32_t)w->threads;
    *width = least;
    while (*width < QN__PANEL && (panels + 2 * *width - 1) / (2 * *width) >= 8 * threads)
        *width *= 2;
    return (qn__cpu_grid){(panels + *width - 1) / *width, runs, 1};
}

static void slice_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                          uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const size_t weights = (size_t)qn__cpu_blocks(l) * BLOCK;
    size_t stride;
    const float *a = inputs_of(pass, s, &stride);
    const qn__cpu_chain chain = chain_of(w, thread, l->in_panels, stride, l->channels);
    uint32_t width;
    const qn__cpu_grid grid = grid_of(w, l->out_panels, s, &width);
    for (uint32_t group, run; qn__cpu_take(w, thread, phase, grid, &group, &run);) {
        const uint32_t panel = group * width, beside = l->out_panels - panel;
        const uint32_t first = run * QN__RUN_ROWS, left = s->rows - first;
        w->kernels->matmul(left < QN__RUN_ROWS ? left : QN__RUN_ROWS, &chain,
                           a + (size_t)first * QN__PANEL, l->weights + panel * weights, weights,
                           l->output + panel * s->stride + (size_t)first * QN__PANEL, s->stride,
                           l->bias + panel * QN__PANEL, beside < width ? beside : width);
    }
}

static void slice_errors(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                         uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const size_t weights = (size_t)l->out_panels * BLOCK;
    const qn__cpu_chain chain =
        chain_of(w, thread, l->out_panels, s->stride, l->out_panels * QN__PANEL);
    const uint32_t width = w->kernels->panels;
    const qn__cpu_grid grid = {(l->in_panels + width - 1) / width,
                               (s->rows + QN__RUN_ROWS - 1) / QN__RUN_ROWS, 1};
    float *own = qn__cpu_slice_is_together(pass, s) ? NULL : w->core[thread].slice;
    for (uint32_t group, run; qn__cpu_take(w, thread, phase, grid, &group, &run);) {
        const uint32_t panel = group * width, beside = l->in_panels - panel;
        const uint32_t first = run * QN__RUN_ROWS, left = s->rows - first;
        const uint32_t panels = beside < width ? beside : width;
        const uint32_t rows = left < QN__RUN_ROWS ? left : QN__RUN_ROWS;
        const size_t stride = own ? QN__RUN_ROWS * QN__PANEL : l->below->out_stride;
        float *to = own ? own
                        : qn__cpu_passes(l) + panel * stride +
                              ((size_t)s->pixel * s->items + first) * QN__PANEL;
        w->kernels->matmul(rows, &chain, l->error + (size_t)first * QN__PANEL,
                           l->transposed + panel * weights, weights, to, stride, NULL, panels);
        for (uint32_t p = 0; p < panels; ++p)
            qn__cpu_slice_finish(pass, thread, s, panel + p, first, rows,
                                 own ? own + p * stride : NULL);
    }
}

/* ---------------------------------------------------------------------------------- the gradient
 */

/* Panels of inputs from `in` on by panels of outputs from `out` on: partials
 * [input][output][16][16]
 */
typedef struct task {
    uint32_t in, inputs, out, panels;
    float *partial;
} task;

/* Continues the chains of a task by the rows of a slice. */
static void add_slice(const qn__cpu_pass *pass, const qn__cpu_slice *s, const task *t) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    size_t stride;
    const float *a = inputs_of(pass, s, &stride);
    for (uint32_t q = 0; q < s->rows; q += PIECE_ROWS) {
        const size_t at = (size_t)q * QN__PANEL;
        const uint32_t left = s->rows - q, rows = left < PIECE_ROWS ? left : PIECE_ROWS;
        for (uint32_t k = 0; k < t->inputs; ++k) {
            const size_t ahead = left > PIECE_ROWS ? (size_t)PIECE_ROWS * QN__PANEL : 0;
            const qn__cpu_span span = {.items = rows,
                                       .columns = 1,
                                       .rows = 1,
                                       .a_ahead = ahead,
                                       .d_ahead = k == 0 ? ahead : 0};
            float *partial = t->partial + (size_t)k * t->panels * BLOCK;
            w->kernels->outer(&span, a + (t->in + k) * stride + at, NULL,
                              l->error + t->out * s->stride + at, s->stride,
                              s->begins && q == 0 ? NULL : partial, QN__PARTIAL_RAW, partial,
                              t->panels);
        }
    }
}

/* Copies a block of partials [16][16] to or from where its sums will be. A row of these has room
 * for 16 floats, unless there are fewer than 8 inputs. So where the block is not full, a row has
 * the partials of its own output. */
static void lend_block(const qn__cpu_pass *pass, uint32_t in, uint32_t out, float *partial,
                       int back) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const size_t stride = l->layer->depth * sizeof(int64_t), row = QN__PANEL * sizeof *partial;
    const uint32_t inputs = qn__cpu_rows_of(l, in), left = qn__cpu_outputs(l) - out * QN__PANEL;
    const uint32_t outputs = left < QN__PANEL ? left : QN__PANEL;
    const int full = inputs == QN__PANEL && outputs == QN__PANEL;
    char *words = (char *)qn__cpu_slice_words(pass, in, out);
    if (back && !full)
        memset(partial, 0, BLOCK * sizeof *partial);
    for (uint32_t r = 0; r < outputs; ++r, words += stride) {
        if (full) {
            memcpy(back ? (char *)(partial + r * QN__PANEL) : words,
                   back ? words : (const char *)(partial + r * QN__PANEL), row);
            continue;
        }
        for (uint32_t k = 0; k < inputs; ++k) {
            char *own = (char *)(partial + (size_t)k * QN__PANEL + r);
            char *lent = words + k * sizeof *partial;
            memcpy(back ? own : lent, back ? lent : own, sizeof *partial);
        }
    }
}

static void lend(const qn__cpu_pass *pass, const task *t, int back) {
    for (uint32_t k = 0; k < t->inputs; ++k)
        for (uint32_t p = 0; p < t->panels; ++p)
            lend_block(pass, t->in + k, t->out + p,
                       t->partial + ((size_t)k * t->panels + p) * BLOCK, back);
}

/* The partials of a grain are complete. Returns 1 if one was out of range. */
static int keep_weights(const qn__cpu_pass *pass, const qn__cpu_slice *s, const task *t,
                        const qn__cpu_summing *how) {
    static const qn__cpu_span nothing;
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    qn__cpu_sums_space buffer;
    qn__cpu_sums sums = {.narrow = buffer.narrow, .wide = buffer.wide, .partial = buffer.partial};
    int bad = 0;
    qn__cpu_slice_turn(pass, s, w->slices.weight_sums, &sums);
    for (uint32_t k = 0; k < t->inputs; ++k) {
        float *partial = t->partial + (size_t)k * t->panels * BLOCK;
        const uint32_t rows = qn__cpu_rows_of(l, t->in + k);
        sums.kind = how->narrow ? QN__SUMS_FLOAT : QN__SUMS_INT64;
        if (how->narrow) {
            w->kernels->outer(&nothing, partial, NULL, partial, 0, partial, QN__PARTIAL_ONLY,
                              sums.partial, t->panels);
        } else {
            memset(sums.wide, 0, (size_t)t->panels * BLOCK * sizeof *sums.wide);
            for (uint32_t p = 0; p < t->panels; ++p)
                bad |= qn__cpu_add_partials(w, 1, (size_t)rows * QN__PANEL,
                                            partial + (size_t)p * BLOCK,
                                            sums.wide + (size_t)p * BLOCK);
        }
        for (uint32_t p = 0; p < t->panels && !bad; ++p)
            qn__cpu_keep_weights(pass, l, t->in + k, rows, t->out + p, &sums, (size_t)p * BLOCK);
    }
    return bad;
}

static void slice_gradient(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                           uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const qn__cpu_layer *l = &w->layer[last];
    const qn__cpu_summing how = qn__cpu_choose_sums(pass, last);
    qn__cpu_walk_task own;
    while (qn__cpu_take_walk(pass, thread, last, phase, &own)) {
        const uint32_t in = own.row * l->task_taps, left = l->in_panels - in;
        task t = {.in = in,
                  .inputs = left < l->task_taps ? left : l->task_taps,
                  .out = own.out,
                  .panels = own.panels,
                  .partial = w->core[thread].gradient};
        int bad = 0;
        if (w->slices.keeps_partials)
            t.partial = (float *)w->slices.partial +
                        ((size_t)own.out * l->in_panels + (size_t)in * own.panels) * BLOCK;
        if (w->slices.lends && !s->begins)
            lend(pass, &t, 1);
        add_slice(pass, s, &t);
        if (s->ends)
            bad = keep_weights(pass, s, &t, &how);
        else if (w->slices.lends)
            lend(pass, &t, 0);
        for (uint32_t p = 0; in == 0 && p < own.panels; ++p)
            bad |= qn__cpu_slice_biases(pass, s, own.out + p);
        if (bad)
            qn__cpu_failed(&w->core[thread], last);
        if (pass->outlet && s->ends && s->last)
            qn__cpu_slice_tell(pass, thread, own.group, in == 0 ? own.panels : 0);
    }
}

const qn__cpu_slice_way qn__cpu_slices_float = {slice_inputs, slice_forward, slice_errors,
                                                slice_gradient};
