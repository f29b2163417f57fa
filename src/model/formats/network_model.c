#include "model/formats/model.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "layer/product.h"
#include "model/formats/safetensors.h"
#include "model/recipe/adapters.h"
#include "model/recipe/freeze.h"
#include "model/recipe/several_targets.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define FORMAT "quern-model-1"

/* Tensors of a file: four at most for each layer, two for the scaling, one for missing values, one
 * for wide columns, one for texts, two for real labels. */
enum { TENSORS_MAX = 4 * QN__MAX_LAYERS + 7, NAME_SIZE = 24 };

typedef struct network_model {
    qn_model open;
    qn__recipe recipe;
    char *recipe_json, *text;
    qn__layer layer[QN__MAX_LAYERS];
    float *parameter;
    float
        *filed; /* the same in the order of the file (12.2, 16.9); the same memory without pixels */
    float *mean, *deviation; /* qn__scale_count each; NULL if that is 0 */
    float *shift, *inverse;  /* the same for each input */
    float *fill;        /* features: what stands for missing values; NULL without a fitted rule */
    qn__offset *offset; /* qn__recipe_offsets; NULL if that is 0 */
    float *idf;         /* qn__schema_text_inputs; NULL if that is 0 */
    float target_mean, target_deviation; /* of real labels */
    qn__tensor tensor[TENSORS_MAX];      /* in the order of the file */
    char name[TENSORS_MAX][NAME_SIZE];
    char still[QN__MAX_LAYERS]; /* 1: the file has no parameters of the layer: those of adapters
                                   alone (25.87) */
} network_model;

static const network_model *network_of(const qn_model *model) {
    return (const network_model *)(const void *)model;
}

float qn__scale_inverse(float deviation) {
    return deviation >= 0x1p-126f ? 1.0f / deviation : 0.0f;
}

uint32_t qn__scale_count(const qn__recipe *recipe) {
    return recipe->scale == QN__SCALE_CHANNEL                   ? recipe->shape.channels
           : qn__scale_of_program(recipe) == QN__SCALE_STANDARD ? qn__recipe_inputs(recipe)
                                                                : 0;
}

qn__scale qn__scale_of_program(const qn__recipe *recipe) {
    return recipe->scale >= QN__SCALE_CHANNEL ? QN__SCALE_STANDARD : recipe->scale;
}

void qn__scale_inputs(const qn__recipe *recipe, const float *mean, const float *deviation,
                      float *shift, float *inverse) {
    const uint32_t count = qn__scale_count(recipe), inputs = qn__recipe_inputs(recipe);
    const uint32_t share = count ? inputs / count : inputs;
    for (uint32_t k = 0; count && k < inputs; ++k) {
        shift[k] = mean[k / share];
        inverse[k] = qn__scale_inverse(deviation[k / share]);
    }
}

/* --------------------------------------------------------------------------------------- create */

static void add_tensor(network_model *m, uint64_t rows, uint64_t columns, const float *data) {
    const uint32_t t = m->open.tensors++;
    m->tensor[t] = (qn__tensor){.name = m->name[t], .rows = rows, .columns = columns, .data = data};
}

static void list_fitted(network_model *m) {
    const uint32_t count = qn__scale_count(&m->recipe);
    if (count > 0) {
        snprintf(m->name[m->open.tensors], NAME_SIZE, "scale.mean");
        add_tensor(m, count, 0, m->mean);
        snprintf(m->name[m->open.tensors], NAME_SIZE, "scale.deviation");
        add_tensor(m, count, 0, m->deviation);
    }
    if (qn__recipe_fills(&m->recipe)) {
        snprintf(m->name[m->open.tensors], NAME_SIZE, "table.fill");
        add_tensor(m, m->recipe.features, 0, m->fill);
    }
    if (m->offset) {
        snprintf(m->name[m->open.tensors], NAME_SIZE, "table.offset");
        add_tensor(m, qn__recipe_offsets(&m->recipe), 2, &m->offset->high);
    }
    if (m->idf) {
        snprintf(m->name[m->open.tensors], NAME_SIZE, "table.idf");
        add_tensor(m, qn__schema_text_inputs(m->recipe.table), 0, m->idf);
    }
}

