/* Which arrays of errors, outputs and inputs share memory.
 *
 * A pass has windows: what runs between two barriers. The forward pass has one for each layer, the
 * last one with the loss; those of the backward pass follow. An array of errors is used from the
 * window that computes it to the one with the gradient of its layer. Where the last layer goes
 * slice by slice (cpu_slices.h), its window also computes the errors below. An array of outputs is
 * used from the window of its layer on, to the last window that reads it: in the forward pass, for
 * the derivatives when its errors come, for the gradient of a layer that reads it, or to find the
 * greatest of a pool. In training readers get what dropout has left of it, and the derivatives may
 * be an array of their own: so nothing may read it in the backward pass. Arrays whose windows
 * differ may have the same memory: so errors of the first layers stand where outputs of the last
 * ones were, and the outputs of layers that do not train take turns. The order of the windows is
 * that of `phases` and `back` in cpu_run.c. */
#include "device/cpu/worker/cpu_kinds.h"
#include "layer/layer.h"

static void use_errors(qn__worker *w, const qn__cpu_layer *l, uint32_t window) {
    qn__cpu_layer *own = &w->layer[l->error_of];
    qn__place_use(own->errors_in_output ? &own->output_place : &own->error_place, window);
}

/* All that a layer makes in the forward pass. */
static void use_output(qn__cpu_layer *l, uint32_t window) {
    qn__cpu_layer *own = l->add ? l->add : l;
    qn__place_use(&own->output_place, window);
    if (own->dropped_place.bytes)
        qn__place_use(&own->dropped_place, window);
    if (own->slope_place.bytes)
        qn__place_use(&own->slope_place, window);
}

/* What a reader gets of a layer, NULL of the inputs. `applies`: in a prediction, too. */
static void use_source(qn__worker *w, qn__cpu_layer *l, int applies, uint32_t window) {
    qn__cpu_layer *own = l && l->add ? l->add : l;
    if (own && own->dropped_place.bytes)
        qn__place_use(&own->dropped_place, window);
    if (!own || !own->dropped_place.bytes || applies)
        qn__place_use(own ? &own->output_place : &w->fetch.place, window);
}

static void use_sources(qn__worker *w, const qn__cpu_layer *l, int applies, uint32_t window) {
    use_source(w, l->below, applies, window);
    if (qn__layer_joins(l->layer))
        use_source(w, l->other, applies, window);
}

/* What the derivatives of a layer's activation are computed from. */
static void use_derivatives(qn__cpu_layer *l, uint32_t window) {
    if (l->pool || l->pools || l->add)
        use_output(l, window); /* they are computed with other layers */
    else if (l->slope_place.bytes)
        qn__place_use(&l->slope_place, window);
    else if (l->layer->activation != QN__ACT_NONE)
        qn__place_use(&l->output_place, window);
}

/* A layer goes back, or its gradient is computed. */
static void use_layer(qn__worker *w, qn__cpu_layer *l, uint32_t window) {
    use_errors(w, l->pool ? l->pool : l, window);
    if (l->sparse_place.bytes)
        qn__place_use(&l->sparse_place, window);
    if (l->kind->reads_input && !l->pools)
        use_sources(w, l, 0, window);
    if (l->kind->reads_output)
        use_output(l, window);
}

/* Errors that come to the outputs of a layer: of an output that two layers read, the shortcut's are
 * added. */
static void use_finished(qn__worker *w, qn__cpu_layer *l, uint32_t window) {
    use_errors(w, l, window);
    use_derivatives(l, window);
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        qn__cpu_layer *other = &w->layer[i];
        const int reads = qn__layer_joins(other->layer) ? other->other == l && !other->layer->skip
                                                        : other->below == l;
        if (reads && other->branch_place.bytes)
            qn__place_use(&other->branch_place, window);
        else if (other->other == l && !other->layer->skip)
            use_errors(w, other, window);
    }
}

static void use_passed(qn__worker *w, qn__cpu_layer *l, uint32_t window) {
    if (l->branch_place.bytes)
        qn__place_use(&l->branch_place, window);
    if (!l->branch_place.bytes || qn__layer_joins(l->layer))
        use_finished(w, l->below, window);
    if (l->layer->skip && l->other)
        use_finished(w, l->other, window);
}

