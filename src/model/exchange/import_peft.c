/* Low-rank adapters of the package peft, added to the weights of the model that they are for:
 * docs/exactness.md 25.94, docs/formats.md. */
#include "base/argument.h"
#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/text/json.h"
#include "layer/product.h"
#include "model/exchange/imported_recipe.h"
#include "model/exchange/named_tensors.h"
#include "model/exchange/pretrained_find.h"
#include "model/formats/model.h"
#include "model/formats/model_kind.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RANK = 1 << 15, PATH_SIZE = 4096 };

typedef struct import {
    const qn_model *base;
    char path[PATH_SIZE]; /* of the tensors */
    qn_error *err;
    double rank, alpha;
    int by_root; /* alpha is divided by the root of the rank */
    qn__program program;
    qn__recipe recipe;
    qn__pretrained_found found;
    qn__named_tensors tensors;
    float *parameter;
} import;

/* ------------------------------------------------------------------ adapter_config.json */

static qn_status refuse(const import *i, const char *path, const char *what) {
    qn__fail(i->err, QN_UNSUPPORTED, "%s", what);
    qn__at(i->err, "%.300s", path);
    return qn__remedy(
        i->err, QN_UNSUPPORTED,
        "merge the adapters by merge_and_unload() of peft, and import that checkpoint");
}

/* Whether a member says something: null, false, and empty lists and objects say nothing. */
static int says(const qn__json_node *root, const char *key) {
    const qn__json_node *node = qn__json_get(root, key);
    if (!node || qn__json_is_null(node))
        return 0;
    if (qn__json_is_array(node) || qn__json_is_object(node))
        return qn__json_count(node) > 0;
    return qn__json_is_true(node) || qn__json_string(node) != NULL;
}

static qn_status read_keys(import *i, const qn__json_node *root, const char *path) {
    static const char *const others[] = {"use_dora",
                                         "rank_pattern",
                                         "alpha_pattern",
                                         "target_parameters",
                                         "trainable_token_indices",
                                         "alora_invocation_tokens"};
    const char *type = qn__json_string(qn__json_get(root, "peft_type"));
    const char *bias = qn__json_string(qn__json_get(root, "bias"));
    char what[160];
    if (!type || strcmp(type, "LORA") != 0)
        return refuse(i, path, "\"peft_type\" is not LORA, the only one that is known");
    if (bias && strcmp(bias, "none") != 0)
        return refuse(i, path, "\"bias\" is not none: biases were trained, too");
    for (size_t k = 0; k < sizeof others / sizeof *others; ++k)
        if (says(root, others[k])) {
            snprintf(what, sizeof what, "\"%s\" is set, which is not supported", others[k]);
            return refuse(i, path, what);
        }
    i->by_root = qn__json_is_true(qn__json_get(root, "use_rslora"));
    if (qn__json_real(qn__json_get(root, "r"), &i->rank) &&
        qn__json_real(qn__json_get(root, "lora_alpha"), &i->alpha) && i->rank >= 1 &&
        i->rank <= MOST_RANK && i->rank == floor(i->rank) && fabs(i->alpha) <= 0x1p30)
        return QN_OK;
    qn__fail(i->err, QN_INPUT, "\"r\" is not a rank, or \"lora_alpha\" not a number");
    qn__at(i->err, "%.300s", path);
    return qn__remedy(i->err, QN_INPUT, "give the folder as save_pretrained of peft wrote it");
}

static qn_status read_config(import *i, const char *folder) {
    char path[PATH_SIZE];
    qn__bytes file;
    qn__json *json = NULL;
    const char *slash = qn__folder_slash(folder);
    snprintf(path, sizeof path, "%s%sadapter_config.json", folder, slash);
    snprintf(i->path, sizeof i->path, "%s%sadapter_model.safetensors", folder, slash);
    qn_status status = qn__file_read(path, &file, i->err);
    if (status != QN_OK)
        return qn__remedy(i->err, status,
                          "give a file of adapters by Quern, or the folder that save_pretrained of "
                          "peft wrote");
    status = qn__json_parse((const char *)file.data, file.size, &json, i->err);
    if (status == QN_OK)
        status = read_keys(i, qn__json_root(json), path);
    else
        qn__at(i->err, "%.300s", path);
    qn__json_free(json);
    qn__bytes_release(&file);
    return status;
}

