/* Low-rank adapters as the package peft loads them: docs/formats.md describes the folder. Its names
 * are those of the modules of transformers that the adapters stand beside. */
#include "base/argument.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "model/exchange/pretrained_find.h"
#include "model/exchange/tensor_copies.h"
#include "model/formats/model.h"
#include "model/formats/model_kind.h"
#include "model/recipe/adapters.h"
#include <stdio.h>
#include <string.h>

enum { MOST_TENSORS = 6 }; /* of a layer: two for queries, keys and values each */

typedef struct export {
    const float *parameters;
    const qn__recipe *recipe;
    const char *folder, *digest;
    qn_error *err;
    qn__program program;
    char role[QN__MAX_LAYERS];
    qn__network start; /* without adapters, */
    qn__layer layer[QN__MAX_LAYERS];
    qn__pretrained_found found; /* and what it is */
    qn__text targets;           /* names of modules that have adapters, and */
    char
        kept[QN__PRETRAINED_NAME]; /* of the last layer, which the file has whole; "": it has not */
    int turned;                    /* 1: the base has their weights as [in][out] */
    qn__tensor_copies copies;
}
export;

/* ------------------------------------------------------------------ tensors */

/* A new tensor with memory for its numbers; NULL: there is none left. */
static float *add(export *x, const qn__pretrained_part *part, const char *end, uint64_t rows,
                  uint64_t columns) {
    char *name;
    float *copy = qn__tensor_copies_add(&x->copies, rows, columns, &name, x->err);
    if (copy)
        qn__pretrained_name(x->found.row, "base_model.model.", part->module, part->size, end, name);
    return copy;
}

/* Modules that share one layer here have one *down*: each gets a copy, and its rows of *up*. */
static qn_status add_adapter(export *x, const qn__layer *main, const qn__layer *up,
                             const qn__pretrained_layer *named) {
    const qn__layer *down = main + 1;
    const uint64_t rank = down->to.channels;
    qn__pretrained_part part = {.module = NULL};
    while (qn__pretrained_next_part(&x->found, main, named, &part)) {
        char name[QN__PRETRAINED_TENSOR];
        float *a = add(x, &part, "lora_A.weight", rank, down->depth);
        float *b = a ? add(x, &part, "lora_B.weight", part.rows, rank) : NULL;
        if (!b)
            return QN_MEMORY;
        qn__pretrained_weights(x->parameters, down, 0, 0, rank, a);
        qn__pretrained_weights(x->parameters, up, 0, part.first, part.rows, b);
        qn__pretrained_name(x->found.row, "", part.module, part.size, "", name);
        qn__text_add(&x->targets, "%s\n    ", x->targets.size ? "," : "");
        qn__text_add_json(&x->targets, name);
    }
    x->turned |= named->turned;
    return QN_OK;
}

/* The last layer of a network that gives classes: peft takes it from the file. */
static qn_status add_last(export *x, const qn__layer *last, const qn__pretrained_layer *named) {
    qn__pretrained_part part = {.module = NULL};
    (void)qn__pretrained_next_part(&x->found, last, named, &part);
    const uint64_t rows = last->to.channels;
    float *weight = add(x, &part, "weight", rows, last->depth);
    float *bias = weight && !last->no_biases ? add(x, &part, "bias", rows, 0) : NULL;
    if (!weight || (!bias && !last->no_biases))
        return QN_MEMORY;
    qn__pretrained_weights(x->parameters, last, 0, 0, rows, weight);
    if (bias)
        memcpy(bias, x->parameters + last->biases, rows * sizeof *bias);
    snprintf(x->kept, sizeof x->kept, "%.*s", (int)part.size - (*part.module == '/'),
             part.module + (*part.module == '/'));
    return QN_OK;
}

/* Whether the file has the last layer: of a new one, and where peft expects one of each file. */
static int has_last(const export *x) {
    const qn__layer *last = &x->program.layer[x->program.layers - 1];
    return last->depth > 0 && !last->tied &&
           (x->recipe->new_last || x->found.row->task != QN__PRETRAINED_NEXT);
}