/* Window i is that of layer i, and in a prediction also that of the layers which follow it. */
static void find_forward_windows(qn__worker *w) {
    qn__place_use(&w->fetch.place, 0);
    for (uint32_t i = 0, target; i < w->program->layers; ++i) {
        for (target = i; w->layer[target].followed; ++target)
            ;
        use_sources(w, &w->layer[i], 1, i);
        use_output(&w->layer[i], i);
        use_output(&w->layer[target], i);
        if (w->layer[i].pool)
            use_output(w->layer[i].pool, i);
    }
}

int qn__cpu_is_recomputed(const qn__worker *w, uint32_t layer, uint32_t end) {
    const qn__cpu_layer *l = &w->layer[layer];
    return (layer == 0 || w->layer[layer - 1].add != l) && l->add != &w->layer[end];
}

/* The windows before the backward pass of layer `end` in which outputs before it are computed
 * again, and the inputs fetched if they are needed. Returns the next window. */
static uint32_t find_segment_windows(qn__worker *w, uint32_t end, uint32_t window) {
    const uint32_t begin = end - w->layer[end].recomputes;
    if (begin == 0 && w->fetch.place.bytes)
        qn__place_again(&w->fetch.place, window++);
    for (uint32_t i = begin; i < end; ++i) {
        qn__cpu_layer *l = &w->layer[i], *own = l->add ? l->add : l;
        if (!qn__cpu_is_recomputed(w, i, end))
            continue;
        qn__place_again(&own->output_place, window);
        qn__place_again(&own->dropped_place, window);
        qn__place_again(&own->slope_place, window);
        use_sources(w, l, 0, window);
        use_output(l, window++);
    }
    return window;
}

static void find_windows(qn__worker *w) {
    const uint32_t last = w->program->layers - 1;
    uint32_t window = last + 1;
    find_forward_windows(w);
    if (w->owner)
        return;
    use_errors(w, &w->layer[last], last);
    if (qn__cpu_passes_errors(w, &w->layer[last]) &&
        (w->slices.trained || !qn__cpu_goes_back(w, last)))
        use_passed(w, &w->layer[last], last);
    for (uint32_t i = last + 1; i-- > w->program->frozen;) {
        qn__cpu_layer *l = &w->layer[i];
        if (l->recomputes)
            window = find_segment_windows(w, i, window);
        use_layer(w, l, window);
        if (!qn__cpu_goes_back(w, i))
            continue;
        use_passed(w, l, window++);
        if (!qn__cpu_keeps_parameters(w, l))
            use_layer(w, l, window);
    }
}

enum { PLACES = 6 }; /* of each layer; the last place is that of the inputs */

static uint32_t places(const qn__worker *w) { return PLACES * w->program->layers + 1; }

static qn__place *place_of(qn__worker *w, uint32_t i) {
    if (i == places(w) - 1)
        return &w->fetch.place;
    qn__cpu_layer *l = &w->layer[i / PLACES];
    qn__place *const all[PLACES] = {&l->error_place,   &l->branch_place, &l->sparse_place,
                                    &l->dropped_place, &l->slope_place,  &l->output_place};
    return all[i % PLACES];
}

void qn__cpu_place_arrays(qn__worker *w) {
    qn__place *list = NULL, **to = &list;
    for (uint32_t i = 0; i < places(w); ++i) {
        qn__place *own = place_of(w, i);
        qn__place_forget(own);
        if (w->owner && i % PLACES != PLACES - 1 && i != places(w) - 1)
            own->bytes = 0; /* predictions have outputs and inputs alone */
        if (!own->bytes)
            continue;
        *to = own;
        to = &own->next;
    }
    find_windows(w);
    w->memory.shared_bytes = qn__places_pack(list, qn__cpu_gradients_wait(w));
}

/* For qn__find_segments. */
static size_t place_segments(void *context, const uint32_t *again) {
    qn__worker *w = context;
    for (uint32_t i = 0; i < w->program->layers; ++i)
        w->layer[i].recomputes = again[i];
    qn__cpu_place_arrays(w);
    return w->memory.shared_bytes;
}

void qn__cpu_place_segments(qn__worker *w) {
    size_t kept[QN__MAX_LAYERS];
    const qn__segments segments = {w->program, kept, place_segments, w};
    for (uint32_t i = 0; i < w->program->layers; ++i) {
        const qn__cpu_layer *l = &w->layer[i];
        kept[i] = l->output_place.bytes + l->dropped_place.bytes + l->slope_place.bytes;
    }
    qn__find_segments(&segments);
}
