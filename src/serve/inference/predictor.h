/* Beside each model of a server: what makes items of its requests' bodies, and what computes them
 * together with those of other requests. */
#ifndef QN_SERVE_INFERENCE_PREDICTOR_H
#define QN_SERVE_INFERENCE_PREDICTOR_H

#include "serve/batch/answer_writer.h"
#include "serve/batch/batcher.h"
#include "serve/batch/bodies.h"
#include "serve/http/server.h"
#include "serve/inference/layers.h"
#include "serve/models/models.h"

typedef struct qn__predictor {
    qn__batcher *batcher; /* of predictions; NULL: of a model of next tokens, which has none */
    qn__layers *layers;
    qn__body_reader *reader;
    qn__answer_writer *writer; /* of large answers */
} qn__predictor;

/* How all predictors of a server compute. */
typedef struct qn__predictor_options {
    const qn_compute *compute;
    qn__batcher_options batcher;
} qn__predictor_options;

/* The maker of QN__PART_PREDICTOR; `options` stay the caller's, and valid. */
qn__part_maker qn__predictor_maker(qn__predictor_options *options);

/* A request on its way through a predictor. Rooms begin a struct of theirs with it. */
typedef struct qn__pending qn__pending;
enum { QN__PENDING_LAYERS = 4 };
struct qn__pending {
    qn__request *request;
    qn__served *served;
    qn_data *data;
    /* Layers that it uses, and which of them is computed now; NULL: the predictions are. */
    qn__layer_use *layer[QN__PENDING_LAYERS], *now;
    uint32_t layers;
    /* Called on any thread. Returns 1 where it has answered: then all that is here is released. 0:
     * it has set `now`, which is computed for the same items. */
    int (*answer)(qn__pending *pending, const qn__batch_answer *answer);
    void (*fail)(qn__pending *pending, const qn_error *err); /* answers; NULL: as other routes */
    void (*free)(qn__pending *pending);
};

/* The model that variable 0 of the route names, and variable 1 its version, which the caller
 * releases; NULL: the request was answered with an error. */
qn__served *qn__served_of_route(qn__request *request, qn__models *models);

/* The predictor of the model that the route names. NULL: the request was answered with an error.
 * Else the caller owns *served. */
qn__predictor *qn__predictor_of(qn__request *request, qn__models *models, qn__served **served);

/* Adds a layer to those that `pending` uses; fails as qn__layers_take. */
qn_status qn__predictor_add_layer(qn__predictor *predictor, qn__pending *pending,
                                  const qn__layer_name *name, qn_error *err);

/* What its batchers have counted. */
void qn__predictor_count(qn__predictor *predictor, qn__batcher_counts *counts);

/* Hands the items over. `pending` and what it has belong to this call, also after a failure, which
 * it answers. */
void qn__predictor_submit(qn__predictor *predictor, qn__pending *pending);

/* Answers an error of an item or a body, and frees. */
void qn__pending_fail(qn__pending *pending, const qn_error *err);
void qn__pending_free(qn__pending *pending);

#endif
