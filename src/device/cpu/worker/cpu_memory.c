/* The shapes of a CPU worker's layers, and its memory.
 *
 * All arrays of a worker are in one block that is allocated when it is opened. So a step allocates
 * nothing, and a batch that does not fit is refused before the work begins. The block is carved
 * twice by the same code (`carve_all`): first without memory, which gives its size, then with it:
 *
 *     each layer: parameters, outputs | two batches of inputs | losses | each core | shared | zeros
 *
 * `shared` is for arrays of errors, outputs and inputs that are not needed at the same time
 * (cpu_windows.c). The shapes come first: `shape_layer` decides how a layer is computed. */
#include "base/memory.h"
#include "device/cpu/worker/cpu_kinds.h"
#include "device/cpu/worker/cpu_picked.h"
#include "device/shorten.h"
#include "layer/layer.h"
#include "num/augment.h"
#include <string.h>

/* Rows of a layer with so many pixels, and the one that separates panels. SIZE_MAX: more than 32
 * bits count, which carve refuses. */
static size_t rows_of(const qn__worker *w, uint32_t pixels) {
    size_t rows;
    return __builtin_mul_overflow(w->capacity - 1, pixels, &rows) || rows == SIZE_MAX ? SIZE_MAX
                                                                                      : rows + 1;
}

/* Bytes of an array of so many pixels; SIZE_MAX: too many. */
static size_t bytes_of(const qn__worker *w, uint32_t pixels, uint32_t panels) {
    size_t bytes;
    return __builtin_mul_overflow(rows_of(w, pixels), panels * QN__PANEL * sizeof(float), &bytes) ||
                   bytes > SIZE_MAX - 64
               ? SIZE_MAX
               : bytes + 64;
}

/* `k` 0: without operands. */
static void carve_rows(qn__cpu_arena *a, const qn__worker *w, uint32_t k, qn__cpu_rows *rows) {
    const size_t blocks = (w->capacity + QN__PANEL - 1) / QN__PANEL;
    rows->left = k ? qn__cpu_carve(a, blocks, w->intgemm->size(w->bits, k)) : NULL;
    rows->factor = qn__cpu_carve(a, w->capacity, sizeof(float));
    rows->absmax = qn__cpu_carve(a, w->capacity, sizeof(uint32_t));
}

static void carve_plan(qn__cpu_arena *a, const qn__program *p, qn__cpu_plan *plan) {
    const size_t items = qn__program_part(p), grains = (items + p->grain - 1) / p->grain;
    plan->grain = qn__cpu_carve(a, grains, sizeof *plan->grain);
    plan->group = qn__cpu_carve(a, grains, sizeof *plan->group);
    plan->list = qn__cpu_carve(a, items, sizeof *plan->list);
    plan->input_inverse = qn__cpu_carve(a, items, sizeof(float));
    plan->error_inverse = qn__cpu_carve(a, items, sizeof(float));
    plan->input_doubled = qn__cpu_carve(a, items, 1);
    plan->error_doubled = qn__cpu_carve(a, items, 1);
}

/* The width with the largest operands of sums over items. */
static int widest_items(const qn__worker *w) {
    return w->bits | (w->intgemm->left_raw ? QN__WIDE : 0);
}

/* Operands of a layer that does not walk. */
static void carve_operands(qn__cpu_arena *a, const qn__worker *w, qn__cpu_layer *l) {
    const qn__program *p = w->program;
    const size_t each =
        qn__cpu_operands(w->intgemm, widest_items(w), qn__program_part(p), p->grain);
    l->intgemm.operands = each;
    l->intgemm.input_items = qn__cpu_carve(a, qn__cpu_blocks(l), each);
    l->intgemm.error_items = qn__cpu_carve(a, l->out_panels, each);
    carve_plan(a, p, &l->intgemm.plan);
}

