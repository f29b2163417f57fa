/* Integer products of convolutions and of dense layers after pixels (docs/exactness.md 17.12).
 * Chunks of rows are unfolded as for floats and then quantized: a row has the block of its item, or
 * of a sequence it is a block by itself (25.24). For gradients they are quantized along the rows of
 * each grain. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_pixels.h"
#include "num/window_blocks.h"

/* The absmax of items, and with QN_QUANTIZE_GRAINS of grains, of an array with `pixels` rows of
 * `columns` for each item. */
static void absmax(qn__gpu_pass *pass, uint32_t i, const qn__gpu_memory *from, uint32_t columns,
                   uint32_t pixels, uint32_t grain_place, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, from, &w->integers.absmax_outputs, &w->integers.absmax_items,
                    &w->integers.absmax_grains, &w->reports.status);
    QN__PUSH_NUMBERS(&c, columns, pixels, w->bits, w->layer[i].output_place, grain_place, i, flags);
    qn__gpu_launch_over(pass, QN__K_PIXELS_ABSMAX, pass->items, &c);
}

/* The absmax of the rows of a chunk, each a block by itself. */
static void absmax_of_rows(qn__gpu_pass *pass, uint32_t i, const qn__gpu_chunk *k,
                           const qn__gpu_memory *from, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, from, &w->integers.absmax_outputs, &w->integers.absmax_rows);
    QN__PUSH_NUMBERS(&c, k->count, k->columns, w->layer[i].layer->to.channels, w->bits,
                     w->layer[i].output_place, flags);
    qn__gpu_launch_over(pass, QN__K_ROWS_ABSMAX, k->count, &c);
}

void qn__gpu_quantize_rows(qn__gpu_pass *pass, uint32_t i, const qn__gpu_chunk *k,
                           const qn__gpu_memory *from, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    if (qn__layer_has_window_blocks(w->layer[i].layer)) {
        absmax_of_rows(pass, i, k, from, flags);
        flags |= QN_QUANTIZE_OWN;
    }
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, from, &w->integers.absmax_outputs,
                    &w->integers.absmax_items, &w->integers.absmax_rows,
                    &w->integers.quantized_items);
    QN__PUSH_NUMBERS(&c, k->index, k->first, k->count, k->columns, w->layer[i].layer->to.channels,
                     w->bits, w->layer[i].output_place, flags);
    qn__gpu_launch_over(pass, QN__K_QUANTIZE_ROWS, k->count * qn__gpu_words(k->columns), &c);
}

/* The network's inputs have one row for each item. */
void qn__gpu_absmax_of_inputs(qn__gpu_pass *pass, uint32_t i) {
    const qn__layer *l = pass->worker->layer[i].layer;
    const int planar = pass->worker->layer[i].source < 0;
    absmax(pass, i, qn__gpu_input_of(pass, i), planar ? l->in : l->from.channels,
           planar ? 1 : qn__gpu_from_pixels(l), qn__gpu_inputs_place(pass, i),
           QN_QUANTIZE_INPUTS | (qn__gpu_learns(pass, i) ? QN_QUANTIZE_GRAINS : 0));
}

void qn__gpu_launch_pixels_intgemm_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t rows = pass->items * qn__gpu_pixels(l);
    const uint32_t most = qn__gpu_chunk_rows(w, l->depth, rows);
    const qn__gpu_range all = {0, l->to.channels};
    qn__gpu_chunk k = {.index = i * QN__GPU_TAPS, .columns = l->depth};
    qn__gpu_absmax_of_inputs(pass, i);
    for (; k.first < rows; k.first += most) {
        k.count = k.span = rows - k.first < most ? rows - k.first : most;
        const qn__gpu_rows own = {&w->pixels.rows, &w->integers.absmax_rows, k.count, k.span};
        qn__gpu_unfold(pass, &k, qn__gpu_input_of(pass, i), &w->pixels.unfolded);
        qn__gpu_quantize_rows(pass, i, &k, &w->pixels.unfolded, 0);
        qn__gpu_launch_intgemm_chains(pass, i, &own, &all, &w->pixels.chains);
        qn__gpu_finish_chains(pass, i, &k, 0);
    }
    qn__gpu_launch_gate(pass, i);
}

/* A dense layer: the errors of an item are one row. */
static void errors_of_dense(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const qn__gpu_rows items = {&w->step, &w->integers.absmax_items, pass->items,
                                w->program->grain};
    const qn__gpu_chunk own = {
        .index = i * QN__GPU_TAPS + 2, .count = pass->items, .columns = l->out};
    const qn__gpu_chunk below = {.index = i * QN__GPU_TAPS + 1,
                                 .count = pass->items * qn__gpu_from_pixels(l)};
    qn__gpu_quantize_rows(pass, i, &own, qn__gpu_errors_of(w, i), QN_QUANTIZE_WEIGHED);
    qn__gpu_launch_intgemm_sums(pass, i, &items, l->in, l->out, &w->pixels.unfolded);
    qn__gpu_finish_sums(pass, i, &w->pixels.unfolded, &below, QN_PIXELS_FLAT);
}

