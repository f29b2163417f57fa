/* Inference over a whole data set, in blocks of a size that a team can process. */
#ifndef QN_JOB_APPLY_H
#define QN_JOB_APPLY_H

#include "data/table/data.h"
#include "job/answer_counts.h"
#include "job/next_counts.h"
#include "team/team.h"

/* The items of a pass, and so the batch, of a program that is only applied. */
uint32_t qn__apply_batch(const qn__program *program, uint64_t items);

/* A feed over a data set or a view of one. */
qn__feed qn__feed_of(const qn_data *data);

/* Results of whole sets; any may be NULL. Arrays belong to the caller. */
typedef struct qn__apply_results {
    int32_t *classes;
    float *scores;
    float *outputs;
    float *inputs;         /* of the last layer, as in qn__applied */
    const int32_t *labels; /* instead of the data's, NULL: these */
    const float *weights;  /* of the items, in losses; NULL: all are 1 */
    qn__tally *tally;      /* labelled sets: losses, correct answers, items */
    uint64_t *confusion;   /* classes x classes, of qn__program_classes */
    /* Of networks with several answers to an item: all of them, and what is counted of them. */
    uint8_t *answers;
    qn__answer_counts *counts;
    /* Of networks of next tokens: what is counted of the tokens. */
    qn__next_counts *next;
} qn__apply_results;

/* Forward over all items of `data`. QN_NUMERIC names the item with a non-finite output. */
qn_status qn__apply_all(qn__team *team, const qn__program *program, const qn_data *data,
                        const qn__apply_results *results, qn_error *err);

/* Workers give an item channel after channel. Makes it pixel after pixel, each with its channels
 * together: items * qn__shape_volume(from) values, in place. */
qn_status qn__apply_by_pixel(qn__shape from, uint64_t items, float *values, qn_error *err);

#endif
