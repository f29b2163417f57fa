/* What a training tells about the model that it starts from. */
#include "model/recipe/tables.h"
#include "train/trainer_state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note_frozen(const qn_train *t) {
    const qn__program *p = &t->job.program;
    uint32_t still = p->frozen;
    char text[160], which[40];
    for (uint32_t l = p->frozen; l < p->layers; ++l)
        still += (uint32_t)p->layer[l].still;
    if (still == 0)
        return;
    if (still == p->frozen)
        snprintf(which, sizeof which, "layers 0 to %u", still - 1);
    else
        snprintf(which, sizeof which, "%u of %u layers", still, p->layers);
    snprintf(text, sizeof text, "%s do not train: %llu of %llu parameters are those of the model",
             which, (unsigned long long)p->frozen_parameters, (unsigned long long)p->parameters);
    qn__train_note(t, text);
}

static void note_new_last(const qn_train *t) {
    const qn__network *network = &t->job.recipe.network;
    qn__text text = {0};
    if (!t->job.recipe.new_last)
        return;
    qn__text_add(&text, "the last layer, \"");
    qn__network_layer_text(&network->layer[network->layers - 1], &text);
    qn__text_add(&text, "\", begins with new weights; the others are those of the model");
    if (!text.failed)
        qn__train_note(t, text.data);
    free(text.data);
}

/* Layers that come from inputs of another kind tell little about these, and without a note nobody
 * sees why. Who names a scale knows it. */
static void note_scale(const qn_train *t, const qn_train_options *options) {
    const qn__recipe *before = qn__model_recipe_of(options->init_from), *now = &t->job.recipe;
    const char *name = qn__table_name(&qn__scalings, (int)before->scale);
    char text[240];
    if (options->scale || before->scale == now->scale ||
        (qn__recipe_needs_bytes(before) && qn__recipe_needs_bytes(now)))
        return;
    snprintf(text, sizeof text,
             "the model to start from was trained with `train.scale` %s, and this training has %s: "
             "its weights suit other inputs; `train.scale` %s, or `train.init_scale` keep, goes on "
             "with what it knows",
             name, qn__table_name(&qn__scalings, (int)now->scale), name);
    qn__train_note(t, text);
}

void qn__train_note_start(const qn_train *t, const qn_train_options *options) {
    if (!qn__train_is_writer(t))
        return;
    note_new_last(t);
    note_frozen(t);
    note_scale(t, options);
}
