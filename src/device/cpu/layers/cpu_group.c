/* Convolutions with groups: docs/exactness.md 17.6.
 *
 * An output reads few channels, so that a product of matrices would multiply zeros mostly. Here
 * each of a panel's 16 lanes is a chain of its own. In a depthwise layer a lane reads the same lane
 * of the input; in others the values of a panel are gathered first. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include <string.h>

enum {
    BLOCK = QN__PANEL * QN__PANEL,
    SLOTS = 9, /* the taps of a 3x3 window */
    SLOT = QN__RUN_ROWS * QN__PANEL,
    MOST_BLOCKS = 32
};

_Static_assert(SLOTS *SLOT <= 3 * QN__WALK_CELLS, "gathered values fit between the sums");

/* Factors of some chains that run together: slots of values, and of weights or sums. */
typedef struct slots {
    uint32_t count;
    size_t a[SLOTS], b[SLOTS];
    float *values;                    /* SLOTS x SLOT, gathered */
    float weights[SLOTS * QN__PANEL]; /* gathered */
} slots;

static int is_direct(const qn__layer *l) {
    return qn__layer_reads(l) == 1 && l->to.channels == l->from.channels;
}

static uint32_t outputs_of_group(const qn__layer *l) { return l->to.channels / l->conv_groups; }

/* `channel[lane]` of rows of 16, or 0 where a lane has no channel. */
static void gather(const float *from, size_t stride, const uint32_t *channel, uint32_t lanes,
                   uint32_t rows, float *to) {
    memset(to, 0, (size_t)rows * QN__PANEL * sizeof *to);
    for (uint32_t o = 0; o < lanes; ++o) {
        const float *x = from + channel[o] / QN__PANEL * stride + channel[o] % QN__PANEL;
        for (size_t r = 0; r < rows; ++r)
            to[r * QN__PANEL + o] = x[r * QN__PANEL];
    }
}

static uint32_t lanes_of(uint32_t channels, uint32_t panel) {
    const uint32_t left = channels - panel * QN__PANEL;
    return left < QN__PANEL ? left : QN__PANEL;
}

/* Factor c of the outputs of a panel. */
static void gather_inputs(const qn__cpu_layer *l, const float *from, uint32_t panel, uint32_t c,
                          uint32_t rows, float *to) {
    const uint32_t lanes = lanes_of(l->layer->to.channels, panel);
    uint32_t channel[QN__PANEL];
    for (uint32_t o = 0; o < lanes; ++o)
        channel[o] =
            (panel * QN__PANEL + o) / outputs_of_group(l->layer) * qn__layer_reads(l->layer) + c;
    gather(from, l->in_stride, channel, lanes, rows, to);
}

/* Errors of output j of their group for the inputs of a panel, and the weights of a tap. */
static void gather_errors(const qn__cpu_layer *l, const float *from, uint32_t panel, uint32_t tap,
                          uint32_t j, uint32_t rows, float *to, float *weights) {
    const uint32_t lanes = lanes_of(l->layer->from.channels, panel),
                   reads = qn__layer_reads(l->layer);
    uint32_t channel[QN__PANEL];
    memset(weights, 0, QN__PANEL * sizeof *weights);
    for (uint32_t i = 0; i < lanes; ++i) {
        const uint32_t c = panel * QN__PANEL + i, o = c / reads * outputs_of_group(l->layer) + j;
        const size_t k = (size_t)tap * reads + c % reads;
        channel[i] = o;
        weights[i] = l->weights[(size_t)(o / QN__PANEL) * qn__cpu_blocks(l) * BLOCK +
                                k * QN__PANEL + o % QN__PANEL];
    }
    gather(from, l->out_stride, channel, lanes, rows, to);
}

