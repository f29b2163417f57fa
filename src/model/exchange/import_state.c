/* A model from the parameters of another program: the modules of a state dict become the layers of
 * a model text, by their shapes and in the order of their names. docs/formats.md describes it. */
#include "model/formats/model.h"
#include "model/recipe/defaults.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "device/notes.h"
#include "layer/product.h"
#include "model/exchange/answers_like.h"
#include "model/exchange/architectures.h"
#include "model/exchange/imported_recipe.h"
#include "model/exchange/recurrent_pairs.h"
#include "model/exchange/state_dict.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/scale_numbers.h"
#include "model/recipe/several_targets.h"
#include "model/recipe/tables.h"
#include <quern/import.h>
#include <stdio.h>
#include <string.h>

typedef struct import {
    const char *path;
    qn__state_dict state;
    qn__recipe recipe;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    float *parameter;
    qn_import_told told;
    void *user;
    qn__module_names names;
    qn__module *named[QN__MAX_LAYERS]; /* the module of each name */
    qn__module *of[QN__MAX_LAYERS];    /* and that of each layer */
} import;

static int is_vector(const qn__tensor_view *view, uint64_t size) {
    return view && view->dimensions == 1 && view->rows == size;
}

/* A part that may be missing. */
static int fits_vector(const qn__tensor_view *view, uint64_t size) {
    return !view || is_vector(view, size);
}

static int fits_product(const qn__layer *l, const qn__module *m) {
    const qn__tensor_view *w = m->part[QN__PART_WEIGHT];
    if (!w || m->part[QN__PART_MEAN] || m->part[QN__PART_VARIANCE] ||
        !fits_vector(m->part[QN__PART_BIAS], l->to.channels) ||
        (l->no_biases && m->part[QN__PART_BIAS]))
        return 0;
    const int turned = l->kind == QN__LAYER_CONVTRANSPOSE;
    const uint64_t rows = turned ? l->from.channels : l->to.channels;
    if (w->rows != rows)
        return 0;
    /* A convolution whose window is the whole input is a dense layer. */
    if (l->kind == QN__LAYER_DENSE)
        return (w->dimensions == 2 || w->dimensions == 4) && w->count / w->rows == l->depth;
    /* And a dense layer of each pixel is a convolution of 1x1. */
    if (w->dimensions == 2 && !turned && l->window.kernel[0] * l->window.kernel[1] == 1)
        return w->columns == qn__layer_reads(l);
    return w->dimensions == 4 && w->columns == (turned ? l->to.channels : qn__layer_reads(l)) &&
           w->taps[0] == l->window.kernel[0] && w->taps[1] == l->window.kernel[1];
}

/* Whether the module is one tensor that is called as the module is: factors of a layer scale. */
static int is_alone(const qn__module *m) {
    const char *name = qn__module_any(m)->name;
    return name[qn__module_size(name)] == '\0';
}

static int is_pair(const import *i, uint32_t l) {
    return qn__recurrent_pair(i->layer, i->recipe.network.layers, l);
}

/* The rows of tokens. */
static int fits_table(const qn__layer *l, const qn__module *m) {
    const qn__tensor_view *w = m->part[QN__PART_WEIGHT];
    return w && !m->part[QN__PART_BIAS] && w->dimensions == 2 && w->columns == l->to.channels &&
           w->count == l->vector;
}

