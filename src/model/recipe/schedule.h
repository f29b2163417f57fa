/* The learning rate of each step. docs/exactness.md section 10. */
#ifndef QN_MODEL_RECIPE_SCHEDULE_H
#define QN_MODEL_RECIPE_SCHEDULE_H

#include "model/recipe/stages.h"

/* The learning rate of step `step` of the run, counted from 0; steps_per_epoch is ceil(n / batch),
 * not 0. */
float qn__learning_rate_in(const qn__stages *stages, uint64_t step, uint64_t steps_per_epoch);

/* Whether the rates of a step depend on the number of all steps. */
int qn__rate_looks_ahead(const qn__recipe *recipe);

#endif
