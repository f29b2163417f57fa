/* The recipe of a model by sums: docs/exactness.md 20.7. */
#ifndef QN_STATISTICS_FIT_SUM_RECIPE_H
#define QN_STATISTICS_FIT_SUM_RECIPE_H

#include "statistics/fit/sum_model.h"

/* Takes parameters from a text such as "clusters=3 seed=7"; all others get their defaults. Fails
 * with QN_USAGE. */
qn_status qn__sum_take(qn__sum_model *m, const char *text, qn_error *err);

/* Makes the texts of the model: parameters and recipe. Fails with QN_MEMORY. */
qn_status qn__sum_texts(qn__sum_model *m, qn_error *err);

/* Fills the members that a recipe holds. It must be as qn__sum_texts would write it. Fails with
 * QN_FORMAT, QN_MEMORY. */
qn_status qn__sum_parse(qn__sum_model *m, const char *json, qn_error *err);

#endif
