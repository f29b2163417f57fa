/* Layers with pixels: convolutions, pools, and dense layers after pixels (docs/exactness.md 16).
 *
 * A chunk of rows is unfolded: each row gets all numbers that its chains read. Then the products of
 * dense layers compute it. A chunk stays in the device's cache, so that unfolding costs no traffic
 * with its memory. The chains go to a buffer, from where the last kernel writes them as outputs or
 * errors. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_pixels.h"

void qn__gpu_unfold(qn__gpu_pass *pass, const qn__gpu_chunk *k, const qn__gpu_memory *from,
                    const qn__gpu_memory *to) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, from, to, &w->pixels.rows);
    QN__PUSH_NUMBERS(&c, k->index, k->first, k->count, k->column, k->columns, k->span);
    qn__gpu_launch_over(pass, QN__K_UNFOLD,
                        qn__gpu_pieces(k->count, 16) * (qn__gpu_ld(k->columns) / 4), &c);
}

void qn__gpu_finish_chains(qn__gpu_pass *pass, uint32_t i, const qn__gpu_chunk *k, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    const uint32_t out = l->layer->to.channels;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, &w->pixels.chains, qn__gpu_input_of(pass, i),
                    &w->model.parameters, &l->output, drops ? &l->dropped : &w->step,
                    &w->batch.numbers);
    QN__PUSH_WIDE(&c, l->weights, l->biases);
    QN__PUSH_NUMBERS(&c, k->index, k->first, k->count, out, flags);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_over(pass, QN__K_PIXELS_FORWARD, qn__gpu_sixteens(k->count, out), &c);
}

void qn__gpu_launch_pixels_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t rows = pass->items * qn__gpu_pixels(l);
    qn__gpu_chunk k = {.index = i * QN__GPU_TAPS, .columns = l->depth};
    const uint32_t most = qn__gpu_chunk_rows(w, l->depth, rows);
    for (; k.first < rows; k.first += most) {
        k.count = k.span = rows - k.first < most ? rows - k.first : most;
        const qn__gpu_factors f = {.step = &w->pixels.rows,
                                   .a = &w->pixels.unfolded,
                                   .weights = &w->model.parameters,
                                   .first = w->layer[i].weights,
                                   .stride = (uint32_t)qn__gpu_ld(l->to.channels),
                                   .rows = k.count,
                                   .in = l->depth,
                                   .out = l->to.channels,
                                   .to = &w->pixels.chains};
        qn__gpu_unfold(pass, &k, qn__gpu_input_of(pass, i), &w->pixels.unfolded);
        qn__gpu_launch_chains(pass, &f);
        qn__gpu_finish_chains(pass, i, &k, QN_PIXELS_CHAINS);
    }
    qn__gpu_launch_gate(pass, i);
}

void qn__gpu_finish_source(qn__gpu_pass *pass, uint32_t i, int32_t source,
                           const qn__gpu_memory *from, const qn__gpu_chunk *k, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const uint32_t in = w->layer[source].layer->to.channels;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, from, qn__gpu_errors_of(w, i),
                    flags & QN_PIXELS_CHAINS ? &w->pixels.transposed : &w->step,
                    qn__gpu_derived_of(w, (uint32_t)source), qn__gpu_errors_of(w, (uint32_t)source),
                    &w->batch.numbers);
    QN__PUSH_NUMBERS(&c, k->index, k->first, k->count, in, flags);
    if (qn__gpu_gives_last(w, i, source))
        qn__gpu_push_outputs(w, (uint32_t)source, 1, &c);
    else
        qn__gpu_push_plain(w, &c);
    qn__gpu_launch_over(pass, QN__K_PIXELS_ERRORS, qn__gpu_sixteens(k->count, in), &c);
}

void qn__gpu_finish_sums(qn__gpu_pass *pass, uint32_t i, const qn__gpu_memory *sums,
                         const qn__gpu_chunk *k, uint32_t flags) {
    const int32_t source = pass->worker->layer[i].source;
    qn__gpu_finish_source(pass, i, source, sums, k, flags | qn__gpu_adds(pass->worker, i, source));
}

void qn__gpu_finish_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const int32_t source = w->layer[i].source;
    const qn__layer *below = w->layer[source].layer;
    const qn__gpu_chunk k = {.index = i * QN__GPU_TAPS + 1,
                             .count = pass->items * qn__gpu_from_pixels(w->layer[i].layer)};
    if (qn__gpu_gives_last(w, i, source) &&
        (below->activation != QN__ACT_NONE || below->drop_threshold))
        qn__gpu_finish_source(pass, i, source, qn__gpu_errors_of(w, (uint32_t)source), &k, 0);
}

static void launch_turn(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->model.parameters, &w->pixels.transposed);
    QN__PUSH_WIDE(&c, w->layer[i].weights);
    QN__PUSH_NUMBERS(&c, qn__gpu_window_of(l), l->from.channels, l->to.channels);
    qn__gpu_launch_over(pass, QN__K_TRANSPOSE_WEIGHTS,
                        qn__gpu_sixteens(qn__gpu_error_depth(l) + (uint64_t)1, l->from.channels),
                        &c);
}

void qn__gpu_launch_pixels_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const int32_t source = w->layer[i].source;
    if (!qn__gpu_takes_errors(w, source))
        return;
    const uint32_t rows = pass->items * qn__gpu_from_pixels(l), links = qn__gpu_error_depth(l);
    qn__gpu_chunk k = {.index = i * QN__GPU_TAPS + 1, .count = rows, .columns = links};
    if (!qn__gpu_is_conv(&w->layer[i])) {
        qn__gpu_launch_float_errors(pass, i, &w->pixels.unfolded);
        qn__gpu_finish_sums(pass, i, &w->pixels.unfolded, &k, QN_PIXELS_FLAT);
        return;
    }
    launch_turn(pass, i);
    const uint32_t most = qn__gpu_chunk_rows(w, links, rows);
    for (; k.first < rows; k.first += most) {
        k.count = k.span = rows - k.first < most ? rows - k.first : most;
        const qn__gpu_factors f = {.step = &w->pixels.rows,
                                   .a = &w->pixels.unfolded,
                                   .weights = &w->pixels.transposed,
                                   .stride = (uint32_t)qn__gpu_ld(l->from.channels),
                                   .rows = k.count,
                                   .in = links,
                                   .out = l->from.channels,
                                   .to = &w->pixels.chains};
        qn__gpu_unfold(pass, &k, qn__gpu_errors_of(w, i), &w->pixels.unfolded);
        qn__gpu_launch_chains(pass, &f);
        qn__gpu_finish_sums(pass, i, &w->pixels.chains, &k, QN_PIXELS_CHAINS);
    }
}

const qn__gpu_memory *qn__gpu_errors_of_chunk(qn__gpu_pass *pass, uint32_t i,
                                              const qn__gpu_chunk *k) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    qn__gpu_chunk own = *k;
    if (k->count == pass->items * qn__gpu_pixels(l))
        return qn__gpu_errors_of(w, i);
    own.index = i * QN__GPU_TAPS + 2;
    own.column = 0;
    own.columns = l->to.channels;
    qn__gpu_unfold(pass, &own, qn__gpu_errors_of(w, i), &w->pixels.chains);
    return &w->pixels.chains;
}

/* The gradients of some grains, in `e`, the errors of their rows. */
static void gradient_of_grains(qn__gpu_pass *pass, uint32_t i, const qn__gpu_part *p,
                               qn__gpu_chunk k, const qn__gpu_memory *e, int add) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t inputs = l->depth + !l->no_biases, out = l->to.channels;
    for (k.column = 0; k.column < inputs; k.column += p->columns) {
        k.columns = inputs - k.column < p->columns ? inputs - k.column : p->columns;
        const qn__gpu_factors f = {.step = &w->pixels.rows,
                                   .a = &w->pixels.unfolded,
                                   .e = e,
                                   .first = w->layer[i].weights + k.column * qn__gpu_ld(out),
                                   .stride = (uint32_t)qn__gpu_ld(out),
                                   .in = k.columns,
                                   .out = out};
        qn__gpu_unfold(pass, &k, qn__gpu_input_of(pass, i), &w->pixels.unfolded);
        qn__gpu_launch_gradient(pass, i, &f, qn__gpu_pieces(k.count, k.span), add);
    }
}

void qn__gpu_launch_pixels_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t rows = pass->items * qn__gpu_pixels(l), taps = i * QN__GPU_TAPS;
    const qn__gpu_part p = qn__gpu_part_of(w, l, pass->items);
    for (uint32_t first = 0; first < rows; first += p.rows) {
        qn__gpu_chunk k = {.index = taps, .first = first, .span = p.span};
        k.count = rows - first < p.rows ? rows - first : p.rows;
        const qn__gpu_memory *e = qn__gpu_errors_of_chunk(pass, i, &k);
        gradient_of_grains(pass, i, &p, k, e, add || first > 0);
    }
}
