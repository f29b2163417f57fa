/* Groupnorm and layernorm (docs/exactness.md 17.9): each item has statistics of its own. Sums go
 * over the pixels of a channel first, then over the channels of a group. Sixteen lanes share the
 * second sum: each has the channels of one remainder by 16, as the contract adds them. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"

void qn__gpu_launch_norm(qn__gpu_pass *pass, qn__kernel kernel, uint64_t rows, uint32_t i,
                         const qn__gpu_call *c) {
    const uint32_t channels = pass->worker->layer[i].layer->to.channels;
    qn__gpu_launch_over(pass, kernel, qn__gpu_sixteens(rows, channels), c);
}

void qn__gpu_push_norm_inputs(const qn__gpu_pass *pass, uint32_t i, qn__gpu_call *c) {
    qn__push_memory_arg(c, &pass->worker->step);
    qn__push_memory_arg(c, &pass->worker->taps);
    qn__push_memory_arg(c, qn__gpu_input_of(pass, i));
}

/* `chains` = sums over the pixels: of the inputs, or with QN_NORM_ERRORS of the errors. */
static void launch_sums(qn__gpu_pass *pass, uint32_t i, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    qn__push_memory_arg(&c, flags ? qn__gpu_errors_of(w, i) : &w->step);
    qn__push_memory_arg(&c, &w->layer[i].moments);
    qn__push_memory_arg(&c, &w->chains);
    qn__push_arg(&c, i * QN__GPU_TAPS);
    qn__push_arg(&c, w->layer[i].layer->norm_groups);
    qn__push_arg(&c, flags);
    qn__gpu_launch_norm(pass, QN__K_ITEM_NORM_SUMS, pass->items, i, &c);
}

static void launch_moments(qn__gpu_pass *pass, uint32_t i, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    qn__push_memory_arg(&c, &w->parameters);
    qn__push_memory_arg(&c, &w->chains);
    qn__push_memory_arg(&c, &l->moments);
    qn__push_wide_arg(&c, l->weights);
    qn__push_arg(&c, i * QN__GPU_TAPS);
    qn__push_arg(&c, l->layer->norm_groups);
    qn__push_arg(&c, flags);
    qn__gpu_launch_over(pass, QN__K_ITEM_NORM_MOMENTS,
                        (uint64_t)pass->items * l->layer->norm_groups, &c);
}

void qn__gpu_launch_item_norm_moments(qn__gpu_pass *pass, uint32_t i) {
    launch_moments(pass, i, QN_NORM_SHIFT);
    launch_sums(pass, i, 0);
    launch_moments(pass, i, 0);
}

void qn__gpu_launch_item_norm_sums(qn__gpu_pass *pass, uint32_t i) {
    launch_sums(pass, i, QN_NORM_ERRORS);
    if (pass->worker->layer[i].source >= 0)
        launch_moments(pass, i, QN_NORM_ERRORS);
}

void qn__gpu_launch_item_norm_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t channels = l->layer->to.channels;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->chains);
    qn__push_memory_arg(&c, &l->moments);
    qn__push_memory_arg(&c, &w->sums);
    qn__push_memory_arg(&c, &w->status);
    qn__push_wide_arg(&c, l->weights);
    qn__push_arg(&c, channels);
    qn__push_arg(&c, l->layer->norm_groups);
    qn__push_arg(&c, i);
    qn__push_float_arg(&c, w->program->partial_limit);
    qn__push_arg(&c, add ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch_over(pass, QN__K_ITEM_NORM_GRADIENT, qn__gpu_ld(channels), &c);
}
