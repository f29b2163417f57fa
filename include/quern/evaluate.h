/* Evaluation: how well predictions agree with labels, in detail.
 *
 * Every number follows from exact sums and is rounded once to the nearest double
 * (docs/exactness.md, section 19). It depends neither on the order of the items nor on devices,
 * threads or ranks. A number that is not defined is NaN. */
#ifndef QUERN_EVALUATE_H
#define QUERN_EVALUATE_H

#include <quern/predict.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one class. All four doubles are NaN for a class that is neither the label nor the prediction
 * of any item. Such a class does not enter the means. */
typedef struct qn_class_evaluation {
    size_t size;        /* sizeof(qn_class_evaluation) */
    const char *name;   /* NULL: the class has only its number */
    uint64_t items;     /* that have this label */
    uint64_t predicted; /* items predicted as this class */
    uint64_t correct;   /* items that are both */
    double precision;   /* correct / predicted; 0 where none is predicted */
    double recall;      /* correct / items; 0 without items */
    double f1;          /* 2 correct / (items + predicted) */
    double auc;         /* area under the ROC curve of this class against all others: of two classes
                           the same number for both. NaN without items, or without others */
    double iou; /* of a class of pixels: correct / (items + predicted - correct); else NaN */
} qn_class_evaluation;

/* The items whose confidence is above `low` and not above `high`. The confidence of an item is the
 * probability of its predicted class. The first bin includes confidence 0. */
typedef struct qn_calibration_bin {
    size_t size;       /* sizeof(qn_calibration_bin) */
    double low, high;  /* RN(b / bins) and RN((b + 1) / bins) of bin b */
    uint64_t items;    /* in this bin */
    double confidence; /* their mean */
    double accuracy;   /* share of these items whose class is their label */
} qn_calibration_bin;

/* With `weighted` 1 an item counts by its weight in every number that is a double. The counts of
 * items are never weighted. */
typedef struct qn_evaluation {
    size_t size;      /* sizeof(qn_evaluation) */
    int real;         /* 1: of real labels: mae, rmse and r2 alone */
    int weighted;     /* 1: items have weights */
    uint64_t items;   /* that have a prediction */
    uint64_t correct; /* items whose class is their label; 0 for real labels */
    double accuracy;
    double precision, recall, f1; /* macro: means over the classes */
    /* The same, each class weighted by its items. */
    double weighted_precision, weighted_recall, weighted_f1;
    double auc;      /* two classes: of the second one; more: the mean of all against the rest */
    double log_loss; /* mean of -log p, p the probability of the label, at least 2^-52 */
    /* Expected calibration error (Guo et al. 2017): the mean distance between confidence and
     * accuracy over the bins, each weighted by its items. This one and `log_loss` are NaN where
     * outputs are not probabilities. */
    double calibration_error;
    double mae, rmse, r2;                       /* of real labels, in their units */
    uint32_t classes;                           /* 0 for real labels */
    uint32_t bins;                              /* 15, or 0 where outputs are not probabilities */
    const qn_class_evaluation *const *by_class; /* `classes` pointers */
    const qn_calibration_bin *const *bin;       /* `bins` pointers */
    /* Of a model that finds clusters: their number, and the sum of the squares of the distances of
     * items from their centres. Then all other numbers but `items` are 0 or NaN. Else 0 and NaN. */
    uint32_t clusters;
    double inertia;
    /* All of this as one line of JSON, with the keys of docs/formats.md; NaN is null. Numbers have
     * all digits that a double needs. */
    const char *json;
    /* Share of the items whose label is among the five classes with the greatest outputs. NaN for
     * five classes or fewer, and for real labels. */
    double top5_accuracy;
    /* Of networks with several answers to an item: `items` are those with a target that counts,
     * `correct` and `accuracy` are of targets, and so are the classes' counts. Ignored targets
     * count nowhere. */
    uint32_t answers; /* to an item; 0: one, and what follows is 0 or NaN */
    int mask;         /* 1: they are classes of pixels; 0: labels */
    uint64_t targets; /* that count, of all items */
    double mean_iou;  /* of pixels: the mean over the classes */
    /* Of labels: the share of items all of whose answers are right, and over all labels together
     * precision, recall and F1. */
    double exact_match, micro_precision, micro_recall, micro_f1;
    /* 1: of a network that tells which token comes next. Then `targets`, `correct` and `accuracy`
     * are of tokens, and these follow; all other numbers but `items` are 0 or NaN. */
    int next;
    int tags;             /* 1: `mask` of one row: they are classes of tokens */
    double loss;          /* the mean of -log p of the tokens; else NaN */
    double perplexity;    /* exp(loss) */
    uint64_t bytes;       /* of text that the tokens stand for; 0: not known */
    double bits_per_byte; /* the sum of -log2 p of all tokens / bytes; NaN where that is 0 */
} qn_evaluation;