static int fits(const import *i, uint32_t index, const qn__module *m) {
    const qn__layer *l = &i->layer[index];
    const int running = m->part[QN__PART_MEAN] || m->part[QN__PART_VARIANCE];
    if (is_pair(i, index))
        return qn__recurrent_fits(l, m);
    if (m->states || l->kind == QN__LAYER_RECURRENT)
        return 0;
    if (l->kind == QN__LAYER_EMBEDDING)
        return !running && fits_table(l, m);
    if (l->depth)
        return fits_product(l, m);
    if (l->kind == QN__LAYER_LAYERSCALE)
        return !running && !m->part[QN__PART_BIAS] && m->part[QN__PART_WEIGHT] &&
               m->part[QN__PART_WEIGHT]->rows == l->vector &&
               m->part[QN__PART_WEIGHT]->count == l->vector;
    if (l->running)
        return is_vector(m->part[QN__PART_MEAN], l->vector) &&
               is_vector(m->part[QN__PART_VARIANCE], l->vector) &&
               fits_vector(m->part[QN__PART_WEIGHT], l->vector) &&
               fits_vector(m->part[QN__PART_BIAS], l->vector);
    return !running && is_vector(m->part[QN__PART_WEIGHT], l->vector) && !is_alone(m) &&
           fits_vector(m->part[QN__PART_BIAS], l->vector);
}

/* What the layer needs, such as "a weight of 64x3x3x3". */
static void tell_need(const import *i, uint32_t index, char text[160]) {
    const qn__layer *l = &i->layer[index];
    const uint32_t reads = qn__layer_reads(l);
    const int turned = l->kind == QN__LAYER_CONVTRANSPOSE;
    if (is_pair(i, index))
        qn__recurrent_tell_need(l, text);
    else if (l->kind == QN__LAYER_RECURRENT)
        snprintf(text, 160, "the convolution that \"lstm N\" and \"gru N\" have before it");
    else if (l->kind == QN__LAYER_EMBEDDING)
        snprintf(text, 160, "a weight of %ux%u", l->vector / l->to.channels, l->to.channels);
    else if (l->kind == QN__LAYER_DENSE)
        snprintf(text, 160, "a weight of %ux%u", l->out, l->depth);
    else if (l->depth)
        snprintf(text, 160, "a weight of %ux%ux%ux%u", turned ? reads : l->to.channels,
                 turned ? l->to.channels : reads, l->window.kernel[0], l->window.kernel[1]);
    else
        snprintf(text, 160, "%s of %u numbers",
                 l->running ? "running_mean and running_var" : "a weight", l->vector);
}

static qn_status refuse_layer(const import *i, uint32_t l, qn_error *err) {
    char need[160], shape[96];
    qn__text line = {0};
    const qn__tensor_view *left = NULL;
    for (size_t m = 0; m < i->state.modules && !left; ++m)
        left = i->state.module[m].used ? NULL : qn__module_any(&i->state.module[m]);
    tell_need(i, l, need);
    qn__network_layer_text(&i->recipe.network.layer[l], &line);
    qn__fail(err, QN_MISMATCH, "layer %u, \"%.100s\", needs %s, and the file has none that is left",
             l, line.data && !line.failed ? line.data : "", need);
    qn__text_release(&line);
    if (left)
        qn__at(err, "%.250s, the first tensor that is left is \"%.60s\" of %s", i->path, left->name,
               qn__tensor_shape(left, shape));
    else
        qn__at(err, "%.300s, all of whose tensors are taken", i->path);
    return qn__remedy(err, QN_MISMATCH,
                      "describe the network of the file: `train.model` with its layers in their "
                      "order, and `train.shape` with the shape of an item");
}

static qn_status refuse_module(const import *i, const qn__module *m, qn_error *err) {
    char shape[96];
    const qn__tensor_view *part = qn__module_any(m);
    qn__fail(err, QN_MISMATCH, "a tensor belongs to no layer of the model text");
    qn__at(err, "%.250s, tensor \"%.80s\" of %s", i->path, part->name,
           qn__tensor_shape(part, shape));
    return qn__remedy(err, QN_MISMATCH, "add the layer to `train.model`, or leave the tensor out");
}

static void tell(const import *i, uint32_t l, const char *what, const qn__tensor_view *view) {
    char name[48];
    snprintf(name, sizeof name, "layer%u.%s", l, what);
    if (i->told)
        i->told(i->user, name, view ? view->name : "");
}

static void take_weights(import *i, uint32_t index, const qn__tensor_view *view) {
    const qn__layer *l = &i->layer[index];
    for (uint64_t k = 0; k < view->count; ++k)
        i->parameter[l->weights + k] = qn__tensor_float(view, qn__product_filed(l, k));
    tell(i, index, "weight", view);
}

