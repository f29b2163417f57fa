/* position rotary: queries and keys are turned (docs/exactness.md 25.31). */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "layer/turned.h"

static void push_words(const qn__gpu_layer *l, uint32_t i, qn__gpu_call *c) {
    QN__PUSH_NUMBERS(c, i * QN__GPU_TAPS, qn__turned_pairs(l->layer),
                     qn__rotary_channels(l->layer));
}

static void forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__gpu_layer *l = &pass->worker->layer[i];
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, &l->moments, &l->output, &pass->worker->batch.numbers);
    push_words(l, i, &c);
    qn__gpu_launch_norm(pass, QN__K_ROTARY_FORWARD, qn__gpu_all_pixels(pass, i), i, &c);
}

static void errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    if (!qn__gpu_takes_errors(w, l->source))
        return;
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, &l->moments, qn__gpu_errors_of(w, i),
                    qn__gpu_errors_of(w, (uint32_t)l->source));
    push_words(l, i, &c);
    QN__PUSH_NUMBERS(&c, qn__gpu_gives_first(w, i, l->source) ? 0 : QN_NORM_ADD);
    qn__gpu_launch_norm(pass, QN__K_ROTARY_ERRORS, qn__gpu_all_pixels(pass, i), i, &c);
    qn__gpu_finish_errors(pass, i);
}

static uint64_t moments(const qn__worker *w, const qn__layer *l) {
    return (uint64_t)qn__gpu_positions(w, l) * 2 * qn__turned_pairs(l) * sizeof(float);
}

static void table(const qn__worker *w, const qn__layer *l, float *to) {
    qn__turned_table(l, 0, qn__gpu_positions(w, l), to);
}

const qn__gpu_kind qn__gpu_rotary = {
    .forward = forward, .errors = errors, .moments = moments, .table = table};
