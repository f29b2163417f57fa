/* Beside each model of a server: what makes items of its requests' bodies, and what computes them
 * together with those of other requests. */
#ifndef QN_SERVE_INFERENCE_PREDICTOR_H
#define QN_SERVE_INFERENCE_PREDICTOR_H

#include "serve/batch/answer_writer.h"
#include "serve/batch/batcher.h"
#include "serve/batch/bodies.h"
#include "serve/http/server.h"
#include "serve/models/models.h"

typedef struct qn__predictor {
    qn__batcher *batcher;
    qn__body_reader *reader;
    qn__answer_writer *writer; /* of large answers */
} qn__predictor;

/* How all predictors of a server compute. */
typedef struct qn__predictor_options {
    const qn_compute *compute;
    qn__batcher_options batcher;
} qn__predictor_options;

/* The maker of QN__PART_PREDICTOR; `options` stay the caller's, and valid. Models of next tokens
 * get none. */
qn__part_maker qn__predictor_maker(qn__predictor_options *options);

/* A request on its way through a predictor. Rooms begin a struct of theirs with it. */
typedef struct qn__pending qn__pending;
struct qn__pending {
    qn__request *request;
    qn__served *served;
    qn_data *data;
    /* Answers; called once on any thread. Then all three are released. */
    void (*answer)(qn__pending *pending, const qn__batch_answer *answer);
    void (*free)(qn__pending *pending);
};

/* The model that variable 0 of the route names, and variable 1 its version, which the caller
 * releases; NULL: the request was answered with an error. */
qn__served *qn__served_of_route(qn__request *request, qn__models *models);

/* The predictor of the model that the route names. NULL: the request was answered with an error.
 * Else the caller owns *served. */
qn__predictor *qn__predictor_of(qn__request *request, qn__models *models, qn__served **served);

/* Hands the items over. `pending` and what it has belong to this call, also after a failure, which
 * it answers. */
void qn__predictor_submit(qn__predictor *predictor, qn__pending *pending);

/* Answers an error of an item or a body, and frees. */
void qn__pending_fail(qn__pending *pending, const qn_error *err);
void qn__pending_free(qn__pending *pending);

#endif
