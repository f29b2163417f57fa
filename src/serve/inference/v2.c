/* The routes of version 2. */
#include "serve/inference/v2.h"

#include "base/memory.h"
#include "serve/inference/predictor.h"
#include "serve/inference/v2_message.h"

#include <quern/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char json[] = "application/json", binary[] = "application/octet-stream";
static const char header_length[] = "Inference-Header-Content-Length";

/* ------------------------------------------------------------------------------ health, metadata
 */

static void server_metadata(qn__request *request, void *user) {
    (void)user;
    char text[200];
    snprintf(text, sizeof text,
             "{\"name\": \"quern\", \"version\": \"%s\", \"extensions\": [\"binary_tensor_data\", "
             "\"classification\", \"model_repository\"]}\n",
             qn_version());
    qn__answer_text(request, 200, json, text);
}

static void server_live(qn__request *request, void *user) {
    (void)user;
    qn__answer_text(request, 200, json, "{\"live\": true}\n");
}

static void count_waiting(void *user, const qn__model_state *state) {
    *(int *)user += !state->served && strcmp(state->why, "unloaded") != 0;
}

static void server_ready(qn__request *request, void *user) {
    int waiting = 0;
    const int ready = qn__models_list(user, count_waiting, &waiting) > 0 && waiting == 0;
    qn__answer_text(request, ready ? 200 : 503, json,
                    ready ? "{\"ready\": true}\n" : "{\"ready\": false}\n");
}

static void model_ready(qn__request *request, void *user) {
    qn__served *s = qn__served_of_route(request, user);
    char text[200];
    if (!s)
        return;
    snprintf(text, sizeof text, "{\"name\": \"%s\", \"ready\": true}\n", s->name);
    qn__answer_text(request, 200, json, text);
    qn__served_release(s);
}

/* The versions of a name. */
typedef struct versions {
    const char *name;
    char **at;
    size_t count, capacity;
} versions;

static void add_version(void *user, const qn__model_state *state) {
    versions *v = user;
    if (!state->served || strcmp(state->name, v->name) != 0)
        return;
    if (v->count == v->capacity) {
        const size_t capacity = 2 * v->capacity + 4;
        char **more = realloc(v->at, capacity * sizeof *more);
        if (!more)
            return;
        v->at = more;
        v->capacity = capacity;
    }
    v->at[v->count] = qn__copy_text(state->version, NULL);
    v->count += v->at[v->count] != NULL;
}

static void model_metadata(qn__request *request, void *user) {
    qn__served *s = qn__served_of_route(request, user);
    qn__text text = {0};
    if (!s)
        return;
    versions v = {.name = s->name};
    qn__models_list(user, add_version, &v);
    qn__v2_describe(s->model, s->name, (const char *const *)v.at, v.count, &text);
    for (size_t i = 0; i < v.count; i++)
        qn__free(v.at[i]);
    free(v.at);
    qn__request_of_model(request, s->name, s->version, qn_model_digest(s->model));
    qn__answer_grown(request, 200, json, &text);
    qn__served_release(s);
}

/* -------------------------------------------------------------------------------------- inference
 */

/* Predictions, if they are asked for, and each layer are computed one after the other. */
typedef struct inference {
    qn__pending pending;
    qn__v2_ask ask;
    qn__batch_answer answer[QN__V2_OUTPUTS]; /* copies, but for the last */
    uint32_t answers;                        /* that were kept so far */
    int predicts;                            /* 1: the first is of the predictions */
} inference;

static void free_inference(qn__pending *pending) {
    inference *i = (inference *)pending;
    for (uint32_t k = 0; k < i->answers; k++)
        qn__batch_answer_release(&i->answer[k]);
    qn__v2_release(&i->ask);
    qn__free(i);
}

/* Keeps an answer that is not the last. Returns 0 without memory: the request was answered. */
static int keep(inference *i, const qn__batch_answer *a) {
    qn_error err;
    if (qn__batch_answer_copy(a, &i->answer[i->answers], &err) != QN_OK) {
        qn__answer_error(i->pending.request, 503, &err);
        return 0;
    }
    i->answers++;
    i->pending.now = i->pending.layer[i->answers - (uint32_t)i->predicts];
    return 1;
}

static int answer(qn__pending *pending, const qn__batch_answer *a) {
    inference *i = (inference *)pending;
    const qn__served *s = pending->served;
    qn__text text = {0};
    size_t header = 0;
    char number[24];
    if (i->answers + 1 < (uint32_t)i->predicts + pending->layers)
        return !keep(i, a);
    i->answer[i->answers] = *a;
    qn__v2_write(&i->ask, s->name, s->version, s->model, i->answer, &text, &header);
    snprintf(number, sizeof number, "%zu", header);
    if (header)
        qn__answer_header(pending->request, header_length, number);
    qn__answer_grown(pending->request, 200, header ? binary : json, &text);
    return 1;
}

static qn_status check_classes(const qn__v2_ask *ask, qn_error *err) {
    for (uint32_t k = 0; k < ask->outputs; k++)
        if (ask->wanted[k].classes && strcmp(ask->wanted[k].name, "outputs") != 0) {
            qn__fail(err, QN_INPUT, "\"%.100s\" has no classes", ask->wanted[k].name);
            return qn__remedy(err, QN_INPUT, "ask for \"classification\" of \"outputs\"");
        }
    return QN_OK;
}