/* The layers of a pair. A bias is the sum of two, but for b_hn of gru. */
static void take_pair(import *i, uint32_t index, const qn__module *m) {
    const qn__layer *l = &i->layer[index];
    const qn__tensor_view *bias = m->part[QN__PART_BIAS], *shift = m->part[QN__PART_SHIFT];
    char name[48], sum[400];
    qn__recurrent_take(l, m, i->parameter);
    tell(i, index, "weight", m->part[QN__PART_WEIGHT]);
    snprintf(name, sizeof name, "layer%u.bias", index);
    snprintf(sum, sizeof sum, "%.190s + %.190s", bias ? bias->name : "", shift ? shift->name : "");
    if (bias && i->told)
        i->told(i->user, name, sum);
    tell(i, index + 1, "weight", m->part[QN__PART_STATES]);
    if (!l[1].no_biases)
        tell(i, index + 1, "bias", shift);
}

/* A vector, or `usual` where the module has none. */
static void take_vector(import *i, uint32_t index, const char *name, uint64_t at, uint64_t count,
                        const qn__tensor_view *view, float usual) {
    for (uint64_t k = 0; k < count; ++k)
        i->parameter[at + k] = view ? qn__tensor_float(view, k) : usual;
    tell(i, index, name, view);
}

static qn_status check_variance(const import *i, const qn__tensor_view *view, qn_error *err) {
    for (uint64_t k = 0; view && k < view->count; ++k) {
        if (qn__tensor_float(view, k) >= 0)
            continue;
        qn__fail(err, QN_INPUT, "a variance is negative");
        qn__at(err, "%.300s, tensor \"%.80s\", element %llu", i->path, view->name,
               (unsigned long long)k);
        return qn__remedy(err, QN_INPUT, "the file is damaged: write it again");
    }
    return QN_OK;
}

static qn_status take_module(import *i, uint32_t index, const qn__module *m, qn_error *err) {
    static const int part[] = {QN__PART_WEIGHT, QN__PART_BIAS, QN__PART_MEAN, QN__PART_VARIANCE};
    const qn__layer *l = &i->layer[index];
    const char *const *names = qn__layer_ops_of(l->kind)->names;
    if (m->states) {
        take_pair(i, index, m);
        return QN_OK;
    }
    if (l->depth) {
        take_weights(i, index, m->part[QN__PART_WEIGHT]);
        if (!l->no_biases)
            take_vector(i, index, "bias", l->biases, l->to.channels, m->part[QN__PART_BIAS], 0.0f);
        return QN_OK;
    }
    for (uint32_t v = 0; v < l->vectors; ++v)
        take_vector(i, index, names[v], l->biases + (uint64_t)v * l->vector, l->vector,
                    m->part[part[v]], part[v] == QN__PART_WEIGHT ? 1.0f : 0.0f);
    return check_variance(i, m->part[QN__PART_VARIANCE], err);
}

/* Two modules of one shape, in the order of their names alone: nothing else says which is first. */
static void note_order(const import *i, uint32_t l, const qn__module *taken) {
    char text[400];
    for (size_t k = 0; k < i->state.modules; ++k) {
        const qn__module *m = &i->state.module[k];
        if (m->used || !fits(i, l, m) || !qn__modules_by_words(taken, m))
            continue;
        snprintf(text, sizeof text,
                 "\"%.120s\" and \"%.120s\" have the same shapes and were taken in the order of "
                 "their names; check which is first in the network",
                 qn__module_any(taken)->name, qn__module_any(m)->name);
        qn__device_tell(text);
        return;
    }
}

static void note_skipped(const import *i) {
    const qn__tensor_view *view = i->state.skipped;
    char text[300];
    if (!view)
        return;
    snprintf(
        text, sizeof text,
        "\"%.120s\" of the type %.20s is not a parameter and was left out, as are others of whole "
        "numbers",
        view->name, view->type_name);
    qn__device_tell(text);
}

