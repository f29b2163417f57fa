#include "serve/text/text_job.h"

#include "base/memory.h"
#include "serve/text/text_pieces.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OK = 200, NOT_FOUND = 404, TOO_MANY = 429, FAULT = 500, UNAVAILABLE = 503 };
static const char json[] = "application/json";

/* A choice: a part of the stream was written of it, or it is whole. */
typedef struct job_choice {
    qn__written written;
    qn__text whole;
} job_choice;

/* After it was submitted, it belongs to the thread of the service, which frees it. */
typedef struct text_job {
    qn__request *request;
    qn__served *served;
    qn__ask ask;
    job_choice *choice;
    qn__text head; /* of each object */
    uint32_t choices, prompt_tokens;
    uint64_t tokens; /* of answers that are complete */
    long long created;
    int begun; /* 1: the stream is */
} text_job;

static qn__texts *texts_of(const text_job *j) { return j->served->part[QN__PART_TEXT]; }

/* --------------------------------------------------------------------------------------- refusals
 */

static void add_refusal(qn__text *to, const qn__ask_refusal *no) {
    qn__text_add(to, "{\"error\": {\"message\": ");
    qn__text_add_json(to, no->message);
    qn__text_add(to, ", \"type\": \"%s\", \"param\": ",
                 no->status == TOO_MANY ? "rate_limit_error"
                 : no->status >= FAULT  ? "server_error"
                                        : "invalid_request_error");
    qn__text_add_json(to, no->param);
    qn__text_add(to, ", \"code\": ");
    qn__text_add_json(to, no->code);
    qn__text_add(to, "}}");
}

void qn__text_say(qn__text *to, unsigned status, const char *words) {
    qn__ask_refusal no = {.status = status};
    snprintf(no.message, sizeof no.message, "%s", words);
    add_refusal(to, &no);
    qn__text_add(to, "\n");
}

void qn__text_refuse(qn__request *request, const qn__ask_refusal *no) {
    qn__text text = {0};
    add_refusal(&text, no);
    qn__text_add(&text, "\n");
    if (no->status == TOO_MANY)
        qn__answer_header(request, "Retry-After", "1");
    qn__answer_grown(request, no->status, json, &text);
}

/* ------------------------------------------------------------------------------------- the answer
 */

/* The members that every object has, up to its choices. */
static void make_head(text_job *j) {
    const int chat = j->ask.kind == QN__ASK_CHAT;
    const char *digest = qn_model_digest(j->served->model);
    qn__text_add(&j->head, "{\"id\": \"%s-%llu-%lld\", \"object\": \"%s%s\", \"created\": %lld, ",
                 chat ? "chatcmpl" : "cmpl", (unsigned long long)qn__request_number(j->request),
                 j->created, chat ? "chat.completion" : "text_completion",
                 chat && j->ask.stream ? ".chunk" : "", j->created);
    qn__text_add(&j->head, "\"model\": ");
    qn__text_add_json(&j->head, j->ask.model ? j->ask.model : j->served->name);
    qn__text_add(&j->head, ", \"system_fingerprint\": \"quern-%.16s\", \"choices\": [", digest);
}

static void add_head(const text_job *j, qn__text *to) {
    qn__text_add_bytes(to, j->head.data, j->head.size);
    to->failed |= j->head.failed;
}

static void add_usage(const text_job *j, qn__text *to) {
    qn__text_add(to,
                 ", \"usage\": {\"prompt_tokens\": %u, \"completion_tokens\": %llu, "
                 "\"total_tokens\": %llu}",
                 j->prompt_tokens, (unsigned long long)j->tokens,
                 (unsigned long long)(j->prompt_tokens + j->tokens));
}

static void begin_stream(text_job *j) {
    if (j->begun)
        return;
    j->begun = 1;
    qn__answer_header(j->request, "Cache-Control", "no-cache");
    qn__answer_stream(j->request, OK, "text/event-stream");
}

