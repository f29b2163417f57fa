/* Weights and rows of a batch as operands of integer products, and the phases that pack and
 * multiply them in the forward and backward pass. */
#include "device/cpu/worker/cpu_worker.h"
#include <string.h>

enum { BLOCK = QN__PANEL * QN__PANEL, MOST_ITEMS = 256, MOST_BYTES = 1 << 20 };

/* ------------------------------------------------------------------------------------- weights */

static uint32_t panels_of(const qn__cpu_layer *l, uint32_t group) {
    const uint32_t left = l->out_panels - group * QN__OUT_GROUP;
    return left < QN__OUT_GROUP ? left : QN__OUT_GROUP;
}

/* Packs all of a panel once every strip is new. The strips are packed already where the exponents
 * have not changed, which is true for nearly all columns in most steps. */
static void pack_panel(const qn__worker *w, const qn__cpu_layer *l, uint32_t panel) {
    const qn__cpu_intgemm *packed = &l->intgemm;
    const uint32_t strips = qn__cpu_strips(l);
    const uint32_t *strip = qn__cpu_strip_absmax(l, panel, 0);
    float *factor = packed->factor + (size_t)panel * QN__PANEL;
    float *inverse = packed->inverse + (size_t)panel * QN__PANEL;
    float before[QN__PANEL];
    uint32_t absmax[QN__PANEL] = {0};
    for (uint32_t s = 0; s < strips; ++s, strip += QN__PANEL)
        for (uint32_t c = 0; c < QN__PANEL; ++c)
            absmax[c] = strip[c] > absmax[c] ? strip[c] : absmax[c];
    memcpy(before, inverse, sizeof before);
    qn__cpu_block_scales(w->bits, QN__PANEL, absmax, factor, inverse);
    if (w->intgemm->right_part && memcmp(before, inverse, sizeof before) == 0)
        return;
    w->intgemm->right(w->bits, qn__cpu_depth(l),
                      l->weights + (size_t)panel * qn__cpu_blocks(l) * BLOCK, inverse,
                      (char *)packed->right + panel * packed->right_size);
}

void qn__cpu_strip_changed(const qn__worker *w, uint32_t layer, uint32_t out, uint32_t strip) {
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_intgemm *packed = &l->intgemm;
    const qn__intgemm *intgemm = w->intgemm;
    const uint32_t first = strip * QN__STRIP * QN__PANEL, left = qn__cpu_depth(l) - first;
    const uint32_t rows = left < QN__STRIP * QN__PANEL ? left : QN__STRIP * QN__PANEL;
    const float *weights =
        l->weights + ((size_t)out * qn__cpu_blocks(l) + strip * QN__STRIP) * BLOCK;
    if (intgemm->right_part)
        intgemm->right_part(w->bits, qn__cpu_depth(l), first, rows, weights,
                            packed->inverse + (size_t)out * QN__PANEL,
                            (char *)packed->right + out * packed->right_size);
}

void qn__cpu_count_strips(qn__worker *w, uint32_t layer, uint32_t group, uint32_t strips) {
    const qn__cpu_layer *l = &w->layer[layer];
    const uint32_t all = panels_of(l, group) * qn__cpu_strips(l);
    atomic_uint *changed = &l->intgemm.changed[group].tasks;
    if (atomic_fetch_add_explicit(changed, strips, memory_order_acq_rel) + strips < all)
        return;
    atomic_store_explicit(changed, 0, memory_order_relaxed);
    for (uint32_t p = 0; p < panels_of(l, group); ++p)
        pack_panel(w, l, group * QN__OUT_GROUP + p);
}

void qn__cpu_begin_changes(qn__worker *w) {
    for (uint32_t i = 0; i < w->program->layers && w->bits; ++i)
        for (uint32_t g = 0; g < qn__cpu_groups(&w->layer[i]); ++g)
            atomic_store_explicit(&w->layer[i].intgemm.changed[g].tasks, 0, memory_order_relaxed);
}

void qn__cpu_pack_transposed(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_intgemm *packed = &l->intgemm;
    const qn__cpu_grid grid = {qn__cpu_blocks(l), 1, 1};
    for (uint32_t block, row; qn__cpu_take(w, thread, phase, grid, &block, &row);)
        w->intgemm->right_transposed(w->bits, qn__cpu_rows_of(l, block), l->layer->out,
                                     l->weights + (size_t)block * BLOCK, l->transposed_blocks,
                                     packed->inverse,
                                     (char *)packed->transposed + block * packed->transposed_size);
}

/* --------------------------------------------------------------------------------------- rows */

