/* The names in a recipe: activations, losses, optimisers, initialisations, scalings, arithmetics,
 * schedules. One table each; a new one is a row here and its arithmetic. Messages, help, manual
 * pages and completions read the same rows (<quern/choices.h>). */
#ifndef QN_MODEL_RECIPE_TABLES_H
#define QN_MODEL_RECIPE_TABLES_H

#include "model/network/choice_table.h"

extern const qn__table qn__losses;           /* qn__loss */
extern const qn__table qn__optimizers;       /* qn__optimizer */
extern const qn__table qn__initialisations;  /* qn__init of model/recipe/recipe.h */
extern const qn__table qn__scalings;         /* qn__scale */
extern const qn__table qn__arithmetics;      /* qn__arith */
extern const qn__table qn__schedules;        /* qn__schedule of model/recipe/recipe.h */
extern const qn__table qn__tasks;            /* qn__task of model/recipe/recipe.h */
extern const qn__table qn__missing_rules;    /* qn__missing of data/prepare/fill.h */
extern const qn__table qn__keeps;            /* qn__keep of model/recipe/recipe.h */
extern const qn__table qn__init_scales;      /* qn__init_scale of model/recipe/recipe.h */
extern const qn__table qn__decays;           /* qn__decay */
extern const qn__table qn__attention_ariths; /* qn__attention_arith */

/* Whether the row of `value` uses this member of qn_train_options, such as "beta1", and not all
 * rows do. */
int qn__table_takes(const qn__table *table, int value, const char *member);

/* Whether `lr_gamma` may have this value with a qn__schedule that takes it. */
#define QN__GAMMA_REMEDY                                                                           \
    "give a number greater than 0, at most 1, such as 0.5; with the schedule exponential one "     \
    "from "                                                                                        \
    "0.5 to 10, such as 0.999"
int qn__gamma_fits(int schedule, float gamma);

#endif
