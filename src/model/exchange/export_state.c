/* A model's parameters with the names that another library gives to those of its network: what
 * import_state.c reads, in the other direction. docs/formats.md describes the file. */
#include "model/formats/model.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/text.h"
#include "device/notes.h"
#include "layer/layer.h"
#include "model/exchange/architectures.h"
#include "model/exchange/layers_alike.h"
#include "model/formats/safetensors.h"
#include "model/recipe/ready_text.h"
#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = QN__MODULE_NAME + 24 };

typedef struct export {
    const qn_model *model;
    const qn__recipe *recipe;
    qn__program program;
    const qn__architecture *row;
    qn__module_names names;
    uint32_t named[QN__MAX_LAYERS]; /* the name of each layer with parameters */
    qn__network ready;
    size_t tensors;
    qn__tensor *tensor;
    char(*name)[NAME_SIZE];
    float *mean; /* running means that took up biases, and biases of 0 */
    size_t means;
    int folded; /* whether some of these biases were not 0 */
}
export;

/* What decides the names: not biases or the rate of averages, which no name tells. */
static qn__layer_text named_by(const qn__layer_text *layer) {
    qn__layer_text named = *layer;
    named.rate = 0;
    named.no_biases = 0;
    return named;
}

/* Whether the network is that of the architecture, but for its last layer. */
static int is_of(export *x, const qn__architecture *row) {
    const qn__labels_like labels = {.task = QN__TASK_CLASSIFY, .classes = 2};
    const qn__ready *ready = qn__ready_find(row->model, strlen(row->model));
    const qn__network *own = &x->recipe->network;
    qn__text text = {0};
    int same = ready != NULL;
    if (same)
        qn__ready_text(ready, &labels, &text);
    same = same && !text.failed && qn__network_parse(text.data, &x->ready, NULL) == QN_OK &&
           x->ready.layers == own->layers && own->layer[own->layers - 1].kind == QN__LAYER_DENSE;
    for (uint32_t l = 0; same && l + 1 < own->layers; ++l)
        same = qn__layers_alike(named_by(&own->layer[l]), named_by(&x->ready.layer[l]));
    qn__text_release(&text);
    return same;
}

static qn_status refuse_library(const char *library, qn_error *err) {
    qn__fail(err, QN_USAGE, "the names of \"%.40s\" are not known", library);
    return qn__remedy(err, QN_USAGE, "give torchvision or timm");
}

