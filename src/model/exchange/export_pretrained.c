/* A model as a checkpoint that the package transformers loads: what import_pretrained.c reads, in
 * the other direction. docs/formats.md describes it. */
#include "model/formats/model.h"

#include "base/argument.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "device/notes.h"
#include "layer/layer.h"
#include "layer/product.h"
#include "model/exchange/class_labels.h"
#include "model/exchange/pretrained.h"
#include "model/exchange/pretrained_find.h"
#include "model/exchange/tensor_copies.h"
#include "model/recipe/tables.h"
#include <stdio.h>
#include <string.h>

enum { MOST_PARTS = 4 };

typedef struct export {
    const qn_model *model;
    const qn__recipe *recipe;
    const char *folder;
    qn_error *err;
    qn__program program;
    qn__pretrained_found found;
    qn__tensor_copies copies;
}
export;

/* ------------------------------------------------------------------ tensors */

/* A new tensor with memory for its numbers; NULL: there is none left. */
static float *add(export *x, const char *module, size_t size, const char *part, uint64_t rows,
                  uint64_t columns) {
    char *name;
    float *copy = qn__tensor_copies_add(&x->copies, rows, columns, &name, x->err);
    if (copy)
        qn__pretrained_name(x->found.row, "", module, size, part, name);
    return copy;
}

/* A part of a layer's outputs, in the tensors of one module. */
static qn_status add_product(export *x, const qn__layer *l, const char *module, size_t size,
                             int turned, uint64_t first, uint64_t rows) {
    const float *parameters = qn__model_parameters(x->model);
    float *weight =
        add(x, module, size, "weight", turned ? l->depth : rows, turned ? rows : l->depth);
    if (!weight)
        return QN_MEMORY;
    qn__pretrained_weights(parameters, l, turned, first, rows, weight);
    if (l->no_biases)
        return QN_OK;
    float *bias = add(x, module, size, "bias", rows, 0);
    if (!bias)
        return QN_MEMORY;
    memcpy(bias, parameters + l->biases + first, rows * sizeof *bias);
    return QN_OK;
}

static qn_status add_products(export *x, const qn__layer *l, const qn__pretrained_layer *named) {
    qn_status status = QN_OK;
    qn__pretrained_part part = {.module = NULL};
    while (status == QN_OK && qn__pretrained_next_part(&x->found, l, named, &part))
        status = add_product(x, l, part.module, part.size, named->turned, part.first, part.rows);
    return status;
}

/* A table whose first row was added to another one: zeros. */
static qn_status add_types(export *x, const qn__layer *l, const char *module) {
    const uint64_t rows = x->found.sizes.types, columns = l->to.channels;
    float *to = add(x, module, strlen(module), "weight", rows, columns);
    if (!to)
        return QN_MEMORY;
    memset(to, 0, rows * columns * sizeof *to);
    return QN_OK;
}

static qn_status add_vectors(export *x, const qn__layer *l, const qn__pretrained_layer *named) {
    const qn__layer_ops *ops = qn__layer_ops_of(l->kind);
    const float *parameters = qn__model_parameters(x->model);
    for (uint32_t v = 0; v < l->vectors; ++v) {
        const uint64_t columns = ops->bound ? l->to.channels : 0;
        float *to = add(x, named->module, strcspn(named->module, "&"), ops->names[v],
                        columns ? l->vector / columns : l->vector, columns);
        if (!to)
            return QN_MEMORY;
        memcpy(to, parameters + l->biases + (uint64_t)v * l->vector, l->vector * sizeof *to);
    }
    const char *added = strchr(named->module, '&');
    return added ? add_types(x, l, added + 1) : QN_OK;
}

/* Whether the last layer has the weights of the embedding, also those of a copy. */
static int is_tied(const export *x) {
    const qn__layer *first = &x->program.layer[0], *last = &x->program.layer[x->program.layers - 1];
    const float *parameters = qn__model_parameters(x->model);
    if (last->tied || (uint64_t)last->depth * last->to.channels != first->vector)
        return last->tied;
    for (uint64_t k = 0; k < first->vector; ++k)
        if (memcmp(&parameters[last->weights + k],
                   &parameters[first->biases + qn__product_filed(last, k)], sizeof(float)) != 0)
            return 0;
    return 1;
}

static qn_status add_all(export *x) {
    qn_status status = QN_OK;
    x->found.sizes.tied = (uint32_t)is_tied(x);
    for (uint32_t l = 0, n = 0; status == QN_OK && l < x->program.layers; ++l) {
        const qn__layer *layer = &x->program.layer[l];
        if (!layer->depth && !layer->vectors)
            continue;
        const qn__pretrained_layer *named = &x->found.named[n++];
        if (strchr(named->module, '|') && x->found.sizes.tied)
            continue; /* a file has them once */
        status = layer->depth ? add_products(x, layer, named) : add_vectors(x, layer, named);
    }
    return status;
}

/* ------------------------------------------------------------------ files */

static void add_real(const char *before, double value, qn__text *text) {
    char number[40];
    qn__float_text((float)value, number);
    qn__text_add(text, "%s%s", before, number);
}

