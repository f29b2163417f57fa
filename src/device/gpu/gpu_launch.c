/* The kernels of a pass, with their arguments and grids, and the choice among their variants: the
 * bytes are the same whichever is taken. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"
#include <math.h>

void qn__gpu_launch(qn__gpu_pass *pass, qn__kernel kernel, const uint32_t groups[3],
                    const qn__gpu_call *arguments) {
    const qn__worker *w = pass->worker;
    if (pass->status == QN_OK)
        pass->status = w->driver->launch(w->gpu, kernel, groups, arguments->argument,
                                         arguments->count, pass->err);
}

void qn__gpu_launch_over(qn__gpu_pass *pass, qn__kernel kernel, uint64_t work,
                         const qn__gpu_call *arguments) {
    uint32_t groups[3];
    if (pass->worker->facts->vectors)
        kernel = qn__kernel_vector(kernel);
    qn__gpu_grid(kernel, work, groups);
    qn__gpu_launch(pass, kernel, groups, arguments);
}

/* A variant of a product and its grid. */
typedef struct product {
    qn__kernel kernel;
    uint32_t groups[3];
} product;

static product product_of(qn__kernel kernel, uint64_t rows, uint64_t columns) {
    product p = {.kernel = kernel};
    qn__gpu_tiles(kernel, rows, columns, p.groups);
    return p;
}

/* Groups in the second direction of a grid that CUDA takes at most. */
enum { MOST_DOWN = 65535 };

/* The tiles that one processor has to work off, each its chains and what reading both factors costs
 * beside them, more where a lane has few chains; matrix instructions take an eighth. One whose grid
 * is too large takes for ever. */
uint64_t qn__gpu_cost(const qn__worker *w, qn__kernel kernel, uint64_t tiles) {
    const qn__kernel_shape *s = qn__kernel_shape_of(kernel);
    const uint64_t waves = (tiles + w->facts->compute_units - 1) / w->facts->compute_units;
    const uint64_t results = (uint64_t)s->tile_rows * s->tile_columns;
    const uint64_t work = s->products & QN_WITH_MATRIX ? results / 8 : results;
    return waves * (work + (uint64_t)4 * s->lanes[0]);
}

static uint64_t cost(const qn__worker *w, const product *p) {
    if (p->groups[1] > MOST_DOWN)
        return UINT64_MAX;
    return qn__gpu_cost(w, p->kernel, (uint64_t)p->groups[0] * p->groups[1]);
}

/* `large` is followed by its other variants, the last of them for CPUs. Large tiles do more
 * arithmetic for each byte, small ones keep more of the device busy. */
static product choose(const qn__worker *w, qn__kernel large, uint64_t rows, uint64_t columns) {
    product best = product_of(large, rows, columns);
    qn__kernel k = (qn__kernel)(large + 1);
    for (; !qn__kernel_shape_of(k)->opencl_only; k = (qn__kernel)(k + 1)) {
        const product p = product_of(k, rows, columns);
        if (cost(w, &p) < cost(w, &best))
            best = p;
    }
    return w->facts->vectors ? product_of(k, rows, columns) : best;
}

void qn__gpu_push_outputs(const qn__worker *w, uint32_t layer, int drops, qn__gpu_call *c) {
    const qn__layer *l = w->layer[layer].layer;
    qn__push_arg(c, layer);
    qn__push_arg(c, (uint32_t)l->activation);
    qn__push_arg(c, drops ? l->drop_threshold : 0);
    qn__push_float_arg(c, l->drop_keep);
    qn__push_wide_arg(c, w->program->seed);
}

void qn__gpu_launch_fetch(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const qn__gpu_source *source = pass->source;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, source->values);
    qn__push_memory_arg(&c, source->rows);
    qn__push_memory_arg(&c, source->labels);
    qn__push_memory_arg(&c, &w->unit);
    qn__push_memory_arg(&c, w->mean.bytes ? &w->mean : &w->step);
    qn__push_memory_arg(&c, w->inverse.bytes ? &w->inverse : &w->step);
    qn__push_memory_arg(&c, &w->inputs);
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_memory_arg(&c, &w->targets);
    qn__push_arg(&c, w->program->layer[0].in);
    qn__push_arg(&c, source->bytes);
    qn__push_arg(&c, (uint32_t)w->program->scale);
    qn__push_arg(&c, source->flags);
    qn__gpu_launch_over(pass, QN__K_FETCH, pass->items, &c);
}

