/* Convolutions with groups (docs/exactness.md 17.6). The chains of a group have few numbers, so
 * that unfolding them would move more than it saves: kernels of their own read the arrays. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"

void qn__gpu_launch_grouped_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    const uint32_t out = l->layer->to.channels;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_input_of(pass, i), &w->model.parameters,
                    &l->output, drops ? &l->dropped : &w->step, &w->batch.numbers);
    QN__PUSH_WIDE(&c, l->weights, l->biases);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, out, l->layer->conv_groups);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_over(pass, QN__K_GROUPED_FORWARD,
                        qn__gpu_sixteens((uint64_t)pass->items * qn__gpu_pixels(l->layer), out),
                        &c);
    qn__gpu_launch_gate(pass, i);
}

void qn__gpu_launch_grouped_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const int32_t source = w->layer[i].source;
    if (!qn__gpu_takes_errors(w, source))
        return;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_errors_of(w, i), &w->model.parameters,
                    qn__gpu_derived_of(w, (uint32_t)source), qn__gpu_errors_of(w, (uint32_t)source),
                    &w->batch.numbers);
    QN__PUSH_WIDE(&c, w->layer[i].weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS + 1, l->from.channels, l->conv_groups,
                     qn__gpu_gives_first(w, i, source) ? 0 : QN_PIXELS_ADD);
    if (qn__gpu_gives_last(w, i, source))
        qn__gpu_push_outputs(w, (uint32_t)source, 1, &c);
    else
        qn__gpu_push_plain(w, &c);
    const uint64_t rows = (uint64_t)pass->items * l->from.height * l->from.width;
    qn__gpu_launch_over(pass, QN__K_GROUPED_ERRORS, qn__gpu_sixteens(rows, l->from.channels), &c);
}

void qn__gpu_launch_grouped_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t out = l->layer->to.channels;
    const uint64_t rows = l->layer->depth + (uint64_t)!l->layer->no_biases; /* biases: the last */
    uint32_t groups[3];
    qn__gpu_grid(QN__K_GROUPED_GRADIENT, qn__gpu_sixteens(rows, out), groups);
    groups[2] = qn__gpu_k_blocks(pass, qn__gpu_pieces(pass->items, w->program->grain), groups[0],
                                 l->weights, l->weights + rows * qn__gpu_ld(out), add);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.taps, qn__gpu_input_of(pass, i),
                    qn__gpu_errors_of(w, i), &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, out, l->layer->conv_groups, i, (uint32_t)rows);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, groups[2], add || groups[2] > 1 ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch(pass, QN__K_GROUPED_GRADIENT, groups, &c);
}