void qn__gpu_launch_pixels_intgemm_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const int product = qn__gpu_takes_errors(w, w->layer[i].source);
    const uint32_t rows = pass->items * qn__gpu_from_pixels(l), links = qn__gpu_error_depth(l);
    const uint32_t most = qn__gpu_chunk_rows(w, links, rows);
    qn__gpu_chunk k = {.index = i * QN__GPU_TAPS + 1, .columns = links};
    absmax(pass, i, qn__gpu_errors_of(w, i), l->to.channels, qn__gpu_pixels(l),
           qn__gpu_errors_place(pass, i), QN_QUANTIZE_GRAINS | (product ? QN_QUANTIZE_WEIGHED : 0));
    if (product && !qn__gpu_is_conv(&w->layer[i]))
        errors_of_dense(pass, i);
    for (; product && qn__gpu_is_conv(&w->layer[i]) && k.first < rows; k.first += most) {
        k.count = k.span = rows - k.first < most ? rows - k.first : most;
        const qn__gpu_rows own = {&w->pixels.rows, &w->integers.absmax_rows, k.count, k.span};
        qn__gpu_unfold(pass, &k, qn__gpu_errors_of(w, i), &w->pixels.unfolded);
        qn__gpu_quantize_rows(pass, i, &k, &w->pixels.unfolded, QN_QUANTIZE_WEIGHED);
        qn__gpu_launch_intgemm_sums(pass, i, &own, l->from.channels, links, &w->pixels.chains);
        qn__gpu_finish_sums(pass, i, &w->pixels.chains, &k, 0);
    }
}

/* Biases are chains of floats. */
static void launch_biases(qn__gpu_pass *pass, uint32_t i, const qn__gpu_memory *e,
                          const qn__gpu_range *outputs, int add) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->pixels.rows, e, &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, w->layer[i].biases + outputs->begin);
    QN__PUSH_NUMBERS(&c, outputs->count, i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, add ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch_over(pass, QN__K_BIAS, outputs->count, &c);
}

void qn__gpu_launch_grains_intgemm(qn__gpu_pass *pass, uint32_t i, uint32_t columns,
                                   qn__gpu_chunk k, const qn__gpu_memory *e,
                                   const qn__gpu_range *outputs, int add) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t grain = k.first / k.span;
    const qn__gpu_rows rows = {&w->pixels.rows, NULL, k.count, k.span};
    for (k.column = 0; k.column < l->depth; k.column += columns) {
        k.columns = l->depth - k.column < columns ? l->depth - k.column : columns;
        qn__gpu_unfold(pass, &k, qn__gpu_input_of(pass, i), &w->pixels.unfolded);
        qn__gpu_quantize_grains(pass, &rows, &w->pixels.unfolded, &w->integers.quantized_inputs,
                                k.columns, qn__gpu_inputs_place(pass, i) + grain);
        if (k.column == 0) { /* UNFOLD has written the step of these rows */
            qn__gpu_quantize_grains(pass, &rows, e, &w->integers.quantized_errors, outputs->count,
                                    qn__gpu_errors_place(pass, i) + grain);
            if (!l->no_biases)
                launch_biases(pass, i, e, outputs, add);
        }
        qn__gpu_launch_intgemm_partials(pass, i, &rows, &(qn__gpu_range){k.column, k.columns},
                                        outputs, grain, add);
    }
}

void qn__gpu_launch_pixels_intgemm_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t rows = pass->items * qn__gpu_pixels(l);
    const qn__gpu_part p = qn__gpu_part_of(w, l, pass->items);
    for (uint32_t first = 0; first < rows; first += p.rows) {
        const qn__gpu_chunk k = {.index = i * QN__GPU_TAPS,
                                 .first = first,
                                 .count = rows - first < p.rows ? rows - first : p.rows,
                                 .span = p.span};
        const qn__gpu_memory *e = qn__gpu_errors_of_chunk(pass, i, &k);
        qn__gpu_launch_grains_intgemm(pass, i, p.columns, k, e, &(qn__gpu_range){0, l->to.channels},
                                      add || first > 0);
    }
}

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Of the last layer, where it goes slice by slice. */
static void slice_words(const qn__worker *w, uint64_t *words, uint64_t *errors, uint64_t *rows) {
    const qn__gpu_slicing *s = &w->slices;
    const uint64_t out = w->layer[w->program->layers - 1].layer->to.channels;
    const uint64_t most = s->grain > s->rows ? s->grain : s->rows;
    *words = greater(*words, s->rows * qn__gpu_words(out));
    *errors = greater(*errors, (s->outputs ? s->outputs : out) * s->words);
    *rows = greater(*rows, most);
}

/* A word has four numbers of a row or of a grain. So chunks have no more words than floats, also
 * where each row of a grain has a word of its own. */
void qn__gpu_pixels_words(const qn__worker *w, uint64_t *words, uint64_t *errors, uint64_t *rows) {
    *words = w->pixels.unfolded_floats;
    *rows = w->pixels.unfolded_floats / QN_LD;
    *errors = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__layer *l = w->layer[i].layer;
        if (!qn__layer_is_integer(l) || !qn__gpu_has_pixels(&w->layer[i]))
            continue;
        if (w->slices.rows && i + 1 == w->program->layers) {
            slice_words(w, words, errors, rows);
            continue;
        }
        const qn__gpu_part p = qn__gpu_part_of(w, l, w->capacity);
        const uint64_t own =
            l->to.channels * qn__gpu_pieces(p.rows, p.span) * qn__gpu_words_of_grain(p.span);
        *errors = own > *errors ? own : *errors;
    }
}
