/* A model from a checkpoint of the package transformers, whose config.json says which network it
 * is. docs/formats.md describes it. */
#include "model/formats/model.h"

#include "base/files/remote.h"
#include "base/argument.h"
#include "base/memory.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "data/table/data.h"
#include "device/notes.h"
#include "model/exchange/imported_recipe.h"
#include "model/exchange/pretrained_import.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/defaults.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { USUAL_CONTEXT = 2048 };

typedef qn__pretrained_import import;

/* ------------------------------------------------------------------ files beside it */

/* A file in the folder, or beside the file, that `path` names; 0: there is none. */
static int find_beside(const char *path, const char *name, char found[PATH_MAX]) {
    const char *slash = strrchr(path, '/');
    const int folder = qn__path_is_folder(path), size = folder  ? (int)strlen(path)
                                                        : slash ? (int)(slash - path)
                                                                : 0;
    const int ends = size > 0 && path[size - 1] == '/';
    const char *between = (folder || slash) && !ends ? "/" : "";
    return snprintf(found, PATH_MAX, "%.*s%s%s", size, path, between, name) < PATH_MAX &&
           qn__remote_file_is_there(found);
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
    const qn__pretrained_said said = {i->how->type, i->how->task};
    const qn_status status =
        qn__pretrained_config_read(path ? path : found, &said, &i->config, i->err);
    i->row = i->config.row;
    return status;
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
    if (!i->tokenizer || size <= i->config.sizes.vocabulary)
        return QN_OK;
    qn__fail(i->err, QN_MISMATCH, "the tokenizer has %u tokens, and the network knows %u", size,
             i->config.sizes.vocabulary);
    qn__at(i->err, "%.300s", i->path);
    return qn__remedy(i->err, QN_MISMATCH,
                      "give `tokenizer`, the tokenizer.json of this network; or `tokenizer` none");
}

/* ------------------------------------------------------------------ the recipe */

static qn_status check_context(import *i) {
    char text[160];
    i->context = i->how->context ? i->how->context : i->config.sizes.positions;
    if (!i->how->context && !i->row->table && i->context > USUAL_CONTEXT) {
        i->context = USUAL_CONTEXT;
        snprintf(text, sizeof text,
                 "items have %d of the %u positions of the network; `context` gives another number",
                 USUAL_CONTEXT, i->config.sizes.positions);
        qn__device_tell(text);
    }
    if (i->context <= i->config.sizes.positions)
        return QN_OK;
    qn__fail(i->err, QN_USAGE, "the network has %u positions", i->config.sizes.positions);
    qn__at(i->err, "`context`");
    return qn__remedy(i->err, QN_USAGE, "give a number from 1 to %u, or leave it out",
                      i->config.sizes.positions);
}

/* What the answers to an item are, beside its tokens. A real number has no name. */
static qn_status add_answers(const import *i, qn_data_arrays *arrays, uint8_t **several,
                             qn_error *err) {
    static const float zero[1] = {0};
    const qn__pretrained_sizes *s = &i->config.sizes;
    const int tags = i->row->task == QN__PRETRAINED_TAGS;
    if (strcmp(s->answer, "none") == 0) {
        arrays->targets = zero;
        return QN_OK;
    }
    arrays->class_name = (const char *const *)i->config.labels.name;
    arrays->classes = i->config.labels.count;
    if (!tags && strcmp(s->answer, "sigmoid") != 0)
        return QN_OK;
    arrays->each = tags ? i->context : s->outputs;
    arrays->mask_rows = (uint32_t)tags;
    arrays->mask_columns = tags ? i->context : 0;
    arrays->several = *several = qn__alloc(arrays->each, 1, err);
    if (tags && *several)
        (*several)[0] = (uint8_t)(s->outputs - 1);
    return *several ? QN_OK : QN_MEMORY;
}

static qn_status add_tokenizer(const import *i, qn_data *data) {
    if (!i->tokenizer)
        return QN_OK;
    snprintf(data->tokens, sizeof data->tokens, "%.16s %s%s", qn_tokenizer_kind(i->tokenizer),
             qn_tokenizer_digest(i->tokenizer),
             i->row->task == QN__PRETRAINED_TAGS ? QN__TOKENS_WORDS : "");
    data->tokenizer = qn__copy_text(qn_tokenizer_json(i->tokenizer, NULL), i->err);
    return data->tokenizer ? QN_OK : QN_MEMORY;
}

/* One item, which says what data the model is for: of a corpus where it tells the next token. */
static qn_status open_like(const import *i, qn_data **out) {
    qn_data_arrays arrays;
    qn_data_arrays_init(&arrays);
    const uint32_t next = i->row->task == QN__PRETRAINED_NEXT;
    const int32_t label[1] = {(int32_t)i->config.sizes.outputs - 1};
    uint8_t *several = NULL;
    uint32_t *zeros = qn__alloc((size_t)i->context + next, sizeof *zeros, i->err);
    if (!zeros)
        return QN_MEMORY;
    const uint32_t known =
        i->tokenizer ? qn_tokenizer_size(i->tokenizer) : i->config.sizes.vocabulary;
    arrays.type = known <= UINT16_MAX ? QN_TOKENS16 : QN_TOKENS32;
    arrays.items = 1;
    arrays.features = i->context + next;
    arrays.feature_step = next;
    arrays.item_step = next ? i->context : 0;
    arrays.values = zeros;
    arrays.owner = zeros;
    arrays.release = qn__free;
    qn_status status = next ? QN_OK : add_answers(i, &arrays, &several, i->err);
    if (!next && !arrays.targets && !several)
        arrays.labels = label;
    if (status == QN_OK)
        status = qn_data_lend(&arrays, out, i->err);
    if (status != QN_OK)
        qn__free(zeros);
    qn__free(several);
    return status == QN_OK ? add_tokenizer(i, *out) : status;
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
    i->layers = qn__pretrained_expand(i->row, &i->config.sizes, &text, i->named);
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
        status = qn__pretrained_take(i);
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
    qn__class_labels_release(&i->config.labels);
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
