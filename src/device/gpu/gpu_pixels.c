/* Layers with pixels: convolutions, pools, and dense layers behind pixels (docs/exactness.md 16).
 *
 * A chunk of rows is unfolded: each row gets all numbers that its chains read. Then the products of
 * dense layers compute it. A chunk stays in the device's cache, so that unfolding costs no traffic
 * with its memory. The chains go to a buffer, from where the last kernel writes them as outputs or
 * errors. */
#include "device/gpu/gpu_call.h"
#include "device/gpu/gpu_worker.h"

enum { CPU_FLOATS = 1 << 20, GPU_FLOATS = 8 << 20 }; /* of a chunk, if the driver says nothing */

static uint32_t from_pixels(const qn__layer *l) { return l->from.height * l->from.width; }

static uint32_t taps_of(const qn__layer *l) { return l->window.kernel[0] * l->window.kernel[1]; }

static int is_conv(const qn__layer *l) { return l->kind == QN__LAYER_CONV; }

/* The links of a chain of errors. */
static uint32_t error_depth(const qn__layer *l) { return taps_of(l) * l->to.channels; }

void qn__gpu_taps_of(const qn__layer *l, int planar, qn_taps *taps) {
    const qn__window *w = &l->window;
    const qn_taps forward = {.height = l->to.height,
                             .width = l->to.width,
                             .from_height = l->from.height,
                             .from_width = l->from.width,
                             .window = {w->kernel[0], w->kernel[1]},
                             .stride = {w->stride[0], w->stride[1]},
                             .first = {-(int32_t)w->pad[0], -(int32_t)w->pad[1]},
                             .dilation = {w->dilation[0], w->dilation[1]},
                             .divisor = {1, 1},
                             .channels = l->from.channels,
                             .planar = planar != 0};
    qn_taps backward = {.height = l->from.height,
                        .width = l->from.width,
                        .from_height = l->to.height,
                        .from_width = l->to.width,
                        .stride = {1, 1},
                        .channels = l->to.channels};
    for (int d = 0; d < 2; ++d) {
        backward.window[d] = w->kernel[d];
        backward.dilation[d] = w->dilation[d];
        backward.divisor[d] = w->stride[d];
        /* The last tap comes first: it belongs to the first output pixel. */
        backward.first[d] = (int32_t)w->pad[d] - (int32_t)(w->dilation[d] * (w->kernel[d] - 1));
    }
    taps[0] = forward;
    taps[1] = backward;
    taps[2] = (qn_taps){.height = l->to.height,
                        .width = l->to.width,
                        .from_height = l->to.height,
                        .from_width = l->to.width,
                        .window = {1, 1},
                        .stride = {1, 1},
                        .dilation = {1, 1},
                        .divisor = {1, 1},
                        .channels = l->to.channels};
}

/* Rows of a chunk whose rows have `columns`, whole tiles if it has several. */
static uint32_t chunk_rows(const qn__worker *w, uint64_t columns, uint64_t rows) {
    const uint64_t most = w->unfolded_floats / qn__gpu_ld(columns);
    if (rows <= most)
        return (uint32_t)rows;
    return (uint32_t)(most > 128 ? most / 128 * 128 : most);
}

/* A chunk of a gradient: whole grains, and all inputs of the weights or some, with that of the
 * biases as the last. */
typedef struct part {
    uint32_t span, rows, columns; /* span: rows of a grain */
} part;

static part part_of(const qn__worker *w, const qn__layer *l, uint32_t items) {
    const uint32_t grain = w->program->grain < items ? w->program->grain : items;
    part p = {.span = grain * qn__gpu_pixels(l), .columns = l->depth + 1};
    const uint64_t grains = w->unfolded_floats / p.span / qn__gpu_ld(p.columns);
    const uint64_t rows = (uint64_t)items * qn__gpu_pixels(l);
    p.rows = p.span;
    if (grains > 0)
        p.rows = (uint32_t)(grains * p.span < rows ? grains * p.span : rows);
    else
        p.columns = (uint32_t)(w->unfolded_floats / p.span / QN_LD * QN_LD);
    return p;
}

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The least that a chunk must have for a layer, and what would take all of it in one. */
static void chunk_bounds(const qn__worker *w, uint32_t i, uint64_t *least, uint64_t *most) {
    const qn__layer *l = w->layer[i].layer;
    const uint64_t rows = (uint64_t)w->room * qn__gpu_pixels(l);
    const uint64_t grain = w->program->grain < w->room ? w->program->grain : w->room;
    if (!l->depth || l->conv_groups)
        return;
    *least = greater(*least, qn__gpu_ld(l->depth + 1));
    *least = greater(*least, grain * qn__gpu_pixels(l) * QN_LD);
    *most = greater(*most, rows * qn__gpu_ld(l->depth + 1));
    if (w->layer[i].source >= 0 && is_conv(l)) {
        *least = greater(*least, qn__gpu_ld(error_depth(l)));
        *most = greater(*most, (uint64_t)w->room * from_pixels(l) * qn__gpu_ld(error_depth(l)));
    }
    if (w->layer[i].source >= 0 && !is_conv(l)) /* all errors of a dense layer */
        *least = greater(*least, w->room * qn__gpu_ld(l->in));
}

