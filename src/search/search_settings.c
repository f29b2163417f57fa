/* The settings of a search: their check before the first run, and which search they make. */
#include "search/search_parts.h"

#include "base/argument.h"
#include "base/digest/sha256.h"
#include "base/memory.h"
#include "base/text/text.h"
#include "data/cells/labels.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/tables.h"
#include <stdio.h>
#include <string.h>

enum { MOST_SETTINGS = 10000, LEAST_FOLDS = 2, MOST_FOLDS = 256 };

qn_status qn__search_name_error(const qn_search *s, uint32_t setting, qn_status status,
                                qn_error *err) {
    char what[sizeof err->what], name[300];
    if (!err || s->options.settings < 2)
        return status;
    if (s->options.name && s->options.name[setting])
        snprintf(name, sizeof name, "%.299s", s->options.name[setting]);
    else
        snprintf(name, sizeof name, "%u", setting);
    qn_error copy = *err;
    snprintf(what, sizeof what, "%.300s (setting %.180s)", err->what, name);
    qn__fail(err, status, "%s", what);
    memcpy(err->where, copy.where, sizeof err->where);
    memcpy(err->remedy, copy.remedy, sizeof err->remedy);
    return status;
}

/* A setting is a recipe: the search decides on all else. */
static qn_status check_recipe_only(const qn_train_options *o, qn_error *err) {
    const struct {
        const char *name;
        int given;
    } others[] = {{"`train.valid_fraction`", o->valid_fraction != 0},
                  {"`train.checkpoint_dir`", o->checkpoint_dir != NULL},
                  {"`train.resume`", o->resume != 0},
                  {"`train.run_dir`", o->run_dir != NULL},
                  {"`train.trace`", o->trace != NULL},
                  {"`train.report`", o->report != NULL},
                  {"`train.plots`", o->plots != NULL},
                  {"`train.runs`", o->runs != NULL}};
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i)
        if (others[i].given) {
            qn__fail(err, QN_USAGE, "%s does nothing in a search, whose folds are validation sets",
                     others[i].name);
            return qn__remedy(err, QN_USAGE, "leave it out, and train the best setting with it");
        }
    return QN_OK;
}

static qn_status take_setting(qn_search *s, uint32_t i, qn_error *err) {
    char name[64];
    const qn_train_options *given = s->options.setting[i];
    qn_train_options *own = &s->setting[i];
    if (!given)
        return qn__fail_null_at(err, "qn_search_open", "options->setting", i, "");
    snprintf(name, sizeof name, "options->setting[%u]", i);
    qn_status status = qn__train_options_take("qn_search_open", name, given, own, err);
    if (status == QN_OK)
        status = check_recipe_only(own, err);
    own->compute = (qn_compute){.size = sizeof own->compute};
    own->user = NULL;
    own->on_step = NULL;
    own->on_epoch = NULL;
    own->on_note = NULL;
    own->command_line = NULL;
    own->run_name = NULL;
    return status;
}

/* What follows from the data follows from all items, as in the training of the best setting: a fold
 * may lack a class, and look otherwise. */
static qn_status settle(qn_search *s, uint32_t i, const qn__recipe *recipe, qn_error *err) {
    qn_train_options *own = &s->setting[i];
    qn__text text = {0};
    if (!own->scale && !own->init_from)
        own->scale = qn__table_name(&qn__scalings, (int)recipe->scale);
    qn__recipe_settle(recipe, own);
    if (own->model)
        return QN_OK;
    qn__network_text(&recipe->network, &text);
    own->model = s->network[i] = qn__text_take(&text, err);
    return own->model ? QN_OK : QN_MEMORY;
}

/* The recipe of a setting on all items: that of its runs is the same but for their data. */
static qn_status recipe_of(qn_search *s, uint32_t i, char **json, qn_error *err) {
    qn__recipe recipe = {0};
    *json = NULL;
    qn_status status = qn__recipe_from_options(&s->setting[i], s->data, &recipe, err);
    if (status == QN_OK)
        status = qn__recipe_json(&recipe, json, err);
    if (status == QN_OK)
        status = settle(s, i, &recipe, err);
    qn__recipe_release(&recipe);
    return status;
}

static qn_status check_options(const qn_search_options *o, const qn_data *data, qn_error *err) {
    if (o->settings < 1 || o->settings > MOST_SETTINGS) {
        qn__fail(err, QN_USAGE, "a search cannot have %u settings", o->settings);
        return qn__remedy(err, QN_USAGE, "give 1 to %d (`search.settings`)", MOST_SETTINGS);
    }
    if (o->folds < LEAST_FOLDS || o->folds > MOST_FOLDS) {
        qn__fail(err, QN_USAGE, "a search cannot have %u folds", o->folds);
        return qn__remedy(err, QN_USAGE, "give %d to %d (`search.folds`)", LEAST_FOLDS, MOST_FOLDS);
    }
    if (o->compute.shares) {
        qn__fail(err, QN_USAGE,
                 "`compute.shares` divides the work of steps, but a search divides "
                 "whole runs");
        return qn__remedy(err, QN_USAGE, "leave it out");
    }
    if (!qn__data_labelled(data)) {
        qn__fail(err, QN_INPUT, "the training data has no labels");
        return qn__remedy(err, QN_INPUT,
                          "name their file (`data.labels_path`) or their column "
                          "(`data.label_column`)");
    }
    if (data->items < o->folds) {
        qn__fail(err, QN_INPUT, "%llu items are too few for %u folds",
                 (unsigned long long)data->items, o->folds);
        return qn__remedy(err, QN_INPUT, "give fewer folds (`search.folds`), or more items");
    }
    qn_status status = qn__search_parts_check(o, err);
    if (status == QN_OK)
        status = qn_compute_check(&o->compute, err);
    return status == QN_OK ? qn__labels_check(data, err) : status;
}

qn_status qn__search_settings(qn_search *s, char **first, qn_error *err) {
    const qn_search_options *o = &s->options;
    qn__sha256 hash;
    uint8_t digest[32];
    char hex[65];
    *first = NULL;
    qn_status status = check_options(o, s->data, err);
    if (status != QN_OK)
        return status;
    s->setting = qn__alloc(o->settings, sizeof *s->setting, err);
    s->network = qn__alloc(o->settings, sizeof *s->network, err);
    status = s->setting && s->network ? QN_OK : QN_MEMORY;
    qn__sha256_begin(&hash);
    for (uint32_t i = 0; i < o->settings && status == QN_OK; ++i) {
        char *json = NULL;
        status = take_setting(s, i, err);
        if (status == QN_OK)
            status = recipe_of(s, i, &json, err);
        if (status != QN_OK) {
            qn__free(json);
            return qn__search_name_error(s, i, status, err);
        }
        qn__sha256_add(&hash, json, strlen(json) + 1);
        *first = *first ? *first : json;
        if (*first != json)
            qn__free(json);
    }
    qn__sha256_end(&hash, digest);
    qn__hex(digest, hex);
    char line[256];
    snprintf(line, sizeof line, "2, data %s, folds %u, settings %u, recipes %s",
             qn_data_digest(s->data), o->folds, o->settings, hex);
    if (status == QN_OK && !(s->key = qn__copy_text(line, err)))
        status = QN_MEMORY;
    return status;
}
