/* The last layer in slices, in integer arithmetic (cpu_slices.h).
 *
 * A position is a block of inputs and of errors (docs/exactness.md 25.24): logits and errors below
 * are those of a slice. But in the gradient a block is a grain. The integers of its errors depend
 * on the greatest of them, and so on slices that come later. A slice is summed with the greatest
 * error up to it, since a later one is rarely so much greater that the exponent is another. Where
 * it is, the sums begin anew, and the slices before come once more at the end of the grain. The
 * sums are exact, so they have no order:
 *
 *     slice 0: 2^-3    slice 1: 2^-2    slice 2: 2^-2    slice 0 again: 2^-2
 *     sums             new sums         added            added; complete
 *
 * Between two slices there are the exact sums, 8 bytes for each weight. In a step of one grain
 * those of tied weights stand where its sums will be. */
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include <math.h>
#include <string.h>

enum { BLOCK = QN__PANEL * QN__PANEL };

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static const qn__cpu_layer *last_of(const qn__worker *w) {
    return &w->layer[w->program->layers - 1];
}

/* -------------------------------------------------------------------------------------- inputs */

void qn__cpu_slices_note(const qn__cpu_pass *pass, int thread) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = last_of(w);
    const uint64_t rows = l->in_rows, threads = (uint64_t)w->threads;
    const uint32_t first = (uint32_t)(rows * (uint64_t)thread / threads);
    const uint32_t end = (uint32_t)(rows * ((uint64_t)thread + 1) / threads);
    qn__cpu_note_rows(w, pass->batch->items, first, end - first, l->channels,
                      qn__cpu_input(pass, l) + (size_t)first * QN__PANEL, l->in_stride, NULL,
                      l->intgemm.input.absmax);
}

/* Sixteen rows from row `first` of the slice on, or fewer: the left operand of their logits. */
static void pack_rows(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                      uint32_t first) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = last_of(w);
    const uint32_t rows = least(s->rows - first, QN__PANEL);
    const int together = qn__cpu_slice_is_together(pass, s);
    const size_t stride = together ? l->in_stride : s->stride, at = (size_t)first * QN__PANEL;
    const float *input = qn__cpu_input(pass, l);
    const float *from =
        together ? input + (size_t)s->pixel * s->items * QN__PANEL + at : w->slices.input + at;
    uint32_t absmax[QN__PANEL];
    for (uint32_t p = 0; p < l->in_panels && !together; ++p)
        qn__cpu_slice_copy(pass, s, first, rows, input + p * l->in_stride,
                           w->slices.input + p * s->stride + at, 1);
    qn__cpu_pack_rows(
        w, rows, l->channels, from, qn__cpu_slice_panels(w, thread, l->in_panels, stride), NULL,
        (char *)w->slices.left + first / QN__PANEL * w->intgemm->size(w->bits, l->channels),
        w->slices.factor + first, absmax);
}

/* Depths from row `first` of the slice on: their rows in the pass, or in the slice if `own`. */
static uint32_t list_depths(const qn__cpu_pass *pass, qn__cpu_core *core, const qn__cpu_slice *s,
                            uint32_t first, int own, float inverse) {
    const uint32_t count = least(s->rows - first, QN__CHUNK);
    qn__cpu_rows_space *buffer = &core->buffer;
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t row = first + i;
        buffer->list[own][i] = own ? row : qn__cpu_slice_row(s, pass->batch->items, row);
        buffer->inverse[own][i] = inverse;
    }
    return count;
}

/* Where the depths from row `first` on begin in the left operand of the gradient. */
static char *depths_at(const qn__worker *w, uint32_t first) {
    return (char *)w->slices.depths + (size_t)(first / QN__CHUNK) * last_of(w)->in_panels *
                                          w->intgemm->size(w->bits, QN__CHUNK);
}

/* A panel of inputs as the left operand of the gradient. The greatest input of a grain is known. */
static void pack_depths(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                        uint32_t panel) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = last_of(w);
    qn__cpu_core *core = &w->core[thread];
    uint32_t absmax = 0;
    float factor, inverse;
    for (uint32_t i = s->item; i < s->item + s->items; ++i)
        absmax = l->intgemm.input.absmax[i] > absmax ? l->intgemm.input.absmax[i] : absmax;
    qn__cpu_block_scales(w->bits, 1, &absmax, &factor, &inverse);
    for (uint32_t first = 0; first < s->rows; first += QN__CHUNK) {
        const uint32_t count = list_depths(pass, core, s, first, 0, inverse);
        w->intgemm->left_items(w->bits, count, core->buffer.list[0], core->buffer.inverse[0], NULL,
                               qn__cpu_input(pass, l) + panel * l->in_stride,
                               depths_at(w, first) + panel * w->intgemm->size(w->bits, count));
    }
}

