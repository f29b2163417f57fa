/* A model as a checkpoint that the package transformers loads: what import_pretrained.c reads, in
 * the other direction. docs/formats.md describes it. */
#include "model/formats/model.h"

#include "base/argument.h"
#include "base/files/file.h"
#include "base/files/folder_make.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "device/notes.h"
#include "layer/layer.h"
#include "layer/product.h"
#include "model/exchange/layers_alike.h"
#include "model/exchange/pretrained.h"
#include "model/formats/safetensors.h"
#include "model/recipe/tables.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MOST_PARTS = 4, NAME_SIZE = QN__PRETRAINED_NAME + 32 };

typedef struct export {
    const qn_model *model;
    const qn__recipe *recipe;
    const char *folder;
    qn_error *err;
    qn__program program;
    const qn__pretrained *row;
    qn__pretrained_sizes sizes;
    qn__network known; /* that of the row */
    qn__pretrained_layer named[QN__MAX_LAYERS];
    size_t tensors, room;
    qn__tensor *tensor;
    char(*name)[NAME_SIZE];
    float **copy; /* of each tensor */
}
export;

/* ------------------------------------------------------------------ which network it is */

static void find_turns(const qn__turns *turns, qn__pretrained_sizes *s) {
    s->base = (double)turns->base;
    s->factor = (double)turns->factor;
    s->low = (double)turns->low;
    s->high = (double)turns->high;
    s->trained = turns->context;
}

/* Of the first attention, and of the convolution after it. */
static void find_heads(const export *x, uint32_t l, qn__pretrained_sizes *s) {
    const qn__layer_text *layer = x->recipe->network.layer;
    s->heads = layer[l].heads;
    s->groups = layer[l].kv_heads ? layer[l].kv_heads : s->heads;
    s->head = x->program.layer[l].to.channels / s->heads;
    s->biases = l + 1 < x->program.layers && !x->program.layer[l + 1].no_biases;
}

/* Of the last layer. Tables of token types have two rows in checkpoints: 25.82. */
static void find_head(const export *x, qn__pretrained_sizes *s) {
    const qn__layer_text *last = &x->recipe->network.layer[x->recipe->network.layers - 1];
    s->types = 2;
    s->tied = (uint32_t)last->tied;
    s->outputs = last->out;
    snprintf(s->answer, sizeof s->answer, "%s",
             qn__table_name(&qn__activations, (int)last->activation));
}

/* What a row needs to know, from the layers that have it. */
static void find_sizes(export *x) {
    const qn__network *n = &x->recipe->network;
    qn__pretrained_sizes *s = &x->sizes;
    const qn__shape *to = &x->program.layer[0].to;
    *s = (qn__pretrained_sizes){.vocabulary = n->layer[0].vocabulary,
                                .width = n->layer[0].out,
                                .positions = to->width * to->height};
    for (uint32_t l = 0; l < n->layers; ++l) {
        const qn__layer_text *layer = &n->layer[l];
        const qn__activation act = layer->activation;
        if (layer->kind == QN__LAYER_ROTARY)
            find_turns(&x->program.layer[l].turns, s);
        if (layer->kind == QN__LAYER_ATTENTION && s->blocks++ == 0)
            find_heads(x, l, s);
        if (s->epsilon == 0 && x->program.layer[l].norm_epsilon != 0)
            s->epsilon = (double)x->program.layer[l].norm_epsilon;
        if (s->inner || layer->kind != QN__LAYER_CONV || act == QN__ACT_NONE ||
            act == QN__ACT_SOFTMAX)
            continue;
        s->inner = layer->out;
        snprintf(s->activation, sizeof s->activation, "%s",
                 qn__table_name(&qn__activations, (int)act));
    }
    find_head(x, s);
    if (!s->inner) { /* of another network: a text is compared to say where it differs */
        s->inner = 4 * s->width;
        snprintf(s->activation, sizeof s->activation, "gelu");
    }
    s->heads = s->heads ? s->heads : 1;
    s->groups = s->groups ? s->groups : 1;
    s->head = s->head ? s->head : 1;
    s->base = s->base > 0 ? s->base : 10000;
    s->factor = s->factor > 0 ? s->factor : 1;
    s->epsilon = s->epsilon > 0 ? s->epsilon : 1e-5;
}

