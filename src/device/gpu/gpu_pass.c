/* The kernels of a pass in their order: inputs, forward, loss, backward, update, and what a step
 * reports. Products come from gpu_products.c (floats) or gpu_intgemm.c (integers). */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"
#include <math.h>

void qn__gpu_launch_fetch(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const qn__gpu_source *source = pass->source;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, source->values, source->rows, source->labels, source->weights,
                    &w->batch.unit, w->batch.mean.bytes ? &w->batch.mean : &w->step,
                    w->batch.inverse.bytes ? &w->batch.inverse : &w->step,
                    qn__gpu_output_of(pass, -1), &w->batch.numbers, &w->batch.targets,
                    &w->batch.weight);
    QN__PUSH_NUMBERS(&c, w->lists.takes ? 0 : w->program->layer[0].in, source->type,
                     qn__kernel_scale(w->program->scale), source->flags);
    qn__gpu_launch_over(pass, QN__K_FETCH, pass->items, &c);
}

void qn__gpu_launch_layers(qn__gpu_pass *pass, uint32_t end) {
    qn__gpu_launch_intgemm_begin(pass);
    for (uint32_t i = 0; i < end; ++i)
        pass->worker->layer[i].kind->forward(pass, i);
}

static void launch_loss(qn__gpu_pass *pass, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const qn__layer *l = w->layer[last].layer;
    qn__gpu_call c = {0};
    if (w->program->answers) {
        const qn__gpu_range rows = {0, pass->items * qn__gpu_pixels(l)};
        qn__gpu_launch_answers(pass, &rows, flags);
        qn__gpu_launch_answer_sums(pass);
        return;
    }
    QN__PUSH_MEMORY(&c, &w->step, &w->layer[last].output, &w->batch.targets, &w->batch.weight,
                    &w->batch.loss, &w->batch.classes, &w->batch.scores, &w->batch.finite,
                    qn__gpu_errors_of(w, last));
    QN__PUSH_NUMBERS(&c, l->out, qn__kernel_activation(l->activation),
                     qn__kernel_loss(w->program->loss));
    QN__PUSH_FLOATS(&c, qn__program_loss_number(w->program),
                    ldexpf(1.0f, (int)w->program->gradient_scale));
    QN__PUSH_NUMBERS(&c, flags | (w->program->real ? QN_LOSS_REAL : 0));
    qn__gpu_launch_over(pass, QN__K_LOSS, pass->items, &c);
}

void qn__gpu_launch_forward(qn__gpu_pass *pass, uint32_t flags, int add, float *outputs) {
    const qn__worker *w = pass->worker;
    const int sliced = w->slices.rows > 0;
    qn__gpu_launch_layers(pass, w->program->layers - (sliced ? 1 : 0));
    if (sliced)
        qn__gpu_launch_slices(pass, flags, add, outputs);
    else
        launch_loss(pass, flags);
}

static void launch_update_of(qn__gpu_pass *pass, uint64_t begin, uint64_t count, float decay,
                             float factor) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    if (count == 0)
        return;
    QN__PUSH_MEMORY(&c, &w->step);
    qn__gpu_push_state(w, &c);
    QN__PUSH_MEMORY(&c, &w->model.sums);
    QN__PUSH_WIDE(&c, begin, count);
    qn__gpu_push_rule(w->program, decay, factor, &c);
    qn__gpu_launch_over(pass, QN__K_UPDATE, count, &c);
}

static void launch_update_layer(qn__gpu_pass *pass, uint32_t i) {
    const qn__gpu_layer *l = &pass->worker->layer[i];
    const qn__program *p = pass->worker->program;
    const float decay = qn__weights_decay(p, l->layer) ? p->weight_decay : 0.0f;
    const float others = qn__others_decay(p, l->layer) ? p->weight_decay : 0.0f;
    const uint64_t weights = l->biases - l->weights, ld = qn__gpu_ld(l->layer->to.channels);
    const uint64_t biases = qn__layer_biases(l->layer) ? ld : 0;
    const float factor = qn__layer_rate(l->layer);
    if (l->layer->vectors) {
        const uint64_t rows = qn__gpu_vectors(l->layer) - l->layer->running / l->layer->to.channels;
        launch_update_of(pass, l->weights, rows * ld, others, factor);
        if (l->kind->run_on)
            l->kind->run_on(pass, i);
        return;
    }
    const uint64_t first = decay == others ? weights + biases : weights;
    launch_update_of(pass, l->weights, first, decay, factor);
    if (weights + biases > first)
        launch_update_of(pass, l->biases, biases, others, factor);
}

