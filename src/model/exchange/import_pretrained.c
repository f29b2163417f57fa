/* A model from a checkpoint of the package transformers, whose config.json says which network it
 * is. docs/formats.md describes it. */
#include "model/formats/model.h"

#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/table/data.h"
#include "device/notes.h"
#include "layer/product.h"
#include "model/exchange/imported_recipe.h"
#include "model/exchange/named_tensors.h"
#include "model/exchange/pretrained_config.h"
#include "model/exchange/state_dict.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/defaults.h"
#include <limits.h>
#include <quern/import.h>
#include <quern/tokenizer.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_PARTS = 4, USUAL_CONTEXT = 2048 };

typedef struct import {
    const char *path;
    const qn_pretrained_options *how;
    qn_import_told told;
    void *user;
    qn_error *err;
    const qn__pretrained *row;
    qn__pretrained_sizes sizes;
    qn__named_tensors tensors;
    qn_tokenizer *tokenizer; /* NULL: there is none */
    uint32_t context;
    qn__recipe recipe;
    qn__layer layer[QN__MAX_LAYERS];
    uint64_t parameters;
    float *parameter;
    qn__pretrained_layer named[QN__MAX_LAYERS];
    uint32_t layers; /* that have parameters */
} import;

/* The tensors of one layer: `parts` weights or biases whose outputs follow one another. */
typedef struct sources {
    uint32_t parts;
    const qn__tensor_view *view[MOST_PARTS];
} sources;

/* ------------------------------------------------------------------ files beside it */

static int is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* A file in the folder, or beside the file, that `path` names; 0: there is none. */
static int find_beside(const char *path, const char *name, char found[PATH_MAX]) {
    struct stat about;
    const char *slash = strrchr(path, '/');
    const int folder = is_folder(path), size = folder  ? (int)strlen(path)
                                               : slash ? (int)(slash - path)
                                                       : 0;
    const char *between = folder || slash ? "/" : "";
    return snprintf(found, PATH_MAX, "%.*s%s%s", size, path, between, name) < PATH_MAX &&
           stat(found, &about) == 0 && S_ISREG(about.st_mode);
}

static qn_status refuse_config(const import *i) {
    qn__fail(i->err, QN_INPUT, "there is no config.json beside the tensors");
    qn__at(i->err, "%.300s", i->path);
    return qn__remedy(i->err, QN_INPUT,
                      "give the folder that save_pretrained wrote, or `config`, the file");
}

static qn_status read_config(import *i) {
    char found[PATH_MAX];
    const char *path = i->how->config;
    if (!path && !find_beside(i->path, "config.json", found))
        return refuse_config(i);
    return qn__pretrained_config_read(path ? path : found, i->how->type, &i->row, &i->sizes,
                                      i->err);
}

static qn_status refuse_tokenizer(const import *i, const char *path) {
    char text[400];
    snprintf(text, sizeof text, "%.350s", path);
    if (!i->err)
        return QN_UNSUPPORTED;
    if (!i->err->where[0])
        qn__at(i->err, "%s", text);
    return qn__remedy(i->err, QN_UNSUPPORTED,
                      "give `tokenizer` none: the model then takes numbers of tokens");
}

/* That of `tokenizer`, or the one that lies beside the tensors. */
static qn_status read_tokenizer(import *i) {
    char found[PATH_MAX], which[PATH_MAX + 8];
    const char *path = i->how->tokenizer;
    if (path && strcmp(path, "none") == 0)
        return QN_OK;
    if (!path && !find_beside(i->path, "tokenizer.json", found)) {
        qn__device_tell(
            "no tokenizer.json lies beside the tensors: the model takes numbers of tokens");
        return QN_OK;
    }
    snprintf(which, sizeof which, "file:%s", path ? path : found);
    const qn_status status = qn_tokenizer_open(which, NULL, 0, 0, &i->tokenizer, i->err);
    return status == QN_UNSUPPORTED ? refuse_tokenizer(i, which + 5) : status;
}

/* More tokens than the embedding has rows: texts would become numbers that the network lacks. */
static qn_status check_tokenizer(const import *i) {
    const uint32_t size = qn_tokenizer_size(i->tokenizer);
    if (!i->tokenizer || size <= i->sizes.vocabulary)
        return QN_OK;
    qn__fail(i->err, QN_MISMATCH, "the tokenizer has %u tokens, and the network knows %u", size,
             i->sizes.vocabulary);
    qn__at(i->err, "%.300s", i->path);
    return qn__remedy(i->err, QN_MISMATCH,
                      "give `tokenizer`, the tokenizer.json of this network; or `tokenizer` none");
}

/* ------------------------------------------------------------------ the recipe */