/* Which answers have the outputs that are asked for. */
static qn_status find_outputs(inference *i, qn__predictor *predictor, qn_error *err) {
    qn__v2_ask *ask = &i->ask;
    qn__pending *pending = &i->pending;
    i->predicts = ask->outputs == 0;
    for (uint32_t k = 0; k < ask->outputs; k++)
        i->predicts |= qn__v2_predicts(pending->served->model, ask->wanted[k].name);
    if (check_classes(ask, err) != QN_OK)
        return QN_INPUT;
    for (uint32_t k = 0; k < ask->outputs; k++) {
        qn__v2_wanted *w = &ask->wanted[k];
        qn__layer_name name;
        if (qn__v2_predicts(pending->served->model, w->name))
            continue;
        w->answer = (uint32_t)i->predicts + pending->layers;
        qn_status status = qn__v2_read_layer(w->name, &name, err);
        if (status == QN_OK)
            status = qn__predictor_add_layer(predictor, pending, &name, err);
        if (status != QN_OK)
            return status;
        w->layer = pending->layer[pending->layers - 1];
    }
    if (!i->predicts)
        pending->now = pending->layer[0];
    return QN_OK;
}

static void infer(qn__request *request, void *user) {
    qn__served *served;
    qn_error err;
    size_t size;
    qn__predictor *predictor = qn__predictor_of(request, user, &served);
    if (!predictor)
        return;
    inference *i = qn__alloc(1, sizeof *i, &err);
    if (!i) {
        qn__answer_error(request, 503, &err);
        qn__served_release(served);
        return;
    }
    i->pending = (qn__pending){
        .request = request, .served = served, .answer = answer, .free = free_inference};
    const char *body = qn__request_body(request, &size);
    qn_status status =
        qn__v2_read(body, size, qn__request_header(request, header_length), &i->ask, &err);
    if (status == QN_OK)
        status = find_outputs(i, predictor, &err);
    if (status == QN_OK)
        status = qn__v2_items(&i->ask, served->model, predictor->reader, &i->pending.data, &err);
    if (status == QN_OK)
        qn__predictor_submit(predictor, &i->pending);
    else
        qn__pending_fail(&i->pending, &err);
}

/* --------------------------------------------------------------------------------- the repository
 */

static void add_state(void *user, const qn__model_state *state) {
    qn__text *text = user;
    qn__text_add(text, "%s{\"name\": \"%s\", \"version\": \"%s\", \"state\": \"%s\", \"reason\": ",
                 text->size > 1 ? ", " : "", state->name, state->version,
                 state->served ? "READY" : "UNAVAILABLE");
    qn__text_add_json(text, state->why);
    qn__text_add(text, "}");
}

static void repository_index(qn__request *request, void *user) {
    qn__text text = {0};
    qn__text_add(&text, "[");
    qn__models_list(user, add_state, &text);
    qn__text_add(&text, "]\n");
    qn__answer_grown(request, 200, json, &text);
}

static void repository_done(void *user, const qn_error *err) {
    if (err->status == QN_OK)
        qn__answer_text(user, 200, json, "{}\n");
    else
        qn__answer_error(user, 400, err);
}

static void ask_keeper(qn__request *request, qn__models *models, int load) {
    qn_error err;
    const char *name = qn__request_variable(request, 0);
    if (qn__models_ask(models, name, load, repository_done, request, &err) != QN_OK)
        qn__answer_error(request, 503, &err);
}

static void repository_load(qn__request *request, void *user) { ask_keeper(request, user, 1); }
static void repository_unload(qn__request *request, void *user) { ask_keeper(request, user, 0); }

static const qn__route routes[] = {
    {.method = "GET", .path = "/v2", .handle = server_metadata},
    {.method = "GET", .path = "/v2/health/live", .handle = server_live, .open = 1},
    {.method = "GET", .path = "/v2/health/ready", .handle = server_ready, .open = 1},
    {.method = "GET", .path = "/v2/models/{model}", .handle = model_metadata},
    {.method = "GET", .path = "/v2/models/{model}/versions/{version}", .handle = model_metadata},
    {.method = "GET", .path = "/v2/models/{model}/ready", .handle = model_ready},
    {.method = "GET", .path = "/v2/models/{model}/versions/{version}/ready", .handle = model_ready},
    {.method = "POST", .path = "/v2/models/{model}/infer", .handle = infer, .packs = 1},
    {.method = "POST",
     .path = "/v2/models/{model}/versions/{version}/infer",
     .handle = infer,
     .packs = 1},
    {.method = "POST", .path = "/v2/repository/index", .handle = repository_index},
    {.method = "POST", .path = "/v2/repository/models/{model}/load", .handle = repository_load},
    {.method = "POST", .path = "/v2/repository/models/{model}/unload", .handle = repository_unload},
    {.method = NULL}};

void qn__v2_add(qn__http *http, qn__models *models) { qn__http_add(http, routes, models); }