/* A first layer uses the worker's two sets of inputs. */
static void carve_intgemm(qn__cpu_arena *a, const qn__worker *w, uint32_t index) {
    const qn__intgemm *intgemm = w->intgemm;
    qn__cpu_layer *l = &w->layer[index];
    qn__cpu_intgemm *packed = &l->intgemm;
    const size_t outputs = (size_t)l->out_panels * QN__PANEL;
    const size_t factors = l->walks ? outputs * l->taps : outputs;
    packed->output_absmax = l->noted ? qn__cpu_carve(a, w->capacity, sizeof(uint32_t)) : NULL;
    packed->changed = qn__cpu_carve(a, qn__cpu_groups(l), sizeof(qn__cpu_counter));
    if (!qn__layer_is_integer(l->layer))
        return;
    packed->right_size = l->tiles.way[0].steps ? qn__cpu_tiles_weights(w, l, 0)
                                               : intgemm->size(w->bits, qn__cpu_depth(l));
    packed->transposed_size = l->tiles.way[1].steps ? qn__cpu_tiles_weights(w, l, 1)
                                                    : intgemm->size(w->bits, qn__cpu_back_depth(l));
    packed->right = qn__cpu_carve(a, l->out_panels, packed->right_size);
    packed->transposed = l->below ? qn__cpu_carve(a, l->walks ? l->in_panels : qn__cpu_blocks(l),
                                                  packed->transposed_size)
                                  : NULL;
    packed->factor = qn__cpu_carve(a, factors, sizeof(float));
    packed->inverse = qn__cpu_carve(a, factors, sizeof(float));
    packed->strip_absmax = qn__cpu_carve(a, outputs * qn__cpu_strips(l), sizeof(uint32_t));
    packed->scaled_absmax =
        l->walks && l->below ? qn__cpu_carve(a, w->capacity, sizeof(uint32_t)) : NULL;
    if (qn__cpu_packs_inputs(w, l))
        carve_rows(a, w, qn__cpu_depth(l), &packed->input);
    else if (qn__layer_has_position_blocks(l->layer))
        carve_rows(a, w, 0, &packed->input);
    carve_rows(a, w, l->walks ? 0 : l->layer->out, &packed->error);
    if (!l->walks)
        carve_operands(a, w, l);
}

static void carve_layer(qn__cpu_arena *a, qn__worker *w, uint32_t index) {
    qn__cpu_layer *l = &w->layer[index];
    const size_t weights = (size_t)qn__cpu_blocks(l) * l->out_panels * QN__PANEL * QN__PANEL;
    if (w->owner) {
        l->weights = w->owner->layer[index].weights;
        l->bias = w->owner->layer[index].bias;
    } else {
        l->weights = qn__cpu_carve(a, weights, sizeof(float));
        l->bias = qn__cpu_carve(a, l->vectors * l->vector, sizeof(float));
    }
    for (uint32_t s = 0; s < w->slots; ++s) {
        if (!qn__cpu_has_slot(w, index, s))
            continue;
        l->weight_slot[s] = qn__cpu_carve(a, weights, sizeof(float));
        l->bias_slot[s] = qn__cpu_carve(a, l->vectors * l->vector, sizeof(float));
    }
    if (l->kind->carve)
        l->kind->carve(a, w, l);
    qn__cpu_picked_carve(a, w, l);
    if (w->bits)
        carve_intgemm(a, w, index);
    l->blocks = qn__cpu_carve(a, (size_t)qn__cpu_blocks(l) + l->out_panels, sizeof(size_t));
    l->outputs.begin =
        l->walks ? qn__cpu_carve(a, l->outputs.axis[1].size + 1, sizeof(uint32_t)) : NULL;
    l->inputs.begin = qn__cpu_carve(a, l->inputs.axis[1].size + 1, sizeof(uint32_t));
    l->transposed =
        l->transposed_weights && !w->owner ? qn__cpu_carve(a, weights, sizeof(float)) : NULL;
    l->transposed_blocks =
        qn__cpu_carve(a, (size_t)l->out_panels * (l->walks ? l->taps : 1), sizeof(size_t));
}

/* Panels of 16 x 16 weights that a core transposes at a time. */
static size_t transposed_panels(const qn__worker *w) {
    const qn__cpu_layer *last = &w->layer[w->program->layers - 1];
    size_t panels = 1;
    for (uint32_t l = 0; l < w->program->layers; ++l)
        panels = w->layer[l].out_panels > panels ? w->layer[l].out_panels : panels;
    const size_t fused =
        !w->bits && qn__cpu_is_fused(w) ? (size_t)last->in_panels * last->out_panels : 0;
    const size_t most = fused > panels ? fused : panels;
    if (!w->layer[0].walks)
        return most;
    /* Or an item's features, and then padded pictures, before they are unfolded. */
    const qn__cpu_layer *first = &w->layer[0];
    const size_t pictures = first->pictures || first->woven
                                ? 0
                                : qn__cpu_unfold_items(first) * qn__cpu_unfold_space(first);
    const size_t floats = first->woven ? QN__PANEL * qn__cpu_woven_stride(first->layer->in)
                                       : first->layer->in + 2 * QN__PANEL + pictures;
    const size_t fetched = floats / (QN__PANEL * QN__PANEL) + 1;
    return fetched > most ? fetched : most;
}

