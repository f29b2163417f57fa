/* The last layer: its product, activation, loss and error, in one phase.
 *
 * A task has the items of one tile of the product, so its outputs are in the L1 cache when the loss
 * reads them. Losses of single items are chains over outputs, which do not fill a vector. So the
 * task transposes 16 items to lanes, and each operation of the chain is one vector:
 *
 *     panels                            lanes
 *     item 0: o0 o1 o2 ... o15          output 0: i0 i1 i2 ... i15
 *     item 1: o0 o1 o2 ... o15    ->    output 1: i0 i1 i2 ... i15
 *     ...                               ...
 *
 * Each item keeps its own order of operations, so its bytes do not depend on the others. If the
 * layer below is small enough (qn__cpu_is_fused), the task also computes the errors of that layer:
 * cpu_backward.c. */
#include "device/cpu/worker/cpu_lanes.h"
#include "kernels/step.h"
#include "num/elementary.h"
#include "num/elementary_scalar.h"
#include "num/sums.h"
#include <math.h>
#include <string.h>

#define V_FN static inline
#define V_NAME(f) qn__##f
#include "kernels/training/losses.inc"

enum { LAST_ITEMS = 12 };

/* Items of one task of the last phase: at most the rows of one tile, and so that the tasks are
 * divided evenly among the threads. In integer arithmetic the inputs of a first layer were packed
 * in blocks of 16 when they were fetched. */
static uint32_t last_block(const qn__worker *w, uint32_t items) {
    const uint32_t threads = (uint32_t)w->threads, most = w->bits ? QN__PANEL : LAST_ITEMS;
    const uint32_t share = (items + threads - 1) / threads, tasks = (share + most - 1) / most;
    return w->bits && w->program->layers == 1 ? QN__PANEL : (share + tasks - 1) / tasks;
}

/* 8.3: g = dL/dy becomes delta, in place, for a last layer with softmax. */
INLINE void back_softmax(const uint32_t lanes, uint32_t out, const float *y, float *g) {
    for (uint32_t i = 0; i < lanes; ++i) {
        float c = 0.0f;
        for (uint32_t j = 0; j < out; ++j)
            c = fmaf(g[j * lanes + i], y[j * lanes + i], c);
        for (uint32_t j = 0; j < out; ++j)
            g[j * lanes + i] = y[j * lanes + i] * (g[j * lanes + i] - c);
    }
}

/* 6.6 */
INLINE void choose(const uint32_t lanes, uint32_t kind, uint32_t out, const float *y,
                   int32_t class[QN__LANES]) {
    float best[QN__LANES];
    for (uint32_t i = 0; kind == QN_LOSS_BINARY && i < lanes; ++i)
        class[i] = (int32_t)qn__loss_class(y[i]);
    if (kind == QN_LOSS_BINARY)
        return;
    memcpy(best, y, lanes * sizeof *best);
    memset(class, 0, lanes * sizeof *class);
    for (uint32_t j = 1; j < out; ++j)
        for (uint32_t i = 0; i < lanes; ++i) {
            class[i] = y[j * lanes + i] > best[i] ? (int32_t)j : class[i];
            best[i] = y[j * lanes + i] > best[i] ? y[j * lanes + i] : best[i];
        }
}

/* The terms of each item's loss. With classes each item has a label, otherwise a target; a label
 * of -1 is not a class. */
typedef struct loss_state {
    int32_t label[QN__LANES];
    float target[QN__LANES];
    float at_label[QN__LANES], max[QN__LANES], sum[QN__LANES], loss[QN__LANES];
    float weight[QN__LANES],
        factor[QN__LANES]; /* of the item; the same in units: times 2^u (8.1) */
    /* Of a mixed item: its partner's label, and what belongs to it. */
    int32_t other[QN__LANES];
    float at_other[QN__LANES];
    qn__mixing mixing[QN__LANES];
} loss_state;