/* Those of a normalisation: 17.8. */
static void list_vectors(network_model *m, uint32_t l) {
    const qn__layer *layer = &m->layer[l];
    const char *const *names = qn__layer_ops_of(layer->kind)->names;
    for (uint32_t v = 0; v < layer->vectors; ++v) {
        snprintf(m->name[m->open.tensors], NAME_SIZE, "layer%u.%s", l, names[v]);
        const float *from = m->filed + layer->biases + (uint64_t)v * layer->vector;
        if (qn__layer_ops_of(layer->kind)->bound)
            add_tensor(m, layer->vector / layer->to.channels, layer->to.channels, from);
        else
            add_tensor(m, layer->vector, 0, from);
    }
}

/* A file of adapters has the layers that train. */
static void find_left_out(const qn__recipe *recipe, char *still) {
    memset(still, 0, recipe->network.layers);
    if (recipe->lora)
        qn__recipe_still(recipe, still);
}

static void list_layer(network_model *m, uint32_t l) {
    const qn__layer *layer = &m->layer[l];
    list_vectors(m, l);
    if (layer->depth == 0 || layer->tied)
        return;
    snprintf(m->name[m->open.tensors], NAME_SIZE, "layer%u.weight", l);
    add_tensor(m, layer->to.channels, layer->depth, m->filed + layer->weights);
    if (layer->kind != QN__LAYER_DENSE) {
        qn__tensor *weights = &m->tensor[m->open.tensors - 1];
        weights->columns = qn__layer_reads(layer);
        memcpy(weights->taps, layer->window.kernel, sizeof weights->taps);
        if (layer->kind == QN__LAYER_CONVTRANSPOSE) { /* as PyTorch has it */
            weights->rows = layer->from.channels;
            weights->columns = layer->to.channels;
        }
    }
    if (layer->no_biases)
        return;
    snprintf(m->name[m->open.tensors], NAME_SIZE, "layer%u.bias", l);
    add_tensor(m, layer->to.channels, 0, m->filed + layer->biases);
}

/* Those that are in the file, or the others. */
static void list_layers(network_model *m, int left_out) {
    for (uint32_t l = 0; l < m->recipe.network.layers; ++l)
        if (m->still[l] == left_out)
            list_layer(m, l);
}

static void list_target(network_model *m) {
    if (m->recipe.task != QN__TASK_REGRESS)
        return;
    snprintf(m->name[m->open.tensors], NAME_SIZE, "target.mean");
    add_tensor(m, 1, 0, &m->target_mean);
    snprintf(m->name[m->open.tensors], NAME_SIZE, "target.deviation");
    add_tensor(m, 1, 0, &m->target_deviation);
}

/* Names and shapes of 12.2; the arrays they point into need not be filled yet. */
static void list_tensors(network_model *m) {
    find_left_out(&m->recipe, m->still);
    list_layers(m, 0);
    list_fitted(m);
    list_target(m);
    const uint32_t filed = m->open.tensors;
    list_layers(m, 1);
    m->open.left_out = m->open.tensors - filed;
    m->open.tensors = filed;
}

static qn_status make_texts(network_model *m, qn_error *err) {
    qn__text text = {0};
    qn_status status = qn__recipe_json(&m->recipe, &m->recipe_json, err);
    if (status != QN_OK)
        return status;
    qn__network_text(&m->recipe.network, &text);
    m->text = qn__text_take(&text, err);
    return m->text != NULL ? QN_OK : QN_MEMORY;
}

/* Whether a file has some parameters in another order. */
static int is_reordered(const network_model *m) {
    int other = 0;
    for (uint32_t l = 0; l < m->recipe.network.layers; ++l)
        other |= !qn__product_filed_in_order(&m->layer[l]);
    return other;
}

