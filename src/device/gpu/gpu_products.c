/* Products of floats, and the choice among their variants: all variants give the same bytes,
 * because an element is one chain of fma in ascending order, whatever tile it lies in. The choice
 * weighs the arithmetic for each byte that is read against idle multiprocessors:
 *
 *     large   128 x 128 chains a group   most fma for each byte, but few groups
 *     medium   64 x 64
 *     small    16 x 32                   many groups, for products that take microseconds */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"

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

/* The most groups in the second direction of a grid that CUDA allows. */
enum { MOST_DOWN = 65535 };

static uint64_t cost(const qn__worker *w, const product *p) {
    if (p->groups[1] > MOST_DOWN)
        return UINT64_MAX;
    return qn__gpu_cost(w, p->kernel, (uint64_t)p->groups[0] * p->groups[1]);
}

/* `large` is followed by its other variants, the last of them for CPUs. Large tiles do more
 * arithmetic for each byte, small tiles keep more of the device busy. */
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

void qn__gpu_launch_float_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    const product p = choose(w, QN__K_FORWARD_LARGE, pass->items, l->layer->out);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_input_of(pass, i), &w->model.parameters);
    QN__PUSH_WIDE(&c, l->weights, l->biases);
    QN__PUSH_MEMORY(&c, &l->output, drops ? &l->dropped : &w->step, &w->batch.numbers);
    QN__PUSH_NUMBERS(&c, l->layer->in, l->layer->out, (uint32_t)qn__gpu_ld(l->layer->out));
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
    qn__gpu_launch_gate(pass, i);
}

void qn__gpu_launch_chains(qn__gpu_pass *pass, const qn__gpu_factors *f) {
    const qn__worker *w = pass->worker;
    const product p = choose(w, QN__K_FORWARD_LARGE, f->rows, f->out);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, f->step, f->a, f->weights);
    QN__PUSH_WIDE(&c, f->first, f->first + (uint64_t)f->in * f->stride);
    QN__PUSH_MEMORY(&c, f->to, &w->step, &w->batch.numbers);
    QN__PUSH_NUMBERS(&c, f->in, f->out, f->stride);
    qn__gpu_push_plain(w, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

/* 8.4, 8.5 */
void qn__gpu_launch_float_errors(qn__gpu_pass *pass, uint32_t i, const qn__gpu_memory *plain) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t source = (uint32_t)l->source;
    const product p = choose(w, QN__K_ERRORS_LARGE, pass->items, l->layer->in);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_errors_of(w, i), &w->model.parameters);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_MEMORY(&c, qn__gpu_derived_of(w, source), plain ? plain : qn__gpu_errors_of(w, source),
                    &w->batch.numbers);
    QN__PUSH_NUMBERS(&c, l->layer->in, l->layer->out);
    if (plain)
        qn__gpu_push_plain(w, &c);
    else
        qn__gpu_push_outputs(w, source, 1, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

void qn__gpu_launch_error_chains(qn__gpu_pass *pass, const qn__gpu_factors *f) {
    const qn__worker *w = pass->worker;
    const product p = choose(w, QN__K_ERRORS_LARGE, f->rows, f->in);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, f->step, f->e, &w->model.parameters);
    QN__PUSH_WIDE(&c, f->first);
    QN__PUSH_MEMORY(&c, f->to, f->to, &w->batch.numbers);
    QN__PUSH_NUMBERS(&c, f->in, f->out);
    qn__gpu_push_plain(w, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

void qn__gpu_launch_gradient(qn__gpu_pass *pass, uint32_t i, const qn__gpu_factors *f,
                             uint64_t grains, int add) {
    const qn__worker *w = pass->worker;
    product p = choose(w, QN__K_GRADIENT_LARGE, f->in, f->out);
    p.groups[2] = qn__gpu_k_blocks(pass, grains, (uint64_t)p.groups[0] * p.groups[1], f->first,
                                   f->first + (uint64_t)f->in * f->stride, add);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, f->step, f->a, f->e, &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, f->first);
    QN__PUSH_NUMBERS(&c, f->in, f->out, f->stride, i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, p.groups[2], add || p.groups[2] > 1 ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

void qn__gpu_launch_float_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const qn__gpu_factors f = {.step = &w->step,
                               .a = qn__gpu_input_of(pass, i),
                               .e = qn__gpu_errors_of(w, i),
                               .first = l->weights,
                               .stride = (uint32_t)qn__gpu_ld(l->layer->out),
                               .in = l->layer->in,
                               .out = l->layer->out};
    qn__gpu_launch_gradient(pass, i, &f, qn__gpu_pieces(pass->items, w->program->grain), add);
}

void qn__gpu_launch_learn(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const product p = product_of(QN__K_LEARN_VECTOR, l->layer->in, l->layer->out);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, qn__gpu_input_of(pass, i), qn__gpu_errors_of(w, i));
    qn__gpu_push_state(w, &c);
    QN__PUSH_MEMORY(&c, &w->reports.status);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, l->layer->in, l->layer->out, i);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    qn__gpu_push_rule(w->program, w->program->weight_decay, qn__layer_rate(l->layer), &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}
