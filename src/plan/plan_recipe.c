#include "plan/plan_recipe.h"

#include "job/features.h"
#include "model/formats/recipe_options.h"
#include "model/recipe/freeze.h"
#include <string.h>

/* A recipe with such layers has the digest of a model; of this one nobody looks for the file. */
static qn_status freeze(const char *text, qn__recipe *recipe, qn_error *err) {
    const qn_status status = qn__freeze_tidy(text, recipe->network.layers, &recipe->freeze, err);
    if (status != QN_OK || !recipe->freeze)
        return status;
    if (!*recipe->init_from)
        memset(recipe->init_from, '0', sizeof recipe->init_from - 1);
    return qn__recipe_check_freeze(recipe, err);
}

qn_status qn__plan_recipe(const qn_train_options *options, const qn_data *data, qn__recipe *out,
                          qn_error *err) {
    qn_train_options own = *options;
    own.freeze = NULL;
    qn_status status = qn__recipe_from_options(&own, data, out, err);
    if (status != QN_OK)
        return status;
    status = qn__recipe_check_steps(out, err);
    if (status == QN_OK)
        status = freeze(options->freeze, out, err);
    if (status == QN_OK)
        status = qn__features_check(out, &options->compute, err);
    if (status != QN_OK)
        qn__recipe_release(out);
    return status;
}