/* Where the layers from `first` on end that train, as `first` does, without one between them that
 * does not. */
static uint32_t run_of(const qn__worker *w, uint32_t first) {
    while (first < w->program->layers && qn__program_trains(w->program, first))
        ++first;
    return first;
}

/* All parameters that train: padding stays 0. */
static void launch_average(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const int average = qn__program_average(w->program);
    const uint32_t layers = w->program->layers;
    for (uint32_t i = 0, after; average >= 0 && i < layers; i = after + 1) {
        after = run_of(w, i);
        const uint64_t begin = w->layer[i].weights;
        const uint64_t end = after < layers ? w->layer[after].weights : w->model.padded;
        qn__gpu_call c = {0};
        if (end == begin)
            continue;
        QN__PUSH_MEMORY(&c, &w->step, &w->model.parameters, &w->model.slot[average]);
        QN__PUSH_WIDE(&c, begin, end - begin);
        qn__gpu_launch_over(pass, QN__K_AVERAGE, end - begin, &c);
    }
}

void qn__gpu_launch_update(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    int alike = w->program->weight_decay == 0.0f;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__layer *l = w->layer[i].layer;
        alike &= qn__program_trains(w->program, i) && !l->vectors && !l->no_biases &&
                 qn__layer_rate(l) == 1.0f;
    }
    if (alike)
        launch_update_of(pass, 0, w->model.padded, 0.0f, 1.0f);
    else
        for (uint32_t i = w->program->frozen; i < w->program->layers; ++i)
            if (qn__program_trains(w->program, i))
                launch_update_layer(pass, i);
    launch_average(pass);
    qn__gpu_launch_weights(pass, w->program->frozen);
}

/* The outputs that the layer and those before it read in the backward pass. */
static void launch_again(qn__gpu_pass *pass, uint32_t layer) {
    const qn__worker *w = pass->worker;
    for (uint32_t i = layer - w->layer[layer].recomputes; i < layer; ++i)
        w->layer[i].kind->forward(pass, i);
}

void qn__gpu_launch_backward(qn__gpu_pass *pass, int add, int update) {
    /* A GPU has groups enough for each kernel; a CPU gains by what stays in its caches. */
    const qn__worker *w = pass->worker;
    const int fused = update && w->facts->vectors && !w->bits && !qn__program_tied(w->program);
    for (uint32_t i = w->program->layers; i-- > w->program->frozen;) {
        const qn__gpu_kind *kind = w->layer[i].kind;
        const int done = w->slices.rows && i + 1 == w->program->layers;
        launch_again(pass, i);
        if (!done)
            kind->errors(pass, i);
        if (!qn__program_trains(w->program, i))
            continue;
        if (fused && kind->learn && kind->learn(pass, i))
            continue;
        if (kind->gradient && !done)
            kind->gradient(pass, i, add);
        if (fused)
            launch_update_layer(pass, i);
    }
    if (update && !fused)
        qn__gpu_launch_update(pass);
    else if (update)
        launch_average(pass);
}

void qn__gpu_launch_tally(qn__gpu_pass *pass, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &w->batch.loss, &w->batch.classes, &w->batch.targets,
                    &w->batch.finite, &w->reports.status);
    QN__PUSH_NUMBERS(&c, flags | (w->program->real ? QN_LOSS_REAL : 0) |
                             (w->program->answers ? QN_LOSS_ANSWERS : 0));
    qn__gpu_launch_over(pass, QN__K_TALLY, pass->items, &c);
}

void qn__gpu_launch_sums(qn__gpu_pass *pass, qn__kernel kernel) {
    const qn__worker *w = pass->worker;
    for (uint32_t i = w->program->frozen; i < w->program->layers; ++i) {
        const qn__gpu_layer *l = &w->layer[i];
        const uint32_t out = l->layer->to.channels;
        const uint32_t depth = l->layer->depth, rows = qn__gpu_vectors(l->layer);
        qn__gpu_call c = {0};
        if (depth + rows == 0 || !qn__program_trains(w->program, i))
            continue;
        QN__PUSH_MEMORY(&c, &w->model.sums, &w->model.canonical);
        QN__PUSH_WIDE(&c, l->weights);
        QN__PUSH_NUMBERS(&c, depth, out);
        QN__PUSH_WIDE(&c, qn__program_sum(w->program, qn__layer_matrix(l->layer)));
        QN__PUSH_NUMBERS(&c, l->layer->no_biases ? 0 : rows);
        qn__gpu_launch_over(pass, kernel, (depth + (uint64_t)rows) * qn__gpu_ld(out), &c);
    }
}