/* 7.2, 8.2, 17.3 */
INLINE void cross_entropy(const uint32_t lanes, const qn__program *p, const qn__cpu_kernels *k,
                          uint32_t out, const float *y, loss_state *o, float *delta) {
    const float on = qn__smoothed_target(p, 1), off = qn__smoothed_target(p, 0);
    for (uint32_t j = 0; j < out; ++j)
        for (uint32_t i = 0; i < lanes; ++i) {
            const float target = (int32_t)j == o->label[i] ? on : off;
            delta[j * lanes + i] = (y[j * lanes + i] - target) * o->factor[i];
        }
    k->log(lanes, o->sum, o->loss);
    for (uint32_t i = 0; i < lanes; ++i)
        o->loss[i] = o->loss[i] - (o->at_label[i] - o->max[i]);
}

/* 24.57: the same for two labels. */
static void mixed_cross_entropy(const uint32_t lanes, const qn__program *p,
                                const qn__cpu_kernels *k, uint32_t out, const float *y,
                                loss_state *o, float *delta) {
    const float on = qn__smoothed_target(p, 1), off = qn__smoothed_target(p, 0);
    for (uint32_t j = 0; j < out; ++j)
        for (uint32_t i = 0; i < lanes; ++i) {
            const float own = (int32_t)j == o->label[i] ? on : off;
            const float other = (int32_t)j == o->other[i] ? on : off;
            const float target = qn__mix_two(&o->mixing[i], own, other);
            delta[j * lanes + i] = (y[j * lanes + i] - target) * o->factor[i];
        }
    k->log(lanes, o->sum, o->loss);
    for (uint32_t i = 0; i < lanes; ++i) {
        const float own = o->loss[i] - (o->at_label[i] - o->max[i]);
        const float other = o->loss[i] - (o->at_other[i] - o->max[i]);
        o->loss[i] = qn__mix_two(&o->mixing[i], own, other);
    }
}

/* 7.6, 8.2: loss_binary of losses.inc over all lanes. */
INLINE void binary(const uint32_t lanes, const qn__cpu_kernels *k, const float *y, loss_state *o,
                   float *delta) {
    float v[QN__LANES], tail[QN__LANES];
    for (uint32_t i = 0; i < lanes; ++i) {
        delta[i] = (y[i] - o->target[i]) * o->factor[i];
        v[i] = 0.0f < o->target[i] ? 0.0f - o->at_label[i] : o->at_label[i];
        tail[i] = -fabsf(v[i]);
    }
    k->exp(lanes, tail, tail);
    for (uint32_t i = 0; i < lanes; ++i)
        tail[i] = 1.0f + tail[i];
    k->log(lanes, tail, tail);
    for (uint32_t i = 0; i < lanes; ++i)
        o->loss[i] = (0.0f < v[i] ? v[i] : 0.0f) + tail[i];
}

/* 7.3, 8.3 */
INLINE void sum_losses(const uint32_t lanes, const qn__program *p, const qn__cpu_kernels *k,
                       const qn__layer *l, const float *y, loss_state *o, float *delta) {
    for (uint32_t i = 0; i < lanes; ++i) {
        float loss = 0.0f;
        for (uint32_t j = 0; j < l->out; ++j) {
            const float class = (int32_t)j == o->label[i] ? 1.0f : 0.0f;
            const float d = y[j * lanes + i] - (p->real ? o->target[i] : class);
            loss = qn__loss_chain(p->loss, d, p->delta, loss);
            delta[j * lanes + i] = qn__loss_slope(p->loss, d, p->delta) * o->factor[i];
        }
        o->loss[i] = loss;
    }
    if (l->activation == QN__ACT_SOFTMAX)
        back_softmax(lanes, l->out, y, delta);
    else
        k->derive(l->activation, qn__lanes_padded(lanes, l->out), y, delta);
}

