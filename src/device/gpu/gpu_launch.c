/* Common parts of float and integer products: launching a kernel, the cost of a variant, and the
 * input arrays of a layer. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"

/* A call has space for the arguments of every kernel. */
#define FITS(KERNEL, NAME, ARGUMENTS, LANES, ROWS, COLUMNS, SHARE, PRODUCTS)                       \
    _Static_assert(sizeof(ARGUMENTS) <= QN__GPU_ARGUMENTS + 1, #NAME);
QN__KERNEL_LIST(FITS)
#undef FITS

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

/* The estimated time: the tiles for each compute unit, each with its arithmetic and the time to
 * read both factors, more if a lane has few chains. Matrix instructions take an eighth. A variant
 * whose grid is too large has an infinite cost. */
uint64_t qn__gpu_cost(const qn__worker *w, qn__kernel kernel, uint64_t tiles) {
    const qn__kernel_shape *s = qn__kernel_shape_of(kernel);
    const uint64_t waves = (tiles + w->facts->compute_units - 1) / w->facts->compute_units;
    const uint64_t results = (uint64_t)s->tile_rows * s->tile_columns;
    const uint64_t work = s->products & QN_WITH_MATRIX ? results / 8 : results;
    return waves * (work + (uint64_t)4 * s->lanes[0]);
}

void qn__gpu_push_outputs(const qn__worker *w, uint32_t layer, int drops, qn__gpu_call *c) {
    const qn__layer *l = w->layer[layer].layer;
    /* LOSS applies the sigmoid of binary, whose loss needs what stands before it. */
    const int later = layer + 1 == w->program->layers && w->program->loss == QN__LOSS_BINARY;
    const uint32_t path = l->drop_path ? QN_DROP_PATH : 0;
    QN__PUSH_NUMBERS(c, (w->program->number + layer) | path,
                     qn__kernel_activation(later ? QN__ACT_NONE : l->activation),
                     drops ? l->drop_threshold : 0);
    QN__PUSH_FLOATS(c, l->drop_keep);
    QN__PUSH_WIDE(c, w->program->seed);
}

void qn__gpu_push_plain(const qn__worker *w, qn__gpu_call *c) {
    QN__PUSH_NUMBERS(c, 0, qn__kernel_activation(QN__ACT_NONE), 0);
    QN__PUSH_FLOATS(c, 1.0f);
    QN__PUSH_WIDE(c, w->program->seed);
}

int qn__gpu_drops(const qn__gpu_pass *pass, uint32_t layer) {
    const qn__gpu_layer *l = &pass->worker->layer[layer];
    return pass->training && l->dropped.bytes && !l->slope.bytes;
}

void qn__gpu_launch_gate(qn__gpu_pass *pass, uint32_t layer) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[layer];
    const int drops = pass->training && l->dropped.bytes;
    if (!l->slope.bytes)
        return;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, &l->output, &l->slope, drops ? &l->dropped : &l->output,
                    &w->batch.numbers);
    QN__PUSH_NUMBERS(&c, l->layer->to.height, l->layer->to.width, l->layer->to.channels);
    qn__gpu_push_outputs(w, layer, drops, &c);
    qn__gpu_launch_over(
        pass, QN__K_GATE,
        (uint64_t)pass->items * qn__gpu_pixels(l->layer) * qn__gpu_ld(l->layer->to.channels), &c);
}

const qn__gpu_memory *qn__gpu_derived_of(const qn__worker *w, uint32_t layer) {
    const qn__gpu_layer *l = &w->layer[layer];
    return l->slope.bytes ? &l->slope : &l->output;
}

void qn__gpu_push_state(const qn__worker *w, qn__gpu_call *c) {
    QN__PUSH_MEMORY(c, &w->model.parameters, w->slots > 0 ? &w->model.slot[0] : &w->step,
                    w->slots > 1 ? &w->model.slot[1] : &w->step);
}

void qn__gpu_push_rule(const qn__program *p, float decay, float factor, qn__gpu_call *c) {
    QN__PUSH_NUMBERS(c, qn__kernel_optimizer(p->optimizer));
    QN__PUSH_FLOATS(c, p->momentum, p->beta1, p->beta2, 1.0f - p->beta1, 1.0f - p->beta2,
                    p->epsilon, decay, factor);
}

const qn__gpu_memory *qn__gpu_output_of(const qn__gpu_pass *pass, int32_t l) {
    const qn__worker *w = pass->worker;
    if (l < 0)
        return w->batch.inputs.bytes ? &w->batch.inputs : &w->step;
    return pass->training && w->layer[l].dropped.bytes ? &w->layer[l].dropped : &w->layer[l].output;
}

const qn__gpu_memory *qn__gpu_input_of(const qn__gpu_pass *pass, uint32_t l) {
    return qn__gpu_output_of(pass, pass->worker->layer[l].source);
}

const qn__gpu_memory *qn__gpu_errors_of(const qn__worker *w, uint32_t l) {
    return &w->layer[l].errors;
}

/* If the tiles of a gradient are too few for the device, several groups share the grains of each
 * tile. */
static uint32_t k_blocks_of(const qn__worker *w, uint64_t grains, uint64_t tiles) {
    if (!w->facts->atomics || w->facts->vectors || tiles * 2 > w->facts->compute_units)
        return 1;
    const uint64_t wanted = w->facts->compute_units / tiles;
    return (uint32_t)(wanted < grains ? wanted : grains);
}

uint32_t qn__gpu_k_blocks(qn__gpu_pass *pass, uint64_t grains, uint64_t tiles, uint64_t first,
                          uint64_t end, int add) {
    const qn__worker *w = pass->worker;
    const uint32_t k_blocks = k_blocks_of(w, grains, tiles);
    if (k_blocks > 1 && !add && pass->status == QN_OK)
        pass->status = w->driver->clear(w->gpu, &w->model.sums, (size_t)first * sizeof(int64_t),
                                        (size_t)(end - first) * sizeof(int64_t), pass->err);
    return k_blocks;
}
