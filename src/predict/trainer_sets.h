/* The data sets of a training as its model takes them: columns and classes matched by name. */
#ifndef QN_PREDICT_TRAINER_SETS_H
#define QN_PREDICT_TRAINER_SETS_H

#include "data/prepare/encode.h"
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

/* Puts the digest of the validation set into the recipe where it decides on the best epoch, and
 * compares it with that of the model that is replayed. After the others; fails with QN_USAGE (there
 * is none), QN_MISMATCH (another one) or QN_MEMORY. */
qn_status qn__train_sets_judge(const qn_train_options *options, const qn__train_sets *sets,
                               qn__recipe *recipe, qn_error *err);

/* Frees what was made. */
void qn__train_sets_release(qn__train_sets *sets);

/* What a table has to fit, to be used with the model of this recipe; `what` names it. */
qn__fitting qn__fitting_of(const qn__recipe *recipe, const char *what);

/* Whether items that tell their height and width have the shape of the recipe's; `what` names them.
 * Numbers of another shape would be other pixels. Fails with QN_MISMATCH. */
qn_status qn__shape_check(const qn__recipe *recipe, const qn_data *data, const char *what,
                          qn_error *err);

#endif