static size_t greater(size_t a, size_t b) { return a > b ? a : b; }

/* The most bytes of the operand of a run. */
static size_t most_of_run(const qn__worker *w) {
    size_t most = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        const uint32_t depths[2] = {qn__cpu_depth(l), qn__cpu_back_depth(l)};
        for (int d = 0; d < 2 && qn__cpu_walks_integers(l); ++d)
            most = greater(most, qn__cpu_run_rows(w, depths[d]) / QN__PANEL *
                                     w->intgemm->size(w->bits, depths[d]));
    }
    return most;
}

/* For convolutions: lists, and the errors of a chunk of a gradient. */
static void carve_space(qn__cpu_arena *a, size_t chunk, qn__cpu_rows_space *buffer) {
    buffer->factor = qn__cpu_carve(a, QN__RUN_ROWS, sizeof(float));
    buffer->right = qn__cpu_carve(a, QN__OUT_GROUP, chunk);
    for (int i = 0; i < 2; ++i) {
        buffer->list[i] = qn__cpu_carve(a, QN__CHUNK, sizeof(uint32_t));
        buffer->inverse[i] = qn__cpu_carve(a, QN__CHUNK, sizeof(float));
    }
}

/* Memory for one block of inputs or errors of the last layer, or for the operands of one group of
 * grains, or of a run or a chunk of a convolution; and for a plan of the gradient. */
static void carve_lists(qn__cpu_arena *a, const qn__worker *w, qn__cpu_core *core) {
    const qn__program *p = w->program;
    const qn__intgemm *intgemm = w->intgemm;
    const qn__cpu_layer *last = &w->layer[p->layers - 1];
    const size_t in = intgemm->size(w->bits, qn__cpu_depth(last));
    const size_t out = intgemm->size(w->bits, last->layer->out);
    const size_t operands =
        (1 + QN__OUT_GROUP) * intgemm->size(widest_items(w), qn__program_part(p));
    const size_t chunk = w->run_blocks ? intgemm->size(w->bits, QN__CHUNK) : 0;
    core->operand = qn__cpu_carve(
        a, greater(greater(greater(in, out), operands), greater(chunk, most_of_run(w))), 1);
    if (w->run_blocks)
        carve_space(a, chunk, &core->buffer);
    carve_plan(a, p, &core->plan);
}

/* The largest number of blocks of a panel of weights, or of panels of outputs. */
static uint32_t most_panels(const qn__worker *w) {
    uint32_t most = 0;
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        const uint32_t blocks = qn__cpu_blocks(&w->layer[l]);
        most = blocks > most ? blocks : most;
        most = w->layer[l].out_panels > most ? w->layer[l].out_panels : most;
    }
    return most;
}

/* The largest number of blocks of a run's chain; 0 when no layer walks. */
static size_t most_run_blocks(const qn__worker *w) {
    size_t most = 0;
    for (uint32_t l = 0; l < w->program->layers; ++l)
        for (int back = 0; back < 2; ++back) {
            const qn__cpu_walk *walk = back ? &w->layer[l].inputs : &w->layer[l].outputs;
            const size_t taps = (size_t)walk->axis[0].kernel * walk->axis[1].kernel;
            most = taps * walk->panels > most ? taps * walk->panels : most;
        }
    return most;
}

/* Sets *to to the array, if it has bytes. */
static void settle(char *begin, const qn__place *place, float **to) {
    if (place->bytes)
        *to = (float *)(void *)(begin + place->at);
}

static void carve_shared(qn__cpu_arena *a, qn__worker *w) {
    char *begin = qn__cpu_carve(a, w->memory.shared_bytes, 1);
    if (!a->base)
        return;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        const qn__cpu_layer *own = &w->layer[l->error_of];
        settle(begin, &own->error_place, &l->error);
        settle(begin, &l->output_place, &l->output);
        l->error = l->errors_in_output ? l->output : l->error;
        settle(begin, &l->dropped_place, &l->dropped);
        settle(begin, &l->slope_place, &l->slope);
        settle(begin, &l->branch_place, &l->branch);
        if (l->norm.sums_at)
            l->norm.sums = (float *)(void *)(begin + own->error_place.at + l->norm.sums_at);
        if (l->sparse.capacity)
            qn__cpu_sparse_place(w, l, w->capacity, begin + l->sparse_place.at);
    }
    for (int i = 0; i < 2; ++i)
        settle(begin, &w->fetch.place, &w->fetch.inputs[i]);
}

