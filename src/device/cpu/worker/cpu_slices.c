/* See cpu_slices.h.
 *
 * With 50,257 words the logits of 1,024 positions take 196 MiB, more than all other outputs. The
 * last layer therefore goes through a grain slice by slice, each of some positions:
 *
 *     slice 0: logits | loss | errors below, gradient      positions 0 .. 255
 *     slice 1: logits | loss | errors below, gradient      positions 256 .. 511
 *     ...
 *
 * A logit, a loss and an error below are functions of one position: slices change nothing. The
 * chain of a weight goes over the positions of a grain. It is stored after a slice and continues in
 * the next one, so its order stays, too. After the last slice of a grain its partials are complete,
 * are rounded to integers, and added to the sums of other grains.
 *
 * What this takes: the partials, one float for each weight, and with several grains in a step their
 * sums. So training has slices only where that is less than the logits. A slice may be a whole
 * grain, which has no partials between slices. The sums of tied weights are there anyway (25.15).
 * In a step of one grain they are not used before the last slice, and lend the partials room. */
#include "device/cpu/worker/cpu_slices.h"
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include <string.h>

/* A slice has as many rows as have logits of so many bytes, at least LEAST_ROWS: with fewer the
 * weights and their partials would come from memory too often. A piece is what stays in a cache
 * while a task of the gradient uses it. */
#define SLICE_BYTES ((size_t)64 << 20)
enum { BLOCK = QN__PANEL * QN__PANEL, LEAST_ROWS = 128, PIECE_ROWS = 96 };

/* ------------------------------------------------------------------------------------ the shape */

/* Whether the last layer is a product of each pixel by itself, with a loss of each. */
static int can_slice(const qn__worker *w) {
    const qn__program *p = w->program;
    const qn__cpu_layer *l = &w->layer[p->layers - 1];
    return p->answers > 0 && !p->sequences && l->points && l->below && !l->branch_place.bytes &&
           l->transposed_weights;
}

static size_t weights_of(const qn__cpu_layer *l) {
    return (size_t)l->out_panels * qn__cpu_blocks(l) * BLOCK;
}

/* Bytes of logits of so many rows. */
static size_t logits_of(const qn__cpu_layer *l, size_t rows) {
    return (rows + 1) * l->out_panels * QN__PANEL * sizeof(float) + 64;
}

/* Training with slices of so many rows, or with slices that are whole grains: the bytes. */
static size_t bytes_of(const qn__cpu_layer *l, size_t rows, size_t sums, int keeps_partials) {
    return logits_of(l, rows) + sums + (keeps_partials ? weights_of(l) * sizeof(float) : 0);
}

/* The rows of a slice in training; 0: whole passes take less memory, or nearly as little. */
static uint32_t rows_in_training(qn__worker *w, uint32_t rows) {
    const qn__program *p = w->program;
    const qn__cpu_layer *l = &w->layer[p->layers - 1];
    const size_t items = w->capacity - 1, grain = p->grain < items ? p->grain : items;
    const size_t of_grain = grain * l->out_pixels, least = rows < grain ? grain : rows;
    const size_t whole = logits_of(l, items * l->out_pixels);
    const int trains = qn__program_trains(p, p->layers - 1), cuts = least < of_grain;
    /* The sums of a step of tied weights are there anyway. */
    const int keeps_sums = trains && items > grain && !qn__program_tied(p);
    const size_t sums = keeps_sums ? weights_of(l) * sizeof(int64_t) : 0;
    const int lends = trains && items <= grain && qn__program_tied(p);
    const size_t by_grains = bytes_of(l, of_grain, sums, 0);
    const size_t by_rows = cuts ? bytes_of(l, least, sums, trains && !lends) : SIZE_MAX;
    const int always = p->slice_bytes > 0, by_row = by_rows < by_grains || (always && cuts);
    if (!always && (by_row ? by_rows : by_grains) >= whole - whole / 8)
        return 0;
    w->slices.lends = by_row && lends;
    w->slices.keeps_partials = by_row && trains && !lends;
    w->slices.keeps_sums = keeps_sums;
    return (uint32_t)(by_row ? least : of_grain);
}