INLINE void find_labels(const uint32_t lanes, const qn__cpu_pass *pass, uint32_t first,
                        uint32_t rows, const float *z, loss_state *o) {
    const qn__worker *w = pass->worker;
    const qn__program *p = w->program;
    const qn__feed *feed = pass->batch->feed;
    const float scale = ldexpf(1.0f, (int)p->gradient_scale);
    for (uint32_t i = 0; i < rows; ++i) {
        const uint64_t item = w->fetch.item[w->fetch.current][first + i];
        const int32_t label = feed->labels[item];
        const uint32_t at = p->real || p->loss == QN__LOSS_BINARY ? 0 : (uint32_t)label;
        o->label[i] = p->real ? -1 : label;
        o->target[i] = p->real ? v_float(label) : (float)label;
        o->at_label[i] = z[(size_t)at * lanes + i];
        o->weight[i] = feed->weights ? feed->weights[item] : 1.0f;
        o->factor[i] = o->weight[i] * scale; /* exact, unless it overflows */
    }
    for (uint32_t i = 0; p->mix && pass->training && i < rows; ++i) {
        const uint64_t item = w->fetch.item[w->fetch.current][first + i];
        uint64_t position;
        o->mixing[i] = qn__mix_of(p->mix, p->seed, pass->batch->epoch, item);
        o->other[i] = feed->labels[qn__batch_partner(pass->batch, first + i, &position)];
        o->at_other[i] = z[(size_t)(uint32_t)o->other[i] * lanes + i];
    }
}

/* From the outputs y before the activation, which it replaces, to the errors. */
INLINE void lane_losses(const uint32_t lanes, const qn__cpu_pass *pass, uint32_t first,
                        uint32_t rows, float *y, float *delta) {
    qn__worker *w = pass->worker;
    const qn__program *p = w->program;
    const qn__cpu_layer *l = &w->layer[p->layers - 1];
    const uint32_t out = l->layer->out;
    int32_t class[QN__LANES];
    loss_state o = {.label = {0}, .target = {0}, .at_label = {0}, .sum = {0}, .factor = {0}};
    if (pass->batch->feed->labels)
        find_labels(lanes, pass, first, rows, y, &o);
    if (l->layer->activation == QN__ACT_SOFTMAX)
        qn__lanes_softmax(lanes, w->kernels, out, y, o.max, o.sum);
    else
        w->kernels->activate(l->layer->activation, qn__lanes_padded(lanes, out), y);
    choose(lanes, p->loss, out, y, class);
    memcpy(w->losses.chosen + first, class, rows * sizeof *class);
    if (pass->batch->feed->labels) {
        if (p->mix && pass->training)
            mixed_cross_entropy(lanes, p, w->kernels, out, y, &o, delta);
        else if (p->loss == QN__LOSS_CROSS_ENTROPY)
            cross_entropy(lanes, p, w->kernels, out, y, &o, delta);
        else if (p->loss == QN__LOSS_BINARY)
            binary(lanes, w->kernels, y, &o, delta);
        else
            sum_losses(lanes, p, w->kernels, l->layer, y, &o, delta);
        for (uint32_t i = 0; i < rows; ++i) /* 7.7 */
            o.loss[i] = o.loss[i] * o.weight[i];
        memcpy(w->losses.loss + first, o.loss, rows * sizeof *o.loss);
        memcpy(w->losses.label + first, o.label, rows * sizeof *o.label);
    }
}

static float *deltas_of(const qn__cpu_layer *last, const qn__cpu_core *core) {
    return core->rows + (size_t)last->out_panels * QN__PANEL * QN__LANES;
}

INLINE void losses(const uint32_t lanes, const qn__cpu_pass *pass, qn__cpu_core *core,
                   uint32_t first, uint32_t rows) {
    const qn__cpu_layer *l = &pass->worker->layer[pass->worker->program->layers - 1];
    const uint32_t out = l->layer->out;
    const size_t stride = l->out_stride, at = (size_t)first * QN__PANEL;
    float *y = core->rows, *delta = deltas_of(l, core);
    qn__lanes_gather(lanes, l->output + at, stride, rows, out, y);
    lane_losses(lanes, pass, first, rows, y, delta);
    if (pass->training)
        qn__lanes_spread(lanes, delta, rows, out, l->error + at, stride);
    else
        qn__lanes_spread(lanes, y, rows, out, l->output + at, stride);
}

void qn__cpu_loss(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t first, uint32_t rows) {
    if (rows > QN__FEW_LANES)
        losses(QN__LANES, pass, core, first, rows);
    else
        losses(rows, pass, core, first, rows);
}