static qn_status check_context(import *i) {
    char text[160];
    i->context = i->how->context ? i->how->context : i->sizes.positions;
    if (!i->how->context && !i->row->table && i->context > USUAL_CONTEXT) {
        i->context = USUAL_CONTEXT;
        snprintf(text, sizeof text,
                 "items have %d of the %u positions of the network; `context` gives another number",
                 USUAL_CONTEXT, i->sizes.positions);
        qn__device_tell(text);
    }
    if (i->context <= i->sizes.positions)
        return QN_OK;
    qn__fail(i->err, QN_USAGE, "the network has %u positions", i->sizes.positions);
    qn__at(i->err, "`context`");
    return qn__remedy(i->err, QN_USAGE, "give a number from 1 to %u, or leave it out",
                      i->sizes.positions);
}

/* A corpus of one item, which says what data the model is for. */
static qn_status open_like(const import *i, qn_data **out) {
    qn_data_arrays arrays;
    qn_data_arrays_init(&arrays);
    uint32_t *zeros = qn__alloc((size_t)i->context + 1, sizeof *zeros, i->err);
    if (!zeros)
        return QN_MEMORY;
    const uint32_t known = i->tokenizer ? qn_tokenizer_size(i->tokenizer) : i->sizes.vocabulary;
    arrays.type = known <= UINT16_MAX ? QN_TOKENS16 : QN_TOKENS32;
    arrays.items = 1;
    arrays.features = i->context + 1;
    arrays.feature_step = 1;
    arrays.item_step = i->context;
    arrays.values = zeros;
    arrays.owner = zeros;
    arrays.release = qn__free;
    qn_status status = qn_data_lend(&arrays, out, i->err);
    if (status != QN_OK)
        qn__free(zeros);
    if (status != QN_OK || !i->tokenizer)
        return status;
    snprintf((*out)->tokens, sizeof(*out)->tokens, "%.16s %s", qn_tokenizer_kind(i->tokenizer),
             qn_tokenizer_digest(i->tokenizer));
    (*out)->tokenizer = qn__copy_text(qn_tokenizer_json(i->tokenizer, NULL), i->err);
    return (*out)->tokenizer ? QN_OK : QN_MEMORY;
}

/* A network of numbers that are too large is refused as a model text, which nobody wrote. */
static qn_status place(const import *i, qn_status status) {
    char what[sizeof i->err->what] = "";
    if (status != QN_USAGE)
        return status;
    if (i->err)
        memcpy(what, i->err->what, sizeof what);
    qn__fail(i->err, QN_UNSUPPORTED, "%s", what);
    qn__at(i->err, "%.300s, as its config.json describes the network", i->path);
    return qn__remedy(i->err, QN_UNSUPPORTED, "give the config.json that belongs to these tensors");
}

/* The recipe of a training that never was (docs/exactness.md 12.4, 25.81). */
static qn_status make_recipe(import *i) {
    qn_train_options job;
    qn_data *like = NULL;
    qn__text text = {0};
    i->layers = qn__pretrained_expand(i->row, &i->sizes, &text, i->named);
    char *model = qn__text_take(&text, i->err);
    qn_status status = model ? check_context(i) : QN_MEMORY;
    if (status == QN_OK)
        status = open_like(i, &like);
    qn_train_options_init(&job);
    job.model = model;
    qn__default_of_images(QN__TASK_CLASSIFY, &job);
    if (status == QN_OK)
        status = place(i, qn__recipe_from_options(&job, like, &i->recipe, i->err));
    qn_data_close(like);
    qn__free(model);
    if (status == QN_OK)
        qn__recipe_imported(&i->recipe, &i->tensors.shards);
    return status == QN_OK ? qn__network_program(&i->recipe.network, qn__recipe_input(&i->recipe),
                                                 i->layer, &i->parameters, i->err)
                           : status;
}

/* ------------------------------------------------------------------ the parameters */

static qn_status refuse_tensor(const import *i, const char *name, const qn__tensor_view *view,
                               const char *need) {
    char shape[96];
    if (view)
        qn__fail(i->err, QN_MISMATCH, "by config.json a tensor of %s has %s", i->row->type, need);
    else
        qn__fail(i->err, QN_MISMATCH, "a tensor of %s is missing, of %s", i->row->type, need);
    if (view)
        qn__at(i->err, "%.250s, tensor \"%.120s\" of %s", i->path, view->name,
               qn__tensor_shape(view, shape));
    else
        qn__at(i->err, "%.250s, no tensor \"%.120s\"", i->path, name);
    return qn__remedy(i->err, QN_MISMATCH,
                      "give the whole checkpoint, with the config.json that belongs to it");
}

/* The tensor "MODULE.PART"; `need`: its shape. Where the network is tied, a name after a bar holds,
 * and the one before it means nothing. */
