/* Normalisations. Moments of batchnorm (docs/exactness.md 17.8) are those of a grain, whose rows
 * follow one another. Sums go over the items of a pixel first, then over the pixels. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"

static uint64_t grains_of(const qn__worker *w, uint32_t items) {
    const uint32_t grain = w->program->grain;
    return items <= grain ? 1 : qn__gpu_pieces(items, grain);
}

uint64_t qn__gpu_moments_bytes(const qn__worker *w, const qn__layer *l) {
    if (!qn__gpu_normalises(l))
        return 0;
    if (l->norm_groups)
        return (uint64_t)QN_ITEM_ARRAYS * w->room * l->norm_groups * sizeof(float);
    return QN_NORM_ARRAYS * grains_of(w, w->room) * qn__gpu_ld(l->to.channels) * sizeof(float);
}

uint64_t qn__gpu_norm_needs(const qn__worker *w) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__layer *l = w->layer[i].layer;
        const uint64_t rows = l->norm_groups ? w->room : grains_of(w, w->room) * qn__gpu_pixels(l);
        const uint64_t bytes = 2 * rows * qn__gpu_ld(l->to.channels) * sizeof(float);
        if (qn__gpu_normalises(l) && bytes > most)
            most = bytes;
    }
    return most;
}

/* The moments of a layer's inputs, or with QN_NORM_ERRORS those of its errors. */
static void launch_moments(qn__gpu_pass *pass, uint32_t i, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const uint32_t grains = (uint32_t)grains_of(w, pass->items);
    qn__gpu_call c = {0}, d = {0};
    qn__gpu_push_norm_inputs(pass, i, &c);
    qn__push_memory_arg(&c, flags ? qn__gpu_errors_of(w, i) : &w->step);
    qn__push_memory_arg(&c, &w->layer[i].moments);
    qn__push_memory_arg(&c, &w->chains);
    qn__push_arg(&c, i * QN__GPU_TAPS);
    qn__push_arg(&c, grains);
    qn__push_arg(&c, flags);
    qn__gpu_launch_norm(pass, QN__K_NORM_SUMS, (uint64_t)grains * qn__gpu_pixels(w->layer[i].layer),
                        i, &c);
    qn__gpu_push_norm_inputs(pass, i, &d);
    qn__push_memory_arg(&d, &w->chains);
    qn__push_memory_arg(&d, &w->layer[i].moments);
    qn__push_arg(&d, i * QN__GPU_TAPS);
    qn__push_arg(&d, grains);
    qn__push_arg(&d, flags);
    qn__gpu_launch_norm(pass, QN__K_NORM_MOMENTS, grains, i, &d);
}

/* What divides the inputs of one moment: groups of an item, or grains; 0: running averages. */
static uint32_t divisions_of(const qn__gpu_pass *pass, const qn__layer *l) {
    if (l->norm_groups)
        return l->norm_groups;
    return pass->training ? (uint32_t)grains_of(pass->worker, pass->items) : 0;
}

void qn__gpu_launch_norm_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    qn__gpu_call c = {0};
    if (l->layer->norm_groups)
        qn__gpu_launch_item_norm_moments(pass, i);
    else if (pass->training)
        launch_moments(pass, i, 0);
    qn__gpu_push_norm_inputs(pass, i, &c);
    qn__push_memory_arg(&c, &w->parameters);
    qn__push_memory_arg(&c, &l->moments);
    qn__push_memory_arg(&c, &l->output);
    qn__push_memory_arg(&c, drops ? &l->dropped : &w->step);
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_wide_arg(&c, l->weights);
    qn__push_arg(&c, i * QN__GPU_TAPS);
    qn__push_arg(&c, divisions_of(pass, l->layer));
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_norm(pass, l->layer->norm_groups ? QN__K_ITEM_NORM_FORWARD : QN__K_NORM_FORWARD,
                        (uint64_t)pass->items * qn__gpu_pixels(l->layer), i, &c);
    qn__gpu_launch_gate(pass, i);
}

void qn__gpu_launch_norm_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    if (l->layer->norm_groups)
        qn__gpu_launch_item_norm_sums(pass, i);
    else
        launch_moments(pass, i, QN_NORM_ERRORS);
    if (l->source < 0)
        return;
    qn__gpu_push_norm_inputs(pass, i, &c);
    qn__push_memory_arg(&c, &w->parameters);
    qn__push_memory_arg(&c, &l->moments);
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, i));
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, (uint32_t)l->source));
    qn__push_wide_arg(&c, l->weights);
    qn__push_arg(&c, i * QN__GPU_TAPS);
    qn__push_arg(&c, divisions_of(pass, l->layer));
    qn__push_arg(&c, qn__gpu_gives_first(w, i, l->source) ? 0 : QN_NORM_ADD);
    qn__gpu_launch_norm(pass, l->layer->norm_groups ? QN__K_ITEM_NORM_ERRORS : QN__K_NORM_ERRORS,
                        (uint64_t)pass->items * qn__gpu_pixels(l->layer), i, &c);
    qn__gpu_finish_errors(pass, i);
}

void qn__gpu_launch_norm_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t channels = l->layer->to.channels;
    qn__gpu_call c = {0};
    if (l->layer->norm_groups) {
        qn__gpu_launch_item_norm_gradient(pass, i, add);
        return;
    }
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &l->moments);
    qn__push_memory_arg(&c, &w->sums);
    qn__push_memory_arg(&c, &w->status);
    qn__push_wide_arg(&c, l->weights);
    qn__push_arg(&c, channels);
    qn__push_arg(&c, qn__gpu_pixels(l->layer));
    qn__push_arg(&c, (uint32_t)grains_of(w, pass->items));
    qn__push_arg(&c, i);
    qn__push_float_arg(&c, w->program->partial_limit);
    qn__push_arg(&c, add ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch_over(pass, QN__K_NORM_GRADIENT, qn__gpu_ld(channels), &c);
}

void qn__gpu_launch_norm_update(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint64_t ld = qn__gpu_ld(l->layer->to.channels);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->parameters);
    qn__push_memory_arg(&c, &w->sums);
    qn__push_wide_arg(&c, l->weights + 2 * ld);
    qn__push_arg(&c, (uint32_t)(2 * ld));
    qn__gpu_launch_over(pass, QN__K_NORM_UPDATE, 2 * ld, &c);
}