/* ------------------------------------------------------------------ tensors */

static qn_status refuse_tensor(const import *i, const qn__tensor_view *view, const char *what) {
    qn__fail(i->err, QN_MISMATCH, "%s", what);
    qn__at(i->err, "%.300s, tensor \"%.120s\"", i->path, view->name);
    return qn__remedy(i->err, QN_MISMATCH, "give the model that these adapters were trained for");
}

/* The tensor of a module. A checkpoint without a head has no prefix before its names. */
static const qn__tensor_view *take(import *i, const qn__pretrained_part *part, const char *end) {
    const qn__pretrained plain = {.prefix = ""};
    const qn__pretrained *const rows[] = {i->found.row, &plain};
    const qn__tensor_view *found = NULL;
    char name[QN__PRETRAINED_TENSOR];
    for (int k = 0; !found && k < 2; ++k) {
        qn__pretrained_name(rows[k], "base_model.model.", part->module, part->size, end, name);
        found = qn__named_take(&i->tensors, name);
    }
    return found;
}

/* A matrix of finite numbers with these sides. */
static qn_status check(const import *i, const qn__tensor_view *view, uint64_t rows,
                       uint64_t columns) {
    if (view->dimensions != (columns ? 2u : 1u) || view->rows != rows || view->columns != columns)
        return refuse_tensor(i, view, "the tensor has not the sides of the model's layer");
    return qn__named_check(&i->tensors, view, i->err);
}

/* The numbers of a tensor, times a factor. NULL: QN_MEMORY. */
static float *copy_of(const import *i, const qn__tensor_view *view, float factor) {
    float *copy = qn__alloc(view->count, sizeof *copy, i->err);
    for (uint64_t k = 0; copy && k < view->count; ++k)
        copy[k] = qn__tensor_float(view, k) * factor;
    return copy;
}

/* `W[o][k]` of 25.94 for the rows of a module. */
static void add(import *i, const qn__layer *l, const qn__pretrained_part *part, const float *down,
                const float *up) {
    const uint64_t reads = l->depth, count = reads * l->to.channels;
    const uint32_t rank = (uint32_t)i->rank;
    for (uint64_t k = 0; k < count; ++k) {
        const uint64_t filed = qn__product_filed(l, k), row = filed / reads, c = filed % reads;
        if (row < part->first || row - part->first >= part->rows)
            continue;
        float sum = i->parameter[l->weights + k];
        for (uint32_t j = 0; j < rank; ++j)
            sum = fmaf(up[(row - part->first) * rank + j], down[j * reads + c], sum);
        i->parameter[l->weights + k] = sum;
    }
}

static qn_status add_product(import *i, const qn__layer *l, const qn__pretrained_part *part,
                             const qn__tensor_view *down, const qn__tensor_view *up) {
    const float rank = (float)i->rank, by = i->by_root ? sqrtf(rank) : rank;
    float *first = copy_of(i, down, 1.0f);
    float *second = first ? copy_of(i, up, (float)i->alpha / by) : NULL;
    if (second)
        add(i, l, part, first, second);
    qn__free(first);
    qn__free(second);
    return second ? QN_OK : QN_MEMORY;
}

static qn_status add_part(import *i, const qn__layer *l, const qn__pretrained_part *part) {
    const qn__tensor_view *down = take(i, part, "lora_A.weight");
    const qn__tensor_view *up = take(i, part, "lora_B.weight");
    if (!down && !up)
        return QN_OK;
    if (!down || !up)
        return refuse_tensor(i, down ? down : up, "the other half of this adapter is missing");
    qn_status status = check(i, down, (uint64_t)i->rank, l->depth);
    if (status == QN_OK)
        status = check(i, up, part->rows, (uint64_t)i->rank);
    return status == QN_OK ? add_product(i, l, part, down, up) : status;
}

