/* Low-rank adapters of a recipe: docs/exactness.md 25.86. */
#ifndef QN_MODEL_RECIPE_ADAPTERS_H
#define QN_MODEL_RECIPE_ADAPTERS_H

#include "model/network/lora.h"
#include "model/recipe/recipe.h"

/* The rank of the adapters; 0: there are none. */
uint32_t qn__recipe_rank(const qn__recipe *recipe);

/* A qn__lora_role for each layer; QN__LORA_NONE without adapters. */
void qn__recipe_roles(const qn__recipe *recipe, char *role);

/* The network of the model to start from: that of the recipe without its adapters. */
void qn__recipe_start(const qn__recipe *recipe, qn__network *out);

/* What a user says of adapters (qn__lora_parse; NULL and "": nothing) becomes part of the recipe,
 * and the adapters part of its network, unless it has them already. Fails with QN_USAGE. */
qn_status qn__recipe_take_lora(const char *text, qn__recipe *recipe, qn_error *err);

/* Adapters are known by their layers, so the model to start from, of network `base`, may have no
 * block like them: QN_USAGE. */
qn_status qn__recipe_check_base(const qn__recipe *recipe, const qn__network *base, qn_error *err);

/* Part of qn__recipe_check. */
qn_status qn__recipe_check_lora(const qn__recipe *recipe, qn_error *err);

#endif
