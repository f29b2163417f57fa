/* What integer arithmetic (docs/exactness.md 15) costs a training in precision, to be reported to
 * the user: no result depends on it. With float32 there is nothing to tell. */
#ifndef QN_RUN_PRECISION_H
#define QN_RUN_PRECISION_H

#include "job/train_job.h"
#include <quern/train.h>

enum { QN__NAMED_FEATURES = 5 };

/* Features that are so small beside the others of their items that rounding leaves them fewer than
 * three bits: by how much it moves their values, on an average of those that are not zero, against
 * how far they lie apart. A feature that its integers hold exactly is none of them, and neither is
 * one that is hardly ever there. */
typedef struct qn__small_features {
    uint32_t count;
    uint32_t feature[QN__NAMED_FEATURES]; /* the first of them, ascending, from 0 */
} qn__small_features;

/* Looks at items of the training set, evenly apart, up to some two million values. */
qn_status qn__find_small_features(const qn__program *program, const qn_data *train,
                                  qn__small_features *found, qn_error *err);

/* The same as a sentence, with the remedy; `text` is empty when there is nothing to tell. */
qn_status qn__precision_warning(const qn__train_job *job, char *text, size_t size, qn_error *err);

/* The shares of values that lost all bits, with the job's state as it was pulled last: the
 * reference looks at the first items of the last epoch, a grain of them at most. That takes some
 * eight million multiplications forward and as many backward, or those of one item where its
 * network is larger than that. */
qn_status qn__precision_of(const qn__train_job *job, qn_rounding *rounding, qn_error *err);

#endif
