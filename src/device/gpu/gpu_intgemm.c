/* The kernels of integer products (docs/exactness.md 15): quantization to words, and the products
 * of words. They replace the one kernel that gpu_launch.c has for each product of floats. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"

#include <string.h>

qn__gpu_isa qn__gpu_best_isa(const qn_compute *compute) {
    static const char *const names[QN__GPU_ISAS] = {"auto", "dp4a", "plain"};
    int isa = 0;
    if (compute && compute->gpu_isa)
        while (isa < QN__GPU_ISAS && strcmp(compute->gpu_isa, names[isa]) != 0)
            ++isa;
    return (qn__gpu_isa)isa;
}

qn_status qn__gpu_compute_check(const qn_compute *compute, qn_error *err) {
    if (qn__gpu_best_isa(compute) != QN__GPU_ISAS)
        return QN_OK;
    qn__fail(err, QN_USAGE, "unknown GPU instructions \"%s\"", compute->gpu_isa);
    return qn__remedy(
        err, QN_USAGE,
        "`compute.gpu_isa` takes auto, dp4a (no matrix instructions) or plain (neither these "
        "nor dot products of bytes)");
}

uint64_t qn__gpu_words(uint64_t n) { return (n + 31) / 32 * 8; }

/* The same as in the kernels (intgemm_words.cl). */
static uint64_t words_of_grain(uint64_t grain) {
    return grain > 16 ? qn__gpu_pieces(grain, 16) * 4 : qn__gpu_pieces(grain, 4);
}

uint64_t qn__gpu_grain_words(const qn__program *p) {
    return qn__gpu_pieces(p->batch, p->grain) * words_of_grain(p->grain);
}

static void clear(qn__gpu_pass *pass, const qn__gpu_memory *memory) {
    const qn__worker *w = pass->worker;
    if (pass->status == QN_OK)
        pass->status = w->driver->clear(w->gpu, memory, 0, memory->bytes, pass->err);
}

/* A variant of a product, and the number of its tiles, which are in one direction of the grid. */
typedef struct product {
    qn__kernel kernel;
    uint32_t groups[3];
} product;

/* Sets *best to the variant if it is faster. */
static void try_variant(const qn__worker *w, qn__kernel kernel, uint64_t rows, uint64_t columns,
                        uint64_t *least, product *best) {
    const qn__kernel_shape *s = qn__kernel_shape_of(kernel);
    const uint64_t tiles =
        qn__gpu_pieces(rows, s->tile_rows) * qn__gpu_pieces(columns, s->tile_columns);
    const uint64_t cost = qn__gpu_cost(w, kernel, tiles);
    if (tiles > INT32_MAX || cost >= *least)
        return;
    *least = cost;
    *best = (product){kernel, {(uint32_t)tiles, 1, 1}};
}

/* The variants of a product for one digit; those for more digits follow, in the same number. */
typedef struct variants {
    qn__kernel large; /* and the small one */
    qn__kernel matrix;
    uint32_t matrices; /* number of these: a large and a small one, or one */
} variants;

static const variants forward = {QN__K_INTGEMM_FORWARD_I7_LARGE,
                                 QN__K_INTGEMM_FORWARD_I7_MATRIX_LARGE, 2};
static const variants backward = {QN__K_INTGEMM_ERRORS_I7_LARGE,
                                  QN__K_INTGEMM_ERRORS_I7_MATRIX_LARGE, 2};
static const variants gradient = {QN__K_INTGEMM_GRADIENT_I7_LARGE,
                                  QN__K_INTGEMM_GRADIENT_I7_MATRIX_SMALL, 1};