/* The first layer that differs; the number of layers: none does. */
static uint32_t first_difference(const export *x) {
    const qn__network *own = &x->recipe->network;
    uint32_t l = 0;
    while (l < own->layers && l < x->known.layers &&
           qn__layers_alike(own->layer[l], x->known.layer[l]))
        ++l;
    return l;
}

/* The network of the row with these sizes. */
static int expand(export *x, const qn__pretrained *row) {
    qn__text text = {0};
    qn__pretrained_expand(row, &x->sizes, &text, x->named);
    const int read =
        !text.failed && text.data && qn__network_parse(text.data, &x->known, NULL) == QN_OK;
    qn__text_release(&text);
    return read;
}

static qn_status refuse(const export *x, uint32_t layer, const qn__pretrained *nearest) {
    char known[200];
    const qn__network *own = &x->recipe->network;
    char *text = layer < own->layers ? qn__exported_text(own->layer[layer]) : NULL;
    qn__pretrained_list(known, sizeof known);
    qn__fail(x->err, QN_UNSUPPORTED, "the network is not one that transformers has by these names");
    if (nearest && text && layer > 2)
        qn__at(x->err, "layer %u, \"%.100s\", where %s differs", layer, text, nearest->type);
    qn__free(text);
    return qn__remedy(x->err, QN_UNSUPPORTED,
                      "these are known: %s, with the layers that an import of them has; other "
                      "networks can be written as ONNX",
                      known);
}

static qn_status find_row(export *x) {
    const qn__pretrained *nearest = NULL, *row;
    uint32_t most = 0;
    for (uint32_t i = 0; (row = qn__pretrained_row(i)); ++i) {
        if (x->recipe->network.layer[0].kind != QN__LAYER_EMBEDDING || !expand(x, row))
            continue;
        const uint32_t same = first_difference(x);
        if (same == x->recipe->network.layers && same == x->known.layers) {
            x->row = row;
            return QN_OK;
        }
        nearest = same > most ? row : nearest;
        most = same > most ? same : most;
    }
    return refuse(x, most, nearest);
}

/* ------------------------------------------------------------------ tensors */

/* A new tensor with memory for its numbers; NULL: there is none left. */
static float *add(export *x, const char *module, size_t size, const char *part, uint64_t rows,
                  uint64_t columns) {
    const int root = *module == '/';
    float *copy = qn__alloc(rows * (columns ? columns : 1), sizeof *copy, x->err);
    if (!copy)
        return NULL;
    snprintf(x->name[x->tensors], NAME_SIZE, "%s%.*s.%s", root ? "" : x->row->prefix,
             (int)(size - (size_t)root), module + root, part);
    x->copy[x->tensors] = copy;
    x->tensor[x->tensors] =
        (qn__tensor){.name = x->name[x->tensors], .rows = rows, .columns = columns, .data = copy};
    x->tensors++;
    return copy;
}

/* The weights of outputs first .. first + rows - 1 of a convolution of 1x1. */
static void copy_weights(const export *x, const qn__layer *l, int turned, uint64_t first,
                         uint64_t rows, float *to) {
    const float *parameters = qn__model_parameters(x->model);
    const uint64_t reads = l->depth, count = reads * l->to.channels;
    for (uint64_t k = 0; k < count; ++k) {
        const uint64_t filed = qn__product_filed(l, k), row = filed / reads, c = filed % reads;
        if (row >= first && row - first < rows)
            to[turned ? c * rows + (row - first) : (row - first) * reads + c] =
                parameters[l->weights + k];
    }
}

