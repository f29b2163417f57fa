/* What is counted of the tokens that come next (docs/exactness.md 25.65). */
#ifndef QN_JOB_NEXT_COUNTS_H
#define QN_JOB_NEXT_COUNTS_H

#include "data/table/data.h"
#include "num/exact_sum.h"
#include "num/program.h"

/* Of an item. */
typedef struct qn__next_item {
    double logprob; /* the sum over its targets that count */
    int32_t label;  /* its last token; -1: it is none */
    /* The most probable token in its place; of an item that ends before, the one that follows it.
     * -1: it was not predicted, or has no token. */
    int32_t prediction;
    uint32_t targets, right; /* targets that count, and those that are the most probable token */
} qn__next_item;

typedef struct qn__next_counts {
    qn__exact_sum loss; /* of all targets that count */
    uint64_t items, targets, right;
    /* Of the text whose windows are being added (25.69); an item is the text otherwise. */
    qn__exact_sum text;
    qn__next_item own;
    /* Arrays of the caller; each may be NULL: of each text, and of each position of the items. */
    qn__next_item *item;
    float *logprob; /* NaN where the target does not count */
    int32_t *token; /* the most probable one; -1 after the end of the item */
} qn__next_counts;

/* Adds an item with the losses and the most probable tokens of its positions, up to its end; in
 * ascending order. */
void qn__next_add(const qn__program *program, const qn_data *data, uint64_t item,
                  const float *losses, const int32_t *tokens, qn__next_counts *counts);

/* Moves what stands for the items of `complete`, a view of `items` items, to their places. The
 * others get no prediction. */
void qn__next_spread(const qn_data *complete, uint64_t items, uint32_t positions,
                     qn__next_counts *counts);

#endif
