/* The recipe of a plan and of a measurement. */
#ifndef QN_PLAN_PLAN_RECIPE_H
#define QN_PLAN_PLAN_RECIPE_H

#include "model/recipe/recipe.h"
#include <quern/train.h>

/* That of a training on the data, whose steps can be counted. Layers that do not train need no
 * model here: its weights change no time. *out is the caller's to release. */
qn_status qn__plan_recipe(const qn_train_options *options, const qn_data *data, qn__recipe *out,
                          qn_error *err);

#endif