static void carve_all(qn__cpu_arena *a, qn__worker *w) {
    const qn__program *p = w->program;
    const uint32_t layers = p->layers;
    const size_t inputs = (size_t)w->layer[0].in_panels * QN__PANEL;
    const size_t outputs = (size_t)w->layer[layers - 1].out_panels * QN__PANEL;
    const size_t capacity = w->takes_lists ? 0 : rows_of(w, w->layer[0].in_pixels);
    w->run_blocks = most_run_blocks(w);
    for (uint32_t l = 0; l < layers; ++l)
        carve_layer(a, w, l);
    for (int i = 0; i < 2; ++i) {
        const size_t tiles =
            w->takes_lists ? 0 : qn__cpu_tiles((uint32_t)w->capacity, w->kernels->rows);
        if (!w->fetch.place.bytes)
            w->fetch.inputs[i] = qn__cpu_carve(a, capacity, inputs * sizeof(float));
        w->fetch.item[i] = qn__cpu_carve(a, w->capacity, sizeof(uint64_t));
        w->fetch.answers[i] = qn__cpu_carve(a, p->moves_answers ? w->capacity : 0, p->answers);
        w->fetch.share[i] = qn__cpu_carve(a, p->moves_answers ? w->capacity : 0, sizeof(float));
        w->fetch.input_blocks[i] = qn__cpu_carve(a, w->layer[0].in_panels, sizeof(size_t));
        if (w->bits) {
            const int packs = qn__cpu_packs_fetched(w);
            carve_rows(a, w, packs ? w->layer[0].layer->in : 0, &w->fetch.rows[i]);
            w->fetch.rows[i].bytes =
                qn__cpu_carve(a, packs ? (w->capacity + QN__PANEL - 1) / QN__PANEL : 0,
                              (size_t)w->layer[0].in_panels * QN__BYTE_PANEL);
            continue;
        }
        w->fetch.zeros[i].some = qn__cpu_carve(a, w->takes_lists ? 0 : w->capacity,
                                               w->layer[0].in_panels * sizeof(uint16_t));
        w->fetch.zeros[i].list = qn__cpu_carve(a, tiles, inputs * sizeof(uint32_t));
        w->fetch.zeros[i].count = qn__cpu_carve(a, tiles, sizeof(uint32_t));
    }
    w->fetch.segments = w->layer[0].walks
                            ? qn__cpu_carve(a, w->layer[0].in_panels, sizeof(qn__cpu_segments))
                            : NULL;
    w->fetch.woven =
        qn__cpu_carve(a, w->layer[0].woven ? w->layer[0].channels : 0, sizeof(uint32_t));
    w->weight_blocks = qn__cpu_carve(a, most_panels(w), sizeof(size_t));
    w->stretches.at = qn__cpu_carve(a, p->sequences ? w->capacity : 0, sizeof *w->stretches.at);
    const size_t features = ((size_t)w->layer[0].layer->in + QN__PANEL - 1) / QN__PANEL * QN__PANEL;
    w->fetch.mean = qn__cpu_carve(a, features, sizeof(float));
    w->fetch.inverse = qn__cpu_carve(a, features, sizeof(float));
    w->fetch.digits = w->bits ? qn__cpu_carve(a, 1, sizeof *w->fetch.digits) : NULL;
    const size_t answers = rows_of(w, p->answers ? w->layer[layers - 1].out_pixels : 1);
    w->losses.loss = qn__cpu_carve(a, answers, sizeof(float));
    w->losses.chosen = qn__cpu_carve(a, answers, sizeof(int32_t));
    w->losses.label = qn__cpu_carve(a, w->capacity, sizeof(int32_t));
    w->losses.item_loss = qn__cpu_carve(a, p->answers ? w->capacity : 0, sizeof(float));
    w->losses.item_right = qn__cpu_carve(a, p->answers ? w->capacity : 0, sizeof(uint64_t));
    for (int t = 0; t < w->threads; ++t) {
        qn__cpu_core core = {0};
        core.scratch =
            qn__cpu_carve(a, transposed_panels(w) * QN__PANEL * QN__PANEL, sizeof(float));
        core.blocks = qn__cpu_carve(a, 2 * w->run_blocks, sizeof(size_t));
        core.augmented =
            p->augment || p->mix
                ? qn__cpu_carve(a, (size_t)w->layer[0].layer->in * (QN__PANEL + 1), sizeof(float))
                : NULL;
        core.augment_space = qn__cpu_carve(a, p->augment ? qn__augment_space(p->augment) : 0, 1);
        core.shown_space = qn__cpu_carve(a, qn__shown_space(p), 1);
        core.picture = qn__cpu_carve(a, qn__cpu_few_space(w), sizeof(float));
        core.sparse = qn__cpu_carve(a, qn__cpu_sparse_space(w), sizeof(float));
        core.attention = qn__cpu_carve(
            a,
            greater(p->sequences ? qn__cpu_cache_space(w) : qn__cpu_attention_space(w),
                    qn__cpu_recurrent_space(w)),
            sizeof(float));
        core.gradient = w->run_blocks
                            ? qn__cpu_carve(a, w->bits ? QN__INT_GRADIENT : QN__WALK_GRADIENT, 1)
                            : NULL;
        core.rows = qn__cpu_carve(a, 2 * outputs * QN__PANEL, sizeof(float));
        core.slice = qn__cpu_carve(a, qn__cpu_slice_space(w), sizeof(float));
        core.absmax_input = qn__cpu_carve(a, layers + 1, sizeof(uint32_t));
        core.absmax_error = qn__cpu_carve(a, layers + 1, sizeof(uint32_t));
        if (w->bits)
            carve_lists(a, w, &core);
        qn__cpu_tiles_carve(a, w, &core.tiles);
        qn__cpu_tiles_carve_rows(a, w, &core.tiles);
        qn__cpu_picked_carve_results(a, w, &core.tiles);
        if (a->base)
            w->core[t] = core;
    }
    qn__cpu_slices_carve(a, w);
    carve_shared(a, w);
    w->nothing = qn__cpu_carve(a, (size_t)QN__RUN_ROWS * QN__PANEL, sizeof(float));
}

