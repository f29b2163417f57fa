/* layerscale: a factor for each channel (docs/exactness.md 24.14). */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"

static void scale_forward(qn__gpu_pass *pass, uint32_t i) {
    qn__gpu_forward_values(pass, i, QN__K_LAYERSCALE_FORWARD);
}

static void scale_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    if (!qn__gpu_takes_errors(w, l->source))
        return;
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, &w->model.parameters, qn__gpu_errors_of(w, i),
                    qn__gpu_errors_of(w, (uint32_t)l->source));
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, qn__gpu_gives_first(w, i, l->source) ? 0 : QN_NORM_ADD);
    qn__gpu_launch_norm(pass, QN__K_LAYERSCALE_ERRORS, qn__gpu_all_pixels(pass, i), i, &c);
    qn__gpu_finish_errors(pass, i);
}

static void scale_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint64_t ld = qn__gpu_ld(l->layer->to.channels);
    uint32_t groups[3];
    qn__gpu_grid(QN__K_LAYERSCALE_GRADIENT, ld, groups);
    groups[2] = qn__gpu_k_blocks(pass, qn__gpu_pieces(pass->items, w->program->grain), groups[0],
                                 l->weights, l->weights + ld, add);
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, qn__gpu_errors_of(w, i), &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, groups[2], add || groups[2] > 1 ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch(pass, QN__K_LAYERSCALE_GRADIENT, groups, &c);
}

const qn__gpu_kind qn__gpu_layerscale = {
    .forward = scale_forward, .errors = scale_errors, .gradient = scale_gradient, .reads_input = 1};
