/* Convolutions in integer arithmetic: forward and errors, run by run (docs/exactness.md 17.12).
 *
 * A run's rows become blocks of a left operand whose depths are all taps of the window; taps
 * outside the picture read zeros. A value becomes an integer once for each tap that reads it. That
 * is less work than the products, and the operand never leaves the L2 cache. cpu_tiles.c does the
 * same by tiles, where it can. */
#include "device/cpu/worker/cpu_worker.h"

#include "num/window_blocks.h"

enum { BLOCK = QN__PANEL * QN__PANEL, MOST_BYTES = 1 << 18 };

uint32_t qn__cpu_run_rows(const qn__worker *w, uint32_t k) {
    const size_t size = w->intgemm->size(w->bits, k);
    uint32_t rows = QN__RUN_ROWS;
    while (rows > QN__PANEL && rows / QN__PANEL * size > MOST_BYTES)
        rows /= 2;
    return rows;
}

void qn__cpu_plain_zeros(const qn__worker *w, size_t count, float *v) {
    const size_t most = (size_t)QN__RUN_ROWS * QN__PANEL;
    for (; count > most; count -= most, v += most)
        w->kernels->add(most, w->nothing, v);
    w->kernels->add(count, w->nothing, v);
}

/* --------------------------------------------------------------------------------------- notes */

static void raise_to(uint32_t *absmax, uint32_t bits) {
    uint32_t old = __atomic_load_n(absmax, __ATOMIC_RELAXED);
    while (old < bits &&
           !__atomic_compare_exchange_n(absmax, &old, bits, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* Panels of one call of the table's absmax, which takes some time for its last step. */
enum { NOTED = 8 };

void qn__cpu_note_rows(const qn__worker *w, uint32_t items, size_t first, uint32_t rows,
                       uint32_t columns, const float *from, size_t stride, const float *times,
                       uint32_t *absmax) {
    size_t blocks[NOTED];
    uint32_t item = (uint32_t)(first % items);
    for (size_t p = 0; p < NOTED; ++p)
        blocks[p] = p * stride;
    for (uint32_t r = 0; r < rows; r += QN__PANEL) {
        const uint32_t n = rows - r < QN__PANEL ? rows - r : QN__PANEL;
        for (uint32_t c = 0; c < columns; c += NOTED * QN__PANEL) {
            const uint32_t k = columns - c < NOTED * QN__PANEL ? columns - c : NOTED * QN__PANEL;
            uint32_t found[QN__PANEL], at = item;
            w->intgemm->absmax(n, k, from + c / QN__PANEL * stride + (size_t)r * QN__PANEL, blocks,
                               times ? times + c : NULL, found);
            for (uint32_t i = 0; i < n; ++i, at = at + 1 < items ? at + 1 : 0)
                raise_to(absmax + at, found[i]);
        }
        item = (item + n) % items;
    }
}

/* Columns of some panels of a layer's outputs. */
static uint32_t columns_of(const qn__cpu_layer *l, uint32_t panel, uint32_t panels) {
    const uint32_t left = l->layer->to.channels - panel * QN__PANEL;
    return left < panels * QN__PANEL ? left : panels * QN__PANEL;
}

void qn__cpu_note_outputs(const qn__cpu_pass *pass, uint32_t layer, size_t first, uint32_t rows,
                          uint32_t panel, uint32_t panels) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    const float *output = pass->training && l->dropped ? l->dropped : l->output;
    if (l->noted)
        qn__cpu_note_rows(pass->worker, pass->batch->items, first, rows,
                          columns_of(l, panel, panels),
                          output + panel * l->out_stride + first * QN__PANEL, l->out_stride, NULL,
                          l->intgemm.output_absmax);
}

void qn__cpu_note_errors(const qn__cpu_pass *pass, uint32_t layer, size_t first, uint32_t rows,
                         uint32_t panel, uint32_t panels) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *own = l->pools ? l->pools : l;
    const uint32_t items = pass->batch->items, columns = columns_of(l, panel, panels);
    const float *error = l->error + panel * l->out_stride + first * QN__PANEL;
    if (!qn__cpu_walks_integers(own))
        return;
    qn__cpu_note_rows(w, items, first, rows, columns, error, l->out_stride, NULL,
                      own->intgemm.error.absmax);
    if (own->below && !qn__layer_has_window_blocks(own->layer))
        qn__cpu_note_rows(w, items, first, rows, columns, error, l->out_stride,
                          own->intgemm.factor + (size_t)panel * QN__PANEL,
                          own->intgemm.scaled_absmax);
}

void qn__cpu_note_passed(const qn__cpu_pass *pass, uint32_t layer, size_t first, uint32_t rows,
                         uint32_t panel, uint32_t panels) {
    const qn__cpu_layer *l = &pass->worker->layer[layer];
    if (!l->branch)
        qn__cpu_note_errors(pass, (uint32_t)(l->below - pass->worker->layer), first, rows, panel,
                            panels);
}

void qn__cpu_begin_notes(qn__worker *w, uint32_t items) {
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        const size_t size = items * sizeof(uint32_t);
        if (l->noted)
            memset(l->intgemm.output_absmax, 0, size);
        if (!qn__cpu_walks_integers(l))
            continue;
        memset(l->intgemm.error.absmax, 0, size);
        if (qn__layer_has_position_blocks(l->layer))
            memset(l->intgemm.input.absmax, 0, size);
        if (l->below)
            memset(l->intgemm.scaled_absmax, 0, size);
    }
}