static void slice_inputs(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                         uint32_t phase) {
    qn__worker *w = pass->worker;
    const int trains = pass->training && qn__program_trains(w->program, w->program->layers - 1);
    const qn__cpu_grid rows = {(s->rows + QN__PANEL - 1) / QN__PANEL, 1, 1};
    const qn__cpu_grid panels = {trains ? last_of(w)->in_panels : 0, 1, 1};
    for (uint32_t block, row; qn__cpu_take(w, thread, phase, rows, &block, &row);)
        pack_rows(pass, thread, s, block * QN__PANEL);
    for (uint32_t panel, row; qn__cpu_take(w, thread, phase + 1, panels, &panel, &row);)
        pack_depths(pass, thread, s, panel);
}

/* ------------------------------------------------------------------------------ logits, errors */

/* Groups of panels by runs of rows. A thread takes all runs of a group, one after the other, so
 * that the group's weights are read from memory once. */
static void slice_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                          uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = last_of(w);
    const qn__cpu_intgemm *packed = &l->intgemm;
    const size_t size = w->intgemm->size(w->bits, l->channels);
    const uint32_t runs = (s->rows + QN__RUN_ROWS - 1) / QN__RUN_ROWS;
    const qn__cpu_grid grid = {(l->out_panels + QN__OUT_GROUP - 1) / QN__OUT_GROUP, runs, 1};
    for (uint32_t group, run; qn__cpu_take(w, thread, phase, grid, &group, &run);) {
        const uint32_t panel = group * QN__OUT_GROUP, first = run * QN__RUN_ROWS;
        const uint32_t panels = least(l->out_panels - panel, QN__OUT_GROUP);
        const uint32_t rows = least(s->rows - first, QN__RUN_ROWS);
        const size_t column = (size_t)panel * QN__PANEL;
        float *to = l->output + panel * s->stride + (size_t)first * QN__PANEL;
        w->intgemm->product(
            w->bits, rows, l->channels, (const char *)w->slices.left + first / QN__PANEL * size,
            panels, (const char *)packed->right + panel * packed->right_size,
            w->slices.factor + first, packed->factor + column, l->bias + column, to, s->stride);
        for (uint32_t p = 0; p < panels; ++p)
            qn__cpu_plain_zeros(w, (size_t)rows * QN__PANEL, to + p * s->stride);
    }
}

/* After the errors of some rows, all panels: the layers below that multiply them note the greatest.
 */
static void note_passed(const qn__cpu_pass *pass, const qn__cpu_slice *s, uint32_t first,
                        uint32_t rows) {
    const qn__cpu_layer *l = last_of(pass->worker);
    for (uint32_t q = first, n; q < first + rows; q += n) {
        n = least(s->items - q % s->items, first + rows - q);
        qn__cpu_note_passed(pass, pass->worker->program->layers - 1,
                            qn__cpu_slice_row(s, pass->batch->items, q), n, 0, l->in_panels);
    }
}

static void slice_errors(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                         uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = last_of(w);
    const qn__cpu_intgemm *packed = &l->intgemm;
    const uint32_t k = l->layer->to.channels, most = qn__cpu_run_rows(w, k);
    const size_t size = w->intgemm->size(w->bits, k);
    const int together = qn__cpu_slice_is_together(pass, s);
    qn__cpu_core *core = &w->core[thread];
    const qn__cpu_grid grid = {(s->rows + most - 1) / most, 1, 1};
    for (uint32_t run, row; qn__cpu_take(w, thread, phase, grid, &run, &row);) {
        const uint32_t first = run * most, rows = least(s->rows - first, most);
        const size_t stride = together ? l->below->out_stride : (size_t)QN__RUN_ROWS * QN__PANEL;
        float *to = together ? qn__cpu_passes(l) + ((size_t)s->pixel * s->items + first) * QN__PANEL
                             : core->slice;
        const size_t *panels = qn__cpu_slice_panels(w, thread, l->out_panels, s->stride);
        uint32_t absmax[QN__PANEL];
        for (uint32_t r = 0; r < rows; r += QN__PANEL)
            qn__cpu_pack_rows(w, least(rows - r, QN__PANEL), k,
                              l->error + (size_t)(first + r) * QN__PANEL, panels, packed->factor,
                              (char *)core->operand + r / QN__PANEL * size, core->buffer.factor + r,
                              absmax);
        w->intgemm->product(w->bits, rows, k, core->operand, l->in_panels, packed->transposed,
                            core->buffer.factor, NULL, NULL, to, stride);
        for (uint32_t p = 0; p < l->in_panels; ++p)
            qn__cpu_slice_finish(pass, thread, s, p, first, rows,
                                 together ? NULL : to + p * stride);
        note_passed(pass, s, first, rows);
    }
}

