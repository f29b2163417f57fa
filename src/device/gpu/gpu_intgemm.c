/* The kernels of integer products (docs/exactness.md 15): quantization to words, and the products
 * of words. They replace the one kernel that gpu_launch.c has for each product of floats. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_kinds.h"

#include <string.h>

qn__device_word qn__gpu_isa_word(uint32_t index) {
    static const qn__device_word words[QN__GPU_ISAS + 1] = {
        {"auto", "all instructions of the GPU"},
        {"dp4a", "no matrix units"},
        {"plain", "no matrix units, no dot products of bytes"}};
    return words[index < QN__GPU_ISAS ? index : QN__GPU_ISAS];
}

qn__gpu_isa qn__gpu_best_isa(const qn_compute *compute) {
    uint32_t isa = 0;
    if (compute && compute->gpu_isa)
        while (isa < QN__GPU_ISAS && strcmp(compute->gpu_isa, qn__gpu_isa_word(isa).name) != 0)
            ++isa;
    return (qn__gpu_isa)isa;
}

qn_status qn__gpu_check(const qn_compute *compute, qn_error *err) {
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
uint64_t qn__gpu_words_of_grain(uint64_t grain) {
    return grain > 16 ? qn__gpu_pieces(grain, 16) * 4 : qn__gpu_pieces(grain, 4);
}

uint64_t qn__gpu_grain_words(const qn__program *p) {
    return qn__gpu_pieces(qn__program_part(p), p->grain) * qn__gpu_words_of_grain(p->grain);
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
uint32_t qn__gpu_inputs_place(const qn__gpu_pass *pass, uint32_t layer) {
    const qn__program *p = pass->worker->program;
    return layer * (qn__program_part(p) / p->grain + 1);
}
uint32_t qn__gpu_errors_place(const qn__gpu_pass *pass, uint32_t layer) {
    return qn__gpu_inputs_place(pass, pass->worker->program->layers + layer);
}

/* The absmax of each output's weights. */
static void launch_absmax(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t in = l->layer->depth, out = l->layer->to.channels;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->model.parameters, &w->integers.absmax_outputs);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, in, out, l->output_place);
    qn__gpu_launch_over(pass, QN__K_ABSMAX, qn__gpu_ld(out) / QN_LD * qn__gpu_pieces(in, 64), &c);
}

/* The words for errors of a convolution, which unfolds the errors. */
static void launch_turned(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t *kernel = l->layer->window.kernel, taps = kernel[0] * kernel[1];
    const uint32_t in = l->layer->from.channels, out = l->layer->to.channels;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->model.parameters, &w->integers.absmax_outputs, &l->by_input);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, taps, in, out, l->output_place, w->bits);
    qn__gpu_launch_over(pass, QN__K_QUANTIZE_TRANSPOSED, in * qn__gpu_words((uint64_t)taps * out),
                        &c);
}

static void launch_words(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint32_t in = l->layer->depth, out = l->layer->to.channels;
    const int passes = qn__gpu_takes_errors(w, l->source);
    const int dense = !qn__gpu_is_conv(l), both = dense && passes;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->model.parameters, &w->integers.absmax_outputs, &l->by_output,
                    both ? &l->by_input : &l->by_output);
    QN__PUSH_WIDE(&c, l->weights);
    QN__PUSH_NUMBERS(&c, in, out, l->output_place, w->bits, both ? QN_QUANTIZE_BY_INPUT : 0);
    qn__gpu_launch_over(pass, QN__K_QUANTIZE_WEIGHTS,
                        qn__gpu_pieces(out, 32) * qn__gpu_pieces(in, 32), &c);
    if (!dense && passes)
        launch_turned(pass, i);
}

void qn__gpu_launch_weights(qn__gpu_pass *pass, uint32_t first) {
    const qn__worker *w = pass->worker;
    const qn__gpu_memory *absmax = &w->integers.absmax_outputs;
    const size_t kept = w->layer[first].output_place * sizeof(uint32_t);
    if (!w->bits)
        return;
    if (pass->status == QN_OK)
        pass->status = w->driver->clear(w->gpu, absmax, kept, absmax->bytes - kept, pass->err);
    for (uint32_t i = first; i < w->program->layers; ++i)
        if (qn__layer_is_integer(w->layer[i].layer)) {
            launch_absmax(pass, i);
            launch_words(pass, i);
        }
}

