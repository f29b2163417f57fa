/* Which arrays of outputs and errors share memory on a GPU.
 *
 * The kernels of a layer are a window of the pass: each layer forward, then the loss, then each
 * layer backward, the last one first. An array of outputs is used up to the last layer that reads
 * it: forward, for its gradient, or for the derivative of the errors. An array of errors is used
 * from the first layer that gives errors to the one that they belong to.
 *
 * Arrays are not parts of one buffer: drivers limit the size of a buffer, and where in it an array
 * may begin. So some buffers take turns: the largest array has the first one, and each of the
 * others the smallest buffer that no array has at the same time.
 *
 *     buffer 0   output 0 .......................... errors 1 | errors 0 (unless they meet)
 *     buffer 1      output 1 ................... errors 2
 */
#include "device/gpu/gpu_kinds.h"
#include "base/memory.h"
#include "layer/layer.h"
#include <stdlib.h>

enum { ARRAYS = QN__GPU_ARRAYS };

qn_status qn__gpu_shared_create(uint32_t layers, qn__gpu_shared *out, qn_error *err) {
    const uint64_t arrays = ARRAYS * (uint64_t)layers;
    *out = (qn__gpu_shared){.buffer = qn__alloc(arrays, sizeof *out->buffer, err),
                            .ranked = qn__alloc(arrays, sizeof *out->ranked, err)};
    if (!out->buffer || !out->ranked)
        return QN_MEMORY;
    /* forward, the loss, backward, and each layer computed again once at most */
    return qn__gpu_turns_create((uint32_t)arrays, 3 * layers + 2, &out->turns, err);
}

void qn__gpu_shared_free(qn__gpu_shared *shared) {
    qn__free(shared->buffer);
    qn__free(shared->ranked);
    qn__gpu_turns_free(&shared->turns);
}

static qn__place *place_of(const qn__worker *w, uint32_t array) {
    qn__gpu_places *own = &w->layer[array / ARRAYS].place;
    qn__place *const all[ARRAYS] = {&own->output, &own->dropped, &own->slope, &own->errors};
    return all[array % ARRAYS];
}

/* Errors of several answers take the place of the outputs (gpu_answers.c). */
static int replaces_outputs(const qn__worker *w, uint32_t layer) {
    return w->program->answers && layer + 1 == w->program->layers;
}

static qn__place *errors_place(const qn__worker *w, uint32_t layer) {
    qn__gpu_places *own = &w->layer[layer].place;
    return replaces_outputs(w, layer) ? &own->output : &own->errors;
}

/* What a layer makes in the forward pass. */
static void use_own(const qn__worker *w, uint32_t layer, uint32_t window) {
    qn__gpu_places *own = &w->layer[layer].place;
    qn__place_use(&own->output, window);
    qn__place_use(&own->dropped, window);
    qn__place_use(&own->slope, window);
}

/* In training a reader gets what dropout has left. `applies`: in a prediction it reads, too. */
static void use_source(const qn__worker *w, int32_t source, int applies, uint32_t window) {
    if (source < 0)
        return;
    qn__gpu_places *own = &w->layer[source].place;
    qn__place_use(own->dropped.bytes ? &own->dropped : &own->output, window);
    if (applies)
        qn__place_use(&own->output, window);
}

static void use_sources(const qn__worker *w, uint32_t layer, int applies, uint32_t window) {
    use_source(w, w->layer[layer].source, applies, window);
    use_source(w, w->layer[layer].other, applies, window);
}

/* A layer gives errors to one that it reads, and takes the derivative there. */
static void use_errors(const qn__worker *w, int32_t source, uint32_t window) {
    if (!qn__gpu_takes_errors(w, source))
        return;
    qn__gpu_places *own = &w->layer[source].place;
    qn__place_use(&own->errors, window);
    if (w->layer[source].layer->activation != QN__ACT_NONE)
        qn__place_use(own->slope.bytes ? &own->slope : &own->output, window);
}

/* The layers before `end` that are computed again. Returns the next window. */
static uint32_t compute_again(const qn__worker *w, uint32_t end, uint32_t window) {
    for (uint32_t l = end - w->layer[end].recomputes; l < end; ++l) {
        qn__gpu_places *own = &w->layer[l].place;
        qn__place_again(&own->output, window);
        qn__place_again(&own->dropped, window);
        qn__place_again(&own->slope, window);
        use_sources(w, l, 0, window);
        use_own(w, l, window++);
    }
    return window;
}