/* Sends an event, and releases its text. */
static void send_event(text_job *j, qn__text *event) {
    begin_stream(j);
    qn__text_add(event, "\n\n");
    if (event->data && !event->failed)
        qn__answer_piece(j->request, event->data, event->size);
    qn__text_release(event);
}

static void send_choice(text_job *j, const qn__text_news *news, job_choice *c) {
    qn__text event = {0};
    qn__text_add(&event, "data: ");
    add_head(j, &event);
    qn__pieces_add_choice(texts_of(j), &j->ask, news, 1, &c->written, &event);
    qn__text_add(&event, "]%s}", j->ask.usage ? ", \"usage\": null" : "");
    send_event(j, &event);
}

/* An answer has a further token. */
static void hear_of(text_job *j, const qn__text_news *news) {
    const qn_answer *a = news->answer;
    const int ended = a->end != QN_ANSWER_GOES_ON;
    job_choice *c = &j->choice[a->prompt * j->ask.options.answers + a->number];
    j->tokens += ended ? a->count : 0;
    if (j->ask.stream && (ended || a->bytes > c->written.bytes))
        send_choice(j, news, c);
    else if (!j->ask.stream && ended)
        qn__pieces_add_choice(texts_of(j), &j->ask, news, 0, &c->written, &c->whole);
}

/* ---------------------------------------------------------------------------------------- the end
 */

static void free_job(text_job *j) {
    for (uint32_t i = 0; j->choice && i < j->choices; ++i)
        qn__text_release(&j->choice[i].whole);
    qn__free(j->choice);
    qn__text_release(&j->head);
    qn__ask_release(&j->ask);
    qn__served_release(j->served);
    qn__free(j);
}

static void end_stream(text_job *j, const qn__ask_refusal *no) {
    qn__text event = {0};
    if (no) {
        qn__text_add(&event, "data: ");
        add_refusal(&event, no);
        send_event(j, &event);
    } else if (j->ask.usage) {
        qn__text_add(&event, "data: ");
        add_head(j, &event);
        qn__text_add(&event, "]");
        add_usage(j, &event);
        qn__text_add(&event, "}");
        send_event(j, &event);
    }
    qn__text_add(&event, "data: [DONE]");
    if (!no)
        send_event(j, &event);
    qn__text_release(&event);
    qn__answer_end(j->request);
}

static void answer_whole(text_job *j) {
    qn__text text = {0};
    add_head(j, &text);
    for (uint32_t i = 0; i < j->choices; ++i) {
        qn__text_add(&text, "%s%s", i > 0 ? ", " : "", j->choice[i].whole.data);
        text.failed |= j->choice[i].whole.failed;
    }
    qn__text_add(&text, "]");
    add_usage(j, &text);
    qn__text_add(&text, "}\n");
    qn__answer_grown(j->request, OK, json, &text);
}

/* Why the answers are not complete. */
static void find_refusal(const text_job *j, const qn_error *failure, qn__ask_refusal *no) {
    char late[QN__LATE_WORDS];
    qn__ask_refuse(&j->ask, failure, no);
    if (!qn__request_is_late(j->request, late))
        return;
    *no = (qn__ask_refusal){.status = UNAVAILABLE};
    snprintf(no->message, sizeof no->message, "%s", late);
}

static void end_job(text_job *j, const qn_error *failure) {
    qn__ask_refusal no;
    if (failure)
        find_refusal(j, failure, &no);
    if (j->begun)
        end_stream(j, failure ? &no : NULL);
    else if (failure)
        qn__text_refuse(j->request, &no);
    else
        answer_whole(j);
    free_job(j);
}

/* Members of qn__text_request. */
static void tell_job(void *user, const qn__text_news *news) {
    if (news->answer)
        hear_of(user, news);
    else
        end_job(user, news->failure);
}

static int is_wanted(void *user) {
    const text_job *j = user;
    return !qn__request_is_lost(j->request);
}

/* ------------------------------------------------------------------------------------------ begin
 */

enum { NAME = 100 };

/* The only model that fits. */
typedef struct only_model {
    qn__text_fits *fits;
    char name[NAME];
    int others; /* 1: there are several */
} only_model;

