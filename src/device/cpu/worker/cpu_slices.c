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
 * sums. Partials of integers are exact sums of 64 bits (cpu_slices_integers.c). So training has
 * slices only where that is less than the logits. A slice may be a whole grain, which has no
 * partials between slices. The sums of tied weights are there anyway (25.15). In a step of one
 * grain they are not used before the last slice, and lend the partials room. */
#include "device/cpu/worker/cpu_slices.h"
#include "device/cpu/worker/cpu_gradient_sums.h"
#include "device/cpu/worker/cpu_kinds.h"
#include <string.h>

/* A slice has as many rows as have logits of so many bytes, at least LEAST_ROWS: with fewer the
 * weights and their partials would come from memory too often. */
#define SLICE_BYTES ((size_t)64 << 20)
enum { BLOCK = QN__PANEL * QN__PANEL, LEAST_ROWS = 128 };

/* ------------------------------------------------------------------------------------ the shape */

/* Whether the last layer is a product of each pixel by itself, with a loss of each. Integers of an
 * item depend on all its pixels, unless these are positions. */
static int can_slice(const qn__worker *w) {
    const qn__program *p = w->program;
    const qn__cpu_layer *l = &w->layer[p->layers - 1];
    const int points = w->bits ? l->walks && qn__layer_has_position_blocks(l->layer)
                               : l->points && l->transposed_weights;
    return p->answers > 0 && !p->sequences && points && l->below && !l->branch_place.bytes;
}

static size_t weights_of(const qn__cpu_layer *l) {
    return (size_t)l->out_panels * qn__cpu_blocks(l) * BLOCK;
}

/* Bytes of logits of so many rows. */
static size_t logits_of(const qn__cpu_layer *l, size_t rows) {
    return (rows + 1) * l->out_panels * QN__PANEL * sizeof(float) + 64;
}

/* Bytes of the partials of a grain; those of integers are their exact sums. */
static size_t partials_of(const qn__worker *w, const qn__cpu_layer *l) {
    return weights_of(l) * (w->bits ? sizeof(int64_t) : sizeof(float));
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
    const size_t partials = trains && !lends ? partials_of(w, l) : 0;
    const size_t by_grains = logits_of(l, of_grain) + sums;
    const size_t by_rows = cuts ? logits_of(l, least) + sums + partials : SIZE_MAX;
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
        l->tiles.span = 0;
        l->tasks = w->bits ? 1 : l->tasks;
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
    w->slices.partial = qn__cpu_carve(a, w->slices.keeps_partials ? partials_of(w, l) : 0, 1);
    const size_t blocks = (rows + QN__PANEL - 1) / QN__PANEL,
                 chunks = (rows + QN__CHUNK - 1) / QN__CHUNK;
    w->slices.left =
        w->bits ? qn__cpu_carve(a, blocks, w->intgemm->size(w->bits, l->channels)) : NULL;
    w->slices.factor = qn__cpu_carve(a, w->bits ? blocks * QN__PANEL : 0, sizeof(float));
    w->slices.depths =
        w->bits && w->slices.trained
            ? qn__cpu_carve(a, chunks * l->in_panels, w->intgemm->size(w->bits, QN__CHUNK))
            : NULL;
    w->slices.bias_partial = qn__cpu_carve(a, most ? biases : 0, sizeof(float));
    w->slices.weight_sums = qn__cpu_carve(a, w->slices.keeps_sums ? weights : 0, sizeof(int64_t));
    w->slices.bias_sums = qn__cpu_carve(a, w->slices.keeps_sums ? biases : 0, sizeof(int64_t));
}

size_t qn__cpu_slice_space(const qn__worker *w) {
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const uint32_t panels = w->bits ? l->in_panels : w->kernels->panels;
    return w->slices.trained ? (size_t)QN__RUN_ROWS * QN__PANEL * panels : 0;
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
                       .part = part,
                       .begins = part == 0,
                       .ends = part + 1 == each,
                       .fresh = part == 0,
                       .closes = part + 1 == each,
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
                           .fresh = 1,
                           .closes = 1,
                           .first = 1,
                           .last = 1};
}