static void set_transposed_blocks(qn__cpu_layer *l) {
    size_t *at = l->transposed_blocks;
    for (size_t tap = 0; tap < (l->walks ? l->taps : 1); ++tap)
        for (size_t p = 0; p < l->out_panels; ++p)
            *at++ = (p * qn__cpu_blocks(l) + tap * l->in_panels) * QN__PANEL * QN__PANEL;
}

/* `reader` is not the first of those that read the outputs of `of`. */
static void connect_side(qn__cpu_layer *of, qn__cpu_layer *reader, const float *gives) {
    reader->gives = gives;
    reader->next_side = of->sides;
    of->sides = reader;
}

static void connect_blocks(qn__worker *w) {
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        if (l->below && l->branch && !qn__layer_joins(l->layer))
            connect_side(l->below, l, l->branch);
        if (!l->other)
            continue;
        l->second = l->other->dropped ? l->other->dropped : l->other->output;
        if (!l->layer->skip)
            connect_side(l->other, l, l->branch ? l->branch : l->error);
    }
}

static void connect(qn__worker *w) {
    const qn__program *p = w->program;
    if (w->layer[0].walks)
        qn__cpu_unfold_begin(&w->layer[0], w->fetch.segments);
    if (w->layer[0].woven)
        qn__cpu_weave_begin(&w->layer[0], w->fetch.woven);
    for (size_t i = 0; i < most_panels(w); ++i)
        w->weight_blocks[i] = i * QN__PANEL * QN__PANEL;
    for (uint32_t l = 0; l < p->layers; ++l) {
        set_transposed_blocks(&w->layer[l]);
        if (w->layer[l].add)
            w->layer[l].output = w->layer[l].add->output;
    }
    for (uint32_t l = 0; l < p->layers; ++l) {
        const qn__cpu_layer *below = w->layer[l].below;
        if (!below)
            continue;
        w->layer[l].input = below->dropped ? below->dropped : below->output;
        if (below->noted && w->layer[l].walks && !qn__layer_has_position_blocks(&p->layer[l]))
            w->layer[l].intgemm.input.absmax = below->intgemm.output_absmax;
    }
    connect_blocks(w);
    if (w->bits && p->scale != QN__SCALE_STANDARD)
        qn__cpu_make_digits(w->bits, p->scale, w->fetch.digits);
    if (p->scale == QN__SCALE_STANDARD) {
        memcpy(w->fetch.mean, p->mean, p->layer[0].in * sizeof *w->fetch.mean);
        memcpy(w->fetch.inverse, p->inverse, p->layer[0].in * sizeof *w->fetch.inverse);
    }
}

/* Whether an output pixel reads the input pixel in its place alone. */
static int has_points(const qn__layer *layer) {
    const qn__window *w = &layer->window;
    int points = !layer->fitted;
    for (int d = 0; d < 2; ++d)
        points &= w->kernel[d] == 1 && w->stride[d] == 1 && w->pad[d] == 0 &&
                  qn__layer_spread(layer, d) == 1;
    return points;
}

