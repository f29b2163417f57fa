/* The recipe of a model whose parameters another program trained (docs/exactness.md 12.4). */
#ifndef QN_MODEL_EXCHANGE_IMPORTED_RECIPE_H
#define QN_MODEL_EXCHANGE_IMPORTED_RECIPE_H

#include "model/formats/shards.h"
#include "model/recipe/recipe.h"

/* Replaces what a recipe says about its data by what it says of the files of parameters. */
void qn__recipe_imported(qn__recipe *recipe, const qn__shards *shards);

#endif
