#include "predict/trainer_sets.h"

#include <string.h>

qn__fitting qn__fitting_of(const qn__recipe *recipe, const char *what) {
    return (qn__fitting){.schema = recipe->table,
                         .features = recipe->features,
                         .outputs = recipe->network.layer[recipe->network.layers - 1].out,
                         .weight = recipe->weight,
                         .what = what};
}

qn_status qn__shape_check(const qn__recipe *recipe, const qn_data *data, const char *what,
                          qn_error *err) {
    const qn__shape *s = &recipe->shape;
    const int files = strncmp(data->format, "images", 6) == 0;
    if (data->channels == 0 ||
        (s->channels == 0 && (!files || data->features == recipe->features)) ||
        (data->channels == s->channels && data->rows == s->height && data->columns == s->width))
        return QN_OK;
    if (s->channels == 0)
        qn__fail(err, QN_MISMATCH,
                 "%s has images of %ux%ux%u, which is %u values, and the model takes %u", what,
                 data->channels, data->rows, data->columns, data->features, recipe->features);
    else
        qn__fail(err, QN_MISMATCH,
                 "%s has items of %ux%ux%u, the model takes %ux%ux%u (channels x height x width)",
                 what, data->channels, data->rows, data->columns, s->channels, s->height, s->width);
    if (files && data->channels == 3 &&
        (s->channels == 1 || 3 * (uint64_t)recipe->features == data->features))
        return qn__remedy(err, QN_MISMATCH,
                          "the model was trained on grey images, and these have colours: make grey "
                          "images of them, or train on images with colours");
    if (files && s->channels)
        return qn__remedy(err, QN_MISMATCH, "bring the images to that size: `data.resize` %ux%u",
                          s->height, s->width);
    return qn__remedy(err, QN_MISMATCH, "%s",
                      files ? "bring the images to the size of those in training: `data.resize`"
                            : "`data.shape` says the shape of an item");
}

/* Replaces *set by what the model takes; `place` is where that is kept for its release. */
static qn_status fit(const qn_train_options *o, const qn__recipe *recipe, const char *what,
                     const qn_data **set, qn_data **place, qn_error *err) {
    qn__fitting to = qn__fitting_of(recipe, what);
    to.as_trained = o->table_of && recipe == qn__model_recipe_of(o->table_of);
    if (!*set)
        return QN_OK;
    if (!o->compute.cluster || qn_cluster_is_writer(o->compute.cluster)) {
        to.note = o->on_note;
        to.user = o->user;
    }
    qn_status status = o->shape ? QN_OK : qn__shape_check(recipe, *set, what, err);
    if (status == QN_OK)
        status = qn__encode(&to, *set, QN__UNKNOWN_REFUSED, place, err);
    if (*place)
        *set = *place;
    return status;
}

qn_status qn__train_sets_first(const qn_train_options *options, qn__train_sets *sets,
                               qn_error *err) {
    if (!options->table_of)
        return QN_OK;
    return fit(options, qn__model_recipe_of(options->table_of), "the training data", &sets->train,
               &sets->made[0], err);
}

qn_status qn__train_sets_others(const qn_train_options *options, const qn__recipe *recipe,
                                qn__train_sets *sets, qn_error *err) {
    const qn_status status =
        fit(options, recipe, "the validation set", &sets->valid, &sets->made[1], err);
    return status == QN_OK ? fit(options, recipe, "the test set", &sets->test, &sets->made[2], err)
                           : status;
}

/* A replay needs the validation file that told the best epoch. */
static qn_status compare(const qn__recipe *was, const qn__recipe *now, qn_error *err) {
    if (strcmp(was->valid_data, now->valid_data) == 0)
        return QN_OK;
    qn__fail(err, QN_MISMATCH, "%s",
             !*now->valid_data ? "a validation file decided on the best epoch of this model"
                               : "this is not the validation file that decided on the best epoch");
    qn__at(err, "digest in the recipe %s, given %s", *was->valid_data ? was->valid_data : "none",
           *now->valid_data ? now->valid_data : "none");
    return qn__remedy(err, QN_MISMATCH, "give that file with `valid.path`");
}

qn_status qn__train_sets_judge(const qn_train_options *options, const qn__train_sets *sets,
                               qn__recipe *recipe, qn_error *err) {
    const qn__encoding how = qn__recipe_encoding(recipe, NULL, NULL);
    qn_status status = QN_OK;
    if (sets->valid && qn__recipe_judges(recipe))
        status = qn__inputs_digest(&how, sets->valid, recipe->valid_data, err);
    if (status != QN_OK)
        return status;
    qn__recipe_tidy(recipe);
    if (options->table_of && options->table_of != options->init_from)
        status = compare(qn__model_recipe_of(options->table_of), recipe, err);
    return status == QN_OK ? qn__recipe_check_best(recipe, err) : status;
}

void qn__train_sets_release(qn__train_sets *sets) {
    for (int i = 0; i < 3; ++i)
        qn_data_close(sets->made[i]);
    *sets = (qn__train_sets){0};
}