/* The tiles of `outer` have several panels in some instruction sets. Other tiles keep fewer sums in
 * registers, and read more for each operation: so a task has such panels, if they are many. */
static void shape_points(const qn__worker *w, qn__cpu_layer *l) {
    const uint32_t tile = w->kernels->outer_panels;
    l->group = QN__OUT_GROUP;
    l->points = l->walks && l->taps && !l->unfolds && !w->bits && !l->layer->conv_groups &&
                has_points(l->layer);
    if (l->points && tile > 1 && l->out_panels != QN__OUT_GROUP)
        l->group = tile;
}

static uint32_t panels_of(uint32_t columns) { return (columns + QN__PANEL - 1) / QN__PANEL; }

/* A convolution of the first layer unfolds its inputs: they have few channels, so that panels of
 * them would be mostly empty. It is then a convolution by a window of one pixel. */
static void shape_layer(const qn__worker *w, qn__cpu_layer *l, const qn__layer *layer) {
    const qn__shape from = layer->from, to = layer->to;
    qn__layer own = *layer;
    l->layer = layer;
    l->kind = qn__cpu_kind_of(layer->kind);
    l->walks = !l->kind->one_matrix;
    l->channels = from.channels;
    l->taps = layer->depth ? layer->window.kernel[0] * layer->window.kernel[1] : 0;
    l->in_pixels = from.height * from.width;
    l->out_pixels = to.height * to.width;
    l->unfolds = !l->below && l->walks && layer->depth && !w->shared && !layer->conv_groups &&
                 qn__layer_spread(layer, 0) == 1 && qn__layer_spread(layer, 1) == 1;
    l->pictures = l->unfolds && !w->bits;
    if (l->unfolds) {
        l->channels = layer->depth;
        l->taps = 1;
        l->in_pixels = l->out_pixels;
        own.from = own.to;
        own.window = (qn__window){{1, 1}, {1, 1}, {0, 0}, {1, 1}};
    }
    l->in_panels = panels_of(l->channels);
    l->weight_channels = l->channels;
    l->weight_panels = l->in_panels;
    if (qn__layer_joins(layer))
        own.from = own.to; /* its phases go over the outputs */
    if (layer->conv_groups) {
        l->taps = 1;
        l->weight_channels = layer->depth;
        l->weight_panels = panels_of(layer->depth);
    }
    l->out_panels = panels_of(to.channels);
    shape_points(w, l);
    l->vectors = l->taps ? 1 : layer->tied ? 0 : layer->vectors;
    l->vector_pixels = l->taps ? 1 : layer->vector / to.channels;
    l->vector = (size_t)l->out_panels * l->vector_pixels * QN__PANEL;
    if (l->walks) {
        qn__cpu_walk_axes(&own, 0, l->outputs.axis);
        l->outputs.any = !l->taps;
        l->outputs.panels = layer->conv_groups ? 1 : l->in_panels;
    }
    if (l->below && (l->walks || l->in_pixels > 1)) {
        qn__cpu_walk_axes(&own, 1, l->inputs.axis);
        l->inputs.panels = layer->conv_groups ? 1 : l->out_panels;
    }
}

/* The last layer of a path that passes its errors on unchanged has those of its add, which may be
 * those of another one. In integer arithmetic products have absmax of their own errors, and a
 * pool's are derived for the convolution below (cpu_picked.h). */
static void share_errors(qn__worker *w, uint32_t add, qn__cpu_layer *path) {
    if (!(w->bits && path->taps) && !path->pools && path->layer->activation == QN__ACT_NONE &&
        !path->layer->drop_threshold)
        path->error_of = w->layer[add].error_of;
}

/* The last layer of a path that ends just before its add, with nothing between. */
static void add_at_once(const qn__worker *w, qn__cpu_layer *add) {
    qn__cpu_layer *last = add - 1;
    const int is_path = add->below == last || (add->layer->skip && add->other == last);
    const int apart = last->taps && (w->bits || last->layer->conv_groups);
    if (is_path && last->kind->adds && !apart && last->layer->activation == QN__ACT_NONE &&
        !last->layer->drop_threshold)
        last->add = add;
}

/* The max pool that alone reads the outputs of `of`; NULL: there is none. */
static const qn__layer *pool_above(const qn__worker *w, const qn__cpu_layer *of) {
    const qn__layer *pool = NULL;
    int readers = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        readers += (l->below == of) + (l->other == of);
        if (l->below == of && l->kind->picks)
            pool = l->layer;
    }
    return readers == 1 ? pool : NULL;
}

