/* Evaluations inside the library. */
#ifndef QN_PREDICT_EVALUATE_H
#define QN_PREDICT_EVALUATE_H

#include "data/table/schema.h"
#include "job/answer_counts.h"
#include "job/next_counts.h"
#include "model/formats/model_kind.h"
#include <quern/evaluate.h>

/* The largest number of outputs that are kept for an evaluation that was not requested. */
#define QN__EVALUATED_OUTPUTS ((uint64_t)1 << 26)

/* 1 where the outputs of so many items are kept. */
int qn__evaluation_fits(uint64_t items, uint32_t outputs);

/* The evaluation of a model that finds clusters. */
qn_status qn__evaluation_of_clusters(uint64_t items, uint32_t clusters, double inertia,
                                     qn_evaluation **out, qn_error *err);

/* Names of the first `named` classes or labels. They outlive the evaluation. */
typedef struct qn__answer_naming {
    const char *const *name;
    uint32_t named;
} qn__answer_naming;

/* The names of a table's classes, or of its labels where an item has several. `table` may be NULL.
 */
static inline qn__answer_naming qn__names_of(const qn__schema *table) {
    return (qn__answer_naming){.name = table ? (const char *const *)table->class_name : NULL,
                               .named = table ? table->classes : 0};
}

/* The evaluation of what was counted of several answers to an item. */
qn_status qn__evaluation_of_answers(const qn__answer_counts *counts, const qn_data *data,
                                    const qn__program *program, const qn__answer_naming *names,
                                    qn_evaluation **out, qn_error *err);

/* The evaluation of tokens that come next, whose targets are `bytes` of text; 0: unknown. */
qn_status qn__evaluation_of_next(const qn__next_counts *counts, uint64_t bytes, qn_evaluation **out,
                                 qn_error *err);

/* Bytes of the text that the targets are (25.66). *known 0: there is no such number. */
qn_status qn__next_bytes(const qn_data *data, const qn_model *model, uint64_t *bytes, int *known,
                         qn_error *err);

/* The member `json` of an evaluation whose other members are filled, for qn__free. NULL, with
 * QN_MEMORY in err, where memory is short. */
char *qn__evaluation_json(const qn_evaluation *evaluation, qn_error *err);

#endif