/* ------------------------------------------------------------------------------------- weights */

void qn__cpu_walk_pack(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_intgemm *packed = &l->intgemm;
    const size_t outputs = (size_t)l->out_panels * QN__PANEL, panel_size = qn__cpu_blocks(l);
    const qn__cpu_grid grid = {l->out_panels, 1, 1};
    for (uint32_t panel, row; qn__cpu_take(w, thread, phase, grid, &panel, &row);) {
        const float *weights = l->weights + panel * panel_size * BLOCK;
        float *factor = packed->factor + (size_t)panel * QN__PANEL;
        float *inverse = packed->inverse + (size_t)panel * QN__PANEL;
        uint32_t absmax[QN__PANEL] = {0};
        w->kernels->absmax_columns(qn__cpu_blocks(l) * QN__PANEL, weights, absmax);
        qn__cpu_block_scales(w->bits, QN__PANEL, absmax, factor, inverse);
        for (uint32_t tap = 1; l->below && tap < l->taps; ++tap) {
            memcpy(factor + tap * outputs, factor, QN__PANEL * sizeof *factor);
            memcpy(inverse + tap * outputs, inverse, QN__PANEL * sizeof *inverse);
        }
        if (l->tiles.way[0].steps)
            qn__cpu_tiles_pack(w, l, panel);
        else
            w->intgemm->right(w->bits, qn__cpu_depth(l), weights, inverse,
                              (char *)packed->right + panel * packed->right_size);
    }
}

void qn__cpu_walk_pack_transposed(const qn__cpu_pass *pass, int thread, uint32_t layer,
                                  uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_intgemm *packed = &l->intgemm;
    const qn__cpu_grid grid = {l->in_panels, 1, 1};
    for (uint32_t panel, row; qn__cpu_take(w, thread, phase, grid, &panel, &row);)
        if (l->tiles.way[1].steps)
            qn__cpu_tiles_pack_back(w, l, panel);
        else
            w->intgemm->right_transposed(
                w->bits, qn__cpu_rows_of(l, panel), qn__cpu_back_depth(l),
                l->weights + (size_t)panel * BLOCK, l->transposed_blocks, packed->inverse,
                (char *)packed->transposed + panel * packed->transposed_size);
}

/* ----------------------------------------------------------------------------------- products */

/* Of `n` rows, the absmax of each, which is a block by itself (25.24). */
static void note_single(uint32_t n, const uint32_t *own, uint32_t items, uint32_t row,
                        uint32_t *absmax) {
    for (uint32_t i = 0; i < n; ++i)
        raise_to(absmax + (row + i) % items, own[i]);
}

/* Packs the rows of a run to core->operand, and their factors. `absmax`: of each item; where the
 * blocks are single positions it becomes theirs, for the gradient. */