void qn__cpu_pack_rows(const qn__worker *w, uint32_t rows, uint32_t k, const float *from,
                       const size_t *blocks, const float *times, void *left, float *factor,
                       uint32_t *absmax) {
    float inverse[QN__PANEL];
    w->intgemm->absmax(rows, k, from, blocks, times, absmax);
    qn__cpu_block_scales(w->bits, rows, absmax, factor, inverse);
    w->intgemm->left(w->bits, rows, k, from, blocks, times, inverse, left);
}

/* Packs the block of `rows` that begins with item `first`, a multiple of 16. */
static void pack_block(const qn__worker *w, uint32_t first, uint32_t rows, uint32_t k,
                       const float *from, const size_t *blocks, const float *times,
                       uint32_t *absmax, const qn__cpu_rows *to) {
    const size_t size = w->intgemm->size(w->bits, k);
    qn__cpu_pack_rows(w, rows, k, from + (size_t)first * QN__PANEL, blocks, times,
                      (char *)to->left + first / QN__PANEL * size, to->factor + first, absmax);
}

void qn__cpu_intgemm_fetched(const qn__worker *w, uint32_t first, uint32_t rows,
                             const float *inputs, const size_t *blocks, qn__cpu_rows *to) {
    pack_block(w, first, rows, w->layer[0].layer->in, inputs, blocks, NULL, to->absmax + first, to);
}

static uint32_t at_most_16(uint32_t items, uint32_t first) {
    return items - first < QN__PANEL ? items - first : QN__PANEL;
}

static qn__cpu_grid blocks_of(const qn__cpu_layer *l) {
    return (qn__cpu_grid){(l->rows + QN__PANEL - 1) / QN__PANEL, 1, 1};
}

void qn__cpu_pack_inputs(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_rows *to = &l->intgemm.input;
    const float *input = qn__cpu_input(pass, l);
    for (uint32_t block, row; qn__cpu_take(w, thread, phase, blocks_of(l), &block, &row);) {
        const uint32_t first = block * QN__PANEL;
        pack_block(w, first, at_most_16(l->rows, first), qn__cpu_depth(l), input, l->forward.a,
                   NULL, to->absmax + first, to);
    }
}

/* A first layer needs only the absmax: there is no layer below. */
void qn__cpu_pack_errors(const qn__cpu_pass *pass, int thread, uint32_t layer, uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_rows *to = &l->intgemm.error;
    for (uint32_t block, row; qn__cpu_take(w, thread, phase, blocks_of(l), &block, &row);) {
        const uint32_t first = block * QN__PANEL, rows = at_most_16(l->rows, first);
        uint32_t absmax[QN__PANEL];
        w->intgemm->absmax(rows, l->layer->out, l->error + (size_t)first * QN__PANEL, l->backward.a,
                           NULL, to->absmax + first);
        if (l->below)
            pack_block(w, first, rows, l->layer->out, l->error, l->backward.a, l->intgemm.factor,
                       absmax, to);
    }
}

uint32_t qn__cpu_not_finite(const qn__cpu_pass *pass) {
    const qn__worker *w = pass->worker;
    for (uint32_t l = 0; l < w->program->layers; ++l)
        for (uint32_t i = 0; i < pass->batch->items && qn__layer_is_integer(&w->program->layer[l]);
             ++i)
            if (w->layer[l].intgemm.input.absmax[i] >= QN__INFINITE)
                return l;
    return w->program->layers;
}

/* ----------------------------------------------------------------------------------- products */

/* As many items as fit the L2 cache beside a group of panels, so that panels are read rarely; but
 * fewer if cores would be idle. */
uint32_t qn__cpu_intgemm_items(const qn__cpu_pass *pass, uint32_t rows, size_t size,
                               uint32_t groups) {
    const uint64_t tasks = 2 * (uint64_t)pass->worker->threads;
    uint32_t items = MOST_ITEMS;
    while (items > QN__PANEL && items / QN__PANEL * size > MOST_BYTES)
        items /= 2;
    while (items > QN__PANEL && (rows + items - 1) / items * (uint64_t)groups < tasks)
        items /= 2;
    return items;
}

void qn__cpu_intgemm_product(const qn__cpu_pass *pass, uint32_t layer, uint32_t first,
                             uint32_t rows, uint32_t panel, uint32_t panels) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer];
    const qn__cpu_intgemm *packed = &l->intgemm;
    const int width = qn__cpu_width(pass, layer);
    const size_t size = w->intgemm->size(width, qn__cpu_depth(l));
    float *c = l->output + panel * l->out_stride + (size_t)first * QN__PANEL;
    w->intgemm->product(width, rows, qn__cpu_depth(l),
                        (const char *)packed->input.left + first / QN__PANEL * size, panels,
                        (const char *)packed->right + panel * packed->right_size,
                        packed->input.factor + first, packed->factor + (size_t)panel * QN__PANEL,
                        l->bias + (size_t)panel * QN__PANEL, c, l->out_stride);
    for (uint32_t p = 0; p < panels && l->taps > 1; ++p)
        qn__cpu_plain_zeros(w, (size_t)rows * QN__PANEL, c + p * l->out_stride);
}

