#include "serve/inference/predict_route.h"

#include "base/memory.h"
#include "serve/batch/answer_json.h"
#include "serve/inference/predictor.h"

#include <stdio.h>
#include <string.h>

typedef struct prediction {
    qn__pending pending;
    int all_outputs;
} prediction;

static void free_prediction(qn__pending *pending) { qn__free(pending); }

static void add_layer(qn__text *text, const qn__layer_use *use) {
    qn__text_add(text, "\"layer\": %u, \"shape\": [", use->layer);
    for (uint32_t k = 0; k < use->lengths; k++)
        qn__text_add(text, "%s%u", k ? ", " : "", use->shape[k]);
    qn__text_add(text, "], ");
}

/* {"model": "digits", "version": "1", "predictions": [{"prediction": "7", "score": 0.9}]}, or
 * {..., "layer": 4, "shape": [64], "outputs": [[0.5, ...]]} */
static int answer(qn__pending *pending, const qn__batch_answer *a) {
    const prediction *p = (const prediction *)pending;
    const qn__served *s = pending->served;
    qn__text text = {0};
    qn__text_add(&text, "{\"model\": \"%s\", \"version\": \"%s\", ", s->name, s->version);
    if (pending->now)
        add_layer(&text, pending->now);
    qn__text_add(&text, "\"%s\": [", pending->now ? "outputs" : "predictions");
    for (uint64_t i = 0; i < a->items; i++) {
        qn__text_add(&text, "%s", i ? ", " : "");
        if (pending->now)
            qn__answer_add_outputs(&text, a, i);
        else
            qn__answer_add_json(&text, s->model, pending->data, a, i, p->all_outputs);
    }
    qn__text_add(&text, "]}\n");
    qn__answer_grown(pending->request, 200, "application/json", &text);
    return 1;
}

/* ?layer=7&pool=mean: the outputs of a layer in the place of predictions. */
static qn_status read_layer(qn__request *request, qn__predictor *predictor, prediction *p,
                            qn_error *err) {
    const char *layer = qn__request_query(request, "layer");
    const char *pool = qn__request_query(request, "pool");
    qn__layer_name name;
    char text[64];
    if (!layer && !pool)
        return QN_OK;
    if (p->all_outputs || !layer) {
        qn__fail(err, QN_USAGE, "\"%s\" has no meaning %s \"layer\"", layer ? "outputs" : "pool",
                 layer ? "beside" : "without");
        return qn__remedy(err, QN_USAGE, "leave it out");
    }
    snprintf(text, sizeof text, "%.40s%s%.16s", layer, pool ? ":" : "", pool ? pool : "");
    qn_status status = qn__layer_name_read(text, &name, err);
    if (status == QN_OK)
        status = qn__predictor_add_layer(predictor, &p->pending, &name, err);
    p->pending.now = p->pending.layer[0];
    return status;
}

static qn_status read_body(qn__request *request, const qn__predictor *predictor, qn_data **out,
                           qn_error *err) {
    size_t size;
    qn__body_kind kind;
    const char *body = qn__request_body(request, &size);
    const char *type = qn__request_header(request, "Content-Type");
    /* What clients send that set none. */
    if (type && strncmp(type, "application/x-www-form-urlencoded", 33) == 0)
        type = NULL;
    const qn_status status = qn__body_kind_of(type, body, size, &kind, err);
    return status == QN_OK ? qn__body_read(predictor->reader, kind, body, size, out, err) : status;
}

/* ?outputs=1: all outputs beside each prediction. */
static qn_status read_outputs(qn__request *request, prediction *p, qn_error *err) {
    const char *outputs = qn__request_query(request, "outputs");
    if (!outputs || strcmp(outputs, "0") == 0)
        return QN_OK;
    p->all_outputs = 1;
    if (!*outputs || strcmp(outputs, "1") == 0)
        return QN_OK;
    qn__fail(err, QN_USAGE, "\"outputs\" is \"%.40s\" in the query", outputs);
    return qn__remedy(err, QN_USAGE, "write outputs=1 for all outputs, or outputs=0");
}

static void predict(qn__request *request, void *user) {
    qn__served *served;
    qn_error err;
    qn__predictor *predictor = qn__predictor_of(request, user, &served);
    if (!predictor)
        return;
    prediction *p = qn__alloc(1, sizeof *p, &err);
    if (!p) {
        qn__answer_error(request, 503, &err);
        qn__served_release(served);
        return;
    }
    p->pending = (qn__pending){
        .request = request, .served = served, .answer = answer, .free = free_prediction};
    if (read_outputs(request, p, &err) == QN_OK &&
        read_layer(request, predictor, p, &err) == QN_OK &&
        read_body(request, predictor, &p->pending.data, &err) == QN_OK)
        qn__predictor_submit(predictor, &p->pending);
    else
        qn__pending_fail(&p->pending, &err);
}

static const char words[] = "outputs layer pool";

static const qn__route routes[] = {
    {.method = "POST", .path = "/v1/predict/{model}", .handle = predict, .query = words},
    {.method = "POST", .path = "/v1/predict/{model}/{version}", .handle = predict, .query = words},
    {.method = NULL}};

void qn__predict_route_add(qn__http *http, qn__models *models) {
    qn__http_add(http, routes, models);
}