/* Labels and predictions in arrays of the caller, read during the call only. Members that do not
 * apply are 0 or NULL. */
typedef struct qn_evaluation_input {
    size_t size;           /* sizeof(qn_evaluation_input) */
    uint64_t items;        /* at least 1, below 2^32 */
    uint32_t classes;      /* at least 2; 0: real labels */
    uint32_t outputs;      /* of an item: 1 (two classes: that of class 1) or `classes` */
    int probabilities;     /* 1: outputs are from 0 to 1, and the calibration is of interest */
    const int32_t *labels; /* [items]; one that is not a class is never predicted */
    const float *output;   /* [items x outputs]; an item whose first output is NaN is left out */
    const float *targets, *predictions; /* [items] of real labels; NaN: no prediction */
    const float *weights;     /* [items], finite, from 0, one above 0; NULL: all items are equal */
    const char *const *names; /* of the first `named` classes; owned by the caller, as long as the
                                 evaluation is used */
    uint32_t named;
} qn_evaluation_input;

/* Evaluates arrays. On success *out is owned by the caller, for qn_evaluation_free; after a failure
 * it is NULL. Fails with QN_USAGE, QN_INPUT (an output, a target or a weight that is not in range;
 * the item is named) or QN_MEMORY: it needs 16 bytes for each item beside the arrays. */
QN_API qn_status qn_evaluation_make(const qn_evaluation_input *input, qn_evaluation **out,
                                    qn_error *err);

/* Evaluates predictions, which have labels unless the model finds clusters. Their outputs must have
 * been kept: `all_outputs` 1 in qn_predictions_make, or not more than 2^26 of them. The names of
 * classes are those of the model, which must outlive *out. Fails with QN_USAGE, QN_INPUT (no item
 * has a prediction), QN_UNSUPPORTED (the model gives components) or QN_MEMORY. */
QN_API qn_status qn_predictions_evaluate(const qn_predictions *predictions, qn_evaluation **out,
                                         qn_error *err);

/* Writes the evaluation of `model` with `data`, a name for a person, to a file as one JSON object
 * ("data", "model": its digest, "evaluation": qn_evaluation.json). Or as a row to a table of a
 * database, whose address `path` then is as for qn_predictions_write, with "evaluations" as the
 * default. It has the columns run, data, model, items, one for each number, and json; NULL is a
 * number that is not defined. The same evaluation is in it once: *there, which may be NULL, is 1
 * where it was there already. Among ranks only the writer calls this; `cluster` may be NULL. Fails
 * as qn_predictions_write does. */
QN_API qn_status qn_evaluation_write(const qn_evaluation *evaluation, const qn_model *model,
                                     const char *data, qn_cluster *cluster, const char *path,
                                     int *there, qn_error *err);

/* Whether it could be written to `path`, to be asked before the prediction. Fails as
 * qn_predictions_check does. */
QN_API qn_status qn_evaluation_check(const char *path, qn_error *err);

/* Frees the evaluation. Accepts NULL. */
QN_API void qn_evaluation_free(qn_evaluation *evaluation);

#ifdef __cplusplus
}
#endif
#endif