/* Quantizes rows of a layer's batch array: absmax of each item, in training of each grain, and the
 * items as words if `flags` require them. */
static void quantize_items(qn__gpu_pass *pass, uint32_t layer, const qn__gpu_memory *from,
                           uint32_t columns, uint32_t grain_place, uint32_t flags) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, &w->step, from, &w->integers.absmax_outputs, &w->integers.absmax_items,
                    &w->integers.absmax_grains, &w->integers.quantized_items, &w->reports.status);
    QN__PUSH_NUMBERS(&c, columns, w->bits, w->layer[layer].output_place, grain_place, layer, flags);
    qn__gpu_launch_over(pass, QN__K_QUANTIZE_ITEMS, pass->items, &c);
}

/* The arguments of a forward product up to those of its outputs. */
static void push_forward(const qn__gpu_pass *pass, uint32_t i, const qn__gpu_rows *rows,
                         const qn__gpu_range *outputs, const qn__gpu_memory *to,
                         const qn__gpu_memory *dropped, qn__gpu_call *c) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    QN__PUSH_MEMORY(c, rows->step, &w->integers.quantized_items, rows->absmax, &l->by_output,
                    &w->integers.absmax_outputs, &w->model.parameters);
    QN__PUSH_WIDE(c, l->biases + outputs->begin);
    QN__PUSH_MEMORY(c, to, dropped, &w->batch.numbers);
    QN__PUSH_NUMBERS(c, l->layer->depth, outputs->count, outputs->begin,
                     l->output_place + outputs->begin);
}

static product choose_forward(const qn__worker *w, const qn__layer *l, uint32_t rows,
                              uint32_t outputs) {
    return choose(w, &forward, l->depth <= QN_MATRIX_DEPTH, rows, outputs);
}

