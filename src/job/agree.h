/* What the ranks of a run compare before its first step. */
#ifndef QN_JOB_AGREE_H
#define QN_JOB_AGREE_H

#include "model/recipe/recipe.h"
#include <quern/train.h>

/* Calls qn_cluster_agree on everything that decides a training, and on what its checkpoints need.
 * `status` is the result of this rank's own checks, with `err` (not NULL) filled if it is not
 * QN_OK; `recipe` is read only if it is. */
qn_status qn__agree_to_train(const qn_train_options *options, const qn__recipe *recipe,
                             const qn_data *train, const qn_data *valid, const qn_data *test,
                             qn_status status, qn_error *err);

/* The same for answers to prompts: `options` is a JSON object, `batch` the number that is computed
 * together. */
qn_status qn__agree_to_generate(qn_cluster *cluster, const char *model_digest, const char *prompts,
                                const char *options, const char *batch, qn_status status,
                                qn_error *err);

/* The same for a prediction. */
qn_status qn__agree_to_predict(qn_cluster *cluster, const char *model_digest, const qn_data *data,
                               const char *results, qn_status status, qn_error *err);

#endif