void qn__gpu_pixels_needs(qn__worker *w, uint64_t *chains, uint64_t *turned) {
    uint64_t least = 0, most = 0, usual = w->facts->vectors ? CPU_FLOATS : GPU_FLOATS;
    if (w->facts->chunk)
        usual = w->facts->chunk / sizeof(float);
    *chains = *turned = 0;
    for (uint32_t i = 0; !w->bits && i < w->program->layers; ++i)
        if (qn__gpu_has_pixels(w->layer[i].layer) || qn__gpu_shares_source(w, i))
            chunk_bounds(w, i, &least, &most);
    w->unfolded_floats = greater(least, most < usual ? most : usual);
    for (uint32_t i = 0; !w->bits && i < w->program->layers; ++i) {
        const qn__layer *l = w->layer[i].layer;
        const uint64_t rows = (uint64_t)w->room * qn__gpu_pixels(l);
        const uint64_t ld = qn__gpu_ld(l->to.channels), below = qn__gpu_ld(l->from.channels);
        if (!qn__gpu_has_pixels(l) || !l->depth || l->conv_groups)
            continue;
        *chains = greater(*chains, chunk_rows(w, l->depth, rows) * ld);
        *chains = greater(*chains, part_of(w, l, w->room).rows * ld);
        if (w->layer[i].source < 0 || !is_conv(l))
            continue;
        const uint64_t inputs = (uint64_t)w->room * from_pixels(l);
        *chains = greater(*chains, chunk_rows(w, error_depth(l), inputs) * below);
        *turned = greater(*turned, (error_depth(l) + (uint64_t)1) * below);
    }
    *chains *= sizeof(float);
    *turned *= sizeof(float);
}

/* Rows of an array, and the columns of them, that are unfolded together. */
typedef struct chunk {
    uint32_t index; /* of the taps */
    uint32_t first, count, column, columns;
    uint32_t span; /* rows of a grain */
} chunk;

static void unfold(qn__gpu_pass *pass, const chunk *k, const qn__gpu_memory *from,
                   const qn__gpu_memory *to) {
    const qn__worker *w = pass->worker;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->taps);
    qn__push_memory_arg(&c, from);
    qn__push_memory_arg(&c, to);
    qn__push_memory_arg(&c, &w->rows);
    qn__push_arg(&c, k->index);
    qn__push_arg(&c, k->first);
    qn__push_arg(&c, k->count);
    qn__push_arg(&c, k->column);
    qn__push_arg(&c, k->columns);
    qn__push_arg(&c, k->span);
    qn__gpu_launch_over(pass, QN__K_UNFOLD,
                        qn__gpu_pieces(k->count, 16) * (qn__gpu_ld(k->columns) / 4), &c);
}

/* Sixteen columns of a row are a piece of work. */
static uint64_t sixteens(uint64_t rows, uint64_t columns) {
    return rows * (qn__gpu_ld(columns) / QN_LD);
}

static void launch_pool(qn__gpu_pass *pass, uint32_t i, int backward) {
    const qn__worker *w = pass->worker;
    const int32_t source = w->layer[i].source;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t pixels = backward ? from_pixels(l) : qn__gpu_pixels(l);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->taps);
    qn__push_memory_arg(&c, qn__gpu_input_of(pass, i));
    if (backward)
        qn__push_memory_arg(&c, qn__gpu_errors_of(w, i));
    qn__push_memory_arg(&c,
                        backward ? qn__gpu_errors_of(w, (uint32_t)source) : &w->layer[i].output);
    qn__push_arg(&c, i * QN__GPU_TAPS);
    qn__push_arg(&c, (l->kind == QN__LAYER_MAXPOOL ? QN_POOL_MAX : 0) |
                         (backward && !qn__gpu_gives_first(w, i, source) ? QN_POOL_ADD : 0));
    qn__push_float_arg(&c, 1.0f / (float)taps_of(l));
    qn__gpu_launch_over(pass, backward ? QN__K_POOL_ERRORS : QN__K_POOL_FORWARD,
                        sixteens((uint64_t)pass->items * pixels, l->from.channels), &c);
}