void qn__gpu_launch_intgemm_chains(qn__gpu_pass *pass, uint32_t i, const qn__gpu_rows *rows,
                                   const qn__gpu_range *outputs, const qn__gpu_memory *to) {
    const qn__worker *w = pass->worker;
    const product p = choose_forward(w, w->layer[i].layer, rows->count, outputs->count);
    qn__gpu_call c = {0};
    push_forward(pass, i, rows, outputs, to, &w->step, &c);
    qn__gpu_push_plain(w, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

void qn__gpu_launch_intgemm_begin(qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    const qn__gpu_memory *grains = &w->integers.absmax_grains;
    if (w->bits && pass->training && pass->status == QN_OK)
        pass->status = w->driver->clear(w->gpu, grains, 0, grains->bytes, pass->err);
}

/* The items of the pass as rows. */
static qn__gpu_rows items_of(const qn__gpu_pass *pass) {
    const qn__worker *w = pass->worker;
    return (qn__gpu_rows){&w->step, &w->integers.absmax_items, pass->items, w->program->grain};
}

void qn__gpu_launch_intgemm_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    const qn__gpu_range all = {0, l->layer->to.channels};
    const product p = choose_forward(w, l->layer, pass->items, all.count);
    const qn__gpu_rows rows = items_of(pass);
    qn__gpu_call c = {0};
    quantize_items(pass, i, qn__gpu_input_of(pass, i), l->layer->in, qn__gpu_inputs_place(pass, i),
                   QN_QUANTIZE_WORDS | QN_QUANTIZE_INPUTS |
                       (qn__gpu_learns(pass, i) ? QN_QUANTIZE_GRAINS : 0));
    push_forward(pass, i, &rows, &all, &l->output, drops ? &l->dropped : &w->step, &c);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
    qn__gpu_launch_gate(pass, i);
}

/* Rows of `out` words to rows of `in` errors. The caller pushes what describes these. */
static product push_errors(const qn__gpu_pass *pass, uint32_t i, const qn__gpu_rows *rows,
                           uint32_t in, uint32_t out, const qn__gpu_memory *derived,
                           const qn__gpu_memory *to, qn__gpu_call *c) {
    const qn__worker *w = pass->worker;
    QN__PUSH_MEMORY(c, rows->step, &w->integers.quantized_items, rows->absmax,
                    &w->layer[i].by_input, derived, to, &w->batch.numbers);
    QN__PUSH_NUMBERS(c, in, out);
    return choose(w, &backward, out <= QN_MATRIX_DEPTH, rows->count, in);
}

void qn__gpu_launch_intgemm_sums(qn__gpu_pass *pass, uint32_t i, const qn__gpu_rows *rows,
                                 uint32_t in, uint32_t out, const qn__gpu_memory *to) {
    qn__gpu_call c = {0};
    const product p = push_errors(pass, i, rows, in, out, to, to, &c);
    qn__gpu_push_plain(pass->worker, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

/* 15.5 */
void qn__gpu_launch_intgemm_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const qn__gpu_rows rows = items_of(pass);
    const int passes = qn__gpu_takes_errors(w, l->source);
    const uint32_t below = passes ? QN_QUANTIZE_WORDS | QN_QUANTIZE_WEIGHED : 0;
    quantize_items(pass, i, qn__gpu_errors_of(w, i), l->layer->out, qn__gpu_errors_place(pass, i),
                   QN_QUANTIZE_GRAINS | below);
    if (!passes)
        return;
    const uint32_t source = (uint32_t)l->source;
    qn__gpu_call c = {0};
    const product p = push_errors(pass, i, &rows, l->layer->in, l->layer->out,
                                  qn__gpu_derived_of(w, source), qn__gpu_errors_of(w, source), &c);
    qn__gpu_push_outputs(w, source, 1, &c);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

void qn__gpu_quantize_grains(qn__gpu_pass *pass, const qn__gpu_rows *rows,
                             const qn__gpu_memory *from, const qn__gpu_memory *to, uint32_t columns,
                             uint32_t grain_place) {
    const qn__worker *w = pass->worker;
    const uint64_t grains = qn__gpu_pieces(rows->count, rows->grain);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, rows->step, from, &w->integers.absmax_grains, to);
    QN__PUSH_NUMBERS(&c, columns, w->bits, grain_place);
    qn__gpu_launch_over(pass, QN__K_QUANTIZE_GRAINS,
                        grains * qn__gpu_pieces(rows->grain, 32) * qn__gpu_pieces(columns, 32), &c);
}

/* Whether matrix instructions can process the grains: their words must be a multiple of four. */
static int grains_suit(uint32_t grain) {
    return qn__gpu_words_of_grain(grain) % 4 == 0 && grain <= QN_MATRIX_DEPTH;
}

void qn__gpu_launch_intgemm_partials(qn__gpu_pass *pass, uint32_t i, const qn__gpu_rows *rows,
                                     const qn__gpu_range *inputs, const qn__gpu_range *outputs,
                                     uint32_t first_grain, int add) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const uint64_t stride = qn__gpu_ld(l->layer->to.channels);
    const uint64_t weights = l->weights + inputs->begin * stride + outputs->begin;
    product p = choose(w, &gradient, grains_suit(rows->grain), inputs->count, outputs->count);
    p.groups[2] = qn__gpu_k_blocks(pass, qn__gpu_pieces(rows->count, rows->grain), p.groups[0],
                                   weights, weights + inputs->count * stride, add);
    qn__gpu_call c = {0};
    QN__PUSH_MEMORY(&c, rows->step, &w->integers.quantized_inputs, &w->integers.quantized_errors,
                    &w->integers.absmax_grains, &w->model.sums, &w->reports.status);
    QN__PUSH_WIDE(&c, weights);
    QN__PUSH_NUMBERS(&c, inputs->count, outputs->count, (uint32_t)stride, i,
                     qn__gpu_inputs_place(pass, i) + first_grain,
                     qn__gpu_errors_place(pass, i) + first_grain);
    QN__PUSH_FLOATS(&c, w->program->partial_limit);
    QN__PUSH_NUMBERS(&c, p.groups[2], add || p.groups[2] > 1 ? QN_GRADIENT_ADD : 0);
    qn__gpu_launch(pass, p.kernel, p.groups, &c);
}

/* 15.6 */
void qn__gpu_launch_intgemm_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const qn__gpu_rows rows = items_of(pass);
    qn__gpu_quantize_grains(pass, &rows, qn__gpu_input_of(pass, i), &w->integers.quantized_inputs,
                            l->in, qn__gpu_inputs_place(pass, i));
    qn__gpu_quantize_grains(pass, &rows, qn__gpu_errors_of(w, i), &w->integers.quantized_errors,
                            l->out, qn__gpu_errors_place(pass, i));
    qn__gpu_launch_intgemm_partials(pass, i, &rows, &(qn__gpu_range){0, l->in},
                                    &(qn__gpu_range){0, l->out}, 0, add);
}
