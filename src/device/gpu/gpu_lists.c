/* A dense first layer whose items are lists of their inputs that are not 0
 * (docs/exactness.md 25.60): gpu_packed_lists.c sends them. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"

static void push_scaling(const qn__worker *w, qn__gpu_call *c) {
    QN__PUSH_MEMORY(c, &w->batch.unit, w->batch.mean.bytes ? &w->batch.mean : &w->step,
                    w->batch.inverse.bytes ? &w->batch.inverse : &w->step);
}

void qn__gpu_launch_lists_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->lists.rows, &w->model.parameters);
    push_scaling(w, &c);
    QN__PUSH_MEMORY(&c, &l->output, drops ? &l->dropped : &w->step, &w->batch.numbers);
    QN__PUSH_WIDE(&c, l->weights, l->biases);
    QN__PUSH_NUMBERS(&c, l->layer->in, l->layer->out, qn__kernel_scale(w->program->scale));
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_over(pass, QN__K_LISTS_FORWARD, qn__gpu_sixteens(pass->items, l->layer->out),
                        &c);
    qn__gpu_launch_gate(pass, i);
}

void qn__gpu_launch_lists_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint64_t sums = l->layer->in * qn__gpu_ld(l->layer->out) * sizeof(int64_t);
    qn__gpu_call c = {0};
    if (!add && pass->status == QN_OK) /* inputs that do not occur have sums, too */
        pass->status = w->driver->clear(
            w->gpu, &w->model.sums, (size_t)l->weights * sizeof(int64_t), (size_t)sums, pass->err);
    if (w->lists.count == 0)
        return;
    QN__PUSH_MEMORY(&c, &w->step, &w->lists.columns, qn__gpu_errors_of(w, i));
    push_scaling(w, &c);
    QN__PUSH_MEMORY(&c, &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, w->lists.count, l->layer->out, qn__kernel_scale(w->program->scale), i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    qn__gpu_launch_over(pass, QN__K_LISTS_GRADIENT, qn__gpu_sixteens(w->lists.count, l->layer->out),
                        &c);
}
