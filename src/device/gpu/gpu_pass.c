/* The kernels of a pass in their order: inputs, forward, loss, backward, update, and what a step
 * reports. Products come from gpu_products.c (floats) or gpu_intgemm.c (integers). */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"
#include <math.h>

void qn__gpu_launch_fetch(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const qn__gpu_source *source = pass->source;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, source->values);
    qn__push_memory_arg(&c, source->rows);
    qn__push_memory_arg(&c, source->labels);
    qn__push_memory_arg(&c, source->weights);
    qn__push_memory_arg(&c, &w->unit);
    qn__push_memory_arg(&c, w->mean.bytes ? &w->mean : &w->step);
    qn__push_memory_arg(&c, w->inverse.bytes ? &w->inverse : &w->step);
    qn__push_memory_arg(&c, &w->inputs);
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_memory_arg(&c, &w->targets);
    qn__push_memory_arg(&c, &w->weight);
    qn__push_arg(&c, w->program->layer[0].in);
    qn__push_arg(&c, source->bytes);
    qn__push_arg(&c, qn__kernel_scale(w->program->scale));
    qn__push_arg(&c, source->flags);
    qn__gpu_launch_over(pass, QN__K_FETCH, pass->items, &c);
}

void qn__gpu_launch_forward(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    qn__gpu_launch_intgemm_begin(pass);
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const int integer = w->bits && qn__gpu_takes_integers(w->layer[i].layer);
        if (qn__gpu_normalises(w->layer[i].layer))
            qn__gpu_launch_norm_forward(pass, i);
        else if (w->layer[i].layer->kind == QN__LAYER_ADD)
            qn__gpu_launch_add_forward(pass, i);
        else if (w->layer[i].layer->conv_groups)
            qn__gpu_launch_grouped_forward(pass, i);
        else if (qn__gpu_has_pixels(w->layer[i].layer))
            (integer ? qn__gpu_launch_pixels_intgemm_forward : qn__gpu_launch_pixels_forward)(pass,
                                                                                              i);
        else
            (integer ? qn__gpu_launch_intgemm_forward : qn__gpu_launch_float_forward)(pass, i);
    }
}

void qn__gpu_launch_loss(qn__gpu_pass *pass, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const qn__layer *l = w->layer[last].layer;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->layer[last].output);
    qn__push_memory_arg(&c, &w->targets);
    qn__push_memory_arg(&c, &w->weight);
    qn__push_memory_arg(&c, &w->loss);
    qn__push_memory_arg(&c, &w->classes);
    qn__push_memory_arg(&c, &w->scores);
    qn__push_memory_arg(&c, &w->finite);
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, last));
    qn__push_arg(&c, l->out);
    qn__push_arg(&c, qn__kernel_activation(l->activation));
    qn__push_arg(&c, qn__kernel_loss(w->program->loss));
    qn__push_float_arg(&c, qn__program_loss_number(w->program));
    qn__push_float_arg(&c, ldexpf(1.0f, (int)w->program->gradient_scale));
    qn__push_arg(&c, flags | (w->program->real ? QN_LOSS_REAL : 0));
    qn__gpu_launch_over(pass, QN__K_LOSS, pass->items, &c);
}

static void launch_bias(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, i));
    qn__push_memory_arg(&c, &w->sums);
    qn__push_memory_arg(&c, &w->status);
    qn__push_wide_arg(&c, l->biases);
    qn__push_arg(&c, l->layer->out);
    qn__push_arg(&c, i);
    qn__push_float_arg(&c, w->program->partial_limit);
    qn__push_arg(&c, add ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch_over(pass, QN__K_BIAS, l->layer->out, &c);
}

static void launch_update_of(qn__gpu_pass *pass, uint64_t begin, uint64_t count, float decay) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__gpu_push_state(w, &c);
    qn__push_memory_arg(&c, &w->sums);
    qn__push_wide_arg(&c, begin);
    qn__push_wide_arg(&c, count);
    qn__gpu_push_rule(w->program, decay, &c);
    qn__gpu_launch_over(pass, QN__K_UPDATE, count, &c);
}

static void launch_update_layer(qn__gpu_pass *pass, uint32_t i) {
    const qn__gpu_layer *l = &pass->worker->layer[i];
    const float decay = pass->worker->program->weight_decay;
    const uint64_t weights = l->biases - l->weights, ld = qn__gpu_ld(l->layer->to.channels);
    const uint64_t biases = qn__gpu_vectors(l->layer) * ld;
    if (biases == 0)
        return;
    if (qn__gpu_normalises(l->layer)) {
        launch_update_of(pass, l->weights, 2 * ld, 0.0f);
        if (l->layer->running)
            qn__gpu_launch_norm_update(pass, i);
        return;
    }
    if (decay == 0.0f) {
        launch_update_of(pass, l->weights, weights + biases, 0.0f);
        return;
    }
    launch_update_of(pass, l->weights, weights, decay);
    launch_update_of(pass, l->biases, biases, 0.0f);
}