/* The value of rope_theta, and rope_scaling after it. */
static void add_turns(const export *x, qn__text *text) {
    const qn__pretrained_sizes *s = &x->found.sizes;
    add_real("", s->base, text);
    if (s->factor <= 1)
        return;
    qn__text_add(text, ",\n  \"rope_scaling\": {\"rope_type\": \"%s\"",
                 s->trained ? "llama3" : "linear");
    add_real(", \"factor\": ", s->factor, text);
    if (s->trained) {
        add_real(", \"low_freq_factor\": ", s->low, text);
        add_real(", \"high_freq_factor\": ", s->high, text);
        qn__text_add(text, ", \"original_max_position_embeddings\": %u", s->trained);
    }
    qn__text_add(text, "}");
}

static void add_key(const export *x, const qn__config_key *k, qn__text *text) {
    const char *at = (const char *)&x->found.sizes + k->place;
    qn__text_add(text, ",\n  \"%s\": ", k->key);
    if (k->form == 'a') {
        qn__text_add(text, "\"%s\"", qn__pretrained_activation_back(at));
    } else if (k->form == 'b') {
        qn__text_add(text, *(const uint32_t *)(const void *)at ? "true" : "false");
    } else if (k->form == 'p') {
        add_turns(x, text);
    } else if (k->form == 'r') {
        char number[40];
        qn__float_text((float)*(const double *)(const void *)at, number);
        qn__text_add(text, "%s", number);
    } else {
        qn__text_add(text, "%u", *(const uint32_t *)(const void *)at);
    }
}

/* Names of the outputs, or numbers as transformers gives them. */
static void add_labels(const export *x, qn__text *text) {
    const qn__schema *table = x->recipe->table;
    const uint32_t named = table ? table->classes : 0;
    char usual[QN__LABEL_USUAL];
    qn__text_add(text, ",\n  \"id2label\": {");
    for (uint32_t i = 0; i < x->found.sizes.outputs; ++i) {
        qn__class_label_usual(i, usual);
        qn__text_add(text, "%s\"%u\": ", i ? ", " : "", i);
        qn__text_add_json(text, i < named ? table->class_name[i] : usual);
    }
    qn__text_add(text, "},\n  \"label2id\": {");
    for (uint32_t i = 0; i < x->found.sizes.outputs; ++i) {
        qn__class_label_usual(i, usual);
        qn__text_add(text, "%s", i ? ", " : "");
        qn__text_add_json(text, i < named ? table->class_name[i] : usual);
        qn__text_add(text, ": %u", i);
    }
    qn__text_add(text, "}");
    if (x->found.row->task == QN__PRETRAINED_CLASSIFY)
        qn__text_add(text, ",\n  \"problem_type\": \"%s\"",
                     strcmp(x->found.sizes.answer, "none") == 0 ? "regression"
                     : strcmp(x->found.sizes.answer, "sigmoid") == 0
                         ? "multi_label_classification"
                         : "single_label_classification");
}

static qn_status write_config(const export *x) {
    qn__text text = {0};
    qn__text_add(&text, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\"",
                 x->found.row->class, x->found.row->type);
    for (const qn__config_key *k = x->found.row->key; k->key; ++k)
        add_key(x, k, &text);
    for (const qn__config_must *m = x->found.row->must; m->key; ++m)
        qn__text_add(&text, ",\n  \"%s\": %s", m->key, m->value);
    if (x->found.row->task != QN__PRETRAINED_NEXT)
        add_labels(x, &text);
    qn__text_add(&text, ",\n  \"torch_dtype\": \"float32\"\n}\n");
    char *whole = qn__text_take(&text, x->err);
    const qn_status status =
        whole ? qn__folder_write(x->folder, "config.json", whole, x->err) : QN_MEMORY;
    qn__free(whole);
    return status;
}

/* Tokenizers of other kinds are ours alone. */
static qn_status write_tokenizer(const export *x) {
    const char *text = x->recipe->tokenizer, *tokens = x->recipe->tokens;
    if (!text)
        return QN_OK;
    if (strncmp(tokens, "bpe ", 4) == 0 || strncmp(tokens, "wordpiece ", 10) == 0)
        return qn__folder_write(x->folder, "tokenizer.json", text, x->err);
    qn__device_tell("transformers has no tokenizer of this kind, so tokenizer.json is not written");
    return QN_OK;
}

static qn_status write_all(export *x) {
    qn_status status =
        qn__pretrained_find(&x->recipe->network, x->program.layer, &x->found, x->err);
    if (status == QN_OK)
        status =
            qn__tensor_copies_open((size_t)x->program.layers * 2 * MOST_PARTS, &x->copies, x->err);
    if (status == QN_OK)
        status = add_all(x);
    if (status == QN_OK)
        status = qn__folder_make(x->folder, x->err);
    if (status == QN_OK)
        status = qn__tensor_copies_write(&x->copies, x->folder, "model.safetensors",
                                         x->model->digest, x->err);
    if (status == QN_OK)
        status = write_tokenizer(x);
    return status == QN_OK ? write_config(x) : status;
}

qn_status qn_model_write_pretrained(const qn_model *model, const char *folder, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(model, err);
    QN__NEED(folder, err);
    if (qn__model_need_network(model, "a checkpoint", err) != QN_OK)
        return QN_UNSUPPORTED;
    export *x = qn__alloc(1, sizeof *x, err);
    if (!x)
        return QN_MEMORY;
    x->model = model;
    x->folder = folder;
    x->err = err;
    x->recipe = qn__model_recipe_of(model);
    qn__model_program(model, &x->program);
    const qn_status status = write_all(x);
    qn__tensor_copies_release(&x->copies);
    qn__free(x);
    return status;
}
