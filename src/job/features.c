#include "job/features.h"

#include "base/memory.h"
#include "data/table/table_space.h"
#include "job/apply.h"
#include "layer/layer.h"
#include "model/recipe/freeze.h"
#include "model/recipe/several_targets.h"
#include <string.h>

static qn_status refuse(const char *option, const char *why, qn_error *err) {
    qn__fail(err, QN_USAGE, "outputs cannot be kept: with %s %s", option, why);
    qn__at(err, "`compute.cache_features`");
    return qn__remedy(err, QN_USAGE, "leave out `compute.cache_features`, or %s", option);
}

/* Layers that read the lengths of items, which are those of their tokens. */
static int reads_lengths(const qn__network *network) {
    int reads = 0;
    for (uint32_t l = 1; l < network->layers; ++l)
        reads |= qn__layer_ops_of(network->layer[l].kind)->reads_length;
    return reads && network->layer[0].kind == QN__LAYER_EMBEDDING;
}

qn_status qn__features_check(const qn__recipe *r, const qn_compute *compute, qn_error *err) {
    static const char MIXED[] = "an item is mixed with another one in each epoch";
    if (!compute->cache_features)
        return QN_OK;
    if (qn__recipe_is_several(r)) {
        qn__fail(err, QN_UNSUPPORTED, "outputs are kept for networks with one answer to an item");
        qn__at(err, "`compute.cache_features`");
        return qn__remedy(err, QN_UNSUPPORTED, "leave it out");
    }
    if (reads_lengths(&r->network)) {
        qn__fail(err, QN_UNSUPPORTED,
                 "outputs are not kept where a layer reads the lengths of items of tokens");
        qn__at(err, "`compute.cache_features`");
        return qn__remedy(err, QN_UNSUPPORTED, "leave it out");
    }
    if (qn__recipe_frozen(r) == 0) {
        qn__fail(err, QN_USAGE,
                 "outputs are kept of the first layers where these do not train, and %s",
                 r->freeze ? "the first one does, or stands in a block with others that do"
                           : "all layers do");
        qn__at(err, "`compute.cache_features`");
        return qn__remedy(err, QN_USAGE, "name the layers with `train.freeze`");
    }
    if (r->augment && *r->augment)
        return refuse("`train.augment`", "the items differ in each epoch", err);
    if (r->mixup != 0.0f)
        return refuse("`train.mixup`", MIXED, err);
    return r->cutmix != 0.0f ? refuse("`train.cutmix`", MIXED, err) : QN_OK;
}

/* Parameters of the first layers. Those of other layers that do not train follow. */
static uint64_t first_parameters(const qn__program *whole) {
    return qn__layer_end(&whole->layer[whole->frozen - 1]);
}

/* Forward only, as outside training: 24.61. */
static void make_first(const qn__program *whole, uint64_t items, qn__layer *layer,
                       qn__program *out) {
    const uint32_t frozen = whole->frozen;
    memcpy(layer, whole->layer, frozen * sizeof *layer);
    layer[frozen] = qn__layer_dense(layer[frozen - 1].to, 1, QN__ACT_NONE, first_parameters(whole));
    layer[frozen].no_biases = 1;
    *out = *whole;
    out->layer = layer;
    out->layers = frozen + 1;
    out->parameters = qn__layer_end(&layer[frozen]);
    out->frozen_parameters = first_parameters(whole);
    out->loss = QN__LOSS_MSE;
    out->real = 1;
    out->optimizer = QN__OPT_SGD;
    out->clip = out->ema = 0.0f;
    out->grain = 1;
    out->batch = qn__apply_batch(out, items);
    out->part = 0;
    out->recompute = 0;
}

static int is_dense(const qn__layer *layer) { return layer->kind == QN__LAYER_DENSE; }

/* A dense layer that is the first of a program reads features without pixels, in the order of its
 * weights: pixel after pixel. */
static void flatten(qn__layer *layer) {
    layer->from = (qn__shape){layer->in, 1, 1, layer->from.axes};
    layer->window = (qn__window){{1, 1}, {1, 1}, {0, 0}, {1, 1}};
}

/* A dense layer reads the kept pixels beside another layer: no network begins so. */
static int shares_pixels(const qn__program *p) {
    const qn__layer *layer = p->layer;
    const qn__shape from = p->layer[0].from;
    uint32_t readers = 0, dense = 0;
    for (uint32_t l = 0; l < p->layers; ++l) {
        const int reads = qn__layer_source(layer, l) < 0;
        readers += (uint32_t)reads + (qn__layer_joins(&layer[l]) && qn__layer_other(layer, l) < 0);
        dense += reads && is_dense(&layer[l]);
    }
    return dense > 0 && readers > 1 && from.height * from.width > 1;
}