/* Whether a layer has a module. The recurrent layer of a pair has that of the convolution. */
static int has_module(const import *i, uint32_t index) {
    const qn__layer *l = &i->layer[index];
    return ((l->depth && !l->tied) || l->vectors) && !(index > 0 && is_pair(i, index - 1));
}

/* Whether the names of the file are those of an architecture with as many layers as the model text
 * has: then names, and not shapes, decide. */
static int know_names(import *i) {
    uint32_t layers = 0;
    for (uint32_t l = 0; l < i->recipe.network.layers; ++l)
        layers += (uint32_t)has_module(i, l);
    qn__architecture_match match = qn__architecture_nearest(&i->state, &i->names);
    if (!qn__architecture_meant(&match, &i->names) || i->names.count != layers)
        return 0;
    qn__architecture_compare(&i->state, &i->names, i->named, &match);
    return 1;
}

static qn_status refuse_name(const import *i, uint32_t l, const char *name, qn_error *err) {
    char need[160];
    tell_need(i, l, need);
    qn__fail(err, QN_MISMATCH, "the file has no module \"%s\", and layer %u needs %s", name, l,
             need);
    qn__at(err, "%.300s", i->path);
    return qn__remedy(err, QN_MISMATCH, "write the state dict of the whole network");
}

/* The part of a module that does not fit the layer: it is there and should not be, or is missing,
 * or has another shape. */
static int misfit(const qn__layer *l, const qn__module *m) {
    static const int part[] = {QN__PART_MEAN, QN__PART_VARIANCE, QN__PART_BIAS};
    const qn__module weight = {.part = {[QN__PART_WEIGHT] = m->part[QN__PART_WEIGHT]}};
    if (l->depth && !fits_product(l, &weight))
        return QN__PART_WEIGHT;
    for (size_t k = 0; k < sizeof part / sizeof *part; ++k) {
        const qn__tensor_view *view = m->part[part[k]];
        const int bias = part[k] == QN__PART_BIAS;
        const uint64_t size = l->depth ? l->to.channels : l->vector;
        const int wanted = bias ? !l->no_biases : l->running != 0;
        if (view ? !wanted || !is_vector(view, size) : wanted && !bias)
            return part[k];
    }
    return QN__PART_WEIGHT;
}

/* What the layer says about the part that does not fit. */
static void tell_misfit(const import *i, uint32_t index, int part, char text[160]) {
    const qn__layer *l = &i->layer[index];
    if (part == QN__PART_WEIGHT && l->depth)
        tell_need(i, index, text);
    else if (part == QN__PART_WEIGHT)
        snprintf(text, 160, "a weight of %u numbers", l->vector);
    else if (part == QN__PART_BIAS && l->no_biases)
        snprintf(text, 160, "no biases");
    else if (part == QN__PART_BIAS || l->running)
        snprintf(text, 160, "a %s of %u numbers",
                 part == QN__PART_BIAS   ? "bias"
                 : part == QN__PART_MEAN ? "running_mean"
                                         : "running_var",
                 l->depth ? l->to.channels : l->vector);
    else
        snprintf(text, 160, "no running averages");
}

static qn_status refuse_shape(const import *i, uint32_t l, const qn__module *m, qn_error *err) {
    static const char *const parts[] = {"weight", "bias", "running_mean", "running_var"};
    char need[160], shape[96];
    qn__text line = {0};
    const int wrong = misfit(&i->layer[l], m);
    const qn__tensor_view *part = m->part[wrong], *any = qn__module_any(m);
    const size_t size = qn__module_size(any->name);
    tell_misfit(i, l, wrong, need);
    qn__network_layer_text(&i->recipe.network.layer[l], &line);
    qn__fail(err, QN_MISMATCH, "layer %u, \"%.100s\", takes %s, and its module in the file %s", l,
             line.data && !line.failed ? line.data : "", need, part ? "differs" : "has none");
    qn__text_release(&line);
    if (part)
        qn__at(err, "%.250s, tensor \"%.80s\" of %s", i->path, part->name,
               qn__tensor_shape(part, shape));
    else
        qn__at(err, "%.250s, no tensor \"%.*s.%s\"", i->path, size < 80 ? (int)size : 80, any->name,
               parts[wrong]);
    if (l + 1 == i->recipe.network.layers && part && part->rows != i->layer[l].out)
        return qn__remedy(err, QN_MISMATCH,
                          "give as many classes as the file has outputs; a training then replaces "
                          "the last layer for others, with `train.new_last`");
    return qn__remedy(err, QN_MISMATCH,
                      part ? "this is another network: describe that of the file: `train.model` "
                             "with its layers in their order, and `train.shape` with the shape of "
                             "an item"
                           : "write the state dict of the whole network");
}

