#include "run/trainer_sets.h"

qn__fitting qn__fitting_of(const qn__recipe *recipe, const char *what) {
    return (qn__fitting){.schema = recipe->table,
                         .features = recipe->features,
                         .outputs = recipe->network.layer[recipe->network.layers - 1].out,
                         .weight = recipe->weight,
                         .what = what};
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
    const qn_status status = qn__encode(&to, *set, QN__UNKNOWN_REFUSED, place, err);
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

void qn__train_sets_release(qn__train_sets *sets) {
    for (int i = 0; i < 3; ++i)
        qn_data_close(sets->made[i]);
    *sets = (qn__train_sets){0};
}