void qn__cpu_slices_shape(qn__worker *w) {
    qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    memset(&w->slices, 0, sizeof w->slices);
    if (!can_slice(w))
        return;
    const size_t bytes = w->program->slice_bytes ? w->program->slice_bytes : SLICE_BYTES;
    const size_t fit = bytes / ((size_t)l->out_panels * QN__PANEL * sizeof(float));
    const size_t least = w->program->slice_bytes ? 1 : LEAST_ROWS;
    const size_t rows = fit < least ? least : fit;
    if (rows >= UINT32_MAX || l->output_place.bytes == SIZE_MAX ||
        l->output_place.bytes <= logits_of(l, rows))
        return;
    w->slices.applied = (uint32_t)rows;
    w->slices.trained = rows_in_training(w, (uint32_t)rows);
    if (w->slices.trained) {
        const size_t most = w->slices.trained < rows ? rows : w->slices.trained;
        l->output_place.bytes = logits_of(l, most);
    }
}

void qn__cpu_slices_carve(qn__cpu_arena *a, qn__worker *w) {
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const size_t weights = weights_of(l), biases = (size_t)l->out_panels * QN__PANEL;
    const uint32_t most =
        w->slices.trained > w->slices.applied ? w->slices.trained : w->slices.applied;
    const size_t rows = most ? (size_t)most + 1 : 0, width = (size_t)l->in_panels * QN__PANEL;
    w->slices.input = qn__cpu_carve(a, rows, width * sizeof(float));
    w->slices.partial = qn__cpu_carve(a, w->slices.keeps_partials ? weights : 0, sizeof(float));
    w->slices.bias_partial = qn__cpu_carve(a, most ? biases : 0, sizeof(float));
    w->slices.weight_sums = qn__cpu_carve(a, w->slices.keeps_sums ? weights : 0, sizeof(int64_t));
    w->slices.bias_sums = qn__cpu_carve(a, w->slices.keeps_sums ? biases : 0, sizeof(int64_t));
}

size_t qn__cpu_slice_space(const qn__worker *w) {
    return w->slices.trained ? (size_t)QN__RUN_ROWS * QN__PANEL * w->kernels->panels : 0;
}

int qn__cpu_is_sliced(const qn__cpu_pass *pass) {
    const qn__worker *w = pass->worker;
    return (pass->training ? w->slices.trained : w->slices.applied) > 0;
}

/* Items of a slice, its pixels, and slices of the same items. */
static uint32_t items_of(const qn__cpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const uint32_t most = pass->training ? w->program->grain : w->slices.applied;
    return pass->batch->items < most ? pass->batch->items : most;
}

static uint32_t slices_of(const qn__cpu_pass *pass, uint32_t items) {
    const qn__worker *w = pass->worker;
    const uint32_t rows = pass->training ? w->slices.trained : w->slices.applied;
    const uint32_t pixels = rows > items ? rows / items : 1;
    return (w->layer[w->program->layers - 1].out_pixels + pixels - 1) / pixels;
}

uint32_t qn__cpu_slices(const qn__cpu_pass *pass) {
    const uint32_t items = items_of(pass);
    return (pass->batch->items - 1) / items * slices_of(pass, items) + slices_of(pass, items);
}

qn__cpu_slice qn__cpu_slice_at(const qn__cpu_pass *pass, uint32_t index) {
    const uint32_t items = items_of(pass), each = slices_of(pass, items);
    const uint64_t pixels = pass->worker->layer[pass->worker->program->layers - 1].out_pixels;
    const uint32_t item = index / each * items, part = index % each;
    const uint32_t left = pass->batch->items - item;
    qn__cpu_slice s = {.item = item,
                       .items = left < items ? left : items,
                       .pixel = (uint32_t)(pixels * part / each),
                       .begins = part == 0,
                       .ends = part + 1 == each,
                       .first = item == 0,
                       .last = left <= items};
    s.pixels = (uint32_t)(pixels * (part + 1) / each) - s.pixel;
    s.rows = s.items * s.pixels;
    s.stride = qn__cpu_stride(s.rows);
    return s;
}