static qn_status find_tensor(import *i, const char *module, const char *part, const char *need,
                             const qn__tensor_view **out) {
    char name[QN__PRETRAINED_NAME + 24];
    const char *bar = strchr(module, '|');
    snprintf(name, sizeof name, "%.*s.%s", (int)strcspn(module, "|"), module, part);
    *out = qn__named_take(&i->tensors, name);
    if (bar && i->sizes.tied) {
        snprintf(name, sizeof name, "%s.%s", bar + 1, part);
        *out = qn__named_take(&i->tensors, name);
    }
    return *out ? qn__named_check(&i->tensors, *out, i->err)
                : refuse_tensor(i, name + (*name == '/'), NULL, need);
}

/* Outputs of one part of a layer: of queries, keys and values, or all of them. */
static uint64_t rows_of(const import *i, uint32_t parts, uint32_t part, uint64_t all) {
    const uint64_t heads = part == 0 ? i->sizes.heads : i->sizes.groups;
    return parts == 1 ? all : heads * i->sizes.head;
}

/* The tensor of a part: `rows` numbers for each of `reads` inputs, or alone where that is 0. */
static qn_status find_source(import *i, const char *module, const char *part, int turned,
                             uint64_t rows, uint64_t reads, const qn__tensor_view **out) {
    char need[64];
    const uint64_t first = turned && reads ? reads : rows, second = turned && reads ? rows : reads;
    snprintf(need, sizeof need, reads ? "%llux%llu numbers" : "%llu numbers",
             (unsigned long long)first, (unsigned long long)second);
    const qn_status status = find_tensor(i, module, part, need, out);
    const int fits = status == QN_OK && (*out)->dimensions == (reads ? 2 : 1) &&
                     (*out)->rows == first && (*out)->columns == second;
    return status != QN_OK || fits ? status : refuse_tensor(i, "", *out, need);
}

/* The tensors of all parts of a layer's module: "q+k+v". */
static qn_status find_sources(import *i, const qn__pretrained_layer *named, const char *part,
                              uint64_t rows, uint64_t reads, sources *out) {
    char module[QN__PRETRAINED_NAME];
    uint32_t parts = 1;
    qn_status status = QN_OK;
    for (const char *at = named->module; *at; ++at)
        parts += *at == '+';
    *out = (sources){.parts = parts};
    const char *at = named->module;
    for (uint32_t p = 0; status == QN_OK && p < parts && p < MOST_PARTS; ++p) {
        const size_t size = strcspn(at, "+");
        snprintf(module, sizeof module, "%.*s", (int)size, at);
        at += size + (at[size] == '+');
        status = find_source(i, module, part, named->turned, rows_of(i, parts, p, rows), reads,
                             &out->view[p]);
    }
    return status;
}

static void tell(const import *i, uint32_t layer, const char *part, const sources *from) {
    char name[48], list[MOST_PARTS * QN__PRETRAINED_NAME] = "";
    size_t used = 0;
    for (uint32_t p = 0; p < from->parts && used < sizeof list; ++p)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", p ? " + " : "",
                                 from->view[p]->name);
    snprintf(name, sizeof name, "layer%u.%s", layer, part);
    if (i->told)
        i->told(i->user, name, list);
}

/* The weights of a convolution of 1x1, in the order of the tensors. */
static void copy_weights(import *i, const qn__layer *l, const sources *from, int turned) {
    const uint64_t reads = l->depth, count = reads * l->to.channels;
    uint64_t ends[MOST_PARTS] = {0};
    for (uint32_t p = 0; p < from->parts; ++p)
        ends[p] = (p ? ends[p - 1] : 0) + from->view[p]->count / reads;
    for (uint64_t k = 0; k < count; ++k) {
        const uint64_t filed = qn__product_filed(l, k), row = filed / reads, c = filed % reads;
        uint32_t p = 0;
        while (row >= ends[p])
            ++p;
        const uint64_t own = row - (p ? ends[p - 1] : 0);
        const uint64_t at = turned ? c * from->view[p]->columns + own : own * reads + c;
        i->parameter[l->weights + k] = qn__tensor_float(from->view[p], at);
    }
}

static qn_status take_vectors(import *i, uint32_t index, const qn__pretrained_layer *named,
                              const char *part, uint64_t at, uint64_t count) {
    sources from;
    const qn_status status = find_sources(i, named, part, count, 0, &from);
    if (status != QN_OK)
        return status;
    for (uint32_t p = 0; p < from.parts; ++p)
        for (uint64_t k = 0; k < from.view[p]->count; ++k)
            i->parameter[at++] = qn__tensor_float(from.view[p], k);
    tell(i, index, part, &from);
    return QN_OK;
}