const qn__gpu_memory *qn__gpu_input_of(const qn__gpu_pass *pass, uint32_t l) {
    const qn__worker *w = pass->worker;
    if (l == 0)
        return &w->inputs;
    return pass->training && w->layer[l - 1].dropped.bytes ? &w->layer[l - 1].dropped
                                                           : &w->layer[l - 1].output;
}

void qn__gpu_launch_forward(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    if (w->bits) {
        qn__gpu_launch_intgemm_forward(pass);
        return;
    }
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__gpu_layer *l = &w->layer[i];
        const int drops = pass->training && l->dropped.bytes;
        const product p = choose(w, QN__K_FORWARD_LARGE, pass->items, l->layer->out);
        qn__gpu_call c = {0};
        qn__push_memory_arg(&c, &w->step);
        qn__push_memory_arg(&c, qn__gpu_input_of(pass, i));
        qn__push_memory_arg(&c, &w->parameters);
        qn__push_wide_arg(&c, l->weights);
        qn__push_wide_arg(&c, l->biases);
        qn__push_memory_arg(&c, &l->output);
        qn__push_memory_arg(&c, drops ? &l->dropped : &w->step);
        qn__push_memory_arg(&c, &w->numbers);
        qn__push_arg(&c, l->layer->in);
        qn__push_arg(&c, l->layer->out);
        qn__gpu_push_outputs(w, i, drops, &c);
        qn__gpu_launch(pass, p.kernel, p.groups, &c);
    }
}

const qn__gpu_memory *qn__gpu_errors_of(const qn__worker *w, uint32_t l) {
    return &w->errors[(w->program->layers - 1 - l) % 2];
}

void qn__gpu_launch_loss(qn__gpu_pass *pass, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const uint32_t last = w->program->layers - 1;
    const qn__layer *l = w->layer[last].layer;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->layer[last].output);
    qn__push_memory_arg(&c, &w->targets);
    qn__push_memory_arg(&c, &w->loss);
    qn__push_memory_arg(&c, &w->classes);
    qn__push_memory_arg(&c, &w->scores);
    qn__push_memory_arg(&c, &w->finite);
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, last));
    qn__push_arg(&c, l->out);
    qn__push_arg(&c, (uint32_t)l->activation);
    qn__push_arg(&c, (uint32_t)w->program->loss);
    qn__push_float_arg(&c, ldexpf(1.0f, (int)w->program->gradient_scale));
    qn__push_arg(&c, flags);
    qn__gpu_launch_over(pass, QN__K_LOSS, pass->items, &c);
}