static void find_only(void *user, const qn__model_state *state) {
    only_model *only = user;
    if (!state->served || !only->fits(state->served))
        return;
    only->others |= only->name[0] && strcmp(only->name, state->name) != 0;
    snprintf(only->name, sizeof only->name, "%s", state->name);
}

int qn__text_continues(const qn__served *served) { return served->part[QN__PART_TEXT] != NULL; }

qn__served *qn__text_model(qn__models *models, const char *name, qn__text_fits *fits) {
    char own[2 * NAME];
    only_model only = {.fits = fits};
    if (!name) {
        qn__models_list(models, find_only, &only);
        name = only.others ? "" : only.name;
    }
    snprintf(own, sizeof own, "%s", name);
    char *version = strchr(own, ':');
    if (version)
        *version++ = '\0';
    qn__served *served = qn__models_take(models, own, version);
    if (served && fits(served))
        return served;
    if (served)
        qn__served_release(served);
    return NULL;
}

void qn__text_refuse_model(qn__request *request, const char *name, const char *does) {
    qn__ask_refusal no = {.status = NOT_FOUND, .param = "model", .code = "model_not_found"};
    if (name)
        snprintf(no.message, sizeof no.message,
                 "no model \"%.200s\" here %s: GET /v1/models names the models", name, does);
    else
        snprintf(no.message, sizeof no.message,
                 "the field \"model\" is missing: GET /v1/models names the models");
    qn__text_refuse(request, &no);
}

int qn__text_begin(qn__request *request, qn__models *models, qn__ask_kind kind, qn__text_fits *fits,
                   const char *does, qn__ask *ask, qn__served **served) {
    qn__ask_refusal no;
    size_t size;
    const char *body = qn__request_body(request, &size);
    if (!qn__ask_read(kind, body, size, ask, &no)) {
        qn__text_refuse(request, &no);
        return 0;
    }
    const qn__served *s = *served = qn__text_model(models, ask->model, fits);
    if (!s) {
        qn__text_refuse_model(request, ask->model, does);
        qn__ask_release(ask);
        return 0;
    }
    qn__request_of_model(request, s->name, s->version, qn_model_digest(s->model));
    return 1;
}

static qn_status submit_job(text_job *j, qn_error *err) {
    qn__ask *ask = &j->ask;
    const uint64_t choices = (uint64_t)ask->prompts * ask->options.answers;
    j->created = (long long)time(NULL);
    make_head(j);
    j->choices = choices < UINT32_MAX ? (uint32_t)choices : UINT32_MAX;
    j->choice = qn__alloc(j->choices, sizeof *j->choice, err);
    if (!j->choice)
        return QN_MEMORY;
    const qn__text_request asked = {.options = &ask->options,
                                    .prompt = ask->prompt,
                                    .prompts = ask->prompts,
                                    .choices = ask->choices,
                                    .fill = ask->kind == QN__ASK_CHAT && !ask->tokens_field,
                                    .tell = tell_job,
                                    .wanted = is_wanted,
                                    .user = j};
    return qn__texts_submit(texts_of(j), &asked, &j->prompt_tokens, err);
}

void qn__text_job_begin(qn__request *request, qn__models *models, qn__ask_kind kind) {
    qn__ask_refusal no;
    text_job own = {.request = request};
    qn_error err;
    if (!qn__text_begin(request, models, kind, qn__text_continues, "continues texts", &own.ask,
                        &own.served))
        return;
    text_job *j = qn__alloc(1, sizeof *j, &err);
    if (!j) {
        qn__answer_error(request, 503, &err);
        qn__ask_release(&own.ask);
        qn__served_release(own.served);
        return;
    }
    *j = own;
    j->ask.options.stop = j->ask.stop;
    if (submit_job(j, &err) == QN_OK)
        return; /* it may have ended */
    qn__ask_refuse(&j->ask, &err, &no);
    qn__text_refuse(request, &no);
    free_job(j);
}