/* The blocks of a run's window: rows of values in blocks, taps in blocks + run_blocks. */
static uint32_t taps_of_run(const qn__worker *w, const qn__cpu_walk *walk,
                            const qn__cpu_walk_run *run, size_t *blocks) {
    size_t *tap = blocks + w->run_blocks;
    const uint32_t count = qn__cpu_run_blocks(walk, run, 0, blocks, tap);
    for (uint32_t t = 0; t < count; ++t)
        tap[t] /= BLOCK;
    return count;
}

/* ------------------------------------------------------------------------- forward and backward */

/* A run of a depthwise layer: the factors stand in the same lane. */
static void run_direct(const qn__worker *w, uint32_t count, size_t *blocks,
                       const qn__cpu_walk_run *run, const float *from, const float *weights,
                       const float *start, float *to) {
    size_t *tap = blocks + w->run_blocks;
    for (uint32_t t = 0; t < count; ++t)
        tap[t] *= QN__PANEL;
    w->kernels->lanes(run->rows, count, blocks, from, tap, weights, start, 0, to);
}

/* Goes on with the chains of `to` by the slots, from `start` or, if it is NULL, from `to`. */
static void flush(const qn__worker *w, slots *s, uint32_t rows, const float *weights,
                  const float *start, float *to) {
    w->kernels->lanes(rows, s->count, s->a, s->values, s->b, weights, start ? start : to,
                      start ? 0 : QN__PANEL, to);
    s->count = 0;
}

static void forward_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                        const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const qn__worker *w = pass->worker;
    size_t *blocks = w->core[thread].blocks;
    const uint32_t count = taps_of_run(w, &l->outputs, run, blocks);
    const uint32_t reads = qn__layer_reads(l->layer);
    const float *weights = l->weights + (size_t)panel * qn__cpu_blocks(l) * BLOCK;
    const float *input = qn__cpu_input(pass, l), *start = l->bias + panel * QN__PANEL;
    slots s = {.values = w->core[thread].gradient};
    if (is_direct(l->layer)) {
        run_direct(w, count, blocks, run, input + panel * l->in_stride, weights, start, to);
        return;
    }
    for (uint32_t t = 0; t < count; ++t)
        for (uint32_t c = 0; c < reads; ++c) {
            s.a[s.count] = (size_t)s.count * SLOT;
            s.b[s.count] = (blocks[w->run_blocks + t] * reads + c) * QN__PANEL;
            gather_inputs(l, input + blocks[t], panel, c, run->rows, s.values + s.a[s.count]);
            if (++s.count < SLOTS)
                continue;
            flush(w, &s, run->rows, weights, start, to);
            start = NULL;
        }
    flush(w, &s, run->rows, weights, start, to);
}

static void backward_run(const qn__cpu_pass *pass, int thread, const qn__cpu_layer *l,
                         const qn__cpu_walk_run *run, uint32_t panel, float *to) {
    const qn__worker *w = pass->worker;
    size_t *blocks = w->core[thread].blocks;
    const uint32_t count = taps_of_run(w, &l->inputs, run, blocks);
    const float *start = w->nothing;
    slots s = {.values = w->core[thread].gradient};
    if (is_direct(l->layer)) {
        run_direct(w, count, blocks, run, l->error + panel * l->out_stride,
                   l->weights + (size_t)panel * qn__cpu_blocks(l) * BLOCK, start, to);
        return;
    }
    for (uint32_t t = 0; t < count; ++t)
        for (uint32_t j = 0; j < outputs_of_group(l->layer); ++j) {
            s.a[s.count] = (size_t)s.count * SLOT;
            s.b[s.count] = (size_t)s.count * QN__PANEL;
            gather_errors(l, l->error + blocks[t], panel, (uint32_t)blocks[w->run_blocks + t], j,
                          run->rows, s.values + s.a[s.count], s.weights + s.b[s.count]);
            if (++s.count < SLOTS)
                continue;
            flush(w, &s, run->rows, s.weights, start, to);
            start = NULL;
        }
    flush(w, &s, run->rows, s.weights, start, to);
}