void qn__gpu_launch_update(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    int normalises = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i)
        normalises |= qn__gpu_normalises(w->layer[i].layer);
    if (w->program->weight_decay == 0.0f && !normalises)
        launch_update_of(pass, 0, w->padded, 0.0f);
    else
        for (uint32_t i = 0; i < w->program->layers; ++i)
            launch_update_layer(pass, i);
    qn__gpu_launch_weights(pass);
}

/* Errors, gradients and, with `update`, the update of a layer that is none of features. */
static void launch_pixels_backward(qn__gpu_pass *pass, uint32_t i, int add, int update) {
    if (qn__gpu_normalises(pass->worker->layer[i].layer)) {
        qn__gpu_launch_norm_errors(pass, i);
        qn__gpu_launch_norm_gradient(pass, i, add);
    } else if (pass->worker->layer[i].layer->kind == QN__LAYER_ADD) {
        qn__gpu_launch_add_errors(pass, i);
    } else if (pass->worker->layer[i].layer->conv_groups) {
        qn__gpu_launch_grouped_errors(pass, i);
        qn__gpu_launch_grouped_gradient(pass, i, add);
    } else if (pass->worker->bits && pass->worker->layer[i].layer->depth) {
        qn__gpu_launch_pixels_intgemm_errors(pass, i);
        qn__gpu_launch_pixels_intgemm_gradient(pass, i, add);
    } else {
        qn__gpu_launch_pixels_errors(pass, i);
        qn__gpu_launch_pixels_gradient(pass, i, add);
    }
    if (update)
        launch_update_layer(pass, i);
}

void qn__gpu_launch_backward(qn__gpu_pass *pass, int add, int update) {
    /* A GPU has groups enough for each kernel; a CPU gains by what stays in its caches. */
    const int integer = pass->worker->bits != 0;
    const int fused = update && pass->worker->facts->vectors && !integer;
    for (uint32_t i = pass->worker->program->layers; i-- > 0;) {
        if (qn__gpu_has_pixels(pass->worker->layer[i].layer)) {
            launch_pixels_backward(pass, i, add, fused);
            continue;
        }
        if (integer && qn__gpu_shares_source(pass->worker, i))
            qn__gpu_launch_pixels_intgemm_errors(pass, i);
        else if (integer)
            qn__gpu_launch_intgemm_errors(pass, i);
        else if (qn__gpu_shares_source(pass->worker, i))
            qn__gpu_launch_pixels_errors(pass, i);
        else if (pass->worker->layer[i].source >= 0)
            qn__gpu_launch_float_errors(pass, i, NULL);
        if (fused) {
            qn__gpu_launch_learn(pass, i);
            continue;
        }
        if (integer)
            qn__gpu_launch_intgemm_gradient(pass, i, add);
        else
            qn__gpu_launch_float_gradient(pass, i, add);
        launch_bias(pass, i, add);
    }
    if (update && !fused)
        qn__gpu_launch_update(pass);
}

void qn__gpu_launch_tally(qn__gpu_pass *pass, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->loss);
    qn__push_memory_arg(&c, &w->classes);
    qn__push_memory_arg(&c, &w->targets);
    qn__push_memory_arg(&c, &w->finite);
    qn__push_memory_arg(&c, &w->status);
    qn__push_arg(&c, flags | (w->program->real ? QN_LOSS_REAL : 0));
    qn__gpu_launch_over(pass, QN__K_TALLY, pass->items, &c);
}

void qn__gpu_launch_sums(qn__gpu_pass *pass, qn__kernel kernel) {
    const qn__worker *w = pass->worker;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__gpu_layer *l = &w->layer[i];
        const uint32_t out = l->layer->to.channels;
        for (uint32_t v = 0; v < qn__gpu_vectors(l->layer); ++v) {
            const uint32_t depth = l->layer->depth;
            qn__gpu_call c = {0};
            qn__push_memory_arg(&c, &w->sums);
            qn__push_memory_arg(&c, &w->canonical);
            qn__push_wide_arg(&c, l->weights + v * qn__gpu_ld(out));
            qn__push_arg(&c, depth);
            qn__push_arg(&c, out);
            qn__push_wide_arg(&c, l->layer->weights + (uint64_t)v * out);
            qn__gpu_launch_over(pass, kernel, (depth + (uint64_t)1) * qn__gpu_ld(out), &c);
        }
    }
}