static qn_status allocate_arrays(network_model *m, qn_error *err) {
    const uint32_t inputs = qn__recipe_inputs(&m->recipe);
    const uint32_t count = qn__scale_count(&m->recipe);
    if (m->parameter == NULL)
        m->parameter = qn__alloc(m->open.parameters, sizeof(float), err);
    m->filed = m->parameter;
    if (m->parameter && is_reordered(m))
        m->filed = qn__alloc(m->open.parameters, sizeof(float), err);
    if (m->filed == NULL)
        return QN_MEMORY;
    if (qn__recipe_fills(&m->recipe) &&
        !(m->fill = qn__alloc(m->recipe.features, sizeof(float), err)))
        return QN_MEMORY;
    const uint32_t offsets = qn__recipe_offsets(&m->recipe);
    if (offsets && !(m->offset = qn__alloc(offsets, sizeof *m->offset, err)))
        return QN_MEMORY;
    const uint64_t words = qn__schema_text_inputs(m->recipe.table);
    if (words && !(m->idf = qn__alloc(words, sizeof *m->idf, err)))
        return QN_MEMORY;
    if (count == 0)
        return QN_OK;
    m->mean = qn__alloc(count, sizeof(float), err);
    m->deviation = m->mean ? qn__alloc(count, sizeof(float), err) : NULL;
    m->shift = m->deviation ? qn__alloc(inputs, sizeof(float), err) : NULL;
    m->inverse = m->shift ? qn__alloc(inputs, sizeof(float), err) : NULL;
    return m->inverse != NULL ? QN_OK : QN_MEMORY;
}

/* What the model tells of itself as any other does. */
static void describe(network_model *m) {
    const qn__recipe *r = &m->recipe;
    const qn__layer *last = &m->layer[r->network.layers - 1];
    m->open.recipe = m->recipe_json;
    m->open.features = r->features;
    m->open.layers = r->network.layers;
    m->open.outputs = last->out;
    m->open.classes = r->task == QN__TASK_REGRESS ? 0 : qn__recipe_classes(r);
    m->open.mask = r->task == QN__TASK_SEGMENT ? last->to : (qn__shape){.channels = 0};
    m->open.table = r->table;
    m->open.weight = r->weight;
    m->open.resize = r->resize;
    m->open.rules = r->rules;
    m->open.date_format = r->date_format;
    m->open.tokens = r->tokens;
    m->open.tokenizer = r->tokenizer;
    m->open.context = r->context;
    m->open.probabilities = qn__recipe_gives_probabilities(r);
    m->open.drops = r->missing == QN__MISSING_DROP;
    m->open.tensor = m->tensor;
    m->open.base = r->lora ? r->init_from : NULL;
}

/* A model of the recipe with all numbers 0. `given`: its array of parameters, which it takes in any
 * case; NULL: a new one. */
static qn_status make_blank(const qn__recipe *recipe, float *given, network_model **out,
                            qn_error *err) {
    network_model *m = qn__alloc(1, sizeof *m, err);
    *out = NULL;
    if (m == NULL) {
        qn__free(given);
        return QN_MEMORY;
    }
    m->open.kind = &qn__network_kind;
    m->parameter = m->filed = given;
    qn__program several = {.answers = 0};
    qn_status status = qn__recipe_copy(recipe, &m->recipe, err);
    if (status == QN_OK)
        status = qn__network_program(&recipe->network, qn__recipe_input(recipe), m->layer,
                                     &m->open.parameters, err);
    if (status == QN_OK)
        qn__recipe_several(recipe, m->layer, &several);
    m->open.answers = several.answers;
    m->open.next = several.next;
    if (status == QN_OK)
        status = make_texts(m, err);
    if (status == QN_OK)
        status = allocate_arrays(m, err);
    if (status != QN_OK) {
        qn_model_free(&m->open);
        return status;
    }
    list_tensors(m);
    describe(m);
    *out = m;
    return QN_OK;
}

/* Copies all parameters to the order of the file, or back. */
static void reorder(network_model *m, int back) {
    for (uint32_t l = 0; m->filed != m->parameter && l < m->recipe.network.layers; ++l) {
        const qn__layer *layer = &m->layer[l];
        const uint64_t first = layer->weights, rest = qn__layer_end(layer) - layer->biases;
        for (uint64_t i = 0; layer->depth && i < layer->biases - first; ++i) {
            const uint64_t other = qn__product_filed(layer, i);
            *(back ? m->parameter + first + i : m->filed + first + other) =
                *(back ? m->filed + first + other : m->parameter + first + i);
        }
        if (back)
            memcpy(m->parameter + layer->biases, m->filed + layer->biases, rest * sizeof(float));
        else
            memcpy(m->filed + layer->biases, m->parameter + layer->biases, rest * sizeof(float));
    }
}

static void scale_inputs(network_model *m) {
    qn__scale_inputs(&m->recipe, m->mean, m->deviation, m->shift, m->inverse);
}

