/* Initial parameters. docs/exactness.md 6.2, 24.83. */
#ifndef QN_MODEL_RECIPE_INITIAL_H
#define QN_MODEL_RECIPE_INITIAL_H

#include "model/recipe/recipe.h"

/* Writes the parameters of all layers to the flat array `parameter`, at the layers' offsets. The
 * layers are those of the recipe. */
void qn__initial_parameters(const qn__layer *layer, uint32_t layers, const qn__recipe *recipe,
                            float *parameter);

#endif