qn__cpu_slice qn__cpu_whole(const qn__cpu_pass *pass) {
    const qn__cpu_layer *l = &pass->worker->layer[pass->worker->program->layers - 1];
    return (qn__cpu_slice){.items = pass->batch->items,
                           .pixels = l->out_pixels,
                           .rows = l->rows,
                           .stride = l->out_stride,
                           .begins = 1,
                           .ends = 1,
                           .first = 1,
                           .last = 1};
}

/* ------------------------------------------------------------------------- inputs and products */

/* Whether the rows of a slice follow one another among those of the pass. */
static int is_together(const qn__cpu_pass *pass, const qn__cpu_slice *s) {
    return s->items == pass->batch->items;
}

/* What the last layer reads, and floats between two panels. */
static const float *inputs_of(const qn__cpu_pass *pass, const qn__cpu_slice *s, size_t *stride) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    *stride = is_together(pass, s) ? l->in_stride : s->stride;
    return is_together(pass, s) ? qn__cpu_input(pass, l) + (size_t)s->pixel * s->items * QN__PANEL
                                : w->slices.input;
}

/* Copies rows of a panel between a slice and the pass, from row `first` of the slice on. */
static void copy_rows(const qn__cpu_pass *pass, const qn__cpu_slice *s, uint32_t first,
                      uint32_t rows, const float *from, float *to, int into_slice) {
    for (uint32_t q = first, n; q < first + rows; q += n) {
        const uint32_t left = s->items - q % s->items, most = first + rows - q;
        const size_t slice = (size_t)(q - first) * QN__PANEL;
        const size_t whole = (size_t)qn__cpu_slice_row(s, pass->batch->items, q) * QN__PANEL;
        n = left < most ? left : most;
        memcpy(to + (into_slice ? slice : whole), from + (into_slice ? whole : slice),
               (size_t)n * QN__PANEL * sizeof *to);
    }
}

void qn__cpu_slice_inputs(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                          uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const float *input = qn__cpu_input(pass, l);
    const qn__cpu_grid grid = {l->in_panels, 1, 1};
    if (is_together(pass, s))
        return;
    for (uint32_t p, row; qn__cpu_take(w, thread, phase, grid, &p, &row);)
        copy_rows(pass, s, 0, s->rows, input + p * l->in_stride, w->slices.input + p * s->stride,
                  1);
}