void qn__cpu_group_forward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grid grid = {qn__cpu_runs(&l->outputs), l->out_panels, 1};
    float *output = qn__cpu_target(pass, l)->output;
    for (uint32_t index, panel; qn__cpu_take(w, thread, phase, grid, &index, &panel);) {
        const qn__cpu_walk_run run = qn__cpu_run_at(&l->outputs, index);
        float *to = output + panel * l->out_stride + run.row * QN__PANEL;
        forward_run(pass, thread, l, &run, panel, to);
        qn__cpu_follow(pass, thread, layer, panel, (uint32_t)run.row, run.rows, to);
        if (w->bits)
            qn__cpu_note_outputs(pass, layer, run.row, run.rows, panel, 1);
    }
}

void qn__cpu_group_backward(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_grid grid = {qn__cpu_runs(&l->inputs), l->in_panels, 1};
    for (uint32_t index, panel; qn__cpu_take(w, thread, phase, grid, &index, &panel);) {
        const qn__cpu_walk_run run = qn__cpu_run_at(&l->inputs, index);
        backward_run(pass, thread, l, &run, panel,
                     qn__cpu_passes(l) + panel * l->below->out_stride + run.row * QN__PANEL);
        qn__cpu_after_errors(pass, &w->core[thread], layer, panel, (uint32_t)run.row, run.rows);
        if (w->bits)
            qn__cpu_note_passed(pass, layer, run.row, run.rows, panel, 1);
    }
}

/* ------------------------------------------------------------------------------------- gradient */

/* Some rows of weights of a panel of outputs, k from `first` to end - 1. */
typedef struct task {
    const qn__cpu_layer *l;
    uint32_t panel, first, end;
    uint32_t items; /* of the batch */
} task;

static void flush_sums(const qn__worker *w, slots *s, uint32_t items, const float *values,
                       const float *d, float *partial) {
    w->kernels->lane_sums(items, s->count, s->a, values, d, s->b, partial);
    s->count = 0;
}

/* Rows of items that the next pixel needs: between two pixels are those of other grains, so that
 * the hardware prefetcher does not find them. */
static void prefetch(const float *rows, uint32_t items) {
    for (size_t i = 0; i < items; ++i)
        __builtin_prefetch(rows + i * QN__PANEL, 0, 3);
}

/* One output pixel, some items of a grain. */
static void add_pixel(const qn__worker *w, const task *t, uint32_t y, uint32_t x, uint32_t item,
                      uint32_t items, slots *s, float *partial) {
    const qn__cpu_layer *l = t->l;
    const qn__cpu_axis *axis = l->outputs.axis;
    const uint32_t reads = qn__layer_reads(l->layer);
    const int direct = is_direct(l->layer);
    const float *values = direct ? l->input + t->panel * l->in_stride : s->values;
    const float *d = l->error + t->panel * l->out_stride +
                     (((size_t)y * axis[1].size + x) * t->items + item) * QN__PANEL;
    const size_t pixel = (size_t)t->items * QN__PANEL;
    const uint32_t ahead = x + 1 < axis[1].size && items < t->items ? items : 0;
    prefetch(d + pixel, ahead);
    for (uint32_t k = t->first; k < t->end; ++k) {
        const int64_t iy = qn__cpu_reads(&axis[0], y, k / reads / axis[1].kernel);
        const int64_t ix = qn__cpu_reads(&axis[1], x, k / reads % axis[1].kernel);
        if (iy < 0 || ix < 0)
            continue;
        const size_t row = ((size_t)(iy * axis[1].limit + ix) * t->items + item) * QN__PANEL;
        s->a[s->count] = direct ? row : (size_t)s->count * SLOT;
        s->b[s->count] = (size_t)(k - t->first) * QN__PANEL;
        if (!direct)
            gather_inputs(l, l->input + row, t->panel, k % reads, items,
                          s->values + s->a[s->count]);
        else if (k % axis[1].kernel + axis[1].stride >= axis[1].kernel)
            prefetch(values + row + axis[1].stride * pixel, ahead); /* a column that is new there */
        if (++s->count == SLOTS)
            flush_sums(w, s, items, values, d, partial);
    }
    flush_sums(w, s, items, values, d, partial);
}