qn_status qn__model_create(const qn__recipe *recipe, const qn__fitted *fitted, qn_model **out,
                           qn_error *err) {
    network_model *m;
    *out = NULL;
    qn_status status = make_blank(recipe, fitted->given, &m, err);
    if (status != QN_OK)
        return status;
    if (!fitted->given)
        memcpy(m->parameter, fitted->parameter, (size_t)m->open.parameters * sizeof(float));
    reorder(m, 0);
    if (m->mean != NULL) {
        memcpy(m->mean, fitted->mean, qn__scale_count(recipe) * sizeof(float));
        memcpy(m->deviation, fitted->deviation, qn__scale_count(recipe) * sizeof(float));
    }
    if (m->fill != NULL)
        memcpy(m->fill, fitted->fill, recipe->features * sizeof(float));
    if (m->offset != NULL)
        memcpy(m->offset, fitted->offset, qn__recipe_offsets(recipe) * sizeof *m->offset);
    if (m->idf != NULL)
        memcpy(m->idf, fitted->idf, qn__schema_text_inputs(recipe->table) * sizeof *m->idf);
    m->target_mean = fitted->target_mean;
    m->target_deviation = fitted->target_deviation;
    scale_inputs(m);
    status = qn__model_check_numbers(&m->open, QN_NUMERIC, err);
    if (status == QN_OK)
        status = qn__model_seal(&m->open, err);
    if (status != QN_OK) {
        qn_model_free(&m->open);
        return status;
    }
    *out = &m->open;
    return QN_OK;
}

/* ----------------------------------------------------------------------------------------- load */

static qn_status read_recipe(const qn__tensors *file, const char *path, qn__recipe *recipe,
                             qn_error *err) {
    const char *json = qn__tensors_note(file, "recipe");
    if (json == NULL)
        return qn__model_refuse_file(err, path, "the model has no recipe",
                                     "copy or make the file again");
    const qn_status status = qn__recipe_parse(json, strlen(json), recipe, err);
    if (status == QN_FORMAT)
        qn__model_name_file(err, path);
    return status;
}

/* 25.45: the recipe has the digest of the text. */
static qn_status read_tokenizer(const qn__tensors *file, const char *path, qn__recipe *recipe,
                                qn_error *err) {
    const char *text = qn__tensors_note(file, "tokenizer");
    if (!text && qn__tokens_digest(recipe->tokens) == NULL)
        return QN_OK;
    if (!text || !qn__tokens_are_of(recipe->tokens, text))
        return qn__model_refuse_file(err, path, "the tokenizer is not that of the recipe",
                                     "the file was changed or damaged: copy or make it again");
    recipe->tokenizer = qn__copy_text(text, err);
    return recipe->tokenizer ? QN_OK : QN_MEMORY;
}

/* The file must contain the tensors of the recipe's network, each of its shape, and no others. This
 * is checked before any allocation, so that a recipe alone cannot cause a large one. */
static qn_status check_tensors(const qn__tensors *file, const char *path, const qn__recipe *recipe,
                               qn_error *err) {
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    const uint64_t scales = qn__scale_count(recipe), scale = scales ? 2 : 0;
    const uint64_t fill = (uint64_t)qn__recipe_fills(recipe);
    const uint64_t offsets = qn__recipe_offsets(recipe), offset = offsets > 0;
    const uint64_t words = qn__schema_text_inputs(recipe->table);
    const uint64_t target = recipe->task == QN__TASK_REGRESS ? 2 : 0;
    const qn_status status =
        qn__network_program(&recipe->network, qn__recipe_input(recipe), layer, &parameters, err);
    if (status != QN_OK)
        return status;
    uint64_t floats = 0;
    for (size_t i = 0; i < qn__tensors_count(file); ++i)
        floats += qn__tensors_at(file, i)->count;
    uint64_t weighted = 0;
    char still[QN__MAX_LAYERS];
    find_left_out(recipe, still);
    for (uint32_t l = 0; l < recipe->network.layers; ++l) {
        if (still[l])
            parameters -= qn__layer_end(&layer[l]) - layer[l].weights;
        else
            weighted += layer[l].depth ? (uint32_t)(!layer[l].tied + !layer[l].no_biases)
                                       : layer[l].vectors;
    }
    if (qn__tensors_count(file) != weighted + scale + fill + offset + (words > 0) + target ||
        floats !=
            parameters + scale * scales + fill * recipe->features + 2 * offsets + words + target)
        return qn__model_refuse_file(err, path,
                                     "the tensors in the file are not those of the recipe's model",
                                     "the file was changed or damaged: copy or make it again");
    return QN_OK;
}

