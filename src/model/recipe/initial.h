/* Initial parameters. docs/exactness.md 6.2. */
#ifndef QN_MODEL_RECIPE_INITIAL_H
#define QN_MODEL_RECIPE_INITIAL_H

#include "model/recipe/recipe.h"

/* Writes the parameters of all layers to the flat array `parameter`, at the layers' offsets. */
void qn__initial_parameters(const qn__layer *layer, uint32_t layers, qn__init init, uint64_t seed,
                            float *parameter);

#endif