/* ---------------------------------------------------------------------------------- the gradient
 */

void qn__cpu_slice_follow(const qn__cpu_pass *pass, qn__cpu_slice *s, qn__cpu_slice_state *state) {
    const qn__worker *w = pass->worker;
    const uint32_t *absmax = last_of(w)->intgemm.error.absmax + s->item;
    uint32_t most = 0;
    for (uint32_t i = 0; i < s->items; ++i)
        most = absmax[i] > most ? absmax[i] : most;
    const int32_t exponent = qn__block_exponent(w->bits, most);
    if (s->begins)
        *state = (qn__cpu_slice_state){.exponent = exponent};
    s->fresh = s->begins || exponent != state->exponent;
    if (!s->begins && s->fresh && state->any)
        state->wrong = s->part;
    s->closes =
        s->ends && !(state->wrong && qn__program_trains(w->program, w->program->layers - 1));
    state->exponent = exponent;
    state->any |= most > 0;
}

/* Some panels of inputs by some of outputs: exact sums [input][output][16][16]. */
typedef struct task {
    const qn__cpu_pass *pass;
    qn__cpu_core *core;
    const qn__cpu_slice *slice;
    const qn__cpu_layer *l;
    uint32_t in, inputs, out, panels;
    int64_t *exact, *some;
} task;

/* The errors of a task from row `first` of the slice on, as a right operand. Returns how many. */
static uint32_t pack_errors(const task *t, uint32_t first) {
    const qn__worker *w = t->pass->worker;
    qn__cpu_rows_space *buffer = &t->core->buffer;
    const uint32_t count =
        list_depths(t->pass, t->core, t->slice, first, 1, t->core->plan.grain->error);
    for (uint32_t p = 0; p < t->panels; ++p)
        w->intgemm->right_items(w->bits, count, buffer->list[1], buffer->inverse[1], NULL,
                                t->l->error + (t->out + p) * t->slice->stride,
                                (char *)buffer->right + p * w->intgemm->size(w->bits, count));
    return count;
}

/* Adds what a chunk gives, whose errors are packed. */
static void add_chunk(const task *t, uint32_t first, uint32_t count) {
    const qn__worker *w = t->pass->worker;
    const size_t size = w->intgemm->size(w->bits, count);
    w->intgemm->outer(w->bits, count, t->inputs, depths_at(w, first) + t->in * size, t->panels,
                      t->core->buffer.right, QN__INTGEMM_INTEGER, 1.0, first ? t->some : t->exact);
    for (size_t i = 0; first && i < (size_t)t->inputs * t->panels * BLOCK; ++i)
        t->exact[i] += t->some[i];
}

/* Sixteen by sixteen sums between two slices: rows `stride` apart. Where they stand among the words
 * of the step and the block is not full, `turned`: they have a row for each output. */
typedef struct kept {
    int64_t *at;
    size_t stride;
    uint32_t inputs, outputs;
    int turned;
} kept;

static kept kept_at(const task *t, uint32_t b, uint32_t p) {
    const qn__worker *w = t->pass->worker;
    const uint32_t in = t->in + b, out = t->out + p;
    if (!w->slices.lends)
        return (kept){(int64_t *)w->slices.partial + ((size_t)out * t->l->in_panels + in) * BLOCK,
                      QN__PANEL, QN__PANEL, QN__PANEL, 0};
    kept k = {qn__cpu_slice_words(t->pass, in, out), t->l->layer->depth, qn__cpu_rows_of(t->l, in),
              least(qn__cpu_outputs(t->l) - out * QN__PANEL, QN__PANEL), 0};
    k.turned = k.inputs < QN__PANEL || k.outputs < QN__PANEL;
    return k;
}

/* Adds what was kept of the slices before, and keeps the sum unless it is complete. */
static void add_kept(const task *t, const kept *k, int64_t *exact) {
    const qn__cpu_slice *s = t->slice;
    for (uint32_t r = 0; r < (k->turned ? k->inputs : QN__PANEL); ++r)
        for (uint32_t c = 0; c < (k->turned ? k->outputs : QN__PANEL); ++c) {
            int64_t *own = k->at + (k->turned ? c * k->stride + r : r * k->stride + c);
            int64_t *sum = exact + r * QN__PANEL + c;
            *sum += s->fresh ? 0 : *own;
            if (!s->closes)
                *own = *sum;
        }
}