void qn__cpu_intgemm_last(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t first,
                          uint32_t rows, const float *input) {
    const qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const qn__cpu_layer *l = &w->layer[last];
    const qn__cpu_intgemm *packed = &l->intgemm;
    float factor[QN__PANEL], *c = l->output + (size_t)first * QN__PANEL;
    if (last == 0) {
        qn__cpu_intgemm_product(pass, 0, first, rows, 0, l->out_panels);
        return;
    }
    qn__cpu_pack_rows(w, rows, qn__cpu_depth(l), input + (size_t)first * QN__PANEL, l->forward.a,
                      NULL, core->operand, factor, packed->input.absmax + first);
    w->intgemm->product(w->bits, rows, qn__cpu_depth(l), core->operand, l->out_panels,
                        packed->right, factor, packed->factor, l->bias, c, l->out_stride);
    for (uint32_t p = 0; p < l->out_panels && l->taps > 1; ++p)
        qn__cpu_plain_zeros(w, (size_t)rows * QN__PANEL, c + p * l->out_stride);
}

/* What follows the errors that `layer` passed, for some rows and some panels of outputs below. */
static void after_errors(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t layer,
                         uint32_t panel, uint32_t panels, uint32_t first, uint32_t rows) {
    for (uint32_t p = panel; p < panel + panels; ++p)
        qn__cpu_after_errors(pass, core, layer, p, first, rows);
    qn__cpu_note_passed(pass, layer, first, rows, panel, panels);
}

void qn__cpu_intgemm_fused(const qn__cpu_pass *pass, qn__cpu_core *core, uint32_t first,
                           uint32_t rows) {
    const qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const qn__cpu_layer *l = &w->layer[last], *below = l->below;
    float factor[QN__PANEL], *error = below->error + (size_t)first * QN__PANEL;
    uint32_t absmax[QN__PANEL];
    qn__cpu_pack_rows(w, rows, l->layer->out, l->error + (size_t)first * QN__PANEL, l->backward.a,
                      l->intgemm.factor, core->operand, factor, absmax);
    w->intgemm->product(w->bits, rows, l->layer->out, core->operand, l->in_panels,
                        l->intgemm.transposed, factor, NULL, NULL, error, below->out_stride);
    after_errors(pass, core, last, 0, l->in_panels, first, rows);
    if (qn__cpu_is_dense_integer(w, below))
        w->intgemm->absmax(rows, below->layer->out, error, below->backward.a, NULL,
                           below->intgemm.error.absmax + first);
}

void qn__cpu_intgemm_backward(const qn__cpu_pass *pass, int thread, uint32_t layer,
                              uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[layer], *below = l->below;
    const qn__cpu_intgemm *packed = &l->intgemm;
    const uint32_t groups = (l->in_panels + QN__OUT_GROUP - 1) / QN__OUT_GROUP; /* of a pixel */
    const uint32_t height =
        qn__cpu_intgemm_items(pass, l->rows, packed->transposed_size, groups * l->taps);
    const qn__cpu_grid grid = {groups * l->taps, (l->rows + height - 1) / height, 0};
    for (uint32_t group, block; qn__cpu_take(w, thread, phase, grid, &group, &block);) {
        const uint32_t tap = group / groups, panel = group % groups * QN__OUT_GROUP;
        const uint32_t first = block * height, row = tap * l->rows + first; /* of the errors */
        const uint32_t left = l->rows - first, beside = l->in_panels - panel;
        const uint32_t rows = left < height ? left : height;
        const uint32_t panels = beside < QN__OUT_GROUP ? beside : QN__OUT_GROUP;
        w->intgemm->product(
            w->bits, rows, l->layer->out,
            (const char *)packed->error.left + first / QN__PANEL * packed->transposed_size, panels,
            (const char *)packed->transposed +
                ((size_t)tap * l->in_panels + panel) * packed->transposed_size,
            packed->error.factor + first, NULL, NULL,
            qn__cpu_passes(l) + panel * below->out_stride + (size_t)row * QN__PANEL,
            below->out_stride);
        after_errors(pass, &w->core[thread], layer, panel, panels, row, rows);
    }
}
