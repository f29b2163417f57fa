/* Groupnorm and layernorm (docs/exactness.md 17.9): each item has statistics of its own. Sums go
 * over the pixels of a channel first, then over the channels of a group. Sixteen lanes share the
 * second sum: each has the channels of one remainder by 16, as the contract adds them. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"

/* What has statistics of its own: an item, or each of its pixels. For the kernels groups are 0
 * then.
 */
static uint32_t parts_of(const qn__layer *l) { return l->norm_alone ? qn__gpu_pixels(l) : 1; }

static uint32_t groups_of(const qn__layer *l) { return l->norm_alone ? 0 : l->norm_groups; }

/* `chains` = sums over the pixels: of the inputs, or with QN_NORM_ERRORS of the errors. */
static void launch_sums(qn__gpu_pass *pass, uint32_t i, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, flags ? qn__gpu_errors_of(w, i) : &w->step, &w->layer[i].moments,
                    &w->pixels.chains);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, groups_of(w->layer[i].layer), flags);
    qn__gpu_launch_norm(pass, QN__K_ITEM_NORM_SUMS,
                        (uint64_t)pass->items * parts_of(w->layer[i].layer), i, &c);
}

static void launch_moments(qn__gpu_pass *pass, uint32_t i, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    QN__PUSH_MEMORY(&c, &w->model.parameters, &w->pixels.chains, &l->moments);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, i * QN__GPU_TAPS, groups_of(l->layer), flags);
    qn__gpu_launch_over(pass, QN__K_ITEM_NORM_MOMENTS,
                        (uint64_t)pass->items * parts_of(l->layer) * l->layer->norm_groups, &c);
}

static void forward(qn__gpu_pass *pass, uint32_t i) {
    launch_moments(pass, i, QN_NORM_SHIFT);
    launch_sums(pass, i, 0);
    launch_moments(pass, i, 0);
    qn__gpu_norm_outputs(pass, QN__K_ITEM_NORM_FORWARD, i, groups_of(pass->worker->layer[i].layer));
}

/* The sums of the errors stay in `chains` for the gradient. */
static void errors(qn__gpu_pass *pass, uint32_t i) {
    launch_sums(pass, i, QN_NORM_ERRORS);
    if (qn__gpu_takes_errors(pass->worker, pass->worker->layer[i].source))
        launch_moments(pass, i, QN_NORM_ERRORS);
    qn__gpu_norm_errors(pass, QN__K_ITEM_NORM_ERRORS, i, groups_of(pass->worker->layer[i].layer));
}

static void gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t channels = l->layer->to.channels;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->pixels.chains, &l->moments, &w->model.sums,
                    &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, channels, l->layer->norm_groups, parts_of(l->layer), i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, add ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch_over(pass, QN__K_ITEM_NORM_GRADIENT, qn__gpu_ld(channels), &c);
}

static uint64_t moments(const qn__worker *w, const qn__layer *l) {
    return (uint64_t)QN_ITEM_ARRAYS * w->capacity * parts_of(l) * l->norm_groups * sizeof(float);
}

static uint64_t chains(const qn__worker *w, const qn__layer *l) {
    return 2 * (uint64_t)w->capacity * parts_of(l) * qn__gpu_ld(l->to.channels) * sizeof(float);
}

#define NORM                                                                                       \
    {                                                                                              \
        .forward = forward, .errors = errors, .gradient = gradient, .moments = moments,            \
        .chains = chains, .reads_input = 1                                                         \
    }

const qn__gpu_kind qn__gpu_groupnorm = NORM, qn__gpu_layernorm = NORM;