void qn__cpu_loss_lanes(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t first, uint32_t rows,
                        float *z, size_t stride) {
    const qn__cpu_layer *l = &pass->worker->layer[pass->worker->program->layers - 1];
    float *y = core->rows, *delta = deltas_of(l, core);
    for (uint32_t o = 0; o < l->layer->out; ++o)
        memcpy(y + o * QN__LANES, z + o * stride, QN__LANES * sizeof *z);
    lane_losses(QN__LANES, pass, first, rows, y, delta);
    for (uint32_t o = 0; o < l->layer->out; ++o)
        memcpy(z + o * stride, delta + o * QN__LANES, QN__LANES * sizeof *z);
}

/* 7.4: the loss of each grain is a sum in the order of positions. */
void qn__cpu_tally_items(const qn__cpu_pass *pass, uint32_t first, uint32_t end,
                         qn__cpu_tally *tally) {
    const qn__worker *w = pass->worker;
    const uint32_t grain = w->program->grain;
    const float *own = w->program->answers ? w->losses.item_loss : w->losses.loss;
    qn__tally *sum = &tally->sum;
    for (; first < end; first += grain) {
        const uint32_t count = end - first < grain ? end - first : grain;
        float loss = 0.0f;
        for (uint32_t i = first; i < first + count; ++i) {
            loss = loss + own[i];
            sum->correct += w->program->answers ? w->losses.item_right[i]
                                                : w->losses.chosen[i] == w->losses.label[i];
        }
        tally->nan |= isnan(loss);
        tally->large |= fabsf(loss) >= QN__LOSS_LIMIT;
        if (!tally->nan && !tally->large)
            tally->full |=
                __builtin_add_overflow(sum->loss, qn__to_units(loss * QN__LOSS_UNIT), &sum->loss);
        sum->items += count;
    }
}

void qn__cpu_last(const qn__cpu_pass *pass, int thread, uint32_t phase) {
    qn__worker *w = pass->worker;
    qn__cpu_core *core = &w->core[thread];
    const uint32_t last = w->program->layers - 1;
    const qn__cpu_layer *l = &w->layer[last];
    const size_t stride = l->out_stride;
    const size_t weights = (size_t)qn__cpu_blocks(l) * QN__PANEL * QN__PANEL;
    const float *input = qn__cpu_input(pass, l);
    const int fused = pass->training && qn__cpu_passes_errors(w, l) && qn__cpu_is_fused(w);
    const size_t panel_weights = (size_t)l->out_panels * QN__PANEL * QN__PANEL;
    const uint32_t block = last_block(w, l->rows);
    const qn__cpu_grid grid = {(l->rows + block - 1) / block, 1, 1};
    int transposed = 0;
    for (uint32_t task, row; qn__cpu_take(w, thread, phase, grid, &task, &row);) {
        const uint32_t first = task * block;
        const uint32_t rows = l->rows - first < block ? l->rows - first : block;
        if (w->bits)
            qn__cpu_intgemm_last(pass, core, first, rows, input);
        else if (w->takes_lists)
            qn__cpu_lists_product(pass, first, rows, 0, l->out_panels);
        else
            w->kernels->matmul(rows, &l->forward, input + (size_t)first * QN__PANEL, l->weights,
                               weights, l->output + (size_t)first * QN__PANEL, stride, l->bias,
                               l->out_panels);
        qn__cpu_loss(pass, core, first, rows);
        if (!pass->training)
            continue;
        if (w->bits) {
            w->intgemm->absmax(rows, l->layer->out, l->error + (size_t)first * QN__PANEL,
                               l->backward.a, NULL, l->intgemm.error.absmax + first);
            if (fused)
                qn__cpu_intgemm_fused(pass, core, first, rows);
            continue;
        }
        for (uint32_t p = 0; p < l->out_panels; ++p) {
            const uint32_t bits = w->kernels->absmax(
                (size_t)rows * QN__PANEL, l->error + p * stride + (size_t)first * QN__PANEL);
            if (bits > core->absmax_error[last])
                core->absmax_error[last] = bits;
        }
        for (uint32_t panel = 0; fused && panel < l->in_panels; ++panel) {
            float *to = core->scratch + panel * panel_weights;
            if (!transposed)
                qn__cpu_transpose(l, panel, to);
            qn__cpu_errors(pass, core, last, panel, to, first, rows);
        }
        transposed = 1;
    }
}
