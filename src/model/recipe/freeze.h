/* Layers that do not train: docs/exactness.md 24.61, 25.85. */
#ifndef QN_MODEL_RECIPE_FREEZE_H
#define QN_MODEL_RECIPE_FREEZE_H

#include "model/recipe/recipe.h"

/* Reads which of so many layers a user or a recipe names: "0..14", "0..3,7", "7", "all-but-last";
 * NULL and "": none. still[layers] receives 1 for each of them, 0 for the others. Fails with
 * QN_USAGE. */
qn_status qn__freeze_parse(const char *text, uint32_t layers, char *still, qn_error *err);

/* In the form that recipes have, released with qn__free; NULL in *out: none. */
qn_status qn__freeze_tidy(const char *text, uint32_t layers, char **out, qn_error *err);

/* Part of qn__recipe_check. */
qn_status qn__recipe_check_freeze(const qn__recipe *recipe, qn_error *err);

/* Which layers of a recipe that was checked do not train: still[layers]. */
void qn__recipe_still(const qn__recipe *recipe, char *still);

/* The number of first layers that need no errors. */
uint32_t qn__recipe_frozen(const qn__recipe *recipe);

/* Whether others do not train, either: the recipe is of contract 9 (25.85). */
int qn__recipe_freezes_single(const qn__recipe *recipe);

/* Tells the program of the recipe, and its layers, which of them do not train. The parameters of
 * these come to the beginning of all. */
void qn__recipe_freeze(const qn__recipe *recipe, qn__layer *layer, qn__program *program);

#endif
