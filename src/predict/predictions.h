/* The results of a prediction that are kept (quern/predict.h). */
#ifndef QN_PREDICT_PREDICTIONS_H
#define QN_PREDICT_PREDICTIONS_H

#include "data/parts/parts.h"
#include "data/table/data.h"
#include "data/write/sink.h"
#include "job/answer_counts.h"
#include "job/next_counts.h"
#include "predict/model_kinds.h"
#include <math.h>
#include <quern/predict.h>
#include <quern/tokenizer.h>

/* What an evaluation takes of the items of all ranks; arrays that it does not need are NULL. */
typedef struct qn__joined_items {
    uint64_t items;
    int32_t *labels;
    float *output, *targets, *predictions;
    uint64_t bytes; /* of the text that a model of next tokens was to tell; 0: not known */
} qn__joined_items;

struct qn_predictions {
    const qn_data *data;
    qn_cluster *cluster;
    const qn_model *model;
    uint32_t outputs;
    const qn__model_kind *kind;
    int real; /* 1: `scores` are the predictions, and there are no classes */
    qn_score score;
    uint64_t predicted; /* items that have a prediction */
    int32_t *classes;
    float *scores;
    float *output;             /* items x outputs, or NULL if not kept */
    double inertia;            /* of clusters */
    double *squares;           /* of clusters: what each item adds to it; else NULL */
    uint64_t first;            /* number of the first item, in what is written */
    qn__part_range range;      /* of the items that are written */
    qn__joined_items *joined;  /* items of all ranks, of which these are a part; else NULL */
    int shown;                 /* 1: outputs are written, too */
    uint32_t top;              /* classes that are written; 0 counts as 1 */
    int probabilities;         /* 1: outputs are */
    uint32_t classes_known;    /* to the network; 0: real labels */
    qn_data *made;             /* what the model takes of `data`, where that is something else */
    const qn__schema *table;   /* the model's names; NULL: it has none */
    const qn_model *several;   /* the model, where it gives several answers to an item; else NULL */
    int as_given;              /* 1: masks are written in the size that the network gives */
    uint8_t *answers;          /* of all items, 255 where one lacks a value */
    qn__answer_counts counts;  /* `of` is NULL without targets */
    const qn_model *next;      /* the model, where it tells the next token; else NULL */
    qn__next_counts tokens;    /* with arrays of items, and `shown` of positions */
    qn_tokenizer *tokenizer;   /* of the model; NULL: it has none, or nobody needs it */
    qn__sink_written *written; /* of the last qn_predictions_write */
};

/* Whether the several answers are for pixels. */
static inline int qn__predicts_mask(const qn_predictions *p) {
    return p->several && p->several->mask.height > 0;
}

/* Whether they are tags of tokens. */
static inline int qn__predicts_tags(const qn_predictions *p) {
    return qn__predicts_mask(p) && p->several->tokens;
}

/* Whether an item has one prediction, beside all outputs. */
static inline int qn__predicts_one(const qn_predictions *p) {
    return p->kind->predicted != QN_PREDICTS_COMPONENTS;
}

/* Whether there are labels to compare with. */
static inline int qn__predicts_labelled(const qn_predictions *p) {
    if (p->several || p->next)
        return 0;
    return p->kind->predicted == QN_PREDICTS_LABELS &&
           (p->real ? p->data->targets != NULL : p->data->labels != NULL);
}

/* Whether an item has one: not where it lacks a value. */
static inline int qn__has_prediction(const qn_predictions *p, uint64_t item) {
    if (p->next)
        return p->tokens.item[item].prediction >= 0;
    if (p->several)
        return p->answers[item * p->several->answers] != QN__NO_TARGET;
    return p->real ? !isnan(p->scores[item]) : p->classes[item] >= 0;
}

#endif
