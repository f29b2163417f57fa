/* recurrent (docs/exactness.md 25.34 to 25.36): a kernel for each position, since a state depends
 * on the one before. A lane has a channel of an item. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "layer/recurrent.h"

enum { ARRAYS = 6 }; /* of `moments`: gates, states, cells */

static void push_words(const qn__gpu_pass *pass, uint32_t i, uint32_t step, qn__gpu_call *c) {
    const qn__layer *l = pass->worker->layer[i].layer;
    QN__PUSH_NUMBERS(c, i * QN__GPU_TAPS);
    qn__gpu_push_lengths(pass, i, c);
    QN__PUSH_NUMBERS(c, qn__recurrent_gates(l), (uint32_t)l->reverse, step);
}

static void forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    const uint32_t steps = pass->steps ? pass->steps : qn__gpu_pixels(l->layer);
    for (uint32_t step = 0; step < steps; ++step) {
        qn__gpu_call c = {0};
        QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_lengths_of(pass, i),
                        qn__gpu_input_of(pass, i), &w->model.parameters, &l->moments, &l->output,
                        drops ? &l->dropped : &w->step, &w->batch.numbers);
        QN__PUSH_WIDE(&c, l->weights, l->biases);
        push_words(pass, i, step, &c);
        qn__gpu_push_outputs(w, i, drops, &c);
        qn__gpu_launch_norm(pass, QN__K_RECURRENT_FORWARD, pass->items, i, &c);
    }
    qn__gpu_launch_gate(pass, i);
}

static void launch_back(qn__gpu_pass *pass, uint32_t i, uint32_t step) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_lengths_of(pass, i),
                    &w->model.parameters, qn__gpu_errors_of(w, i), &l->moments);
    QN__PUSH_WIDE(&c, l->weights);
    push_words(pass, i, step, &c);
    qn__gpu_launch_norm(pass, QN__K_RECURRENT_BACK, pass->items, i, &c);
}

/* The gradient reads what goes back from position to position, too. */
static void errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    for (uint32_t step = qn__gpu_pixels(l->layer); step-- > 0;)
        launch_back(pass, i, step);
    if (!qn__gpu_takes_errors(w, l->source))
        return;
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, &l->moments,
                    qn__gpu_errors_of(w, (uint32_t)l->source));
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, qn__recurrent_gates(l->layer),
                     qn__gpu_gives_first(w, i, l->source) ? 0 : QN_NORM_ADD);
    qn__gpu_launch_over(pass, QN__K_RECURRENT_ERRORS,
                        qn__gpu_sixteens(qn__gpu_all_pixels(pass, i), l->layer->from.channels), &c);
    qn__gpu_finish_errors(pass, i);
}

static void gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t out = l->layer->to.channels;
    const uint32_t rows = l->layer->depth + (uint32_t)!l->layer->no_biases; /* biases: the last */
    uint32_t groups[3];
    qn__gpu_call c = {0};
    qn__gpu_grid(QN__K_RECURRENT_GRADIENT, qn__gpu_sixteens(rows, out), groups);
    groups[2] = qn__gpu_k_blocks(pass, qn__gpu_pieces(pass->items, w->program->grain), groups[0],
                                 l->weights, l->weights + rows * qn__gpu_ld(out), add);
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, &l->moments, &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, qn__recurrent_gates(l->layer),
                     (uint32_t)l->layer->reverse, i, rows);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, groups[2], add || groups[2] > 1 ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch(pass, QN__K_RECURRENT_GRADIENT, groups, &c);
}

/* What is carried from a position to the one before is one number of each channel of an item. Of
 * sequences that grow, each has two rows in every array. */
static uint64_t moments(const qn__worker *w, const qn__layer *l) {
    const uint64_t row = qn__gpu_ld(l->to.channels) * sizeof(float);
    if (w->program->sequences)
        return (uint64_t)ARRAYS * 2 * w->program->sequences * row;
    return ((uint64_t)ARRAYS * qn__gpu_pixels(l) + 1) * w->capacity * row;
}

const qn__gpu_kind qn__gpu_recurrent = {
    .forward = forward, .errors = errors, .gradient = gradient, .moments = moments, .keeps = 1};