/* Of `modules_to_save`: the whole layer is in the file. */
static qn_status replace(import *i, const qn__layer *l, const qn__pretrained_part *part,
                         int turned) {
    const uint64_t reads = l->depth, count = reads * l->to.channels;
    const qn__tensor_view *weight = take(i, part, "weight"), *bias = take(i, part, "bias");
    qn_status status = QN_OK;
    if (weight)
        status = check(i, weight, turned ? reads : part->rows, turned ? part->rows : reads);
    for (uint64_t k = 0; weight && status == QN_OK && k < count; ++k) {
        const uint64_t filed = qn__product_filed(l, k), row = filed / reads, c = filed % reads;
        if (row >= part->first && row - part->first < part->rows)
            i->parameter[l->weights + k] =
                qn__tensor_float(weight, turned ? c * part->rows + row - part->first
                                                : (row - part->first) * reads + c);
    }
    if (status == QN_OK && bias && l->no_biases)
        return refuse_tensor(i, bias, "the model's layer has no biases");
    if (status == QN_OK && bias)
        status = check(i, bias, part->rows, 0);
    for (uint64_t k = 0; bias && status == QN_OK && k < part->rows; ++k)
        i->parameter[l->biases + part->first + k] = qn__tensor_float(bias, k);
    return status;
}

static qn_status add_all(import *i) {
    qn_status status = QN_OK;
    for (uint32_t l = 0, n = 0; status == QN_OK && l < i->program.layers; ++l) {
        const qn__layer *layer = &i->program.layer[l];
        if (!layer->depth && !layer->vectors)
            continue;
        const qn__pretrained_layer *named = &i->found.named[n++];
        qn__pretrained_part part = {.module = NULL};
        while (status == QN_OK && layer->depth && !i->recipe.network.layer[l].tied &&
               qn__pretrained_next_part(&i->found, layer, named, &part)) {
            status = add_part(i, layer, &part);
            if (status == QN_OK)
                status = replace(i, layer, &part, named->turned);
        }
    }
    const qn__tensor_view *left =
        status == QN_OK ? qn__named_left(&i->tensors, (const char *const[]){NULL}, 0) : NULL;
    return left ? refuse_tensor(i, left, "the model has no layer for this tensor") : status;
}

/* ------------------------------------------------------------------ all of it */

static qn_status make(import *i, qn_model **out) {
    qn__fitted fitted;
    qn__model_program(i->base, &i->program);
    qn__model_fitted(i->base, &fitted);
    qn_status status = qn__recipe_copy(qn__model_recipe_of(i->base), &i->recipe, i->err);
    if (status == QN_OK)
        status = qn__pretrained_find(&i->recipe.network, i->program.layer, &i->found, i->err);
    if (status == QN_OK)
        status = qn__named_read(i->path, NULL, &i->tensors, i->err);
    if (status != QN_OK)
        return status;
    i->parameter = qn__alloc(i->program.parameters, sizeof *i->parameter, i->err);
    if (!i->parameter)
        return QN_MEMORY;
    memcpy(i->parameter, qn__model_parameters(i->base),
           (size_t)i->program.parameters * sizeof *i->parameter);
    status = add_all(i);
    i->recipe.new_last = 0;
    qn__recipe_imported(&i->recipe, &i->tensors.shards);
    fitted.parameter = i->parameter;
    return status == QN_OK ? qn__model_create(&i->recipe, &fitted, out, i->err) : status;
}

qn_status qn_model_import_peft(const qn_model *base, const char *folder, qn_model **out,
                               qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(base, err);
    QN__NEED(folder, err);
    if (qn__model_need_network(base, "adapters", err) != QN_OK)
        return QN_UNSUPPORTED;
    if (qn_model_adapts(base)) {
        qn__fail(err, QN_MISMATCH, "the model has adapters already");
        return qn__remedy(err, QN_MISMATCH, "merge these first: quern model merge");
    }
    import *i = qn__alloc(1, sizeof *i, err);
    if (!i)
        return QN_MEMORY;
    i->base = base;
    i->err = err;
    qn_status status = read_config(i, folder);
    if (status == QN_OK)
        status = make(i, out);
    qn__named_release(&i->tensors);
    qn__recipe_release(&i->recipe);
    qn__free(i->parameter);
    qn__free(i);
    return status;
}