/* A deviation as defined in 5.2: +0, or at least 2^-126. */
static qn_status check_deviation(const char *tensor, uint32_t k, float d, qn_error *err) {
    if (d >= 0x1p-126f || (d == 0.0f && !signbit(d)))
        return QN_OK;
    qn__fail(err, QN_FORMAT, "a deviation is neither 0 nor a normal positive number");
    qn__at(err, "tensor \"%s\", element %u", tensor, k);
    return qn__remedy(err, QN_FORMAT, "the file was changed or damaged: copy or make it again");
}

/* Variances of batchnorm (docs/exactness.md 17.8): their root is taken. */
static qn_status check_variances(const network_model *m, qn_error *err) {
    for (uint32_t t = 0; t < m->open.tensors; ++t) {
        const qn__tensor *tensor = &m->tensor[t];
        const uint64_t count = strstr(tensor->name, ".running_var") ? qn__tensor_count(tensor) : 0;
        for (uint64_t i = 0; i < count; ++i) {
            if (tensor->data[i] >= 0)
                continue;
            qn__fail(err, QN_FORMAT, "a variance is negative");
            qn__at(err, "tensor \"%s\", element %llu", tensor->name, (unsigned long long)i);
            return qn__remedy(err, QN_FORMAT,
                              "the file was changed or damaged: copy or make it again");
        }
    }
    return QN_OK;
}

static qn_status check_deviations(const network_model *m, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t k = 0; status == QN_OK && k < qn__scale_count(&m->recipe); ++k)
        status = check_deviation("scale.deviation", k, m->deviation[k], err);
    if (status == QN_OK && m->recipe.task == QN__TASK_REGRESS)
        status = check_deviation("target.deviation", 0, m->target_deviation, err);
    return status;
}

static qn_status read_file(const qn__model_kind *kind, const qn__tensors *file, const char *path,
                           qn_model **out, qn_error *err) {
    (void)kind;
    qn__recipe recipe = {0};
    network_model *m = NULL;
    qn_status status = read_recipe(file, path, &recipe, err);
    if (status == QN_OK)
        status = read_tokenizer(file, path, &recipe, err);
    if (status == QN_OK)
        status = check_tensors(file, path, &recipe, err);
    if (status == QN_OK)
        status = make_blank(&recipe, NULL, &m, err);
    if (status == QN_OK)
        status = qn__model_copy_tensors(file, path, &m->open, err);
    if (status == QN_OK) {
        status = qn__model_check_numbers(&m->open, QN_FORMAT, err);
        if (status == QN_OK)
            status = check_deviations(m, err);
        if (status == QN_OK)
            status = check_variances(m, err);
        if (status != QN_OK)
            qn__model_name_file(err, path);
    }
    qn__recipe_release(&recipe);
    if (status != QN_OK) {
        if (m)
            qn_model_free(&m->open);
        return status;
    }
    reorder(m, 1);
    scale_inputs(m);
    *out = &m->open;
    return QN_OK;
}

static qn_status refuse_base(const network_model *m, const qn_model *base, const char *path,
                             qn_error *err) {
    if (!base) {
        qn__fail(err, QN_MISMATCH, "the file has adapters alone, of the model with the digest %s",
                 m->open.base);
        qn__at(err, "%s", path);
        return qn__remedy(
            err, QN_MISMATCH,
            "name that model, and this file with `model.adapter`; a replay needs that model for "
            "`train.init_from`; other commands take what `quern model merge` makes of both");
    }
    qn__fail(err, QN_MISMATCH, "the adapters are of another model");
    qn__at(err, "%s, digest of its model %s, given %s", path, m->open.base, qn_model_digest(base));
    return qn__remedy(err, QN_MISMATCH, "name the model that they were trained for");
}

