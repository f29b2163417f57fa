/* The end of a residual block (docs/exactness.md 17.7): the sum of two outputs. Its errors go to
 * both layers that it reads; where one of them has other readers, they are added to its array. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include "device/gpu/gpu_pixels.h"

static void forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_input_of(pass, i),
                    qn__gpu_output_of(pass, l->other), &l->output, drops ? &l->dropped : &w->step,
                    &w->batch.numbers);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_over(
        pass, QN__K_ADD_FORWARD,
        qn__gpu_sixteens((uint64_t)pass->items * qn__gpu_pixels(l->layer), l->layer->to.channels),
        &c);
    qn__gpu_launch_gate(pass, i);
}

static void errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const int32_t source[2] = {w->layer[i].source, w->layer[i].other};
    const qn__gpu_chunk k = {.index = i * QN__GPU_TAPS + 1,
                             .count = pass->items * qn__gpu_pixels(w->layer[i].layer)};
    for (int s = 0; s < 2; ++s)
        if (qn__gpu_takes_errors(w, source[s]))
            qn__gpu_finish_source(pass, i, source[s], qn__gpu_errors_of(w, i), &k,
                                  qn__gpu_adds(w, i, source[s]));
}

const qn__gpu_kind qn__gpu_residual = {.forward = forward, .errors = errors};
