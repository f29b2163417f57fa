/* Layers that do not train: docs/exactness.md 24.61. */
#ifndef QN_MODEL_RECIPE_FREEZE_H
#define QN_MODEL_RECIPE_FREEZE_H

#include "model/recipe/recipe.h"

/* Reads what a user or a recipe says of the first layers of a network with so many: "0..14",
 * "0..3,4", "7", "all-but-last"; NULL and "": none. Fails with QN_USAGE. */
qn_status qn__freeze_parse(const char *text, uint32_t layers, uint32_t *count, qn_error *err);

/* In the form that recipes have, released with qn__free; NULL in *out: none. */
qn_status qn__freeze_tidy(const char *text, uint32_t layers, char **out, qn_error *err);

/* Part of qn__recipe_check. */
qn_status qn__recipe_check_freeze(const qn__recipe *recipe, qn_error *err);

/* Tells the program of the recipe, and its layers, which of them do not train. */
void qn__recipe_freeze(const qn__recipe *recipe, qn__layer *layer, qn__program *program);

#endif
