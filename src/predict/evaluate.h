/* Evaluations inside the library. */
#ifndef QN_PREDICT_EVALUATE_H
#define QN_PREDICT_EVALUATE_H

#include "base/text/text.h"
#include <quern/evaluate.h>

/* The largest number of outputs that are kept for an evaluation that was not requested. */
#define QN__EVALUATED_OUTPUTS ((uint64_t)1 << 26)

/* 1 where the outputs of so many items are kept. */
int qn__evaluation_fits(uint64_t items, uint32_t outputs);

/* The evaluation of a model that finds clusters. */
qn_status qn__evaluation_of_clusters(uint64_t items, uint32_t clusters, double inertia,
                                     qn_evaluation **out, qn_error *err);

/* Appends an evaluation as JSON (docs/formats.md); NULL: null. */
void qn__evaluation_add_json(qn__text *text, const qn_evaluation *evaluation);

#endif