/* 8.4, 8.5: from the errors of layer i to those of the layer below. */
static void launch_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i], *below = l - 1;
    const product p = choose(w, QN__K_ERRORS_LARGE, pass->items, l->layer->in);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, i));
    qn__push_memory_arg(&c, &w->parameters);
    qn__push_wide_arg(&c, l->weights);
    qn__push_memory_arg(&c, &below->output);
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, i - 1));
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_arg(&c, l->layer->in);
    qn__push_arg(&c, l->layer->out);
    qn__gpu_push_outputs(w, i - 1, 1, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

/* Where the tiles of a gradient are too few for the device, its grains are parted among several
 * groups for each tile. */
static uint32_t k_blocks_of(const qn__gpu_pass *pass, uint64_t tiles) {
    const qn__worker *w = pass->worker;
    const uint64_t grains = qn__gpu_pieces(pass->items, w->program->grain);
    if (!w->facts->atomics || w->facts->vectors || tiles * 2 > w->facts->compute_units)
        return 1;
    const uint64_t wanted = w->facts->compute_units / tiles;
    return (uint32_t)(wanted < grains ? wanted : grains);
}

uint32_t qn__gpu_k_blocks(qn__gpu_pass *pass, uint32_t layer, uint64_t tiles, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[layer];
    const uint32_t k_blocks = k_blocks_of(pass, tiles);
    if (k_blocks > 1 && !add && pass->status == QN_OK)
        pass->status =
            w->driver->clear(w->gpu, &w->sums, (size_t)l->weights * sizeof(int64_t),
                             (size_t)(l->biases - l->weights) * sizeof(int64_t), pass->err);
    return k_blocks;
}

static void launch_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    product p = choose(w, QN__K_GRADIENT_LARGE, l->layer->in, l->layer->out);
    p.groups[2] = qn__gpu_k_blocks(pass, i, (uint64_t)p.groups[0] * p.groups[1], add);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, qn__gpu_input_of(pass, i));
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, i));
    qn__push_memory_arg(&c, &w->sums);
    qn__push_memory_arg(&c, &w->status);
    qn__push_wide_arg(&c, l->weights);
    qn__push_arg(&c, l->layer->in);
    qn__push_arg(&c, l->layer->out);
    qn__push_arg(&c, i);
    qn__push_float_arg(&c, w->program->partial_limit);
    qn__push_arg(&c, p.groups[2]);
    qn__push_arg(&c, add || p.groups[2] > 1 ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
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

static void push_state(const qn__worker *w, qn__gpu_call *c) {
    qn__push_memory_arg(c, &w->parameters);
    qn__push_memory_arg(c, w->slots > 0 ? &w->slot[0] : &w->step);
    qn__push_memory_arg(c, w->slots > 1 ? &w->slot[1] : &w->step);
}

/* How parameters follow from sums. */
static void push_rule(const qn__program *p, float decay, qn__gpu_call *c) {
    qn__push_arg(c, (uint32_t)p->optimizer);
    qn__push_float_arg(c, p->momentum);
    qn__push_float_arg(c, p->beta1);
    qn__push_float_arg(c, p->beta2);
    qn__push_float_arg(c, 1.0f - p->beta1);
    qn__push_float_arg(c, 1.0f - p->beta2);
    qn__push_float_arg(c, p->epsilon);
    qn__push_float_arg(c, decay);
}

/* Gradients, biases and update of a layer in one. */
static void launch_learn(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const product p = product_of(QN__K_LEARN_VECTOR, l->layer->in, l->layer->out);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, qn__gpu_input_of(pass, i));
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, i));
    push_state(w, &c);
    qn__push_memory_arg(&c, &w->status);
    qn__push_wide_arg(&c, l->weights);
    qn__push_arg(&c, l->layer->in);
    qn__push_arg(&c, l->layer->out);
    qn__push_arg(&c, i);
    qn__push_float_arg(&c, w->program->partial_limit);
    push_rule(w->program, w->program->weight_decay, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

static void launch_update_of(qn__gpu_pass *pass, uint64_t begin, uint64_t count, float decay) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    push_state(w, &c);
    qn__push_memory_arg(&c, &w->sums);
    qn__push_wide_arg(&c, begin);
    qn__push_wide_arg(&c, count);
    push_rule(w->program, decay, &c);
    qn__gpu_launch_over(pass, QN__K_UPDATE, count, &c);
}

void qn__gpu_launch_update(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const float decay = w->program->weight_decay;
    if (decay == 0.0f)
        launch_update_of(pass, 0, w->padded, 0.0f);
    for (uint32_t i = 0; decay != 0.0f && i < w->program->layers; ++i) {
        const qn__gpu_layer *l = &w->layer[i];
        launch_update_of(pass, l->weights, l->biases - l->weights, decay);
        launch_update_of(pass, l->biases, qn__gpu_ld(l->layer->out), 0.0f);
    }
    qn__gpu_launch_weights(pass);
}

void qn__gpu_launch_backward(qn__gpu_pass *pass, int add, int update) {
    /* A GPU has groups enough for each kernel; a CPU gains by what stays in its caches. */
    const int integer = pass->worker->bits != 0;
    const int fused = update && pass->worker->facts->vectors && !integer;
    for (uint32_t i = pass->worker->program->layers; i-- > 0;) {
        if (integer)
            qn__gpu_launch_intgemm_errors(pass, i);
        else if (i > 0)
            launch_errors(pass, i);
        if (fused) {
            launch_learn(pass, i);
            continue;
        }
        if (integer)
            qn__gpu_launch_intgemm_gradient(pass, i, add);
        else
            launch_gradient(pass, i, add);
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
    qn__push_arg(&c, flags);
    qn__gpu_launch_over(pass, QN__K_TALLY, pass->items, &c);
}

void qn__gpu_launch_sums(qn__gpu_pass *pass, qn__kernel kernel) {
    const qn__worker *w = pass->worker;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__gpu_layer *l = &w->layer[i];
        qn__gpu_call c = {0};
        qn__push_memory_arg(&c, &w->sums);
        qn__push_memory_arg(&c, &w->canonical);
        qn__push_wide_arg(&c, l->weights);
        qn__push_arg(&c, l->layer->in);
        qn__push_arg(&c, l->layer->out);
        qn__push_wide_arg(&c, l->layer->weights);
        qn__gpu_launch_over(pass, kernel, (l->layer->in + (uint64_t)1) * qn__gpu_ld(l->layer->out),
                            &c);
    }
}
