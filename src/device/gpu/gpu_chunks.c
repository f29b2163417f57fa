/* What rows of layers with pixels read, and how many of them a chunk has. All sizes give the same
 * bytes. */
#include "device/gpu/gpu_pixels.h"

#include "base/memory.h"
#include "layer/layer.h"

enum { CPU_FLOATS = 1 << 20, GPU_FLOATS = 8 << 20 }; /* of a chunk, if the driver says nothing */

/* Of the end of a block: the outputs read the second operand, and then each of both operands reads
 * the other. */
static void join_taps(const qn__layer *l, qn_taps *taps) {
    taps[0].from_height = l->second.height;
    taps[0].from_width = l->second.width;
    taps[0].channels = l->second.channels;
    taps[1] = taps[2] = taps[0];
    taps[1].height = taps[2].from_height = l->from.height;
    taps[1].width = taps[2].from_width = l->from.width;
    taps[2].height = l->second.height;
    taps[2].width = l->second.width;
    taps[2].channels = l->from.channels;
    taps[2].planar = 0;
}

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
                             .divisor = {qn__layer_spread(l, 0), qn__layer_spread(l, 1)},
                             .channels = l->from.channels,
                             .planar = planar != 0,
                             .epsilon = l->norm_epsilon,
                             .fitted = (qn_u32)l->fitted};
    qn_taps backward = {.height = l->from.height,
                        .width = l->from.width,
                        .from_height = l->to.height,
                        .from_width = l->to.width,
                        .stride = {qn__layer_spread(l, 0), qn__layer_spread(l, 1)},
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
    if (qn__layer_joins(l)) {
        join_taps(l, taps);
        return;
    }
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

uint32_t qn__gpu_chunk_rows(const qn__worker *w, uint64_t columns, uint64_t rows) {
    const uint64_t most = w->pixels.unfolded_floats / qn__gpu_ld(columns);
    if (rows <= most)
        return (uint32_t)rows;
    return (uint32_t)(most > 128 ? most / 128 * 128 : most);
}

qn__gpu_part qn__gpu_part_of(const qn__worker *w, const qn__layer *l, uint32_t items) {
    const uint32_t grain = w->program->grain < items ? w->program->grain : items;
    qn__gpu_part p = {.span = grain * qn__gpu_pixels(l), .columns = l->depth + 1};
    const uint64_t grains = w->pixels.unfolded_floats / p.span / qn__gpu_ld(p.columns);
    const uint64_t rows = (uint64_t)items * qn__gpu_pixels(l);
    p.rows = p.span;
    if (grains > 0)
        p.rows = (uint32_t)(grains * p.span < rows ? grains * p.span : rows);
    else
        p.columns = (uint32_t)(w->pixels.unfolded_floats / p.span / QN_LD * QN_LD);
    return p;
}

static uint64_t greater(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Whether it is the last layer, slice by slice (gpu_slices.c). */
static int is_sliced(const qn__worker *w, uint32_t i) {
    return w->slices.rows && i + 1 == w->program->layers;
}

/* The least that a chunk must have for a layer, and what would take all of it in one. */
static void chunk_bounds(const qn__worker *w, uint32_t i, uint64_t *least, uint64_t *most) {
    const qn__layer *l = w->layer[i].layer;
    const uint64_t rows = (uint64_t)w->capacity * qn__gpu_pixels(l);
    const uint64_t grain = w->program->grain < w->capacity ? w->program->grain : w->capacity;
    if (!l->depth || l->conv_groups)
        return;
    if (is_sliced(w, i)) {
        const uint64_t most_rows = greater(w->slices.rows, w->slices.outputs ? w->slices.grain : 0);
        *least = greater(*least, most_rows * qn__gpu_ld(l->depth + 1));
        return;
    }
    *least = greater(*least, qn__gpu_ld(l->depth + 1));
    *least = greater(*least, grain * qn__gpu_pixels(l) * QN_LD);
    *most = greater(*most, rows * qn__gpu_ld(l->depth + 1));
    if (w->layer[i].source >= 0 && qn__gpu_is_conv(&w->layer[i])) {
        *least = greater(*least, qn__gpu_ld(qn__gpu_error_depth(l)));
        *most = greater(*most, (uint64_t)w->capacity * qn__gpu_from_pixels(l) *
                                   qn__gpu_ld(qn__gpu_error_depth(l)));
    }
    if (w->layer[i].source >= 0 && !qn__gpu_is_conv(&w->layer[i])) /* all errors of a dense layer */
        *least = greater(*least, w->capacity * qn__gpu_ld(l->in));
}

void qn__gpu_pixels_needs(qn__worker *w, uint64_t *chains, uint64_t *transposed) {
    uint64_t least = 0, most = 0, usual = w->facts->vectors ? CPU_FLOATS : GPU_FLOATS;
    if (w->facts->chunk)
        usual = w->facts->chunk / sizeof(float);
    *chains = *transposed = 0;
    for (uint32_t i = 0; i < w->program->layers; ++i)
        if (qn__gpu_has_pixels(&w->layer[i]) || qn__gpu_shares_source(w, i))
            chunk_bounds(w, i, &least, &most);
    w->pixels.unfolded_floats = greater(least, most < usual ? most : usual);
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__layer *l = w->layer[i].layer;
        const uint64_t rows = (uint64_t)w->capacity * qn__gpu_pixels(l);
        const uint64_t ld = qn__gpu_ld(l->to.channels), below = qn__gpu_ld(l->from.channels);
        if (!qn__gpu_has_pixels(&w->layer[i]) || !l->depth || l->conv_groups)
            continue;
        if (is_sliced(w, i)) {
            *chains = greater(*chains, w->slices.rows * below);
            continue;
        }
        *chains = greater(*chains, qn__gpu_chunk_rows(w, l->depth, rows) * ld);
        *chains = greater(*chains, qn__gpu_part_of(w, l, w->capacity).rows * ld);
        if (w->layer[i].source < 0 || !qn__gpu_is_conv(&w->layer[i]))
            continue;
        const uint64_t inputs = (uint64_t)w->capacity * qn__gpu_from_pixels(l);
        *chains = greater(*chains, qn__gpu_chunk_rows(w, qn__gpu_error_depth(l), inputs) * below);
        if (!w->bits)
            *transposed = greater(*transposed, (qn__gpu_error_depth(l) + (uint64_t)1) * below);
    }
    *chains *= sizeof(float);
    *transposed *= sizeof(float);
}

/* Whether the array that a layer gathers from is that of the network's inputs. An add gathers the
 * output of its shortcut. */
static int reads_inputs(const qn__gpu_layer *l) {
    return (qn__layer_joins(l->layer) ? l->other : l->source) < 0;
}

qn_status qn__gpu_write_taps(qn__worker *w, qn_error *err) {
    const qn__program *p = w->program;
    if (!w->pixels.taps.bytes)
        return QN_OK;
    qn_taps *taps = qn__alloc(p->layers, QN__GPU_TAPS * sizeof *taps, err);
    if (!taps)
        return QN_MEMORY;
    for (uint32_t l = 0; l < p->layers; ++l)
        qn__gpu_taps_of(w->layer[l].layer, reads_inputs(&w->layer[l]), taps + l * QN__GPU_TAPS);
    const qn_status status =
        w->driver->write(w->gpu, &w->pixels.taps, 0, taps, w->pixels.taps.bytes, err);
    qn__free(taps);
    return status;
}
