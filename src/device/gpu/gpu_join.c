/* The ends of blocks: sums, products, concatenations (docs/exactness.md 17.7, 24.31, 24.32). Their
 * errors go to both layers that they read; where one of these has other readers, they are added to
 * its array. Those of products and concatenations are made in `chains` first. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "device/gpu/gpu_pixels.h"

/* What the kernels of all three read and write. */
static qn__gpu_call operands(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_input_of(pass, i),
                    qn__gpu_output_of(pass, l->other), &l->output,
                    qn__gpu_drops(pass, i) ? &l->dropped : &w->step, &w->batch.numbers);
    return c;
}

/* The last arguments; then it runs. */
static void enqueue(qn__gpu_pass *pass, uint32_t i, qn__kernel kernel, qn__gpu_call *c) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    qn__gpu_push_outputs(w, i, qn__gpu_drops(pass, i), c);
    qn__gpu_launch_over(pass, kernel,
                        qn__gpu_sixteens((uint64_t)pass->items * qn__gpu_pixels(l), l->to.channels),
                        c);
    qn__gpu_launch_gate(pass, i);
}

static void forward(qn__gpu_pass *pass, uint32_t i, qn__kernel kernel) {
    const qn__layer *l = pass->worker->layer[i].layer;
    qn__gpu_call c = operands(pass, i);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, l->from.channels, qn__gpu_from_pixels(l),
                     l->to.channels);
    enqueue(pass, i, kernel, &c);
}

static void add_forward(qn__gpu_pass *pass, uint32_t i) {
    qn__gpu_call c = operands(pass, i);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS);
    enqueue(pass, i, QN__K_ADD_FORWARD, &c);
}

/* The errors of a sum are those of both outputs that it reads. */
static void add_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const int32_t source[2] = {w->layer[i].source, w->layer[i].other};
    const qn__gpu_chunk k = {.index = i * QN__GPU_TAPS + 1,
                             .count = pass->items * qn__gpu_pixels(w->layer[i].layer)};
    for (int s = 0; s < 2; ++s)
        if (qn__gpu_takes_errors(w, source[s]))
            qn__gpu_finish_source(pass, i, source[s], qn__gpu_errors_of(w, i), &k,
                                  qn__gpu_adds(w, i, source[s]));
}

/* Of the second output the taps are those after the first's. `source` is what gets the errors. */
static void errors_of(qn__gpu_pass *pass, uint32_t i, int second, qn__kernel kernel) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const qn__shape own = second ? l->layer->second : l->layer->from;
    const int32_t source = second ? l->other : l->source, operand = second ? l->source : l->other;
    const qn__gpu_chunk k = {.index = i * QN__GPU_TAPS + (second ? 2 : 1),
                             .count = pass->items * own.height * own.width};
    qn__gpu_call c = {0};
    if (!qn__gpu_takes_errors(w, source))
        return;
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_errors_of(w, i),
                    qn__gpu_output_of(pass, operand), &w->pixels.chains);
    QN__PUSH_NUMBERS(&c, k.index, own.channels, qn__gpu_pixels(l->layer), l->layer->to.channels,
                     second ? l->layer->from.channels : 0);
    qn__gpu_launch_over(pass, kernel, qn__gpu_sixteens(k.count, own.channels), &c);
    qn__gpu_finish_source(pass, i, source, &w->pixels.chains, &k, qn__gpu_adds(w, i, source));
}

/* Of the larger output that a layer reads. */
static uint64_t chains(const qn__worker *w, const qn__layer *l) {
    const uint64_t a = qn__gpu_ld(l->from.channels) * l->from.height * l->from.width;
    const uint64_t b = qn__gpu_ld(l->second.channels) * l->second.height * l->second.width;
    return (a > b ? a : b) * w->capacity * sizeof(float);
}

static void multiply_forward(qn__gpu_pass *pass, uint32_t i) {
    forward(pass, i, QN__K_MULTIPLY_FORWARD);
}

static void multiply_errors(qn__gpu_pass *pass, uint32_t i) {
    errors_of(pass, i, 0, QN__K_MULTIPLY_ERRORS);
    errors_of(pass, i, 1, QN__K_MULTIPLY_ERRORS);
}

static void concat_forward(qn__gpu_pass *pass, uint32_t i) {
    forward(pass, i, QN__K_CONCAT_FORWARD);
}

static void concat_errors(qn__gpu_pass *pass, uint32_t i) {
    errors_of(pass, i, 0, QN__K_CONCAT_ERRORS);
    errors_of(pass, i, 1, QN__K_CONCAT_ERRORS);
}

const qn__gpu_kind qn__gpu_residual = {.forward = add_forward, .errors = add_errors};
const qn__gpu_kind qn__gpu_multiply = {
    .forward = multiply_forward, .errors = multiply_errors, .chains = chains, .reads_input = 1};
const qn__gpu_kind qn__gpu_concat = {
    .forward = concat_forward, .errors = concat_errors, .chains = chains};