qn_status qn__model_complete(qn_model *model, const qn_model *base, const char *path,
                             qn_error *err) {
    network_model *m = (network_model *)(void *)model;
    char role[QN__MAX_LAYERS];
    uint32_t to = 0;
    if (!model->base)
        return QN_OK;
    if (!base || strcmp(qn_model_digest(base), model->base) != 0)
        return refuse_base(m, base, path, err);
    const network_model *b = network_of(base); /* its digest is in a recipe that was checked */
    qn__recipe_roles(&m->recipe, role);
    for (uint32_t l = 0; l < b->recipe.network.layers; ++l, ++to) {
        for (; to < m->recipe.network.layers && role[to] > QN__LORA_MAIN; ++to)
            if (role[to] == QN__LORA_SCALE)
                qn__layer_ops_of(m->layer[to].kind)->begin(&m->layer[to], m->parameter);
        const qn__layer *from = &b->layer[l], *own = &m->layer[to];
        const uint64_t count = qn__layer_end(from) - from->weights;
        if (to == m->recipe.network.layers ||
            (m->still[to] && qn__layer_end(own) - own->weights != count))
            return refuse_base(m, base, path, err);
        if (m->still[to])
            memcpy(m->parameter + own->weights, b->parameter + from->weights,
                   (size_t)count * sizeof(float));
    }
    reorder(m, 0);
    return QN_OK;
}

static void release(qn_model *model) {
    network_model *m = (network_model *)(void *)model;
    qn__recipe_release(&m->recipe);
    qn__free(m->recipe_json);
    qn__free(m->text);
    if (m->filed != m->parameter)
        qn__free(m->filed);
    qn__free(m->parameter);
    qn__free(m->mean);
    qn__free(m->deviation);
    qn__free(m->shift);
    qn__free(m->inverse);
    qn__free(m->fill);
    qn__free(m->offset);
    qn__free(m->idf);
    qn__free(m);
}

const qn__model_kind qn__network_kind = {.name = "network",
                                         .title = "a network",
                                         .format = FORMAT,
                                         .output = "p",
                                         .read = read_file,
                                         .release = release};

/* ------------------------------------------------------------------------------------ accessors */

void qn_model_layer_text(const qn_model *model, uint32_t layer, char *text, size_t size) {
    QN__OWN_FLOATS;
    qn__text line = {0};
    if (model && layer < model->layers)
        qn__network_layer_text(&network_of(model)->recipe.network.layer[layer], &line);
    if (text && size > 0)
        snprintf(text, size, "%s", line.data != NULL && !line.failed ? line.data : "");
    qn__text_release(&line);
}

const qn__recipe *qn__model_recipe_of(const qn_model *model) { return &network_of(model)->recipe; }

qn__encoding qn__model_encoding(const qn_model *model) {
    return qn__recipe_encoding(&network_of(model)->recipe, network_of(model)->fill,
                               network_of(model)->offset, network_of(model)->idf);
}

const char *qn__model_text(const qn_model *model) { return network_of(model)->text; }

const float *qn__model_parameters(const qn_model *model) { return network_of(model)->parameter; }

void qn__model_fitted(const qn_model *of, qn__fitted *out) {
    const network_model *model = network_of(of);
    *out = (qn__fitted){.parameter = model->parameter,
                        .mean = model->mean,
                        .deviation = model->deviation,
                        .fill = model->fill,
                        .offset = model->offset,
                        .idf = model->idf,
                        .table = model->recipe.table,
                        .target_mean = model->target_mean,
                        .target_deviation = model->target_deviation};
}

void qn__model_target_scale(const qn_model *of, float *mean, float *deviation) {
    const network_model *model = network_of(of);
    const int real = model->recipe.task == QN__TASK_REGRESS;
    *mean = real ? model->target_mean : 0.0f;
    *deviation = real ? model->target_deviation : 1.0f;
}

void qn__model_program(const qn_model *of, qn__program *program) {
    const network_model *model = network_of(of);
    const qn__recipe *r = &model->recipe;
    *program = (qn__program){.layers = r->network.layers,
                             .layer = model->layer,
                             .parameters = model->open.parameters,
                             .arith = r->arith,
                             .loss = r->loss,
                             .real = r->task == QN__TASK_REGRESS,
                             .answers = model->open.answers,
                             .next = model->open.next,
                             .optimizer = qn__recipe_rule(r),
                             .numbers = r->numbers,
                             .scale = qn__scale_of_program(r),
                             .mean = model->shift,
                             .inverse = model->inverse,
                             .lists = qn__schema_texts(r->table) > 0,
                             .batch = r->batch ? r->batch : r->grain,
                             .grain = r->grain,
                             .seed = r->seed,
                             .gradient_scale = r->gradient_scale};
}
