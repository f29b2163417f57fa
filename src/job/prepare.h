/* From a table as it was read to the items of a job. Incomplete items are left out, replacements of
 * missing values are fitted, validation items are set aside, and columns are encoded as inputs. */
#ifndef QN_JOB_PREPARE_H
#define QN_JOB_PREPARE_H

#include "data/prepare/inputs.h"
#include "model/formats/model.h"

/* The inputs of a table; it needs the table alive. */
typedef struct qn__prepared {
    const qn_data *inputs; /* the table itself, or one of those below */
    qn_data *complete, *narrow, *encoded;
} qn__prepared;

/* The items of a training; they need its table alive. */
typedef struct qn__training_items {
    const qn_data *train, *valid; /* valid: NULL without a fraction */
    float *fill;                  /* recipe->features, where qn__recipe_fills; else NULL */
    qn__offset *offset;           /* qn__recipe_offsets; NULL if that is 0 */
    float *idf;                   /* of each input of texts; NULL: there are none */
    float *weights;               /* of the training items, as given; NULL: none */
    /* Of the items of both sets: 7.7, 24.72; NULL: all are 1. Where the targets of training move
     * (24.22), its shares are not divided by their number. */
    float *shares, *valid_shares;
    qn__prepared all;
    qn_data *split[2]; /* the views that are train and valid, or NULL */
} qn__training_items;

/* Prepares a table whose columns are those of `how` in their order. The caller releases *out, after
 * a failure too. Fails as qn__make_inputs and qn__complete_items. */
qn_status qn__prepare(const qn__encoding *how, const qn_data *raw, const qn__encoding_notes *notes,
                      qn__prepared *out, qn_error *err);
void qn__prepared_release(qn__prepared *prepared);

/* Prepares the items that `recipe` trains on and validates with. `kept`: the numbers for missing
 * values and wide columns; NULL: they are fitted. The caller releases *out, after a failure too.
 * Fails as qn__prepare, qn__data_split and qn__weights_combine. `threads` >= 1. */
qn_status qn__training_items_make(const qn__recipe *recipe, const qn_data *data,
                                  const qn__fitted *kept, int threads,
                                  const qn__encoding_notes *notes, qn__training_items *out,
                                  qn_error *err);
void qn__training_items_release(qn__training_items *items);

#endif