static qn_status add_all(export *x) {
    qn_status status = QN_OK;
    for (uint32_t l = 0, n = 0; status == QN_OK && l < x->program.layers; ++l) {
        const qn__layer *layer = &x->program.layer[l];
        if ((x->role[l] != QN__LORA_NONE && x->role[l] != QN__LORA_MAIN) ||
            (!layer->depth && !layer->vectors))
            continue;
        const qn__pretrained_layer *named = &x->found.named[n++];
        if (x->role[l] == QN__LORA_MAIN)
            status = add_adapter(x, layer, layer + 2 + (x->role[l + 2] == QN__LORA_SCALE), named);
        else if (l + 1 == x->program.layers && has_last(x))
            status = add_last(x, layer, named);
    }
    return status;
}

/* ------------------------------------------------------------------ files */

static const char *task_of(const export *x) {
    static const char *const words[] = {[QN__PRETRAINED_NEXT] = "CAUSAL_LM",
                                        [QN__PRETRAINED_CLASSIFY] = "SEQ_CLS",
                                        [QN__PRETRAINED_TAGS] = "TOKEN_CLS"};
    return words[x->found.row->task];
}

static qn_status write_config(export *x) {
    qn__lora lora;
    qn__text text = {0};
    char alpha[40];
    char *targets = qn__text_take(&x->targets, x->err);
    qn_status status = targets ? qn__lora_parse(x->recipe->lora, &lora, x->err) : QN_MEMORY;
    if (status != QN_OK) {
        qn__free(targets);
        return status;
    }
    qn__float_text(lora.alpha, alpha);
    qn__text_add(&text,
                 "{\n  \"peft_type\": \"LORA\",\n  \"task_type\": \"%s\",\n  \"r\": %u,\n"
                 "  \"lora_alpha\": %s,\n  \"lora_dropout\": 0.0,\n  \"bias\": \"none\",\n"
                 "  \"fan_in_fan_out\": %s,\n  \"inference_mode\": true,\n",
                 task_of(x), lora.rank, alpha, x->turned ? "true" : "false");
    if (*x->kept)
        qn__text_add(&text, "  \"modules_to_save\": [\"%s\"],\n", x->kept);
    qn__text_add(&text, "  \"base_model_name_or_path\": null,\n  \"target_modules\": [");
    qn__text_add(&text, "%s\n  ]\n}\n", targets);
    qn__free(targets);
    char *whole = qn__text_take(&text, x->err);
    status = whole ? qn__folder_write(x->folder, "adapter_config.json", whole, x->err) : QN_MEMORY;
    qn__free(whole);
    return status;
}

static qn_status write_all(export *x) {
    uint64_t parameters;
    qn__recipe_start(x->recipe, &x->start);
    qn_status status =
        qn__network_program(&x->start, qn__recipe_input(x->recipe), x->layer, &parameters, x->err);
    if (status == QN_OK)
        status = qn__pretrained_find(&x->start, x->layer, &x->found, x->err);
    if (status == QN_OK)
        status =
            qn__tensor_copies_open((size_t)x->program.layers * MOST_TENSORS, &x->copies, x->err);
    if (status == QN_OK)
        status = add_all(x);
    if (status == QN_OK)
        status = qn__folder_make(x->folder, x->err);
    if (status == QN_OK)
        status = qn__tensor_copies_write(&x->copies, x->folder, "adapter_model.safetensors",
                                         x->digest, x->err);
    return status == QN_OK ? write_config(x) : status;
}

qn_status qn_model_write_peft(const qn_model *model, const char *folder, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(folder, err);
    if (!qn_model_adapts(model)) {
        qn__fail(err, QN_MISMATCH, "the model has no adapters that could be exported");
        return qn__remedy(err, QN_MISMATCH,
                          "name the model that they are for, and their file with `model.adapter`");
    }
    export *x = qn__alloc(1, sizeof *x, err);
    if (!x)
        return QN_MEMORY;
    x->parameters = qn__model_parameters(model);
    x->recipe = qn__model_recipe_of(model);
    x->folder = folder;
    x->digest = qn_model_digest(model);
    x->err = err;
    qn__model_program(model, &x->program);
    qn__recipe_roles(x->recipe, x->role);
    const qn_status status = write_all(x);
    qn__text_release(&x->targets);
    qn__tensor_copies_release(&x->copies);
    qn__free(x);
    return status;
}