/* `suits` 0: the product's sums are not suitable for matrix instructions. */
static product choose(const qn__worker *w, const variants *v, int suits, uint64_t rows,
                      uint64_t columns) {
    const uint32_t before = w->bits / 7 - 1, matrices = suits ? v->matrices : 0;
    const qn__kernel large = (qn__kernel)(v->large + 2 * before), small = (qn__kernel)(large + 1);
    uint64_t least = UINT64_MAX;
    product best = {small, {0, 1, 1}};
    if (!w->facts->matrix)
        try_variant(w, large, rows, columns, &least, &best);
    for (uint32_t i = 0; w->facts->matrix && i < matrices; ++i)
        try_variant(w, (qn__kernel)(v->matrix + v->matrices * before + i), rows, columns, &least,
                    &best);
    try_variant(w, small, rows, columns, &least, &best);
    return best;
}

/* Offsets in absmax_grains. */
static uint32_t inputs_place(const qn__gpu_pass *pass, uint32_t layer) {
    const qn__program *p = pass->worker->program;
    return layer * (p->batch / p->grain + 1);
}
static uint32_t errors_place(const qn__gpu_pass *pass, uint32_t layer) {
    return inputs_place(pass, pass->worker->program->layers + layer);
}

void qn__gpu_launch_weights(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    if (!w->bits)
        return;
    clear(pass, &w->absmax_outputs);
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__gpu_layer *l = &w->layer[i];
        const uint32_t in = l->layer->in, out = l->layer->out;
        qn__gpu_call c = {0};
        qn__push_memory_arg(&c, &w->parameters);
        qn__push_memory_arg(&c, &w->absmax_outputs);
        qn__push_wide_arg(&c, l->weights);
        qn__push_arg(&c, in);
        qn__push_arg(&c, out);
        qn__push_arg(&c, l->output_place);
        qn__gpu_launch_over(pass, QN__K_ABSMAX, qn__gpu_ld(out) / QN_LD * qn__gpu_pieces(in, 64),
                            &c);
        c = (qn__gpu_call){0};
        qn__push_memory_arg(&c, &w->parameters);
        qn__push_memory_arg(&c, &w->absmax_outputs);
        qn__push_memory_arg(&c, &l->by_output);
        qn__push_memory_arg(&c, i > 0 ? &l->by_input : &l->by_output);
        qn__push_wide_arg(&c, l->weights);
        qn__push_arg(&c, in);
        qn__push_arg(&c, out);
        qn__push_arg(&c, l->output_place);
        qn__push_arg(&c, w->bits);
        qn__push_arg(&c, i > 0 ? QN_QUANTIZE_BY_INPUT : 0);
        qn__gpu_launch_over(pass, QN__K_QUANTIZE_WEIGHTS,
                            qn__gpu_pieces(out, 32) * qn__gpu_pieces(in, 32), &c);
    }
}

/* Quantizes rows of a layer's batch array: absmax of each item, in training of each grain, and the
 * items as words if `flags` require them. */
static void quantize_items(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_memory *from,
                           uint32_t columns, uint32_t grain_place, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, from);
    qn__push_memory_arg(&c, &w->absmax_outputs);
    qn__push_memory_arg(&c, &w->absmax_items);
    qn__push_memory_arg(&c, &w->absmax_grains);
    qn__push_memory_arg(&c, &w->quantized_items);
    qn__push_memory_arg(&c, &w->status);
    qn__push_arg(&c, columns);
    qn__push_arg(&c, w->bits);
    qn__push_arg(&c, w->layer[layer].output_place);
    qn__push_arg(&c, grain_place);
    qn__push_arg(&c, layer);
    qn__push_arg(&c, flags);
    qn__gpu_launch_over(pass, QN__K_QUANTIZE_ITEMS, pass->items, &c);
}

static void launch_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    const product p =
        choose(w, &forward, l->layer->in <= QN_MATRIX_DEPTH, pass->items, l->layer->out);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->quantized_items);
    qn__push_memory_arg(&c, &w->absmax_items);
    qn__push_memory_arg(&c, &l->by_output);
    qn__push_memory_arg(&c, &w->absmax_outputs);
    qn__push_memory_arg(&c, &w->parameters);
    qn__push_wide_arg(&c, l->biases);
    qn__push_memory_arg(&c, &l->output);
    qn__push_memory_arg(&c, drops ? &l->dropped : &w->step);
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_arg(&c, l->layer->in);
    qn__push_arg(&c, l->layer->out);
    qn__push_arg(&c, l->output_place);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
    qn__gpu_launch_gate(pass, i);
}

