#include "train/train_sets.h"

#include <string.h>

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
    const qn_status status = fit(options, qn__model_recipe_of(options->table_of),
                                 "the training data", &sets->train, &sets->made[0], err);
    if (status != QN_MISMATCH || options->table_of != options->init_from || !sets->train->labels)
        return status;
    return qn__remedy(
        err, status,
        "give data with the columns and classes of the model to start from; for other "
        "classes add `train.new_last`");
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
    const qn__encoding how = qn__recipe_encoding(recipe, NULL, NULL, NULL);
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