static void make_second(const qn__program *whole, qn__layer *layer, qn__program *out) {
    const uint64_t first = first_parameters(whole);
    *out = *whole;
    out->layers = whole->layers - whole->frozen;
    memcpy(layer, whole->layer + whole->frozen, out->layers * sizeof *layer);
    for (uint32_t l = 0; l < out->layers; ++l) {
        layer[l].weights -= first;
        layer[l].biases -= first;
    }
    if (is_dense(layer))
        flatten(layer);
    out->layer = layer;
    out->number = whole->frozen;
    out->parameters = whole->parameters - first;
    out->scale = QN__SCALE_NONE;
    out->mean = out->inverse = NULL;
    out->frozen = 0;
    out->frozen_parameters = whole->frozen_parameters - first;
}

qn_status qn__features_cut(const qn__program *whole, uint64_t items, qn__features *out,
                           qn_error *err) {
    *out = (qn__features){0};
    out->layer = qn__alloc((size_t)whole->layers + 1, sizeof *out->layer, err);
    if (!out->layer)
        return QN_MEMORY;
    make_first(whole, items, out->layer, &out->first);
    const qn__program rest = {.layers = whole->layers - whole->frozen,
                              .layer = whole->layer + whole->frozen};
    make_second(whole, out->layer + out->first.layers, &out->second);
    if (!shares_pixels(&rest))
        return QN_OK;
    qn__fail(
        err, QN_UNSUPPORTED,
        "outputs of layer %u cannot be kept: several layers read its pixels, and one of them is "
        "dense",
        whole->frozen - 1);
    qn__at(err, "`compute.cache_features`");
    return qn__remedy(err, QN_UNSUPPORTED,
                      "leave out `compute.cache_features`, or name other layers with "
                      "`train.freeze`");
}

void qn__features_release(qn__features *f) {
    for (uint32_t i = 0; i < f->sets; ++i)
        if (f->set[i].made.release)
            f->set[i].made.release(f->set[i].made.memory);
    qn__free(f->layer);
    *f = (qn__features){0};
}

qn_status qn__features_load(const qn__features *f, qn__team *team, const float *parameters,
                            float **copy, qn_error *err) {
    *copy = qn__alloc(f->first.parameters, sizeof **copy, err);
    if (!*copy)
        return QN_MEMORY;
    memcpy(*copy, parameters, (size_t)f->first.frozen_parameters * sizeof **copy);
    const qn__state state = {.parameters = *copy};
    return qn__team_load(team, &state, err);
}

qn_status qn__features_make(qn__features *f, qn__team *team, const qn_data *set, qn_error *err) {
    static const qn__table_space space = {.path = "outputs of layers that do not train",
                                          .entry = ""};
    const qn__shape to = f->second.layer[0].from;
    qn__feature_set *own = &f->set[f->sets];
    if (qn__features_of(f, set) != set)
        return QN_OK;
    own->of = set;
    own->made = *set;
    own->made.type = QN_F32;
    own->made.context = 0;
    own->made.tokens[0] = '\0';
    own->made.features = qn__shape_volume(to);
    own->made.channels = own->made.rows = own->made.columns = 0;
    own->made.values = own->made.values_digest = NULL;
    own->made.index = NULL;
    own->made.memory = NULL;
    own->made.in_file = NULL;
    own->made.release = NULL;
    own->made.buffer = &space;
    ++f->sets;
    qn_status status = qn__table_space_make(&own->made, err);
    if (status != QN_OK)
        return status;
    const qn__apply_results results = {.inputs = qn__table_space_values(&own->made)};
    status = qn__apply_all(team, &f->first, set, &results, err);
    const qn__shape given = f->first.layer[f->first.layers - 1].from;
    if (status == QN_OK && is_dense(&f->second.layer[0]) && given.height * given.width > 1)
        status = qn__apply_by_pixel(given, set->items, results.inputs, err);
    return status;
}

const qn_data *qn__features_of(const qn__features *f, const qn_data *set) {
    for (uint32_t i = 0; f && i < f->sets; ++i)
        if (f->set[i].of == set)
            return &f->set[i].made;
    return set;
}

qn__state qn__features_state(const qn__features *f, const qn__state *whole) {
    const uint64_t at = f ? f->first.frozen_parameters : 0;
    qn__state part = {.parameters = whole->parameters + at};
    for (int i = 0; i < QN__SLOTS; ++i)
        part.slot[i] = whole->slot[i] ? whole->slot[i] + at : NULL;
    return part;
}

qn_status qn__features_load_state(const qn__features *f, qn__team *team, const qn__state *whole,
                                  qn_error *err) {
    const qn__state part = qn__features_state(f, whole);
    return qn__team_load(team, &part, err);
}

uint64_t qn__features_bytes(const qn__features *f, int *in_file) {
    uint64_t bytes = 0;
    *in_file = 0;
    for (uint32_t i = 0; i < f->sets; ++i) {
        bytes += f->set[i].made.items * qn__data_stride(&f->set[i].made);
        *in_file |= f->set[i].made.in_file != NULL;
    }
    return bytes;
}
