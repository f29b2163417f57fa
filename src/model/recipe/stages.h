/* Stages: a training in parts, each with its own epochs and learning rate. docs/exactness.md 17.15.
 */
#ifndef QN_MODEL_RECIPE_STAGES_H
#define QN_MODEL_RECIPE_STAGES_H

#include "model/recipe/recipe.h"

enum { QN__MOST_STAGES = 64 };

typedef struct qn__stage {
    uint32_t epochs;
    float learning_rate;
    qn__schedule schedule;
    uint32_t lr_step; /* of the schedule "step", as lr_gamma; else 0 */
    float lr_gamma;
    float lr_min; /* of the schedule "cosine"; else 0 */
    uint32_t warmup;
} qn__stage;

typedef struct qn__stages {
    uint32_t count; /* at least 1 */
    qn__stage stage[QN__MOST_STAGES];
} qn__stages;

/* The recipe's own numbers, as the only stage. */
qn__stage qn__stage_of(const qn__recipe *recipe);

/* Reads "epochs 5 lr 0.1; epochs 5 lr 0.01 schedule cosine". `usual` has the values that a stage
 * does not give; each stage must give its epochs. Fails with QN_USAGE; numbers are in their ranges.
 */
qn_status qn__stages_parse(const char *text, const qn__stage *usual, qn__stages *out,
                           qn_error *err);

/* Appends the text in the form that recipes have. */
void qn__stages_add_text(const qn__stages *stages, qn__text *text);

/* Sum of the epochs. */
uint64_t qn__stages_epochs(const qn__stages *stages);

/* The stages of a recipe that was checked: those of its text, else itself. */
void qn__stages_of(const qn__recipe *recipe, qn__stages *out);

/* The stage of an epoch, from 0, and the epoch with which it begins. Epochs after the last one are
 * of the last stage. */
uint32_t qn__stages_at(const qn__stages *stages, uint64_t epoch, uint64_t *first);

/* Completes a new recipe: `text` is the user's, or NULL. Fails with QN_USAGE or QN_MEMORY. */
qn_status qn__stages_take(const char *text, qn__recipe *recipe, qn_error *err);

/* Checks that the recipe's text has the form that recipes have, and that its own numbers are what
 * they are with stages. QN_USAGE. */
qn_status qn__recipe_check_stages(const qn__recipe *recipe, qn_error *err);

#endif
