/* The parts of qn__recipe_check that look at the data: each fails as it does. */
#ifndef QN_MODEL_RECIPE_RECIPE_CHECK_H
#define QN_MODEL_RECIPE_RECIPE_CHECK_H

#include "model/recipe/recipe.h"

/* There are items, with features. */
qn_status qn__recipe_check_items(const qn__recipe *r, qn_error *err);
/* The columns and the classes. */
qn_status qn__recipe_check_table(const qn__recipe *r, qn_error *err);
/* The layers suit task, loss and pixels. */
qn_status qn__recipe_check_network(const qn__recipe *r, qn_error *err);
/* After the network. */
qn_status qn__recipe_check_augment(const qn__recipe *r, qn_error *err);
qn_status qn__recipe_check_class_weight(const qn__recipe *r, qn_error *err);
qn_status qn__recipe_check_scale_numbers(const qn__recipe *r, qn_error *err);
qn_status qn__recipe_check_resize(const qn__recipe *r, qn_error *err);

#endif
