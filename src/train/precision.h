/* The precision that integer arithmetic (docs/exactness.md 15) costs a training, for reports: no
 * result depends on it. With float32 there is nothing to report. */
#ifndef QN_TRAIN_PRECISION_H
#define QN_TRAIN_PRECISION_H

#include "job/train_job.h"
#include <quern/train.h>

enum { QN__NAMED_FEATURES = 5 };

/* Features so small beside the others of their items that rounding leaves them fewer than three
 * bits. The measure is the mean change of their non-zero values by rounding, compared with their
 * spread. A feature that the integers represent exactly is not one of them, nor one that is nearly
 * always zero. */
typedef struct qn__small_features {
    uint32_t count;
    uint32_t feature[QN__NAMED_FEATURES]; /* the first of them, ascending, from 0 */
} qn__small_features;

/* Examines items of the training set at equal distances, up to about two million values. */
qn_status qn__find_small_features(const qn__program *program, const qn_data *train,
                                  qn__small_features *found, qn_error *err);

/* The same as a sentence, with the remedy; `text` is empty if there is nothing to report. */
qn_status qn__precision_warning(const qn__train_job *job, char *text, size_t size, qn_error *err);

/* The shares of values that lost all bits, for the job's state as last fetched. The reference
 * computes the first items of the last epoch, at most a grain: about eight million multiplications
 * forward and as many backward, or those of one item if its network is larger. */
qn_status qn__precision_of(const qn__train_job *job, qn_rounding *rounding, qn_error *err);

#endif
