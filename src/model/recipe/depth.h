/* Learning rates by depth: docs/exactness.md 24.62. */
#ifndef QN_MODEL_RECIPE_DEPTH_H
#define QN_MODEL_RECIPE_DEPTH_H

#include "model/recipe/recipe.h"

/* Part of qn__recipe_check. */
qn_status qn__recipe_check_depth(const qn__recipe *recipe, qn_error *err);

/* Sets the factor of each layer of the recipe's network. Returns the number of parts. */
uint32_t qn__recipe_depth(const qn__recipe *recipe, qn__layer *layer);

#endif