/* Where the panels of a left operand begin: the chain of a product of depth k. */
static qn__cpu_chain chain_of(const qn__worker *w, int thread, uint32_t panels, size_t stride,
                              uint32_t k) {
    size_t *blocks = w->core[thread].blocks;
    for (size_t p = 0; p < panels; ++p)
        blocks[p] = p * stride;
    return (qn__cpu_chain){.k = k, .a = blocks, .b = w->weight_blocks, .positive = 1};
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

void qn__cpu_slice_forward(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
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

/* Errors of the layer below, of a panel and some rows. Those of items that are not together are in
 * `from`. */
static void finish_errors(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                          uint32_t panel, uint32_t first, uint32_t rows, const float *from) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1, all = pass->batch->items;
    const qn__cpu_layer *l = &w->layer[last];
    if (from)
        copy_rows(pass, s, first, rows, from, qn__cpu_passes(l) + panel * l->below->out_stride, 0);
    for (uint32_t q = first, n; q < first + rows; q += n) {
        const uint32_t left = s->items - q % s->items, most = first + rows - q;
        n = from && left < most ? left : most;
        qn__cpu_after_errors(pass, &w->core[thread], last, panel, qn__cpu_slice_row(s, all, q), n);
    }
}

void qn__cpu_slice_errors(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                          uint32_t phase) {
    qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const size_t weights = (size_t)l->out_panels * BLOCK;
    const qn__cpu_chain chain =
        chain_of(w, thread, l->out_panels, s->stride, l->out_panels * QN__PANEL);
    const uint32_t width = w->kernels->panels;
    const qn__cpu_grid grid = {(l->in_panels + width - 1) / width,
                               (s->rows + QN__RUN_ROWS - 1) / QN__RUN_ROWS, 1};
    float *own = is_together(pass, s) ? NULL : w->core[thread].slice;
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
            finish_errors(pass, thread, s, panel + p, first, rows, own ? own + p * stride : NULL);
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

/* How the sums of a grain go on: alone, or with those of the others before it and after it. */
static void set_turn(const qn__cpu_pass *pass, const qn__cpu_slice *s, int64_t *kept,
                     qn__cpu_sums *sums) {
    sums->update = pass->update;
    sums->adds = !s->first;
    sums->more = !s->last;
    sums->kept = pass->update && !(s->first && s->last) ? kept : NULL;
}

/* Where the sums of a block of weights will be, a row of them for each output. */
static char *sums_of(const qn__cpu_pass *pass, uint32_t in, uint32_t out) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    int64_t *words = pass->outlet ? pass->outlet->words : w->step_sums;
    const uint64_t first = qn__program_sum(w->program, qn__layer_matrix(l->layer));
    return (char *)(words + first + (uint64_t)out * QN__PANEL * l->layer->depth +
                    qn__cpu_first_of(l, in));
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
    char *words = sums_of(pass, in, out);
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
    set_turn(pass, s, w->slices.weight_sums, &sums);
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

/* The biases of a panel of outputs: their chains go over the rows, too. Returns the same. */
static int add_biases(const qn__cpu_pass *pass, const qn__cpu_slice *s, uint32_t out) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const float *d = l->error + out * s->stride;
    float *partial = w->slices.bias_partial + (size_t)out * QN__PANEL;
    int64_t wide[QN__PANEL] = {0};
    qn__cpu_sums sums = {.wide = wide, .kind = QN__SUMS_INT64};
    if (l->layer->no_biases)
        return 0;
    if (s->begins)
        memset(partial, 0, QN__PANEL * sizeof *partial);
    for (uint32_t q = 0; q < s->rows; ++q, d += QN__PANEL)
        for (uint32_t o = 0; o < QN__PANEL; ++o)
            partial[o] = partial[o] + d[o];
    if (!s->ends)
        return 0;
    if (qn__cpu_add_partials(w, 1, QN__PANEL, partial, wide))
        return 1;
    set_turn(pass, s, w->slices.bias_sums, &sums);
    qn__cpu_keep_biases(pass, l, out, &sums);
    return 0;
}

/* After the last slice of all: an outlet may send what is complete. */
static void tell(const qn__cpu_pass *pass, int thread, uint32_t group, const task *t) {
    const qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    for (uint32_t p = 0; t->in == 0 && p < t->panels; ++p)
        qn__cpu_progress(pass, thread, last, qn__cpu_groups(&w->layer[last]));
    qn__cpu_progress(pass, thread, last, group);
}

void qn__cpu_slice_gradient(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
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
            t.partial = w->slices.partial +
                        ((size_t)own.out * l->in_panels + (size_t)in * own.panels) * BLOCK;
        if (w->slices.lends && !s->begins)
            lend(pass, &t, 1);
        add_slice(pass, s, &t);
        if (s->ends)
            bad = keep_weights(pass, s, &t, &how);
        else if (w->slices.lends)
            lend(pass, &t, 0);
        for (uint32_t p = 0; in == 0 && p < own.panels; ++p)
            bad |= add_biases(pass, s, own.out + p);
        if (bad)
            qn__cpu_failed(&w->core[thread], last);
        if (pass->outlet && s->ends && s->last)
            tell(pass, thread, own.group, &t);
    }
}