/* A part of a layer's outputs, in the tensors of one module. */
static qn_status add_product(export *x, const qn__layer *l, const char *module, size_t size,
                             int turned, uint64_t first, uint64_t rows) {
    const float *parameters = qn__model_parameters(x->model);
    float *weight =
        add(x, module, size, "weight", turned ? l->depth : rows, turned ? rows : l->depth);
    if (!weight)
        return QN_MEMORY;
    copy_weights(x, l, turned, first, rows, weight);
    if (l->no_biases)
        return QN_OK;
    float *bias = add(x, module, size, "bias", rows, 0);
    if (!bias)
        return QN_MEMORY;
    memcpy(bias, parameters + l->biases + first, rows * sizeof *bias);
    return QN_OK;
}

static qn_status add_products(export *x, const qn__layer *l, const qn__pretrained_layer *named) {
    uint32_t parts = 1;
    qn_status status = QN_OK;
    for (const char *at = named->module; *at; ++at)
        parts += *at == '+';
    uint64_t first = 0;
    const char *at = named->module;
    for (uint32_t p = 0; status == QN_OK && p < parts; ++p) {
        const size_t size = strcspn(at, "+|");
        const uint64_t heads = p == 0 ? x->sizes.heads : x->sizes.groups,
                       rows = parts == 1 ? l->to.channels : heads * x->sizes.head;
        status = add_product(x, l, at, size, named->turned, first, rows);
        first += rows;
        at += size + 1;
    }
    return status;
}

/* A table whose first row was added to another one: zeros. */
static qn_status add_types(export *x, const qn__layer *l, const char *module) {
    const uint64_t rows = x->sizes.types, columns = l->to.channels;
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
    x->sizes.tied = (uint32_t)is_tied(x);
    for (uint32_t l = 0, n = 0; status == QN_OK && l < x->program.layers; ++l) {
        const qn__layer *layer = &x->program.layer[l];
        if (!layer->depth && !layer->vectors)
            continue;
        const qn__pretrained_layer *named = &x->named[n++];
        if (strchr(named->module, '|') && x->sizes.tied)
            continue; /* a file has them once */
        status = layer->depth ? add_products(x, layer, named) : add_vectors(x, layer, named);
    }
    return status;
}

static qn_status allocate(export *x) {
    const size_t most = (size_t)x->program.layers * 2 * MOST_PARTS;
    x->tensor = qn__alloc(most, sizeof *x->tensor, x->err);
    x->name = x->tensor ? qn__alloc(most, sizeof *x->name, x->err) : NULL;
    x->copy = x->name ? qn__alloc(most, sizeof *x->copy, x->err) : NULL;
    return x->copy ? QN_OK : QN_MEMORY;
}

/* ------------------------------------------------------------------ files */

static qn_status place(const export *x, const char *name, char path[PATH_MAX]) {
    if (snprintf(path, PATH_MAX, "%s/%s", x->folder, name) < PATH_MAX)
        return QN_OK;
    qn__fail(x->err, QN_USAGE, "the path of the folder is too long");
    return qn__remedy(x->err, QN_USAGE, "give a shorter one");
}

static qn_status write_text(const export *x, const char *name, const char *text) {
    char path[PATH_MAX];
    qn__writer *writer;
    qn_status status = place(x, name, path);
    if (status == QN_OK)
        status = qn__writer_create(path, &writer, x->err);
    if (status != QN_OK)
        return status;
    (void)qn__writer_add(writer, text, strlen(text), x->err);
    return qn__writer_commit(writer, x->err);
}

static void add_real(const char *before, double value, qn__text *text) {
    char number[40];
    qn__float_text((float)value, number);
    qn__text_add(text, "%s%s", before, number);
}

