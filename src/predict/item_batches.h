/* A model applied to items of several callers together, batch after batch. Each caller's table is
 * prepared by itself; the inputs of several are then applied as one table. What an item gets does
 * not depend on the others: its results are those of qn_predict for it alone. */
#ifndef QN_PREDICT_ITEM_BATCHES_H
#define QN_PREDICT_ITEM_BATCHES_H

#include "job/prepare.h"
#include "model/formats/model_kind.h"

/* The items of one caller, as the model takes them. Their table must outlive them. */
typedef struct qn__request_items {
    uint64_t items; /* of the caller's table */
    qn_data *matched;
    qn__prepared prepared; /* inputs: of the items that have a prediction */
} qn__request_items;

/* What a kind of models needs for this (model_kinds.c): a row of functions. */
typedef struct qn__batch_kind {
    /* Checks a table whose columns are the model's. NULL: all tables are prepared. */
    qn_status (*check)(const qn_model *model, const qn_data *matched, qn_error *err);
    /* The same, and makes its inputs. Fails as qn_predict. */
    qn_status (*prepare)(const qn_model *model, const qn_data *matched, qn__prepared *out,
                         qn_error *err);
    /* Devices for batches of up to `most` items; *team goes to `close`, which accepts NULL. */
    qn_status (*open)(const qn_model *model, const qn_compute *compute, uint64_t most, void **team,
                      qn_error *err);
    /* Applies the model to all items of `inputs`. After QN_NUMERIC the team can be used again. */
    qn_status (*run)(const qn_model *model, void *team, const qn_data *inputs,
                     const qn__model_results *results, qn_error *err);
    void (*close)(void *team);
} qn__batch_kind;

extern const qn__batch_kind qn__network_batches;

/* The functions for the model. */
const qn__batch_kind *qn__batch_kind_of(const qn_model *model);

/* What is computed for each item: the predictions of a model, or the outputs of a layer. */
typedef struct qn__batch_form {
    const qn_model *model;
    const struct qn__layer_cut *cut; /* NULL: predictions */
    const qn__batch_kind *kind;
    uint32_t outputs, answers; /* floats and bytes of an item, as in qn__model_results */
    int plain; /* its columns are numbers without names: a table of bytes is its inputs */
} qn__batch_form;

/* Fails with QN_UNSUPPORTED for predictions of a model of next tokens, which has no answer to an
 * item as a whole. The model and `cut`, which may be NULL, must outlive *out. */
qn_status qn__batch_form_of(const qn_model *model, const struct qn__layer_cut *cut,
                            qn__batch_form *out, qn_error *err);

/* As those of qn__batch_kind. After a failure of qn__batch_open *team is NULL. */
qn_status qn__batch_open(const qn__batch_form *form, const qn_compute *compute, uint64_t most,
                         void **team, qn_error *err);
qn_status qn__batch_run(const qn__batch_form *form, void *team, const qn_data *inputs,
                        const qn__model_results *results, qn_error *err);
void qn__batch_close(const qn__batch_form *form, void *team);

/* Prepares a caller's table. The caller releases *out, after a failure too. Any threads may call
 * this at once. Fails as qn_predict. */
qn_status qn__request_items_make(const qn__batch_form *form, const qn_data *data,
                                 qn__request_items *out, qn_error *err);
void qn__request_items_release(qn__request_items *items);

/* Where some items have no prediction, the results of the others, which stand at the beginning,
 * move to where their items are; as in qn_predict. */
void qn__request_items_spread(const qn__batch_form *form, const qn__request_items *items,
                              const qn__model_results *results);

#endif
