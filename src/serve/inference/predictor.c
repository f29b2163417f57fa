#include "serve/inference/predictor.h"

#include "base/memory.h"
#include "serve/inference/refusal_words.h"

#include <string.h>

/* Values of an answer that the batcher's thread does not write, as small requests would wait: so
 * many take a millisecond. */
enum { LARGE = 4096 };

/* --------------------------------------------------------------------------- beside each model */

static void free_part(void *part) {
    qn__predictor *p = part;
    qn__batcher_free(p->batcher);
    qn__layers_free(p->layers);
    qn__answer_writer_free(p->writer);
    qn__body_reader_free(p->reader);
    qn__free(p);
}

/* Of a qn__pending. */
static int is_wanted(void *user) {
    const qn__pending *pending = user;
    return !qn__request_is_lost(pending->request);
}

static qn_status make_part(const qn__served *served, void *user, void **part, qn_error *err) {
    const qn__predictor_options *o = user;
    qn__batcher_options options = o->batcher;
    uint32_t rows = 0;
    const int next = qn_model_predicts(served->model) == QN_PREDICTS_NEXT;
    qn__predictor *p = qn__alloc(1, sizeof *p, err);
    if (!p)
        return QN_MEMORY;
    qn_model_answers(served->model, &rows, NULL);
    options.no_outputs = rows > 0; /* of every pixel and class */
    options.wanted = is_wanted;
    qn_status status = qn__body_reader_make(served->model, &p->reader, err);
    if (status == QN_OK)
        status = qn__answer_writer_make(&p->writer, err);
    if (status == QN_OK)
        status = qn__layers_make(served->model, o->compute, &options, &p->layers, err);
    if (status == QN_OK && !next)
        status = qn__batcher_make(served->model, o->compute, &options, &p->batcher, err);
    if (status == QN_OK)
        *part = p;
    else
        free_part(p);
    return status;
}

qn__part_maker qn__predictor_maker(qn__predictor_options *options) {
    return (qn__part_maker){
        .part = QN__PART_PREDICTOR, .make = make_part, .free = free_part, .user = options};
}

/* ---------------------------------------------------------------------------------- the requests
 */

qn__served *qn__served_of_route(qn__request *request, qn__models *models) {
    const char *name = qn__request_variable(request, 0);
    const char *version = qn__request_variable(request, 1);
    qn__served *s = qn__models_take(models, name, version);
    if (!s)
        qn__answer_refusal(request, 404, "there is no model \"%.100s\"%s%.100s", name,
                           *version ? " of version " : "", version);
    return s;
}

qn__predictor *qn__predictor_of(qn__request *request, qn__models *models, qn__served **served) {
    qn__served *s = qn__served_of_route(request, models);
    *served = NULL;
    if (!s)
        return NULL;
    qn__request_of_model(request, s->name, s->version, qn_model_digest(s->model));
    *served = s;
    return s->part[QN__PART_PREDICTOR];
}

qn_status qn__predictor_add_layer(qn__predictor *predictor, qn__pending *pending,
                                  const qn__layer_name *name, qn_error *err) {
    qn__layer_use **use = &pending->layer[pending->layers];
    const qn_status status = qn__layers_take(predictor->layers, name, use, err);
    pending->layers += status == QN_OK;
    return status;
}

void qn__predictor_count(qn__predictor *predictor, qn__batcher_counts *counts) {
    memset(counts, 0, sizeof *counts);
    if (predictor->batcher)
        qn__batcher_count(predictor->batcher, counts);
    qn__layers_count(predictor->layers, counts);
}

static qn__predictor *predictor_of(const qn__pending *pending) {
    return pending->served->part[QN__PART_PREDICTOR];
}

void qn__pending_free(qn__pending *pending) {
    for (uint32_t k = 0; k < pending->layers; k++)
        qn__layers_give(predictor_of(pending)->layers, pending->layer[k]);
    qn_data_close(pending->data);
    qn__served_release(pending->served);
    pending->free(pending);
}

void qn__pending_fail(qn__pending *pending, const qn_error *err) {
    const int busy = err->status == QN_BUSY;
    qn_error said = *err;
    if (pending->fail)
        pending->fail(pending, err);
    else {
        if (busy)
            qn__answer_header(pending->request, "Retry-After", "1");
        qn__refusal_words(&said);
        qn__answer_error(pending->request, busy ? 429 : qn__answer_status(err->status), &said);
    }
    qn__pending_free(pending);
}

static void write_answer(void *user, const qn__batch_answer *answer) {
    qn__pending *pending = user;
    if (pending->answer(pending, answer))
        qn__pending_free(pending);
    else
        qn__predictor_submit(predictor_of(pending), pending);
}

static int is_large(const qn__batch_answer *a) {
    return a->items * ((uint64_t)a->each_answers + a->each_outputs) > LARGE;
}

static void on_answer(void *user, const qn__batch_answer *answer) {
    qn__pending *pending = user;
    const qn__predictor *p = predictor_of(pending);
    if (answer->status != QN_OK)
        qn__pending_fail(pending, answer->err);
    else if (!is_large(answer) ||
             qn__answer_writer_add(p->writer, answer, write_answer, pending, NULL) != QN_OK)
        write_answer(pending, answer);
}

static qn_status refuse_predictions(qn_error *err) {
    qn__fail(err, QN_INPUT, "the model writes texts, and has no predictions");
    return qn__remedy(err, QN_INPUT, "send requests to /v1/completions, or ask for a layer");
}

void qn__predictor_submit(qn__predictor *predictor, qn__pending *pending) {
    qn_error err;
    qn_status status = QN_OK;
    qn__batcher *batcher = pending->now ? pending->now->batcher : predictor->batcher;
    if (pending->now)
        status = qn__layer_check_items(pending->now, qn_data_items(pending->data), &err);
    else if (!batcher)
        status = refuse_predictions(&err);
    if (status == QN_OK)
        status = qn__batcher_submit(batcher, pending->data, on_answer, pending, &err);
    if (status != QN_OK)
        qn__pending_fail(pending, &err);
}
