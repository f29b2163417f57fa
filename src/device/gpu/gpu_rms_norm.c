/* rmsnorm: the channels of each pixel by the root of the mean of their squares (docs/exactness.md
 * 25.30). Sixteen lanes share a sum over the channels. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"

enum { MOMENTS = 2 }; /* numbers of each pixel: r, and k of the errors */

static void launch_moments(qn__gpu_pass *pass, uint32_t i, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, &w->model.parameters, flags ? qn__gpu_errors_of(w, i) : &w->step,
                    &l->moments);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, flags);
    qn__gpu_launch_over(pass, QN__K_RMS_NORM_MOMENTS, qn__gpu_all_pixels(pass, i), &c);
}

static void forward(qn__gpu_pass *pass, uint32_t i) {
    launch_moments(pass, i, 0);
    qn__gpu_norm_outputs(pass, QN__K_RMS_NORM_FORWARD, i, 0);
}

static void errors(qn__gpu_pass *pass, uint32_t i) {
    if (!qn__gpu_takes_errors(pass->worker, pass->worker->layer[i].source))
        return;
    launch_moments(pass, i, QN_NORM_ERRORS);
    qn__gpu_norm_errors(pass, QN__K_RMS_NORM_ERRORS, i, 0);
}

static void gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint64_t ld = qn__gpu_ld(l->layer->to.channels);
    uint32_t groups[3];
    qn__gpu_grid(QN__K_RMS_NORM_GRADIENT, ld, groups);
    groups[2] = qn__gpu_k_blocks(pass, qn__gpu_pieces(pass->items, w->program->grain), groups[0],
                                 l->weights, l->weights + ld, add);
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, qn__gpu_errors_of(w, i), &l->moments, &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, groups[2], add || groups[2] > 1 ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch(pass, QN__K_RMS_NORM_GRADIENT, groups, &c);
}

static uint64_t moments(const qn__worker *w, const qn__layer *l) {
    return (uint64_t)MOMENTS * w->capacity * qn__gpu_pixels(l) * sizeof(float);
}

const qn__gpu_kind qn__gpu_rmsnorm = {.forward = forward,
                                      .errors = errors,
                                      .gradient = gradient,
                                      .moments = moments,
                                      .reads_input = 1};