static void find_windows(const qn__worker *w) {
    const uint32_t layers = w->program->layers;
    uint32_t window = 0;
    for (; window < layers; ++window) {
        use_sources(w, window, 1, window);
        use_own(w, window, window);
    }
    if (w->slices.rows) /* with the errors below */
        use_errors(w, w->layer[layers - 1].source, layers - 1);
    use_sources(w, layers - 1, 1, window); /* qn__gpu_apply reads them after the loss */
    use_own(w, layers - 1, window);
    qn__place_use(errors_place(w, layers - 1), window++);
    for (uint32_t l = layers; l-- > w->program->frozen; ++window) {
        window = compute_again(w, l, window);
        qn__place_use(errors_place(w, l), window);
        if (w->layer[l].kind->reads_input)
            use_sources(w, l, 0, window);
        if (w->layer[l].kind->reads_output)
            qn__place_use(&w->layer[l].place.output, window);
        use_errors(w, w->layer[l].source, window);
        use_errors(w, w->layer[l].other, window);
    }
}

/* Gives an array the last buffer that is free whenever it is used; of these, the smallest. */
static void put(qn__worker *w, qn__place *own) {
    const int used = own->first <= own->last;
    uint32_t buffer = used              ? qn__gpu_turns_find(&w->shared.turns, own)
                      : w->shared.count ? w->shared.count - 1
                                        : UINT32_MAX;
    if (buffer == UINT32_MAX) {
        buffer = w->shared.count++;
        w->shared.buffer[buffer].bytes = own->bytes;
        qn__gpu_turns_add(&w->shared.turns, buffer);
    }
    if (used)
        qn__gpu_turns_take(&w->shared.turns, buffer, own);
    own->at = buffer;
}

/* The larger one first; of two of one size that of the earlier layer. */
static int by_bytes(const void *a, const void *b) {
    const qn__gpu_ranked *one = a, *other = b;
    if (one->bytes != other->bytes)
        return one->bytes < other->bytes ? 1 : -1;
    return one->array < other->array ? -1 : 1;
}

/* Returns the bytes of all buffers. */
static size_t place_arrays(qn__worker *w) {
    size_t bytes = 0;
    uint32_t arrays = 0;
    w->shared.count = 0;
    qn__gpu_turns_forget(&w->shared.turns);
    for (uint32_t i = 0; i < ARRAYS * w->program->layers; ++i)
        qn__place_forget(place_of(w, i));
    find_windows(w);
    for (uint32_t i = 0; i < ARRAYS * w->program->layers; ++i)
        if (place_of(w, i)->bytes)
            w->shared.ranked[arrays++] = (qn__gpu_ranked){place_of(w, i)->bytes, i};
    qsort(w->shared.ranked, arrays, sizeof *w->shared.ranked, by_bytes);
    for (uint32_t i = 0; i < arrays; ++i)
        put(w, place_of(w, w->shared.ranked[i].array));
    for (uint32_t i = 0; i < w->shared.count; ++i)
        bytes += w->shared.buffer[i].bytes;
    return bytes;
}

static size_t place_segments(void *context, const uint32_t *again) {
    qn__worker *w = context;
    for (uint32_t l = 0; l < w->program->layers; ++l)
        w->layer[l].recomputes = again[l];
    return place_arrays(w);
}

void qn__gpu_place_arrays(qn__worker *w) {
    size_t kept[QN__MAX_LAYERS];
    const qn__segments segments = {w->program, kept, place_segments, w};
    qn__gpu_slices_shape(w);
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        const qn__layer *layer = w->layer[l].layer;
        qn__gpu_places *own = &w->layer[l].place;
        const int sliced = w->slices.rows && l + 1 == w->program->layers;
        const size_t whole = (size_t)w->capacity * qn__gpu_pixels(layer) *
                             qn__gpu_ld(layer->to.channels) * sizeof(float);
        const size_t bytes = sliced ? (size_t)qn__gpu_slice_bytes(w) : whole;
        own->output.bytes = bytes;
        own->dropped.bytes = layer->drop_threshold ? bytes : 0;
        own->slope.bytes = qn__keeps_slope(layer->activation) ? bytes : 0;
        own->errors.bytes =
            l < w->program->frozen || w->program->sequences || replaces_outputs(w, l) ? 0 : bytes;
        kept[l] = own->output.bytes + own->dropped.bytes + own->slope.bytes;
    }
    if (w->program->recompute)
        qn__find_segments(&segments);
    else
        place_arrays(w);
}

/* The part of its buffer that an array has. */
static qn__gpu_memory view(const qn__worker *w, const qn__place *place) {
    qn__gpu_memory own = {0};
    if (place->bytes) {
        own = w->shared.buffer[place->at].memory;
        own.bytes = place->bytes;
    }
    return own;
}

void qn__gpu_connect_arrays(qn__worker *w) {
    for (uint32_t l = 0; l < w->program->layers; ++l) {
        qn__gpu_layer *own = &w->layer[l];
        own->output = view(w, &own->place.output);
        own->dropped = view(w, &own->place.dropped);
        own->slope = view(w, &own->place.slope);
        own->errors = view(w, errors_place(w, l));
    }
}