void qn__gpu_launch_intgemm_forward(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    if (pass->training)
        clear(pass, &w->absmax_grains);
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        quantize_items(
            pass, i, qn__gpu_input_of(pass, i), w->layer[i].layer->in, inputs_place(pass, i),
            QN_QUANTIZE_WORDS | QN_QUANTIZE_INPUTS | (pass->training ? QN_QUANTIZE_GRAINS : 0));
        launch_forward(pass, i);
    }
}

/* 15.5 */
void qn__gpu_launch_intgemm_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t product_of_errors = i > 0 ? QN_QUANTIZE_WORDS | QN_QUANTIZE_WEIGHED : 0;
    quantize_items(pass, i, qn__gpu_errors_of(w, i), l->layer->out, errors_place(pass, i),
                   QN_QUANTIZE_GRAINS | product_of_errors);
    if (i == 0)
        return;
    const product p =
        choose(w, &backward, l->layer->out <= QN_MATRIX_DEPTH, pass->items, l->layer->in);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->quantized_items);
    qn__push_memory_arg(&c, &w->absmax_items);
    qn__push_memory_arg(&c, &l->by_input);
    qn__push_memory_arg(&c, qn__gpu_derived_of(w, i - 1));
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, i - 1));
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_arg(&c, l->layer->in);
    qn__push_arg(&c, l->layer->out);
    qn__gpu_push_outputs(w, i - 1, 1, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

/* A batch array as words along the items of each grain. */
static void quantize_grains(qn__gpu_pass *pass, const qn__gpu_memory *from,
                            const qn__gpu_memory *to, uint32_t columns, uint32_t grain_place) {
    const qn__worker *w = pass->worker;
    const uint64_t grain = w->program->grain, grains = qn__gpu_pieces(pass->items, grain);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, from);
    qn__push_memory_arg(&c, &w->absmax_grains);
    qn__push_memory_arg(&c, to);
    qn__push_arg(&c, columns);
    qn__push_arg(&c, w->bits);
    qn__push_arg(&c, grain_place);
    qn__gpu_launch_over(pass, QN__K_QUANTIZE_GRAINS,
                        grains * qn__gpu_pieces(grain, 32) * qn__gpu_pieces(columns, 32), &c);
}

/* Whether matrix instructions can process the grains: their words must be a multiple of four. */
static int grains_suit(const qn__program *p) {
    return words_of_grain(p->grain) % 4 == 0 && p->grain <= QN_MATRIX_DEPTH;
}

/* 15.6 */
void qn__gpu_launch_intgemm_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    product p = choose(w, &gradient, grains_suit(w->program), l->layer->in, l->layer->out);
    quantize_grains(pass, qn__gpu_input_of(pass, i), &w->quantized_inputs, l->layer->in,
                    inputs_place(pass, i));
    quantize_grains(pass, qn__gpu_errors_of(w, i), &w->quantized_errors, l->layer->out,
                    errors_place(pass, i));
    p.groups[2] = qn__gpu_k_blocks(pass, qn__gpu_pieces(pass->items, w->program->grain),
                                   p.groups[0], l->weights, l->biases, add);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->quantized_inputs);
    qn__push_memory_arg(&c, &w->quantized_errors);
    qn__push_memory_arg(&c, &w->absmax_grains);
    qn__push_memory_arg(&c, &w->sums);
    qn__push_memory_arg(&c, &w->status);
    qn__push_wide_arg(&c, l->weights);
    qn__push_arg(&c, l->layer->in);
    qn__push_arg(&c, l->layer->out);
    qn__push_arg(&c, i);
    qn__push_arg(&c, inputs_place(pass, i));
    qn__push_arg(&c, errors_place(pass, i));
    qn__push_float_arg(&c, w->program->partial_limit);
    qn__push_arg(&c, p.groups[2]);
    qn__push_arg(&c, add || p.groups[2] > 1 ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}