/* A parameter that the libraries' networks have, and this file does not. */
static void note_default(const qn__layer *l, const qn__module *m) {
    const int part = m->part[QN__PART_WEIGHT] ? QN__PART_BIAS : QN__PART_WEIGHT;
    const qn__tensor_view *any = qn__module_any(m);
    char text[300];
    if (m->part[part] || l->no_biases || l->kind == QN__LAYER_LAYERSCALE ||
        (l->depth && l->kind != QN__LAYER_DENSE))
        return;
    snprintf(text, sizeof text, "\"%.*s.%s\" is not in the file: %s",
             (int)(qn__module_size(any->name) < 200 ? qn__module_size(any->name) : 200), any->name,
             part == QN__PART_BIAS ? "bias" : "weight",
             l->depth                ? "the layer gets \"nobias\""
             : part == QN__PART_BIAS ? "it is 0"
                                     : "it is 1");
    qn__device_tell(text);
}

static qn_status refuse_unused(const import *i, qn_error *err) {
    for (size_t k = 0; k < i->state.modules; ++k)
        if (!i->state.module[k].used)
            return refuse_module(i, &i->state.module[k], err);
    return QN_OK;
}

/* Layers without biases in the file have none in the model, so that an export has the same tensors.
 */
static qn_status leave_biases_out(import *i, qn_error *err) {
    for (uint32_t l = 0; l < i->recipe.network.layers; ++l)
        if (i->layer[l].depth && i->of[l] && !i->of[l]->part[QN__PART_BIAS])
            i->recipe.network.layer[l].no_biases = 1;
    qn__recipe_tidy(&i->recipe);
    return qn__network_program(&i->recipe.network, qn__recipe_input(&i->recipe), i->layer,
                               &i->parameters, err);
}

static qn_status take_modules(import *i, qn_error *err) {
    qn_status status = leave_biases_out(i, err);
    if (status == QN_OK && !(i->parameter = qn__alloc(i->parameters, sizeof(float), err)))
        status = QN_MEMORY;
    for (uint32_t l = 0; l < i->recipe.network.layers && status == QN_OK; ++l)
        if (i->of[l])
            status = take_module(i, l, i->of[l], err);
    return status;
}

static qn_status map_names(import *i, qn_error *err) {
    for (uint32_t l = 0, n = 0; l < i->recipe.network.layers; ++l) {
        if (!has_module(i, l))
            continue;
        qn__module *m = i->named[n++];
        if (!m)
            return refuse_name(i, l, i->names.name[n - 1], err);
        if (!fits(i, l, m))
            return refuse_shape(i, l, m, err);
        m->used = 1;
        note_default(&i->layer[l], m);
        i->of[l] = m;
    }
    return refuse_unused(i, err);
}

static qn_status map_layers(import *i, qn_error *err) {
    if (know_names(i))
        return map_names(i, err);
    for (uint32_t l = 0; l < i->recipe.network.layers; ++l) {
        qn__module *m = i->state.module, *const end = m + i->state.modules;
        if (!has_module(i, l))
            continue;
        while (m < end && (m->used || !fits(i, l, m)))
            ++m;
        if (m == end)
            return refuse_layer(i, l, err);
        m->used = 1;
        note_order(i, l, m);
        i->of[l] = m;
    }
    return refuse_unused(i, err);
}