/* ---------------------------------------------------------------------- rows, errors and sums */

int qn__cpu_slice_is_together(const qn__cpu_pass *pass, const qn__cpu_slice *s) {
    return s->items == pass->batch->items;
}

void qn__cpu_slice_copy(const qn__cpu_pass *pass, const qn__cpu_slice *s, uint32_t first,
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

size_t *qn__cpu_slice_panels(const qn__worker *w, int thread, uint32_t panels, size_t stride) {
    size_t *blocks = w->core[thread].blocks;
    for (size_t p = 0; p < panels; ++p)
        blocks[p] = p * stride;
    return blocks;
}

void qn__cpu_slice_finish(const qn__cpu_pass *pass, int thread, const qn__cpu_slice *s,
                          uint32_t panel, uint32_t first, uint32_t rows, const float *from) {
    qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1, all = pass->batch->items;
    const qn__cpu_layer *l = &w->layer[last];
    if (from)
        qn__cpu_slice_copy(pass, s, first, rows, from,
                           qn__cpu_passes(l) + panel * l->below->out_stride, 0);
    for (uint32_t q = first, n; q < first + rows; q += n) {
        const uint32_t left = s->items - q % s->items, most = first + rows - q;
        n = from && left < most ? left : most;
        qn__cpu_after_errors(pass, &w->core[thread], last, panel, qn__cpu_slice_row(s, all, q), n);
    }
}

void qn__cpu_slice_turn(const qn__cpu_pass *pass, const qn__cpu_slice *s, int64_t *kept,
                        qn__cpu_sums *sums) {
    sums->update = pass->update;
    sums->adds = !s->first;
    sums->more = !s->last;
    sums->kept = pass->update && !(s->first && s->last) ? kept : NULL;
}

int64_t *qn__cpu_slice_words(const qn__cpu_pass *pass, uint32_t in, uint32_t out) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    int64_t *words = pass->outlet ? pass->outlet->words : w->step_sums;
    const uint64_t first = qn__program_sum(w->program, qn__layer_matrix(l->layer));
    return words + first + (uint64_t)out * QN__PANEL * l->layer->depth + qn__cpu_first_of(l, in);
}

int qn__cpu_slice_biases(const qn__cpu_pass *pass, const qn__cpu_slice *s, uint32_t out) {
    const qn__worker *w = pass->worker;
    const qn__cpu_layer *l = &w->layer[w->program->layers - 1];
    const float *d = l->error + out * s->stride;
    float *partial = w->slices.bias_partial + (size_t)out * QN__PANEL;
    int64_t wide[QN__PANEL] = {0};
    qn__cpu_sums sums = {.wide = wide, .kind = QN__SUMS_INT64};
    if (l->layer->no_biases)
        return 0;
    if (s->begins && !s->again)
        memset(partial, 0, QN__PANEL * sizeof *partial);
    for (uint32_t q = 0; q < s->rows && !s->again; ++q, d += QN__PANEL)
        for (uint32_t o = 0; o < QN__PANEL; ++o)
            partial[o] = partial[o] + d[o];
    if (!s->closes)
        return 0;
    if (qn__cpu_add_partials(w, 1, QN__PANEL, partial, wide))
        return 1;
    qn__cpu_slice_turn(pass, s, w->slices.bias_sums, &sums);
    qn__cpu_keep_biases(pass, l, out, &sums);
    return 0;
}

void qn__cpu_slice_tell(const qn__cpu_pass *pass, int thread, uint32_t group, uint32_t panels) {
    const qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    for (uint32_t p = 0; p < panels; ++p)
        qn__cpu_progress(pass, thread, last, qn__cpu_groups(&w->layer[last]));
    qn__cpu_progress(pass, thread, last, group);
}
