/* The mistakes of a model, and how important each column is for its predictions: for a report. */
#ifndef QN_PREDICT_JUDGE_H
#define QN_PREDICT_JUDGE_H

#include <quern/device.h>
#include <quern/model.h>
#include "data/table/data.h"

enum { QN__JUDGED_CLASSES = 1024 };

/* A prediction that is not the label, or a number that is far from it. */
typedef struct qn__mistake {
    uint64_t item;
    int32_t label, class; /* label -1: a class that the model does not have */
    float target, prediction;
    float own;   /* the output of the label; of the class that one output does not have, 1 - it */
    double size; /* of real labels the absolute error, else -own, or -INFINITY for label -1 */
} qn__mistake;

typedef struct qn__judged {
    const qn_model *model;
    const qn_data *data; /* as the model takes it */
    qn_data *made;       /* `data`, where it was made here; NULL: it is the caller's */
    int real;
    uint32_t classes;        /* 0 for real labels */
    uint32_t outputs;        /* of the model */
    uint64_t items, correct; /* that have a prediction */
    double squares;          /* real labels: the sum of squared errors */
    uint64_t *confusion;     /* classes x classes; NULL: real labels, or too many classes */
    qn__mistake *worst;      /* descending by size; of equals the first item */
    uint32_t mistakes;
} qn__judged;

/* Predicts the items of `data`, which has labels, and keeps the `most` worst mistakes. `compute` as
 * of qn_predict, without ranks. Both sets must outlive *out, which the caller releases also after a
 * failure. Fails as qn_predict does, and with QN_INPUT where there are no labels. */
qn_status qn__judge(const qn_model *model, const qn_data *data, const qn_compute *compute,
                    uint32_t most, qn__judged *out, qn_error *err);
void qn__judged_release(qn__judged *judged);

/* The name of a class of the model, or its number, in `buffer`. */
const char *qn__judged_class(const qn_model *model, int32_t class, char buffer[16]);

/* How much worse the predictions become when a column is shuffled (docs/formats.md). */
typedef struct qn__importance {
    uint32_t column;
    double loss;   /* of accuracy, or the rise of the RMSE; mean over the repetitions */
    double spread; /* the largest minus the smallest of them */
} qn__importance;

/* Of all columns, the largest loss first; *out holds as many as the data has features, for
 * qn__free. `items`: of how many. Fails as qn__judge does, and with QN_UNSUPPORTED for too many
 * columns. */
qn_status qn__importance_of(const qn__judged *judged, const qn_compute *compute, uint32_t repeats,
                            uint64_t seed, qn__importance **out, uint64_t *items, qn_error *err);

#endif
