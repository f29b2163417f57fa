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
    if (qn_model_predicts(served->model) == QN_PREDICTS_NEXT)
        return QN_OK;
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
    qn__predictor *p = s->part[QN__PART_PREDICTOR];
    if (!p) {
        qn__answer_refusal(request, 400,
                           "the model \"%s\" writes texts: send requests to /v1/completions",
                           s->name);
        qn__served_release(s);
        return NULL;
    }
    qn__request_of_model(request, s->name, s->version, qn_model_digest(s->model));
    *served = s;
    return p;
}

void qn__pending_free(qn__pending *pending) {
    qn_data_close(pending->data);
    qn__served_release(pending->served);
    pending->free(pending);
}

void qn__pending_fail(qn__pending *pending, const qn_error *err) {
    const int busy = err->status == QN_BUSY;
    qn_error said = *err;
    if (busy)
        qn__answer_header(pending->request, "Retry-After", "1");
    qn__refusal_words(&said);
    qn__answer_error(pending->request, busy ? 429 : qn__answer_status(err->status), &said);
    qn__pending_free(pending);
}

static void write_answer(void *user, const qn__batch_answer *answer) {
    qn__pending *pending = user;
    pending->answer(pending, answer);
    qn__pending_free(pending);
}

static int is_large(const qn_model *model, const qn__batch_answer *a) {
    const uint64_t each = (uint64_t)qn_model_answers(model, NULL, NULL) + qn_model_outputs(model);
    return a->items * each > LARGE;
}

static void on_answer(void *user, const qn__batch_answer *answer) {
    qn__pending *pending = user;
    const qn_model *model = pending->served->model;
    const qn__predictor *p = pending->served->part[QN__PART_PREDICTOR];
    if (answer->status != QN_OK)
        qn__pending_fail(pending, answer->err);
    else if (!is_large(model, answer) ||
             qn__answer_writer_add(p->writer, model, answer, write_answer, pending, NULL) != QN_OK)
        write_answer(pending, answer);
}

void qn__predictor_submit(qn__predictor *predictor, qn__pending *pending) {
    qn_error err;
    if (qn__batcher_submit(predictor->batcher, pending->data, on_answer, pending, &err) != QN_OK)
        qn__pending_fail(pending, &err);
}