static void finish_forward(qn__gpu_pass *pass, uint32_t i, const chunk *k) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    const uint32_t out = l->layer->to.channels;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->taps);
    qn__push_memory_arg(&c, &w->chains);
    qn__push_memory_arg(&c, qn__gpu_input_of(pass, i));
    qn__push_memory_arg(&c, &w->parameters);
    qn__push_memory_arg(&c, &l->output);
    qn__push_memory_arg(&c, drops ? &l->dropped : &w->step);
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_wide_arg(&c, l->weights);
    qn__push_wide_arg(&c, l->biases);
    qn__push_arg(&c, k->index);
    qn__push_arg(&c, k->first);
    qn__push_arg(&c, k->count);
    qn__push_arg(&c, out);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_over(pass, QN__K_PIXELS_FORWARD, sixteens(k->count, out), &c);
}

void qn__gpu_launch_pixels_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t rows = pass->items * qn__gpu_pixels(l);
    chunk k = {.index = i * QN__GPU_TAPS, .columns = l->depth};
    if (!l->depth) {
        launch_pool(pass, i, 0);
        return;
    }
    const uint32_t most = chunk_rows(w, l->depth, rows);
    for (; k.first < rows; k.first += most) {
        k.count = k.span = rows - k.first < most ? rows - k.first : most;
        const qn__gpu_factors f = {.step = &w->rows,
                                   .a = &w->unfolded,
                                   .weights = &w->parameters,
                                   .first = w->layer[i].weights,
                                   .rows = k.count,
                                   .in = l->depth,
                                   .out = l->to.channels,
                                   .to = &w->chains};
        unfold(pass, &k, qn__gpu_input_of(pass, i), &w->unfolded);
        qn__gpu_launch_chains(pass, &f);
        finish_forward(pass, i, &k);
    }
    qn__gpu_launch_gate(pass, i);
}

/* Writes the errors of layer `source`, which layer i reads. The layers of both paths of a block
 * read its input: the last one that gives errors applies dropout and activation to their sum. */
static void finish_errors(qn__gpu_pass *pass, uint32_t i, int32_t source,
                          const qn__gpu_memory *from, const chunk *k, uint32_t flags) {
    const qn__worker *w = pass->worker;
    const uint32_t in = w->layer[i].layer->from.channels;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->taps);
    qn__push_memory_arg(&c, from);
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, i));
    qn__push_memory_arg(&c, flags & QN_PIXELS_CHAINS ? &w->turned : &w->step);
    qn__push_memory_arg(&c, qn__gpu_derived_of(w, (uint32_t)source));
    qn__push_memory_arg(&c, qn__gpu_errors_of(w, (uint32_t)source));
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_arg(&c, k->index);
    qn__push_arg(&c, k->first);
    qn__push_arg(&c, k->count);
    qn__push_arg(&c, in);
    qn__push_arg(&c, flags);
    if (qn__gpu_gives_last(w, i, source))
        qn__gpu_push_outputs(w, (uint32_t)source, 1, &c);
    else
        qn__gpu_push_plain(w, &c);
    qn__gpu_launch_over(pass, QN__K_PIXELS_ERRORS, sixteens(k->count, in), &c);
}

/* QN_PIXELS_ADD, unless layer i is the first to give errors to layer `source`. */
static uint32_t adds(const qn__worker *w, uint32_t i, int32_t source) {
    return qn__gpu_gives_first(w, i, source) ? 0 : QN_PIXELS_ADD;
}

void qn__gpu_finish_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const int32_t source = w->layer[i].source;
    const qn__layer *below = w->layer[source].layer;
    const chunk k = {.index = i * QN__GPU_TAPS + 1,
                     .count = pass->items * from_pixels(w->layer[i].layer)};
    if (qn__gpu_gives_last(w, i, source) &&
        (below->activation != QN__ACT_NONE || below->drop_threshold))
        finish_errors(pass, i, source, qn__gpu_errors_of(w, (uint32_t)source), &k, 0);
}

void qn__gpu_launch_add_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const int32_t source[2] = {w->layer[i].source, w->layer[i].other};
    const chunk k = {.index = i * QN__GPU_TAPS + 1,
                     .count = pass->items * qn__gpu_pixels(w->layer[i].layer)};
    for (int s = 0; s < 2; ++s)
        if (source[s] >= 0)
            finish_errors(pass, i, source[s], qn__gpu_errors_of(w, i), &k, adds(w, i, source[s]));
}

