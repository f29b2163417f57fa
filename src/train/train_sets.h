/* The data sets of a training as its model takes them: columns and classes matched by name. */
#ifndef QN_TRAIN_TRAIN_SETS_H
#define QN_TRAIN_TRAIN_SETS_H

#include "predict/fitting.h"
#include "model/formats/model.h"
#include <quern/train.h>

typedef struct qn__train_sets {
    const qn_data *train, *valid, *test; /* the caller's, or those below; NULL: no such set */
    qn_data *made[3];                    /* that are not the caller's, or NULL */
} qn__train_sets;

/* Replaces sets->train, where options->table_of names the model whose columns it is to have. */
qn_status qn__train_sets_first(const qn_train_options *options, qn__train_sets *sets,
                               qn_error *err);

/* Replaces the validation and the test set where they differ from the table of the recipe. */
qn_status qn__train_sets_others(const qn_train_options *options, const qn__recipe *recipe,
                                qn__train_sets *sets, qn_error *err);

/* Sets the digest of the validation set in the recipe where that set decides the best epoch, and
 * compares it with that of a replayed model. Called after the other two; fails with QN_USAGE (there
 * is none), QN_MISMATCH (another one) or QN_MEMORY. */
qn_status qn__train_sets_judge(const qn_train_options *options, const qn__train_sets *sets,
                               qn__recipe *recipe, qn_error *err);

/* Frees what was made. */
void qn__train_sets_release(qn__train_sets *sets);

#endif