/* The partials of one grain. Lanes after the last output are 0. */
static void add_grain(const qn__worker *w, const task *t, uint32_t item, uint32_t items, slots *s,
                      float *partial) {
    const qn__cpu_axis *axis = t->l->outputs.axis;
    const uint32_t lanes = lanes_of(t->l->layer->to.channels, t->panel), rows = t->end - t->first;
    for (uint32_t y = 0; y < axis[0].size; ++y)
        for (uint32_t x = 0; x < axis[1].size; ++x)
            for (uint32_t i = 0; i < items; i += QN__RUN_ROWS)
                add_pixel(w, t, y, x, item + i, items - i < QN__RUN_ROWS ? items - i : QN__RUN_ROWS,
                          s, partial);
    for (size_t k = 0; k < rows && lanes < QN__PANEL; ++k)
        memset(partial + k * QN__PANEL + lanes, 0, (QN__PANEL - lanes) * sizeof *partial);
}

/* Sums over all grains, and what follows from them. Returns 1 when a partial was out of range. */
static int gradient_task(const qn__cpu_pass *pass, int thread, const task *t) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = t->l;
    const size_t cells = (size_t)(t->end - t->first + QN__PANEL - 1) / QN__PANEL * BLOCK;
    const uint32_t grain = w->program->grain;
    float *partial = w->core[thread].gradient;
    slots gathered = {.values = partial + QN__WALK_CELLS};
    qn__cpu_sums s = {.kind = QN__SUMS_INT64, .update = pass->update};
    int bad = 0;
    s.wide = (int64_t *)(void *)((char *)partial + QN__WALK_GRADIENT) - QN__WALK_CELLS;
    memset(s.wide, 0, cells * sizeof *s.wide);
    for (uint32_t item = 0; item < t->items; item += grain) {
        const uint32_t left = t->items - item;
        memset(partial, 0, cells * sizeof *partial);
        add_grain(w, t, item, left < grain ? left : grain, &gathered, partial);
        bad |= qn__cpu_add_partials(w, 1, cells, partial, s.wide);
    }
    for (size_t from = 0; from < cells && !bad; from += BLOCK) {
        const uint32_t block = t->first / QN__PANEL + (uint32_t)(from / BLOCK);
        const uint32_t rows = qn__cpu_rows_of(l, block);
        qn__cpu_keep_weights(pass, l, block, rows, t->panel, &s, from);
    }
    return bad;
}

void qn__cpu_group_gradient(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t groups = qn__cpu_groups(l), depth = l->layer->depth;
    const qn__cpu_grid grid = {groups, l->tasks, 1};
    for (uint32_t group, row; qn__cpu_take(w, thread, phase, grid, &group, &row);) {
        if (pass->outlet)
            group = groups - 1 - group;
        const uint32_t panel = group * QN__OUT_GROUP + row;
        int bad = 0;
        for (uint32_t k = 0; panel < l->out_panels && k < depth; k += MOST_BLOCKS * QN__PANEL) {
            const uint32_t end = k + MOST_BLOCKS * QN__PANEL;
            const task t = {l, panel, k, end < depth ? end : depth, pass->batch->items};
            bad |= gradient_task(pass, thread, &t);
        }
        if (panel < l->out_panels && !pass->outlet)
            bad |= qn__cpu_bias_task(pass, layer, panel);
        if (bad)
            qn__cpu_failed(&w->core[thread], layer);
        if (pass->outlet)
            qn__cpu_progress(pass, thread, layer, group);
    }
}