/* Lists of errors: of a convolution below a max pool. */
static void size_lists(qn__worker *w, qn__cpu_layer *l) {
    const qn__layer *pool = l->walks && l->taps && l->below && !w->bits ? pool_above(w, l) : NULL;
    if (pool)
        qn__cpu_sparse_shape(w, l, pool, w->capacity);
    l->sparse_place.bytes = l->sparse.bytes;
}

/* Of all padded pictures. Vectors are read beyond the end of the last one. */
static size_t bytes_of_pictures(const qn__worker *w) {
    size_t bytes;
    const size_t each = qn__cpu_unfold_space(&w->layer[0]) * sizeof(float);
    const size_t items = (w->capacity + QN__PANEL - 1) / QN__PANEL * QN__PANEL; /* if woven */
    return __builtin_mul_overflow(items, each, &bytes) || bytes > SIZE_MAX - 64 ? SIZE_MAX
                                                                                : bytes + 64;
}

/* The loss of several answers to an item reads outputs of some rows and writes their errors. With
 * many words these are the largest arrays: so the errors replace the outputs. */
static void replace_answers(const qn__worker *w, qn__cpu_layer *last) {
    last->errors_in_output = w->program->answers > 0;
    last->error_place.bytes = last->errors_in_output ? 0 : last->error_place.bytes;
}

/* Whose errors a layer has, and the bytes of the arrays that share memory. */
static void size_shared(qn__worker *w) {
    for (uint32_t i = w->program->layers; i-- > 0;) {
        qn__cpu_layer *l = &w->layer[i];
        if (qn__layer_joins(l->layer) && !l->kind->passes_on) {
            if (l->other && !l->layer->skip)
                l->branch_place.bytes = bytes_of(w, l->other->out_pixels, l->other->out_panels);
        } else if (qn__layer_joins(l->layer)) {
            add_at_once(w, l);
            share_errors(w, i, l->below);
            if (l->layer->skip)
                share_errors(w, i, l->other);
        } else if (l->below && l->layer->skip) {
            l->branch_place.bytes = bytes_of(w, l->in_pixels, l->in_panels);
        }
    }
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *l = &w->layer[i];
        const size_t bytes = bytes_of(w, l->out_pixels, l->out_panels);
        l->error_place.bytes = l->error_of == i && !l->pool ? bytes : 0;
        l->output_place.bytes = l->add ? 0 : bytes;
        l->dropped_place.bytes = l->layer->drop_threshold ? bytes : 0;
        l->slope_place.bytes = qn__keeps_slope(l->layer->activation) ? bytes : 0;
        size_lists(w, l);
    }
    replace_answers(w, &w->layer[w->program->layers - 1]);
    qn__cpu_slices_shape(w);
    if (w->layer[0].pictures || w->layer[0].woven)
        w->fetch.place.bytes = bytes_of_pictures(w);
    else if (qn__cpu_one_input(w))
        w->fetch.place.bytes = bytes_of(w, w->layer[0].in_pixels, w->layer[0].in_panels);
    for (uint32_t i = 0; i < w->program->layers; ++i)
        if (w->layer[i].kind->size)
            w->layer[i].kind->size(w, &w->layer[i]);
    (w->program->recompute ? qn__cpu_place_segments : qn__cpu_place_arrays)(w);
}

/* In integer arithmetic a task of a convolution's gradient has blocks of any panels of inputs,
 * fewer where there would be few tasks. */
static uint32_t blocks_of_task(const qn__cpu_layer *l, int threads) {
    const uint32_t all = qn__cpu_blocks(l), enough = 2 * (uint32_t)threads;
    uint32_t blocks = all < QN__WALK_TAPS ? all : QN__WALK_TAPS;
    while (blocks > 1 && qn__cpu_groups(l) * ((all + blocks - 1) / blocks) < enough)
        blocks = (blocks + 1) / 2;
    return blocks;
}

static void divide_gradient(qn__cpu_layer *l, int bits, int threads) {
    if (l->woven) {
        l->task_taps = qn__cpu_blocks(l);
        l->tasks = qn__cpu_woven_tasks(l, threads);
        return;
    }
    if (l->tiles.span) {
        l->task_taps = qn__cpu_tiles_taps(l, (int)qn__planes(bits), threads);
        l->tasks = qn__tiles_parts(l->in_panels, l->tiles.task_inputs) *
                   qn__tiles_parts(l->taps, l->task_taps);
        return;
    }
    const int one = bits || l->pictures || l->points; /* a task may have any blocks */
    const uint32_t all = one ? qn__cpu_blocks(l) : l->taps, panels = one ? 1 : l->in_panels;
    const uint32_t taps = !l->walks ? l->taps > 0
                          : bits    ? blocks_of_task(l, threads)
                                    : qn__cpu_walk_taps(l, threads);
    l->task_taps = taps;
    l->tasks = taps ? panels * ((all + taps - 1) / taps) : 0;
    if (l->layer->conv_groups)
        l->tasks = QN__OUT_GROUP;
}

