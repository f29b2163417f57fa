/* Evaluations inside the library. */
#ifndef QN_PREDICT_EVALUATE_H
#define QN_PREDICT_EVALUATE_H

#include <quern/evaluate.h>

/* The largest number of outputs that are kept for an evaluation that was not requested. */
#define QN__EVALUATED_OUTPUTS ((uint64_t)1 << 26)

/* 1 where the outputs of so many items are kept. */
int qn__evaluation_fits(uint64_t items, uint32_t outputs);

/* The evaluation of a model that finds clusters. */
qn_status qn__evaluation_of_clusters(uint64_t items, uint32_t clusters, double inertia,
                                     qn_evaluation **out, qn_error *err);

/* The member `json` of an evaluation whose other members are filled, for qn__free. NULL, with
 * QN_MEMORY in err, where memory is short. */
char *qn__evaluation_json(const qn_evaluation *evaluation, qn_error *err);

#endif