/* The ready models that have names of this library, in `text`. */
static void list_models(const char *library, char *text, size_t size) {
    const qn__architecture *row;
    size_t used = 0;
    *text = '\0';
    for (uint32_t i = 0; used < size && (row = qn__architecture_row(i)); ++i)
        if (strcmp(row->library, library) == 0)
            used +=
                (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", row->model);
}

static qn_status find_row(export *x, const char *library, qn_error *err) {
    char models[300];
    const qn__architecture *row;
    int known = 0;
    for (uint32_t i = 0; (row = qn__architecture_row(i)); ++i) {
        if (strcmp(row->library, library) != 0)
            continue;
        known = 1;
        if (!is_of(x, row))
            continue;
        x->row = row;
        qn__architecture_names(row, &x->names);
        return QN_OK;
    }
    if (!known)
        return refuse_library(library, err);
    list_models(library, models, sizeof models);
    qn__fail(err, QN_UNSUPPORTED, "the network is not one whose names in %s are known", library);
    return qn__remedy(err, QN_UNSUPPORTED,
                      "these are known, with any last layer: %s; other networks can be written as "
                      "ONNX, or read from the model file itself",
                      models);
}

static int follows_batchnorm(const export *x, uint32_t l) {
    return l + 1 < x->program.layers && x->program.layer[l].depth &&
           x->program.layer[l + 1].running;
}

/* Whether the library's layer has a bias; x->ready is the network of the row. */
static int has_bias(const export *x, uint32_t layer) { return !x->ready.layer[layer].no_biases; }

static int lacks_bias(const export *x, uint32_t layer) {
    return x->program.layer[layer].depth && x->program.layer[layer].no_biases && has_bias(x, layer);
}

/* The factors of a layer scale are a tensor with the name of their module. */
static qn__tensor *add(export *x, uint32_t layer, const char *part) {
    qn__tensor *tensor = &x->tensor[x->tensors];
    const char *module = x->names.name[x->named[layer]];
    if (x->program.layer[layer].kind == QN__LAYER_LAYERSCALE)
        snprintf(x->name[x->tensors], NAME_SIZE, "%s", module);
    else
        snprintf(x->name[x->tensors], NAME_SIZE, "%s.%s", module, part);
    *tensor = (qn__tensor){.name = x->name[x->tensors++]};
    return tensor;
}

/* The tensor "layerL.PART" of the model; NULL: it has none. */
static const qn__tensor *find(const export *x, uint32_t layer, const char *part) {
    char name[48];
    snprintf(name, sizeof name, "layer%u.%s", layer, part);
    for (uint32_t i = 0; i < x->model->tensors; ++i)
        if (strcmp(x->model->tensor[i].name, name) == 0)
            return &x->model->tensor[i];
    return NULL;
}

/* A batchnorm subtracts the running mean of what the convolution gives: with its bias or without.
 * Where the library's convolution has none, the mean takes it up. */
static void fold_bias(export *x, uint32_t layer, qn__tensor *mean) {
    const qn__tensor *bias =
        layer > 0 && x->program.layer[layer - 1].depth ? find(x, layer - 1, "bias") : NULL;
    float *out = x->mean + x->means;
    if (!bias || has_bias(x, layer - 1))
        return;
    for (uint64_t k = 0; k < mean->rows; ++k) {
        out[k] = mean->data[k] - bias->data[k];
        x->folded |= bias->data[k] != 0;
    }
    mean->data = out;
    x->means += mean->rows;
}

/* timm has convolutions, as large as their input, where the model has dense layers. In ConvNeXt
 * dense layers of each pixel are convolutions of 1x1 here, and torchvision's layer scale has the
 * axes of a picture. */
static void make_window(const export *x, uint32_t layer, qn__tensor *weight) {
    const qn__layer *l = &x->program.layer[layer];
    const int next = strncmp(x->row->model, "convnext", 8) == 0;
    if (next && l->kind == QN__LAYER_CONV && l->window.kernel[0] == 1 && l->window.kernel[1] == 1)
        weight->taps[0] = weight->taps[1] = 0;
    if (next && l->kind == QN__LAYER_LAYERSCALE && strcmp(x->row->library, "torchvision") == 0)
        weight->columns = weight->taps[0] = 1;
    if (l->kind != QN__LAYER_DENSE || strncmp(weight->name, "pre_logits.", 11) != 0)
        return;
    weight->columns = l->from.channels;
    weight->taps[0] = l->from.height;
    weight->taps[1] = l->from.width;
}

static void take_tensor(export *x, const qn__tensor *own) {
    uint32_t layer;
    int used = 0;
    if (sscanf(own->name, "layer%u.%n", &layer, &used) != 1 || used == 0)
        return; /* the scaling of inputs or of labels */
    const char *part = own->name + used;
    if (strcmp(part, "bias") == 0 && follows_batchnorm(x, layer) && !has_bias(x, layer))
        return;
    qn__tensor *tensor = add(x, layer, part);
    const char *name = tensor->name;
    *tensor = *own;
    tensor->name = name;
    if (strcmp(part, "weight") == 0)
        make_window(x, layer, tensor);
    if (strcmp(part, "running_mean") == 0)
        fold_bias(x, layer, tensor);
}

/* The counts of batches, which are of 8 bytes, come first, so that all numbers are aligned. */
static void list_all(export *x) {
    static const int64_t none = 0;
    for (uint32_t l = 0, n = 0; l < x->program.layers; ++l)
        if (x->program.layer[l].depth || x->program.layer[l].vectors)
            x->named[l] = n++;
    for (uint32_t l = 0; l < x->program.layers; ++l)
        if (x->program.layer[l].running)
            *add(x, l, "num_batches_tracked") =
                (qn__tensor){.name = x->name[x->tensors - 1], .rows = 1, .whole = &none};
    for (uint32_t i = 0; i < x->model->tensors; ++i)
        take_tensor(x, &x->model->tensor[i]);
    for (uint32_t l = 0; l < x->program.layers; ++l)
        if (lacks_bias(x, l)) {
            *add(x, l, "bias") = (qn__tensor){.name = x->name[x->tensors - 1],
                                              .rows = x->program.layer[l].to.channels,
                                              .data = x->mean + x->means};
            x->means += x->program.layer[l].to.channels;
        }
}

static qn_status allocate(export *x, qn_error *err) {
    const size_t most = (size_t)x->model->tensors + x->program.layers;
    size_t means = 1;
    for (uint32_t l = 0; l < x->program.layers; ++l)
        means += x->program.layer[l].running ? x->program.layer[l].vector
                 : lacks_bias(x, l)          ? x->program.layer[l].to.channels
                                             : 0;
    x->tensor = qn__alloc(most, sizeof *x->tensor, err);
    x->name = x->tensor ? qn__alloc(most, sizeof *x->name, err) : NULL;
    x->mean = x->name ? qn__alloc(means, sizeof *x->mean, err) : NULL;
    return x->mean ? QN_OK : QN_MEMORY;
}

static void tell(const export *x) {
    char text[400];
    float mean, deviation;
    if (x->folded)
        qn__device_tell("the file has no biases of convolutions before a batchnorm, as the library "
                        "has none: they were subtracted from the running means");
    if (x->recipe->task != QN__TASK_REGRESS)
        return;
    qn__model_target_scale(x->model, &mean, &deviation);
    snprintf(text, sizeof text, "a prediction is the network's output times %.9g, plus %.9g",
             (double)deviation, (double)mean);
    qn__device_tell(text);
}

static qn_status write_state(export *x, const char *library, const char *path, qn_error *err) {
    const qn__tensor_note notes[] = {{"format", "pt"}, {"quern_digest", x->model->digest}};
    qn_status status = find_row(x, library, err);
    if (status == QN_OK)
        status = allocate(x, err);
    if (status != QN_OK)
        return status;
    list_all(x);
    const qn__tensor_list list = {.notes = sizeof notes / sizeof *notes,
                                  .note = notes,
                                  .tensors = x->tensors,
                                  .tensor = x->tensor};
    status = qn__tensors_write(path, &list, NULL, err);
    if (status == QN_OK)
        tell(x);
    return status;
}

qn_status qn_model_write_state(const qn_model *model, const char *library, const char *path,
                               qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(library, err);
    QN__NEED(path, err);
    if (qn__model_need_network(model, "a state dict", err) != QN_OK)
        return QN_UNSUPPORTED;
    export *x = qn__alloc(1, sizeof *x, err);
    if (!x)
        return QN_MEMORY;
    x->model = model;
    x->recipe = qn__model_recipe_of(model);
    qn__model_program(model, &x->program);
    const qn_status status = write_state(x, library, path, err);
    qn__free(x->tensor);
    qn__free(x->name);
    qn__free(x->mean);
    qn__free(x);
    return status;
}