/* The value of rope_theta, and rope_scaling after it. */
static void add_turns(const export *x, qn__text *text) {
    const qn__pretrained_sizes *s = &x->sizes;
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
    const char *at = (const char *)&x->sizes + k->place;
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
    char usual[24];
    qn__text_add(text, ",\n  \"id2label\": {");
    for (uint32_t i = 0; i < x->sizes.outputs; ++i) {
        snprintf(usual, sizeof usual, "LABEL_%u", i);
        qn__text_add(text, "%s\"%u\": ", i ? ", " : "", i);
        qn__text_add_json(text, i < named ? table->class_name[i] : usual);
    }
    qn__text_add(text, "},\n  \"label2id\": {");
    for (uint32_t i = 0; i < x->sizes.outputs; ++i) {
        snprintf(usual, sizeof usual, "LABEL_%u", i);
        qn__text_add(text, "%s", i ? ", " : "");
        qn__text_add_json(text, i < named ? table->class_name[i] : usual);
        qn__text_add(text, ": %u", i);
    }
    qn__text_add(text, "}");
    if (x->row->task == QN__PRETRAINED_CLASSIFY)
        qn__text_add(text, ",\n  \"problem_type\": \"%s\"",
                     strcmp(x->sizes.answer, "none") == 0      ? "regression"
                     : strcmp(x->sizes.answer, "sigmoid") == 0 ? "multi_label_classification"
                                                               : "single_label_classification");
}

static qn_status write_config(const export *x) {
    qn__text text = {0};
    qn__text_add(&text, "{\n  \"architectures\": [\"%s\"],\n  \"model_type\": \"%s\"",
                 x->row->class, x->row->type);
    for (const qn__config_key *k = x->row->key; k->key; ++k)
        add_key(x, k, &text);
    for (const qn__config_must *m = x->row->must; m->key; ++m)
        qn__text_add(&text, ",\n  \"%s\": %s", m->key, m->value);
    if (x->row->task != QN__PRETRAINED_NEXT)
        add_labels(x, &text);
    qn__text_add(&text, ",\n  \"torch_dtype\": \"float32\"\n}\n");
    char *whole = qn__text_take(&text, x->err);
    const qn_status status = whole ? write_text(x, "config.json", whole) : QN_MEMORY;
    qn__free(whole);
    return status;
}

/* Tokenizers of other kinds are ours alone. */
static qn_status write_tokenizer(const export *x) {
    const char *text = x->recipe->tokenizer, *tokens = x->recipe->tokens;
    if (!text)
        return QN_OK;
    if (strncmp(tokens, "bpe ", 4) == 0 || strncmp(tokens, "wordpiece ", 10) == 0)
        return write_text(x, "tokenizer.json", text);
    qn__device_tell("transformers has no tokenizer of this kind, so tokenizer.json is not written");
    return QN_OK;
}

static qn_status write_tensors(const export *x) {
    char path[PATH_MAX];
    const qn__tensor_note notes[] = {{"format", "pt"}, {"quern_digest", x->model->digest}};
    const qn__tensor_list list = {.notes = sizeof notes / sizeof *notes,
                                  .note = notes,
                                  .tensors = x->tensors,
                                  .tensor = x->tensor};
    const qn_status status = place(x, "model.safetensors", path);
    return status == QN_OK ? qn__tensors_write(path, &list, NULL, x->err) : status;
}

static qn_status write_all(export *x) {
    find_sizes(x);
    qn_status status = find_row(x);
    if (status == QN_OK)
        status = allocate(x);
    if (status == QN_OK)
        status = add_all(x);
    if (status == QN_OK)
        status = qn__folder_make(x->folder, x->err);
    if (status == QN_OK)
        status = write_tensors(x);
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
    for (size_t t = 0; x->copy && t < x->tensors; ++t)
        qn__free(x->copy[t]);
    qn__free((void *)x->copy);
    qn__free(x->tensor);
    qn__free(x->name);
    qn__free(x);
    return status;
}