static void pack_run(const qn__worker *w, qn__cpu_core *core, const qn__cpu_layer *l,
                     const qn__cpu_walk *walk, const qn__cpu_walk_run *run, uint32_t k,
                     const float *from, size_t stride, const float *times, uint32_t *absmax) {
    const int each = qn__layer_has_window_blocks(l->layer);
    const int single = qn__layer_has_position_blocks(l->layer) && !times; /* those of inputs */
    const size_t size = w->intgemm->size(w->bits, k);
    const uint32_t items = run->rows / run->pixels; /* of a pixel in this run */
    char *to = core->operand;
    uint32_t item = 0;
    qn__cpu_run_taps(walk, run, stride, (size_t)(w->nothing - from), core->blocks);
    for (uint32_t r = 0; r < run->rows; r += QN__PANEL, to += size) {
        const uint32_t left = run->rows - r, n = left < QN__PANEL ? left : QN__PANEL;
        uint32_t own[QN__PANEL];
        float inverse[QN__PANEL];
        if (each)
            w->intgemm->absmax(n, k, from + (size_t)r * QN__PANEL, core->blocks, times, own);
        if (single)
            note_single(n, own, items, r, absmax + run->item);
        for (uint32_t i = 0; i < n && !each; ++i, item = item + 1 < items ? item + 1 : 0)
            own[i] = absmax[run->item + item];
        qn__cpu_block_scales(w->bits, n, own, core->buffer.factor + r, inverse);
        w->intgemm->left(w->bits, n, k, from + (size_t)r * QN__PANEL, core->blocks, times, inverse,
                         to);
    }
}

/* The same of woven pictures: all rows of a block have one pixel. */
static void pack_woven(const qn__worker *w, qn__cpu_core *core, const qn__cpu_layer *l,
                       const qn__cpu_walk_run *run, const uint32_t *absmax) {
    const uint32_t k = qn__cpu_depth(l), items = run->rows / run->pixels;
    const size_t size = w->intgemm->size(w->bits, k);
    const qn__cpu_weft weft = qn__cpu_weft_of(l);
    char *to = core->operand;
    uint32_t row = 0;
    for (uint32_t p = run->x; p < run->x + run->pixels; ++p)
        for (uint32_t i = 0, n; i < items; i += n, row += n, to += size) {
            const size_t block = qn__cpu_woven_floats(l, run->item + i);
            float inverse[QN__PANEL] = {0};
            n = items - i < QN__PANEL ? items - i : QN__PANEL;
            qn__cpu_block_scales(w->bits, n, absmax + run->item + i, core->buffer.factor + row,
                                 inverse);
            w->intgemm->left_across(w->bits, k, w->fetch.woven,
                                    l->input + block + qn__cpu_weft_at(&weft, p) * QN__PANEL,
                                    inverse, to);
        }
}

void qn__cpu_walk_run_product(const qn__cpu_pass *pass, int thread, uint32_t layer,
                              const qn__cpu_walk_run *run, uint32_t panel, uint32_t panels,
                              float *c, size_t c_stride) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_intgemm *packed = &l->intgemm;
    qn__cpu_core *core = &w->core[thread];
    const size_t column = (size_t)panel * QN__PANEL;
    if (l->woven)
        pack_woven(w, core, l, run, packed->input.absmax);
    else
        pack_run(w, core, l, &l->outputs, run, qn__cpu_depth(l), qn__cpu_input(pass, l),
                 l->in_stride, NULL, packed->input.absmax);
    w->intgemm->product(w->bits, run->rows, qn__cpu_depth(l), core->operand, panels,
                        (const char *)packed->right + panel * packed->right_size,
                        core->buffer.factor, packed->factor + column, l->bias + column, c,
                        c_stride);
}

void qn__cpu_walk_product(const qn__cpu_pass *pass, int thread, uint32_t layer,
                          const qn__cpu_walk_run *run, uint32_t panel, uint32_t panels) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    float *c = l->output + panel * l->out_stride + run->row * QN__PANEL;
    qn__cpu_walk_run_product(pass, thread, layer, run, panel, panels, c, l->out_stride);
    for (uint32_t p = 0; p < panels; ++p)
        qn__cpu_plain_zeros(w, (size_t)run->rows * QN__PANEL, c + p * l->out_stride);
}

/* An error is never -0: 2^tc is at least 2^-114, so that no product underflows. */
void qn__cpu_walk_errors(const qn__cpu_pass *pass, int thread, uint32_t layer,
                         const qn__cpu_walk_run *run, uint32_t panel, uint32_t panels) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l->below;
    const qn__cpu_intgemm *packed = &l->intgemm;
    qn__cpu_core *core = &w->core[thread];
    pack_run(w, core, l, &l->inputs, run, qn__cpu_back_depth(l), l->error, l->out_stride,
             packed->factor, packed->scaled_absmax);
    w->intgemm->product(w->bits, run->rows, qn__cpu_back_depth(l), core->operand, panels,
                        (const char *)packed->transposed + panel * packed->transposed_size,
                        core->buffer.factor, NULL, NULL,
                        qn__cpu_passes(l) + panel * below->out_stride + run->row * QN__PANEL,
                        below->out_stride);
}