static qn__cpu_layer *layer_at(const qn__worker *w, int32_t index) {
    return index < 0 ? NULL : &w->layer[index];
}

/* The layers that each one reads. Returns whether several read the network's input. */
static int connect_sources(qn__worker *w) {
    const qn__layer *layer = w->program->layer;
    int readers = 0;
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        qn__cpu_layer *own = &w->layer[l];
        own->below = layer_at(w, qn__layer_source(layer, l));
        readers += !own->below;
        if (!qn__layer_joins(&layer[l]))
            continue;
        own->other = layer_at(w, qn__layer_other(layer, l));
        readers += !own->other;
    }
    return readers > 1;
}

/* Returns the number of counters of their gradients. */
static size_t shape_layers(qn__worker *w) {
    const qn__program *p = w->program;
    size_t done = 0;
    w->shared = connect_sources(w);
    w->shortens = qn__can_shorten(p);
    for (uint32_t l = 0; l < p->layers; ++l) {
        qn__cpu_layer *own = &w->layer[l];
        shape_layer(w, own, &p->layer[l]);
        own->error_of = l;
        w->walks |= own->walks;
        own->transposed_weights = own->inputs.axis[1].size && own->taps &&
                                  !p->layer[l].conv_groups && !w->bits && !own->kind->unrolls;
        if (own->below && (own->walks || own->taps > 1))
            own->below->clears = 1;
        if (own->other)
            own->other->clears = 1;
        own->few = !w->bits && qn__cpu_shape_few(own);
        qn__cpu_tiles_shape(w, own);
        qn__cpu_tiles_ways(w, own);
        divide_gradient(&w->layer[l], w->bits, w->threads);
        if (w->bits && w->layer[l].below && qn__cpu_walks_integers(&w->layer[l]) &&
            !qn__layer_has_position_blocks(&p->layer[l]))
            w->layer[l].below->noted = 1;
        done += qn__cpu_groups(&w->layer[l]) + 1;
    }
    qn__cpu_find_followers(w);
    qn__cpu_picked_shape(w);
    size_shared(w);
    return done;
}

size_t qn__cpu_count_memory(qn__worker *w) {
    qn__cpu_arena count = {0};
    w->layer = qn__alloc(w->program->layers, sizeof *w->layer, NULL);
    if (!w->layer)
        return SIZE_MAX;
    shape_layers(w);
    carve_all(&count, w);
    qn__free(w->layer);
    w->layer = NULL;
    return count.overflow ? SIZE_MAX : count.used;
}

qn_status qn__cpu_allocate(qn__worker *w, qn_error *err) {
    const qn__program *p = w->program;
    w->layer = qn__alloc(p->layers, sizeof *w->layer, err);
    w->core = qn__alloc((size_t)w->threads, sizeof *w->core, err);
    w->counter = qn__alloc(qn__cpu_phases(p) * (size_t)w->threads, sizeof *w->counter, err);
    if (!w->layer || !w->core || !w->counter)
        return QN_MEMORY;
    size_t done = shape_layers(w);
    w->progress.done = qn__alloc(done, sizeof *w->progress.done, err);
    if (!w->progress.done)
        return QN_MEMORY;
    for (uint32_t l = p->layers; l-- > 0;)
        w->layer[l].done = w->progress.done + (done -= qn__cpu_groups(&w->layer[l]) + 1);
    qn__cpu_arena count = {0};
    carve_all(&count, w);
    if (count.overflow)
        return qn__fail_memory(err, SIZE_MAX, 1);
    w->memory.block =
        qn__alloc_pages(count.used, err); /* a small batch does not use most of the space */
    if (!w->memory.block)
        return QN_MEMORY;
    w->memory.size = count.used;
    qn__cpu_arena fill = {.base = w->memory.block};
    carve_all(&fill, w);
    connect(w);
    return QN_OK;
}

void qn__cpu_release(qn__worker *w) {
    qn__free_pages(w->memory.block, w->memory.size);
    qn__free(w->counter);
    qn__free(w->progress.done);
    qn__free(w->core);
    qn__free(w->layer);
}
