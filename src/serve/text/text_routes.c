#include "serve/text/text_routes.h"

#include "serve/text/embed_job.h"
#include "serve/text/text_job.h"
#include <time.h>

/* qn__part_maker: a service for a model of next tokens. */
static qn_status make_texts(const qn__served *served, void *user, void **part, qn_error *err) {
    const qn__text_routes *routes = user;
    qn__texts *texts = NULL;
    if (!qn__texts_fit(served->model))
        return QN_OK;
    const qn_status status =
        qn__texts_open(served->model, routes->compute, &routes->options, &texts, err);
    *part = texts;
    return status;
}

static void free_texts_of(void *part) { qn__texts_close(part); }

static void complete_text(qn__request *request, void *user) {
    const qn__text_routes *routes = user;
    qn__text_job_begin(request, routes->models, QN__ASK_COMPLETION);
}

static void complete_chat(qn__request *request, void *user) {
    const qn__text_routes *routes = user;
    qn__text_job_begin(request, routes->models, QN__ASK_CHAT);
}

static void embed(qn__request *request, void *user) {
    const qn__text_routes *routes = user;
    qn__embed_begin(request, routes->models, routes->embeddings);
}

/* Those that answer one of these routes. */
static int is_listed(const qn__served *served) {
    return qn__text_continues(served) || qn__embed_fits(served);
}

static uint32_t context_of(const qn__served *served) {
    qn__texts *texts = served->part[QN__PART_TEXT];
    return texts ? qn__texts_context(texts) : qn__embed_tokens(served->model);
}

static void add_model(const qn__text_routes *routes, const qn__served *served, qn__text *to) {
    qn__text_add(to, "{\"id\": ");
    qn__text_add_json(to, served->name);
    qn__text_add(to,
                 ", \"object\": \"model\", \"created\": %lld, \"owned_by\": \"quern\", "
                 "\"version\": ",
                 routes->begun);
    qn__text_add_json(to, served->version);
    qn__text_add(to, ", \"digest\": \"%s\", \"max_model_len\": %u}", qn_model_digest(served->model),
                 context_of(served));
}

/* The models so far, as JSON. */
typedef struct model_list {
    const qn__text_routes *routes;
    qn__text text;
    int some;
} model_list;

static void list_model(void *user, const qn__model_state *state) {
    model_list *list = user;
    if (!state->served || !is_listed(state->served))
        return;
    qn__text_add(&list->text, "%s", list->some++ ? ", " : "");
    add_model(list->routes, state->served, &list->text);
}

static void list_models(qn__request *request, void *user) {
    model_list list = {.routes = user};
    qn__text_add(&list.text, "{\"object\": \"list\", \"data\": [");
    qn__models_list(list.routes->models, list_model, &list);
    qn__text_add(&list.text, "]}\n");
    qn__answer_grown(request, 200, "application/json", &list.text);
}

static void show_model(qn__request *request, void *user) {
    const qn__text_routes *routes = user;
    const char *name = qn__request_variable(request, 0);
    qn__served *served = qn__text_model(routes->models, name, is_listed);
    qn__text text = {0};
    if (!served) {
        qn__text_refuse_model(request, name, "continues or embeds texts");
        return;
    }
    add_model(routes, served, &text);
    qn__text_add(&text, "\n");
    qn__served_release(served);
    qn__answer_grown(request, 200, "application/json", &text);
}

static const qn__route table[] = {
    {.method = "POST", .path = "/v1/completions", .handle = complete_text, .say = qn__text_say},
    {.method = "POST",
     .path = "/v1/chat/completions",
     .handle = complete_chat,
     .say = qn__text_say},
    {.method = "POST", .path = "/v1/embeddings", .handle = embed, .say = qn__text_say},
    {.method = "GET", .path = "/v1/models", .handle = list_models, .say = qn__text_say},
    {.method = "GET", .path = "/v1/models/{model}", .handle = show_model, .say = qn__text_say},
    {.method = NULL}};

void qn__text_routes_add(qn__text_routes *routes, qn__http *http, qn__models *models) {
    routes->models = models;
    routes->begun = (long long)time(NULL);
    routes->maker = (qn__part_maker){
        .part = QN__PART_TEXT, .make = make_texts, .free = free_texts_of, .user = routes};
    qn__models_maker(models, &routes->maker);
    qn__http_add(http, table, routes);
}