void qn__gpu_launch_add_forward(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__gpu_layer *l = &w->layer[i];
    const int drops = qn__gpu_drops(pass, i);
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->step);
    qn__push_memory_arg(&c, &w->taps);
    qn__push_memory_arg(&c, qn__gpu_input_of(pass, i));
    qn__push_memory_arg(&c, qn__gpu_output_of(pass, l->other));
    qn__push_memory_arg(&c, &l->output);
    qn__push_memory_arg(&c, drops ? &l->dropped : &w->step);
    qn__push_memory_arg(&c, &w->numbers);
    qn__push_arg(&c, i * QN__GPU_TAPS);
    qn__gpu_push_outputs(w, i, drops, &c);
    qn__gpu_launch_over(
        pass, QN__K_ADD_FORWARD,
        sixteens((uint64_t)pass->items * qn__gpu_pixels(l->layer), l->layer->to.channels), &c);
    qn__gpu_launch_gate(pass, i);
}

static void launch_turn(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    qn__gpu_call c = {0};
    qn__push_memory_arg(&c, &w->parameters);
    qn__push_memory_arg(&c, &w->turned);
    qn__push_wide_arg(&c, w->layer[i].weights);
    qn__push_arg(&c, taps_of(l));
    qn__push_arg(&c, l->from.channels);
    qn__push_arg(&c, l->to.channels);
    qn__gpu_launch_over(pass, QN__K_TURN, sixteens(error_depth(l) + (uint64_t)1, l->from.channels),
                        &c);
}

void qn__gpu_launch_pixels_errors(qn__gpu_pass *pass, uint32_t i) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const int32_t source = w->layer[i].source;
    if (source < 0)
        return;
    const uint32_t rows = pass->items * from_pixels(l), links = error_depth(l);
    const uint32_t add = adds(w, i, source);
    chunk k = {.index = i * QN__GPU_TAPS + 1, .count = rows, .columns = links};
    if (!l->depth) {
        launch_pool(pass, i, 1);
        qn__gpu_finish_errors(pass, i);
        return;
    }
    if (!is_conv(l)) {
        qn__gpu_launch_float_errors(pass, i, &w->unfolded);
        finish_errors(pass, i, source, &w->unfolded, &k, QN_PIXELS_FLAT | add);
        return;
    }
    launch_turn(pass, i);
    const uint32_t most = chunk_rows(w, links, rows);
    for (; k.first < rows; k.first += most) {
        k.count = k.span = rows - k.first < most ? rows - k.first : most;
        const qn__gpu_factors f = {.step = &w->rows,
                                   .a = &w->unfolded,
                                   .weights = &w->turned,
                                   .rows = k.count,
                                   .in = links,
                                   .out = l->from.channels,
                                   .to = &w->chains};
        unfold(pass, &k, qn__gpu_errors_of(w, i), &w->unfolded);
        qn__gpu_launch_chains(pass, &f);
        finish_errors(pass, i, source, &w->chains, &k, QN_PIXELS_CHAINS | add);
    }
}

/* The gradients of some grains, in `e`, the errors of their rows. */
static void gradient_of_grains(qn__gpu_pass *pass, uint32_t i, const part *p, chunk k,
                               const qn__gpu_memory *e, int add) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t inputs = l->depth + 1, out = l->to.channels;
    for (k.column = 0; k.column < inputs; k.column += p->columns) {
        k.columns = inputs - k.column < p->columns ? inputs - k.column : p->columns;
        const qn__gpu_factors f = {.step = &w->rows,
                                   .a = &w->unfolded,
                                   .e = e,
                                   .first = w->layer[i].weights + k.column * qn__gpu_ld(out),
                                   .in = k.columns,
                                   .out = out};
        unfold(pass, &k, qn__gpu_input_of(pass, i), &w->unfolded);
        qn__gpu_launch_gradient(pass, i, &f, qn__gpu_pieces(k.count, k.span), add);
    }
}

void qn__gpu_launch_pixels_gradient(qn__gpu_pass *pass, uint32_t i, int add) {
    const qn__worker *w = pass->worker;
    const qn__layer *l = w->layer[i].layer;
    const uint32_t rows = pass->items * qn__gpu_pixels(l), taps = i * QN__GPU_TAPS;
    if (!l->depth)
        return;
    const part p = part_of(w, l, pass->items);
    for (uint32_t first = 0; first < rows; first += p.rows) {
        chunk k = {.index = taps, .first = first, .span = p.span};
        const qn__gpu_memory *e = qn__gpu_errors_of(w, i);
        k.count = rows - first < p.rows ? rows - first : p.rows;
        if (k.count < rows) {
            const chunk own = {.index = taps + 2,
                               .first = first,
                               .count = k.count,
                               .columns = l->to.channels,
                               .span = p.span};
            unfold(pass, &own, e, &w->chains);
            e = &w->chains;
        }
        gradient_of_grains(pass, i, &p, k, e, add || first > 0);
    }
}
