/* Recipes of networks that give several answers to an item (docs/exactness.md 24.76): the labels
 * that it has, or the class of each of its pixels. */
#ifndef QN_MODEL_RECIPE_SEVERAL_TARGETS_H
#define QN_MODEL_RECIPE_SEVERAL_TARGETS_H

#include "model/recipe/recipe.h"

static inline int qn__recipe_is_several(const qn__recipe *recipe) {
    return recipe->task >= QN__TASK_SEGMENT;
}

/* The task of a table's labels. */
qn__task qn__task_of(const qn_data *data);

/* What the last layer is as wide as, where nobody says it: classes, or labels. */
uint32_t qn__width_for(const qn_data *data);

/* Parts of qn__recipe_check. That of the last layer comes before the layers are looked at, the
 * other one after them. */
qn_status qn__recipe_check_last(const qn__recipe *recipe, qn_error *err);
qn_status qn__recipe_check_several(const qn__recipe *recipe, qn_error *err);

/* Whether training sees the targets moved, or cut, with the pictures (24.22, 24.23). Of a recipe
 * whose texts were checked. */
int qn__recipe_moves_targets(const qn__recipe *recipe);

/* Checks that several targets of the data are those of the last layer; `what` names the data in
 * messages. Fails with QN_MISMATCH. */
qn_status qn__recipe_check_targets(const qn__recipe *recipe, const qn_data *data, const char *what,
                                   qn_error *err);
/* The same of a set of a training, in which a target must count. Fails with QN_INPUT too. */
qn_status qn__recipe_check_set(const qn__recipe *recipe, const qn_data *data, const char *what,
                               qn_error *err);

/* Tells a program of the recipe, and its last layer, how many answers an item has. */
void qn__recipe_several(const qn__recipe *recipe, qn__layer *layer, qn__program *program);

#endif
