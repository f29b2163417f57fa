/* The arithmetic of evaluations (docs/exactness.md, section 19). Every item counts by a whole
 * number, its count: 1, or its weight in multiples of a unit. So sums of counts are integers, which
 * have no order. */
#ifndef QN_JOB_EVALUATION_H
#define QN_JOB_EVALUATION_H

#include "base/error.h"
#include <stdint.h>

enum { QN__CALIBRATION_BINS = 15, QN__NEAR = 5 };

/* Items, labels and outputs. An item whose first output is NaN does not take part. */
typedef struct qn__judged {
    uint64_t items;         /* below 2^32 */
    uint32_t classes;       /* at least 2 */
    uint32_t outputs;       /* 1, or `classes` */
    int probabilities;      /* 1: outputs are from 0 to 1 */
    const int32_t *labels;  /* items; any number */
    const float *output;    /* items x outputs, finite but for the NaN above */
    const uint64_t *counts; /* items; NULL: all are 1 */
} qn__judged;

/* Of a class: sums of counts, and numbers of items. */
typedef struct qn__class_tally {
    uint64_t labelled, predicted, correct; /* counts */
    uint64_t items, taken, right;          /* the same of items */
    double auc;
} qn__class_tally;

typedef struct qn__bin_tally {
    uint64_t count, correct, items;
    double confidence; /* mean */
} qn__bin_tally;

typedef struct qn__evaluated {
    uint64_t count, correct, items, right;
    uint64_t near; /* counts whose label is among the QN__NEAR classes of the greatest outputs */
    double log_loss, calibration_error, auc;
    qn__class_tally *of; /* `classes`, owned by the caller */
    qn__bin_tally bin[QN__CALIBRATION_BINS];
} qn__evaluated;

/* Counts from weights that are finite, from 0 and not all 0: *out has `items`, for qn__free. The
 * sum of the counts is below 2^62 + items. */
qn_status qn__evaluation_counts(const float *weights, uint64_t items, uint64_t **out,
                                qn_error *err);

/* Fills all of *out but `auc`; `of` is zeroed before. */
void qn__evaluation_classes(const qn__judged *in, qn__evaluated *out);

/* Fills out->auc and those of the classes, after qn__evaluation_classes. QN_MEMORY. */
qn_status qn__evaluation_auc(const qn__judged *in, qn__evaluated *out, qn_error *err);

/* The mean of numbers that are not NaN, each `weight` times (NULL: once), from their exact sum, and
 * rounded once. NaN where there are none. */
double qn__evaluation_mean(uint32_t count, const double *numbers, const uint64_t *weight);

#endif