static qn_status take_product(import *i, uint32_t index, const qn__pretrained_layer *named) {
    const qn__layer *l = &i->layer[index];
    sources from;
    const qn_status status = find_sources(i, named, "weight", l->to.channels, l->depth, &from);
    if (status != QN_OK)
        return status;
    copy_weights(i, l, &from, named->turned);
    tell(i, index, "weight", &from);
    return l->no_biases ? QN_OK : take_vectors(i, index, named, "bias", l->biases, l->to.channels);
}

/* A table of tokens, or the first rows of one of positions. */
static qn_status take_table(import *i, uint32_t index, const qn__pretrained_layer *named) {
    const qn__layer *l = &i->layer[index];
    const uint64_t columns = l->to.channels, rows = l->vector / columns;
    const uint64_t whole = l->kind == QN__LAYER_POSITION ? i->sizes.positions : rows;
    sources from;
    const qn_status status = find_sources(i, named, "weight", whole, columns, &from);
    if (status != QN_OK)
        return status;
    for (uint64_t k = 0; k < rows * columns; ++k)
        i->parameter[l->biases + k] = qn__tensor_float(from.view[0], k);
    tell(i, index, "weight", &from);
    return QN_OK;
}

static qn_status take_layer(import *i, uint32_t index, const qn__pretrained_layer *named) {
    const qn__layer *l = &i->layer[index];
    const char *const *names = qn__layer_ops_of(l->kind)->names;
    qn_status status = QN_OK;
    if (l->depth)
        return take_product(i, index, named);
    if (qn__layer_ops_of(l->kind)->bound)
        return take_table(i, index, named);
    for (uint32_t v = 0; status == QN_OK && v < l->vectors; ++v)
        status =
            take_vectors(i, index, named, names[v], l->biases + (uint64_t)v * l->vector, l->vector);
    return status;
}

static qn_status take_layers(import *i) {
    qn_status status = QN_OK;
    i->parameter = qn__alloc(i->parameters, sizeof *i->parameter, i->err);
    if (!i->parameter)
        return QN_MEMORY;
    for (uint32_t l = 0, n = 0; status == QN_OK && l < i->recipe.network.layers; ++l)
        if (i->layer[l].depth || i->layer[l].vectors)
            status = take_layer(i, l, &i->named[n++]);
    return status;
}

/* A tensor of no layer would mean that the network computes something else. */
static qn_status check_rest(const import *i) {
    char shape[96];
    const qn__tensor_view *left = qn__named_left(&i->tensors, i->row->ignored);
    if (!left)
        return QN_OK;
    qn__fail(i->err, QN_MISMATCH, "a tensor belongs to no part of %s with %u blocks", i->row->type,
             i->sizes.blocks);
    qn__at(i->err, "%.250s, tensor \"%.120s\" of %s", i->path, left->name,
           qn__tensor_shape(left, shape));
    return qn__remedy(i->err, QN_MISMATCH,
                      "give the config.json that belongs to these tensors; heads for other tasks "
                      "are left out by saving the network without them");
}

static qn_status make_model(import *i, qn_model **out) {
    qn_status status = read_config(i);
    if (status == QN_OK)
        status = read_tokenizer(i);
    if (status == QN_OK)
        status = check_tokenizer(i);
    if (status == QN_OK)
        status = qn__named_read(i->path, i->row->head[0].module, &i->tensors, i->err);
    if (status == QN_OK)
        status = make_recipe(i);
    if (status == QN_OK)
        status = take_layers(i);
    if (status == QN_OK)
        status = check_rest(i);
    const qn__fitted fitted = {.parameter = i->parameter, .target_deviation = 1.0f};
    return status == QN_OK ? qn__model_create(&i->recipe, &fitted, out, i->err) : status;
}

qn_status qn_model_import_pretrained(const char *path, const qn_pretrained_options *options,
                                     qn_import_told told, void *user, qn_model **out,
                                     qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED_OUT(out, err);
    QN__NEED(path, err);
    qn_pretrained_options how = {.size = sizeof how};
    qn_status status = QN_OK;
    if (options)
        status = qn__sized_take(QN__SIZED("options", qn_pretrained_options), options, &how, err);
    import *i = status == QN_OK ? qn__alloc(1, sizeof *i, err) : NULL;
    if (!i)
        return status == QN_OK ? QN_MEMORY : status;
    i->path = path;
    i->how = &how;
    i->told = told;
    i->user = user;
    i->err = err;
    status = make_model(i, out);
    qn__named_release(&i->tensors);
    qn__recipe_release(&i->recipe);
    qn_tokenizer_free(i->tokenizer);
    qn__free(i->parameter);
    qn__free(i);
    return status;
}

qn_status qn_pretrained_type(const char *path, const char *config, char type[32], qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(path, err);
    QN__NEED(type, err);
    char found[PATH_MAX];
    *type = '\0';
    if (!config && !find_beside(path, "config.json", found))
        return QN_OK;
    return qn__pretrained_config_type(config ? config : found, type, err);
}
