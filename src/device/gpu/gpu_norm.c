/* Normalisations. Moments of batchnorm (docs/exactness.md 17.8) are those of a grain, whose rows
 * follow one another. Sums go over the items of a pixel first, then over the pixels. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"

static uint64_t grains_of(const qn__worker *w, uint32_t items) {
    const uint32_t grain = w->program->grain;
    return items <= grain ? 1 : qn__gpu_pieces(items, grain);
}

void qn__gpu_launch_norm(qn__gpu_pass *pass, qn__kernel kernel, uint64_t rows, uint32_t i,
                         const qn__gpu_call *c) {
    const uint32_t channels = pass->worker->layer[i].layer->to.channels;
    qn__gpu_launch_over(pass, kernel, qn__gpu_sixteens(rows, channels), c);
}

void qn__gpu_push_norm_inputs(const qn__gpu_pass *pass, uint32_t i, qn__gpu_call *c) {
    QN__PUSH_MEMORY(c, &pass->worker->step, &pass->worker->pixels.taps, qn__gpu_input_of(pass, i));
}

uint64_t qn__gpu_all_pixels(const qn__gpu_pass *pass, uint32_t i) {
    return (uint64_t)pass->items * qn__gpu_pixels(pass->worker->layer[i].layer);
}

void qn__gpu_forward_values(qn__gpu_pass *pass, uint32_t i, qn__kernel kernel) {
    const qn__worker *w = pass->worker;
    qn__gpu_forward_numbers(pass, i, kernel, &w->model.parameters, w->layer[i].weights);
}

void qn__gpu_forward_numbers(qn__gpu_pass *pass, uint32_t i, qn__kernel kernel,
                             const qn__gpu_memory *numbers, uint64_t at) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, numbers, &l->output, drops ? &l->dropped : &w->step, &w->batch.numbers);
    QN__PUSH_WIDE(&c, at);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_norm(pass, kernel, qn__gpu_all_pixels(pass, i), i, &c);
    qn__gpu_launch_gate(pass, i);
}

/* The moments of a layer's inputs, or with QN_NORM_ERRORS those of its errors. */
static void launch_moments(qn__gpu_pass *pass, uint32_t i, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const uint32_t grains = (uint32_t)grains_of(w, pass->items);
    qn__gpu_call c = {0}, d = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, flags ? qn__gpu_errors_of(w, i) : &w->step, &w->layer[i].moments,
                    &w->pixels.chains);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, grains, flags);
    qn__gpu_launch_norm(pass, QN__K_NORM_SUMS, (uint64_t)grains * qn__gpu_pixels(w->layer[i].layer),
                        i, &c);
    qn__gpu_push_norm_inputs(pass, i, &d);
    QN__PUSH_MEMORY(&d, &w->pixels.chains, &w->layer[i].moments);
    QN__PUSH_NUMBERS(&d, i * QN__GPU_TAPS, grains, flags);
    qn__gpu_launch_norm(pass, QN__K_NORM_MOMENTS, grains, i, &d);
}

void qn__gpu_norm_outputs(qn__gpu_pass *pass, qn__kernel kernel, uint32_t i, uint32_t divisions) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, &w->model.parameters, &l->moments, &l->output,
                    drops ? &l->dropped : &w->step, &w->batch.numbers);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, divisions);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_norm(pass, kernel, (uint64_t)pass->items * qn__gpu_pixels(l->layer), i, &c);
    qn__gpu_launch_gate(pass, i);
}

void qn__gpu_norm_errors(qn__gpu_pass *pass, qn__kernel kernel, uint32_t i, uint32_t divisions) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    if (!qn__gpu_takes_errors(w, l->source))
        return;
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, &w->model.parameters, &l->moments, qn__gpu_errors_of(w, i),
                    qn__gpu_errors_of(w, (uint32_t)l->source));
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, divisions,
                     qn__gpu_gives_first(w, i, l->source) ? 0 : QN_NORM_ADD);
    qn__gpu_launch_norm(pass, kernel, (uint64_t)pass->items * qn__gpu_pixels(l->layer), i, &c);
    qn__gpu_finish_errors(pass, i);
}

/* Outside training, and in a layer that does not train, the running averages stand for the moments.
 */
static void forward(qn__gpu_pass *pass, uint32_t i) {
    const int measures = qn__gpu_learns(pass, i);
    if (measures)
        launch_moments(pass, i, 0);
    qn__gpu_norm_outputs(pass, QN__K_NORM_FORWARD, i,
                         measures ? (uint32_t)grains_of(pass->worker, pass->items) : 0);
}

static void errors(qn__gpu_pass *pass, uint32_t i) {
    launch_moments(pass, i, QN_NORM_ERRORS);
    qn__gpu_norm_errors(pass, QN__K_NORM_ERRORS, i, (uint32_t)grains_of(pass->worker, pass->items));
}

static void gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t channels = l->layer->to.channels;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &l->moments, &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, channels, qn__gpu_pixels(l->layer), (uint32_t)grains_of(w, pass->items),
                     i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, add ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch_over(pass, QN__K_NORM_GRADIENT, qn__gpu_ld(channels), &c);
}

static void run_on(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint64_t ld = qn__gpu_ld(l->layer->to.channels);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->model.parameters, &w->model.sums);
    QN__PUSH_WIDE(&c, l->weights + 2 * ld);
    QN__PUSH_NUMBERS(&c, (uint32_t)(2 * ld));
    QN__PUSH_FLOATS(&c, l->layer->running_rate);
    qn__gpu_launch_over(pass, QN__K_NORM_UPDATE, 2 * ld, &c);
}

static uint64_t moments(const qn__worker *w, const qn__layer *l) {
    return QN_NORM_ARRAYS * grains_of(w, w->capacity) * qn__gpu_ld(l->to.channels) * sizeof(float);
}

static uint64_t chains(const qn__worker *w, const qn__layer *l) {
    const uint64_t rows = grains_of(w, w->capacity) * qn__gpu_pixels(l);
    return 2 * rows * qn__gpu_ld(l->to.channels) * sizeof(float);
}

const qn__gpu_kind qn__gpu_batchnorm = {.forward = forward,
                                        .errors = errors,
                                        .gradient = gradient,
                                        .run_on = run_on,
                                        .moments = moments,
                                        .chains = chains,
                                        .reads_input = 1};