static qn_status refuse_scale(const char *unknown, qn_error *err) {
    if (unknown)
        qn__fail(err, QN_USAGE, "unknown scaling \"%.60s\"", unknown);
    else
        qn__fail(err, QN_USAGE, "the file has no means and deviations of inputs");
    qn__at(err, "`train.scale`");
    return qn__remedy(err, QN_USAGE,
                      "use `train.scale` none, unit, fraction or imagenet, or give the numbers");
}

/* A training says of a wrong name which there are: most of them need data. Numbers have a slash. */
static qn_status check_scale(const char *scale, qn_error *err) {
    if (!scale || qn__table_row(&qn__scalings, scale, strlen(scale)) || strchr(scale, '/'))
        return QN_OK;
    return refuse_scale(scale, err);
}

/* The recipe of a training that never was (docs/exactness.md 12.4). */
static qn_status make_recipe(import *i, const qn_train_options *job, const qn_data *given,
                             qn_error *err) {
    qn_train_options own = *job;
    qn__answered answered = {0};
    qn_status status = check_scale(job->scale, err);
    if (status == QN_OK)
        status = qn__answers_like(job, given, &answered, err);
    if (status == QN_OK) {
        const qn_data *like = answered.data ? answered.data : given;
        own.loss = answered.loss;
        qn__default_of_images(qn__task_of(like), &own);
        status = qn__recipe_from_options(&own, like, &i->recipe, err);
    }
    qn__answered_release(&answered);
    if (status != QN_OK)
        return status;
    qn__recipe_imported(&i->recipe, &i->state.shards);
    if ((i->recipe.scale_numbers || qn__scale_count(&i->recipe) == 0) &&
        !qn__recipe_fills(&i->recipe))
        return qn__network_program(&i->recipe.network, qn__recipe_input(&i->recipe), i->layer,
                                   &i->parameters, err);
    return refuse_scale(NULL, err);
}

static qn_status make_model(import *i, const qn_train_options *job, const qn_data *like,
                            qn_model **out, qn_error *err) {
    qn_status status = qn__state_dict_read(i->path, &i->state, err);
    if (status == QN_OK)
        status = make_recipe(i, job, like, err);
    if (status == QN_OK)
        status = map_layers(i, err);
    if (status == QN_OK)
        status = take_modules(i, err);
    if (status == QN_OK)
        note_skipped(i);
    qn__scale_numbers numbers = {0};
    float mean[QN__SCALE_CHANNELS], deviation[QN__SCALE_CHANNELS];
    if (status == QN_OK && i->recipe.scale_numbers)
        status = qn__scale_numbers_parse(i->recipe.scale_numbers, &numbers, err);
    qn__scale_numbers_of_items(&numbers, 1, mean, deviation);
    const qn__fitted fitted = {
        .parameter = i->parameter, .mean = mean, .deviation = deviation, .target_deviation = 1.0f};
    return status == QN_OK ? qn__model_create(&i->recipe, &fitted, out, err) : status;
}

qn_status qn_model_import(const char *path, const qn_train_options *job, const qn_data *like,
                          qn_import_told told, void *user, qn_model **out, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    QN__NEED(job, err);
    QN__NEED(like, err);
    qn_train_options own;
    qn_train_options_init(&own);
    qn_status status = qn__sized_take(QN__SIZED("job", qn_train_options), job, &own, err);
    import *i = status == QN_OK ? qn__alloc(1, sizeof *i, err) : NULL;
    if (!i)
        return status == QN_OK ? QN_MEMORY : status;
    i->path = path;
    i->told = told;
    i->user = user;
    status = make_model(i, &own, like, out, err);
    qn__state_dict_release(&i->state);
    qn__recipe_release(&i->recipe);
    qn__free(i->parameter);
    qn__free(i);
    return status;
}