static void add_all_kept(const task *t) {
    for (uint32_t p = 0; p < t->panels; ++p)
        for (uint32_t b = 0; b < t->inputs; ++b) {
            const kept k = kept_at(t, b, p);
            add_kept(t, &k, t->exact + ((size_t)p * t->inputs + b) * BLOCK);
        }
}

/* The sums of a grain are complete. Returns 1 if one was out of range. */
static int keep_weights(const task *t) {
    const qn__worker *w = t->pass->worker;
    const qn__cpu_plan *plan = &t->core->plan;
    const int32_t exponent = plan->grain->exponent;
    const size_t count = (size_t)t->inputs * t->panels * BLOCK;
    const double factor = ldexp(1.0, exponent - plan->shift);
    qn__cpu_sums sums = {.narrow = (double *)(void *)t->some, .wide = t->some + QN__INT_CELLS};
    qn__update update = {0};
    int bad = 0;
    qn__cpu_slice_turn(t->pass, t->slice, w->slices.weight_sums, &sums);
    sums.kind = plan->kind;
    sums.shift = plan->shift;
    if (sums.update && !sums.kept) {
        update = *sums.update;
        update.gradient = ldexpf(update.gradient, plan->shift);
        sums.update = &update;
    }
    for (size_t i = 0; i < count && sums.kind == QN__SUMS_DOUBLE; ++i)
        sums.narrow[i] = (double)t->exact[i] * factor;
    if (sums.kind == QN__SUMS_INT64)
        memset(sums.wide, 0, count * sizeof *sums.wide);
    for (uint32_t i = 0; i < t->inputs * t->panels && sums.kind == QN__SUMS_INT64; ++i)
        bad |= qn__cpu_add_units(w, exponent,
                                 (size_t)qn__cpu_rows_of(t->l, t->in + i % t->inputs) * QN__PANEL,
                                 t->exact + (size_t)i * BLOCK, sums.wide + (size_t)i * BLOCK);
    for (uint32_t i = 0; i < t->inputs * t->panels && !bad; ++i) {
        const uint32_t in = t->in + i % t->inputs;
        qn__cpu_keep_weights(t->pass, t->l, in, qn__cpu_rows_of(t->l, in), t->out + i / t->inputs,
                             &sums, (size_t)i * BLOCK);
    }
    return bad;
}

/* A group of panels of outputs. Returns 1 if a sum was out of range. */
static int add_group(const qn__cpu_pass *pass, qn__cpu_core *core, const qn__cpu_slice *s,
                     const qn__cpu_walk_task *own) {
    const qn__cpu_layer *l = last_of(pass->worker);
    const uint32_t most = QN__TILES_BLOCKS, parts = (l->in_panels - 1) / most + 1;
    const uint32_t each = (l->in_panels - 1) / parts + 1;
    const int adds = core->plan.grain->waits;
    task t = {
        .pass = pass, .core = core, .slice = s, .l = l, .out = own->out, .panels = own->panels};
    uint32_t count = 0;
    int bad = 0;
    t.exact = (int64_t *)(void *)core->gradient;
    t.some = t.exact + QN__INT_CELLS;
    for (; t.in < l->in_panels; t.in += t.inputs) {
        t.inputs = least(l->in_panels - t.in, each);
        if (!adds)
            memset(t.exact, 0, (size_t)t.inputs * t.panels * BLOCK * sizeof *t.exact);
        for (uint32_t first = 0; adds && first < s->rows; first += count) {
            if (s->rows > QN__CHUNK || t.in == 0)
                count = pack_errors(&t, first);
            add_chunk(&t, first, count);
        }
        if (!s->fresh || !s->closes)
            add_all_kept(&t);
        if (s->closes)
            bad |= keep_weights(&t);
    }
    return bad;
}

static void slice_gradient(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                           uint32_t phase) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    qn__cpu_core *core = &w->core[thread];
    qn__cpu_plan_walk(pass, last, s->item, s->items, &core->plan);
    for (qn__cpu_walk_task own; qn__cpu_take_walk(pass, thread, last, phase, &own);) {
        int bad = core->plan.bad || add_group(pass, core, s, &own);
        for (uint32_t p = 0; p < own.panels; ++p)
            bad |= qn__cpu_slice_biases(pass, s, own.out + p);
        if (bad)
            qn__cpu_failed(core, last);
        if (pass->outlet && s->closes && s->last)
            qn__cpu_slice_tell(pass, thread, own.group, own.panels);
    }
}

const qn__cpu_slice_way qn__cpu_slices_integers = {slice_inputs, slice_forward, slice_errors,
                                                   slice_gradient};
