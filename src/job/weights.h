/* Weights of the items of a training: those of the data times those of their classes, and as shares
 * whose mean is 1 (docs/exactness.md 7.7). */
#ifndef QN_JOB_WEIGHTS_H
#define QN_JOB_WEIGHTS_H

#include "data/table/data.h"
#include "model/recipe/recipe.h"

/* The weight of each item of `set`, for qn__free; *out is NULL where the recipe has none. Those of
 * the classes are in `of_class`, which qn__class_factors makes, or NULL. Fails with QN_INPUT (a
 * weight out of range, or no weight above 0), which names `what`, or QN_MEMORY. */
qn_status qn__weights_combine(const qn_data *set, const float *of_class, const char *what,
                              float **out, qn_error *err);

/* The weight of each class that the recipe gives for these training items, for qn__free; *out is
 * NULL where it gives none. Fails with QN_USAGE or QN_MEMORY. */
qn_status qn__class_factors(const qn__recipe *recipe, const qn_data *train, float **out,
                            qn_error *err);

/* Replaces weights of which one is above 0 by their shares: times their number, over their sum. */
void qn__weights_share(float *weights, uint64_t items);

/* Of items with several targets: *shares, or 1, divided by the number of targets of each item that
 * count (docs/exactness.md 24.72). *shares is replaced; it may be NULL. Does nothing for other
 * items. `tokens`: not 0 where targets are the next tokens of such a vocabulary. */
qn_status qn__weights_of_targets(const qn_data *set, uint32_t tokens, float **shares,
                                 qn_error *err);

#endif