/* The first module of the file that is not one of the names. */
static const char *left_over(const qn__state_dict *state, const qn__module_names *names) {
    qn__architecture_match match;
    qn__module **of = qn__alloc(names->count, sizeof *of, NULL);
    if (!of)
        return "";
    qn__architecture_compare(state, names, of, &match);
    for (uint32_t n = 0; n < names->count; ++n)
        if (of[n])
            of[n]->used = 1;
    qn__free(of);
    size_t m = 0;
    while (m + 1 < state->modules && state->module[m].used)
        ++m;
    return qn__module_any(&state->module[m])->name;
}

/* Only a part of the names is that of an architecture. */
static qn_status refuse_names(const char *path, const qn__architecture_match *match,
                              const qn__module_names *names, const qn__state_dict *state,
                              qn_error *err) {
    const char *model = match->row->model, *library = match->row->library;
    const int meant = qn__architecture_meant(match, names);
    if (meant)
        qn__fail(err, QN_MISMATCH, "the names of the tensors are those of %s of %s, but not all",
                 model, library);
    else
        qn__fail(err, QN_MISMATCH, "the names of the tensors are not those of a known network");
    if (match->missing)
        qn__at(err, "%.300s, beside %s of %s: no module \"%s\"", path, model, library,
               match->lacks);
    else
        qn__at(err, "%.200s, beside %s of %s: %zu modules more, of %zu; the first has \"%.80s\"",
               path, model, library, match->more, state->modules, left_over(state, names));
    if (meant && match->missing == 1 && strcmp(match->lacks, names->name[names->count - 1]) == 0)
        return qn__remedy(err, QN_MISMATCH,
                          "write the state dict with its last layer, \"%s\", with any number of "
                          "outputs: a training replaces it, with `train.new_last`",
                          match->lacks);
    if (meant)
        return qn__remedy(err, QN_MISMATCH,
                          match->missing
                              ? "write the state dict of the whole network, or describe "
                                "that of the file: `train.model` with its layers in "
                                "their order, and `train.shape` with the shape of an item"
                              : "leave tensors of other modules out of the file, or "
                                "describe its network: `train.model` with its layers in "
                                "their order, and `train.shape` with the shape of an item");
    return qn__remedy(err, QN_MISMATCH,
                      "describe the network of the file: `train.model` with its layers in their "
                      "order, and `train.shape` with the shape of an item");
}

static qn_status recognise(const char *path, const qn__state_dict *state, qn__module_names *names,
                           qn_import_found *found, qn_error *err) {
    const qn__architecture_match nearest = qn__architecture_nearest(state, names);
    if (nearest.missing || nearest.more)
        return refuse_names(path, &nearest, names, state, err);
    qn__module **of = qn__alloc(names->count, sizeof *of, err);
    if (!of)
        return QN_MEMORY;
    qn__architecture_match match;
    qn__architecture_compare(state, names, of, &match);
    const qn__tensor_view *last = of[names->count - 1]->part[QN__PART_WEIGHT];
    qn__free(of);
    qn_import_found own = {.size = sizeof own};
    snprintf(own.model, sizeof own.model, "%s", nearest.row->model);
    snprintf(own.library, sizeof own.library, "%s", nearest.row->library);
    own.classes = last && last->rows <= UINT32_MAX ? (uint32_t)last->rows : 0;
    qn__sized_give(QN__SIZED("found", qn_import_found), &own, found, found->size);
    return QN_OK;
}

qn_status qn_model_recognise(const char *path, qn_import_found *found, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(path, err);
    QN__NEED(found, err);
    qn_status status = qn__sized_check(QN__SIZED("found", qn_import_found), found, err);
    qn__state_dict state = {0};
    if (status == QN_OK)
        status = qn__state_dict_read(path, &state, err);
    qn__module_names *names = status == QN_OK ? qn__alloc(1, sizeof *names, err) : NULL;
    if (status == QN_OK)
        status = names ? recognise(path, &state, names, found, err) : QN_MEMORY;
    qn__free(names);
    qn__state_dict_release(&state);
    return status;
}
