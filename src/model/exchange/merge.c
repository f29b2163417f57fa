/* A model without adapters that computes as one with them, but for roundings: docs/exactness.md
 * 25.88. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "model/formats/model.h"
#include "model/formats/model_kind.h"
#include "model/recipe/adapters.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The layers of one adapter; `scale` is NULL where its factor is 1. */
typedef struct adapter {
    const qn__layer *main, *down, *scale, *up;
} adapter;

/* The weights of output `o`: a chain over the rank for each. */
static void merge_row(const adapter *a, const float *from, uint32_t o, float *to) {
    const uint32_t depth = a->main->depth, rank = a->down->to.channels;
    const float *main = from + a->main->weights + (uint64_t)o * depth;
    memcpy(to, main, depth * sizeof *to);
    for (uint32_t j = 0; j < rank; ++j) {
        const float *down = from + a->down->weights + (uint64_t)j * depth;
        const float up = from[a->up->weights + (uint64_t)o * rank + j];
        const float factor = a->scale ? up * from[a->scale->biases + j] : up;
        for (uint32_t k = 0; k < depth; ++k)
            to[k] = fmaf(factor, down[k], to[k]);
    }
}

static void merge_layer(const adapter *a, const float *from, const qn__layer *place, float *to) {
    for (uint32_t o = 0; o < a->main->to.channels; ++o)
        merge_row(a, from, o, to + place->weights + (uint64_t)o * place->depth);
    memcpy(to + place->biases, from + a->main->biases,
           (size_t)(qn__layer_end(place) - place->biases) * sizeof *to);
}

/* The layers of `program`, in their order, to those of the network without adapters. */
static void merge_all(const qn__program *program, const char *role, const float *from,
                      const qn__layer *place, float *to) {
    for (uint32_t l = 0; l < program->layers; ++l) {
        const qn__layer *layer = &program->layer[l];
        if (role[l] == QN__LORA_MAIN) {
            const int scaled = role[l + 2] == QN__LORA_SCALE;
            const adapter a = {layer, layer + 1, scaled ? layer + 2 : NULL, layer + 2 + scaled};
            merge_layer(&a, from, place++, to);
        } else if (role[l] == QN__LORA_NONE) {
            memcpy(to + place->weights, from + layer->weights,
                   (size_t)(qn__layer_end(layer) - layer->weights) * sizeof *to);
            ++place;
        }
    }
}

/* As of a model that another program has trained (12.4). */
static qn_status make_recipe(const qn_model *model, qn__recipe *out, qn_error *err) {
    const qn__recipe *r = qn__model_recipe_of(model);
    const qn_status status = qn__recipe_copy(r, out, err);
    if (status != QN_OK)
        return status;
    qn__recipe_start(r, &out->network);
    qn__free(out->lora);
    out->lora = NULL;
    out->new_last = 0;
    memset(out->data, '0', sizeof out->data - 1);
    snprintf(out->init_from, sizeof out->init_from, "%s", qn_model_digest(model));
    qn__recipe_tidy(out);
    return QN_OK;
}

static qn_status merge(const qn_model *model, const qn__recipe *recipe, qn_model **out,
                       qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    char role[QN__MAX_LAYERS];
    uint64_t parameters;
    qn__program program;
    qn__fitted fitted;
    qn_status status =
        qn__network_program(&recipe->network, qn__recipe_input(recipe), layer, &parameters, err);
    float *to = status == QN_OK ? qn__alloc(parameters, sizeof *to, err) : NULL;
    if (!to)
        return status == QN_OK ? QN_MEMORY : status;
    qn__model_program(model, &program);
    qn__model_fitted(model, &fitted);
    qn__recipe_roles(qn__model_recipe_of(model), role);
    merge_all(&program, role, qn__model_parameters(model), layer, to);
    fitted.parameter = to;
    status = qn__model_create(recipe, &fitted, out, err);
    qn__free(to);
    return status;
}

qn_status qn_model_merge(const qn_model *model, qn_model **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(model, err);
    qn__recipe recipe;
    if (!qn_model_adapts(model)) {
        qn__fail(err, QN_MISMATCH, "the model has no adapters that could be merged into it");
        return qn__remedy(err, QN_MISMATCH, "name the model, and a file of adapters for it");
    }
    qn_status status = make_recipe(model, &recipe, err);
    if (status != QN_OK)
        return status;
    status = merge(model, &recipe, out, err);
    qn__recipe_release(&recipe);
    return status;
}
