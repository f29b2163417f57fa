#include "predict/generate/text_service.h"

#include "base/memory.h"
#include "base/system/float_state.h"
#include "base/system/threads.h"
#include "base/text/text.h"
#include "predict/generate/engine.h"
#include "predict/generate/prompt_line.h"
#include "predict/generate/taken_options.h"
#include "statistics/host_team.h"
#include <pthread.h>
#include <string.h>

/* The defaults of the limits; and tokens of prompts that a step reads beside answers that grow:
 * about as long as the step itself, which reads all weights once anyway. */
enum { SEQUENCES = 16, WAITING = 256, LENGTH = 65536, BESIDE = 32 };
enum { MOST_SEQUENCES = 4096, MOST_WAITING = 1 << 20, MOST_CHOICES = 100 };

/* A request that was accepted. */
typedef struct asked {
    qn__taken_options own;
    qn__text_request request; /* its callbacks */
    qn__answer *answer;
    uint32_t answers, left; /* left: not complete */
    qn_error failure;
    int failed, dropped;
    struct asked *next;
} asked;

struct qn__texts {
    const qn_model *model;
    qn__texts_options limits;
    qn__codec codec;
    qn__engine *engine;
    asked *first; /* those that the thread has */
    pthread_t thread;
    int started;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    asked *inbox, **inbox_end;
    uint32_t answers; /* that are not complete, of all requests */
    qn__texts_counts counts;
    qn_error end; /* what ended the service; its status is QN_OK before */
    int closing, frees_itself;
};

/* ---------------------------------------------------------------------------------- the thread
 */

/* qn__engine_plan: an answer has a further token. */
static void tell_growth(void *context, qn__answer *a) {
    qn__texts *t = context;
    asked *r = a->owner;
    qn_answer shown;
    qn__answer_show(a, &shown);
    pthread_mutex_lock(&t->lock);
    ++t->counts.tokens;
    t->answers -= a->end != QN_ANSWER_GOES_ON;
    pthread_mutex_unlock(&t->lock);
    r->request.tell(r->request.user, &(qn__text_news){.answer = &shown, .choices = a->choice});
    qn__float_state_set();
    if (a->end == QN_ANSWER_GOES_ON)
        return;
    --r->left;
    qn__answer_release(a);
}

/* The end of a request, which no list has any more. */
static void end_request(qn__texts *t, asked *r) {
    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < r->answers; ++i) {
        if (r->answer[i].end == QN_ANSWER_GOES_ON) {
            qn__engine_remove(t->engine, &r->answer[i]);
            qn__answer_release(&r->answer[i]);
            --t->answers;
        }
    }
    t->counts.failed += r->failed != 0;
    t->counts.dropped += r->dropped != 0;
    pthread_mutex_unlock(&t->lock);
    if (r->dropped && !r->failed)
        qn__fail(&r->failure, QN_INTERRUPTED, "nobody wants the answer any more");
    r->request.tell(r->request.user, &(qn__text_news){.failure = r->left > 0 ? &r->failure : NULL});
    qn__float_state_set();
    qn__taken_options_release(&r->own);
    qn__free(r->answer);
    qn__free(r);
}

/* Ends requests that are complete, have failed, or whose clients left. */
static void end_some(qn__texts *t) {
    asked **at = &t->first;
    while (*at) {
        asked *r = *at;
        r->dropped = r->left > 0 && r->request.wanted && !r->request.wanted(r->request.user);
        if (r->left > 0 && !r->failed && !r->dropped) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        end_request(t, r);
    }
}

static void fail_request(asked *r, const qn_error *err) {
    if (!r->failed)
        r->failure = *err;
    r->failed = 1;
}

/* New requests, in their order. The caller holds the lock. */
static void take_inbox(qn__texts *t) {
    asked **end = &t->first;
    while (*end)
        end = &(*end)->next;
    *end = t->inbox;
    for (asked *r = t->inbox; r; r = r->next)
        for (uint32_t i = 0; i < r->answers; ++i)
            qn__engine_add(t->engine, &r->answer[i]);
    t->inbox = NULL;
    t->inbox_end = &t->inbox;
}

static void take_step(qn__texts *t) {
    qn__answer *failed;
    qn_error err = {0};
    int more;
    const qn_status status = qn__engine_step(t->engine, &more, &failed, &err);
    if (status == QN_OK)
        return;
    if (failed) {
        fail_request(failed->owner, &err);
        return;
    }
    pthread_mutex_lock(&t->lock); /* nothing can be computed any more */
    t->end = err;
    take_inbox(t);
    pthread_mutex_unlock(&t->lock);
    for (asked *r = t->first; r; r = r->next)
        fail_request(r, &err);
}

/* Waits for something to do. Returns 0 at the end, when all requests have ended. */
static int wait_for_work(qn__texts *t) {
    pthread_mutex_lock(&t->lock);
    while (!t->inbox && !t->first && !t->closing)
        pthread_cond_wait(&t->changed, &t->lock);
    take_inbox(t);
    const int closing = t->closing;
    pthread_mutex_unlock(&t->lock);
    qn_error err = {0};
    if (closing)
        qn__fail(&err, QN_INTERRUPTED, "the server ends");
    for (asked *r = t->first; closing && r; r = r->next)
        fail_request(r, &err);
    return !closing || t->first;
}

static void free_texts(qn__texts *t) {
    qn__engine_close(t->engine);
    qn__codec_close(&t->codec);
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    qn__free(t);
}

static void *grow_texts(void *context) {
    qn__texts *t = context;
    qn__float_state_set();
    while (wait_for_work(t)) {
        end_some(t);
        if (t->first)
            take_step(t);
    }
    if (t->frees_itself)
        free_texts(t);
    return NULL;
}

/* --------------------------------------------------------------------------------- open, close
 */

int qn__texts_know_chat(const char *chat) { return qn__codec_has_chat(chat); }

int qn__texts_fit(const qn_model *model) { return qn__reader_check(model, NULL) == QN_OK; }

static qn_status check_limits(qn__texts *t, qn_error *err) {
    qn__texts_options *l = &t->limits;
    const uint32_t context = qn__reader_context(t->model);
    l->sequences = l->sequences ? l->sequences : SEQUENCES;
    l->waiting = l->waiting ? l->waiting : WAITING;
    l->positions = l->positions && l->positions < context ? l->positions : context;
    l->length = l->length ? l->length : context > LENGTH ? context : LENGTH;
    if (l->chat && !qn__codec_has_chat(l->chat)) {
        qn__fail(err, QN_USAGE, "unknown kind of chat \"%.40s\"", l->chat);
        return qn__remedy(err, QN_USAGE, "`server.chat` is \"chatml\" or \"llama3\"");
    }
    if (l->sequences <= MOST_SEQUENCES && l->waiting <= MOST_WAITING)
        return QN_OK;
    qn__fail(err, QN_USAGE, "`server.text_batch` or `server.text_waiting` is out of range");
    return qn__remedy(err, QN_USAGE, "give at most %d and %d", MOST_SEQUENCES, MOST_WAITING);
}

static qn_status open_engine(qn__texts *t, const qn_compute *compute, qn_error *err) {
    qn_compute own;
    qn_status status = qn__host_team_compute("qn__texts_open", compute, 0, &own, err);
    if (status == QN_OK)
        status = qn__reader_check(t->model, err);
    if (status == QN_OK)
        status = check_limits(t, err);
    if (status == QN_OK)
        status = qn__codec_open(t->model, &t->codec, err);
    const qn__engine_plan plan = {.sequences = t->limits.sequences,
                                  .positions = t->limits.positions,
                                  .beside = BESIDE,
                                  .grown = tell_growth,
                                  .context = t};
    if (status == QN_OK)
        status = qn__engine_open(t->model, &own, NULL, 0, &t->codec, &plan, &t->engine, err);
    return status;
}

qn_status qn__texts_open(const qn_model *model, const qn_compute *compute,
                         const qn__texts_options *options, qn__texts **out, qn_error *err) {
    qn__texts *t = qn__alloc(1, sizeof *t, err);
    *out = NULL;
    if (!t)
        return QN_MEMORY;
    t->model = model;
    t->limits = options ? *options : (qn__texts_options){0};
    t->inbox_end = &t->inbox;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    qn_status status = open_engine(t, compute, err);
    if (status == QN_OK) {
        t->started = qn__thread_start(&t->thread, NULL, grow_texts, t) == 0;
        if (!t->started)
            status = qn__fail(err, QN_MEMORY, "cannot start a thread");
    }
    if (status == QN_OK)
        *out = t;
    else
        free_texts(t);
    return status;
}

void qn__texts_close(qn__texts *t) {
    if (!t)
        return;
    const int itself = pthread_equal(pthread_self(), t->thread);
    pthread_mutex_lock(&t->lock);
    t->closing = 1;
    t->frees_itself = itself;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    if (itself) {
        pthread_detach(t->thread);
    } else {
        pthread_join(t->thread, NULL);
        free_texts(t);
    }
}

/* --------------------------------------------------------------------------------------- requests
 */

static qn_status refuse_text(const char *what, const char *remedy, qn_error *err) {
    qn__fail(err, QN_USAGE, "%s", what);
    return qn__remedy(err, QN_USAGE, "%s", remedy);
}

/* A conversation as a text, for qn__free. */
static qn_status write_said(const qn__texts *t, const qn__text_prompt *p, char **out,
                            qn_error *err) {
    const char *kind = t->limits.chat ? t->limits.chat : t->codec.chat;
    qn__text text = {0};
    if (!kind || !t->codec.tokenizer)
        return refuse_text("the model has no marks of a conversation",
                           t->codec.tokenizer
                               ? "complete a text instead, or begin the server with `server.chat`"
                               : "complete numbers of tokens",
                           err);
    qn__codec_begin_chat(kind, &text);
    for (uint32_t i = 0; i < p->count; ++i)
        qn__codec_add_message(kind, p->said[i].role, p->said[i].content, &text);
    qn__codec_end_chat(kind, &text);
    *out = qn__text_take(&text, err);
    return *out ? QN_OK : QN_MEMORY;
}

/* A text, as qn_generator_open takes it. */
static qn_status encode_text(const qn__texts *t, const qn__text_prompt *p, uint32_t index,
                             const qn_generate_options *o, qn__prompt_line *line, uint32_t **tokens,
                             uint32_t *count, qn_error *err) {
    const qn_status status = o->lines ? qn__prompt_line_read(p->text, index, o, line, err) : QN_OK;
    return status == QN_OK
               ? qn__codec_encode(&t->codec, o->lines ? line->text : p->text, index,
                                  o->lines ? NULL : o->chat, o->system, tokens, count, err)
               : status;
}

/* The tokens of a prompt, for qn__free; *line has what it says beside them. */
static qn_status encode_prompt(const qn__texts *t, const qn__text_prompt *p, uint32_t index,
                               const qn_generate_options *o, qn__prompt_line *line,
                               uint32_t **tokens, uint32_t *count, qn_error *err) {
    char *written = NULL;
    *tokens = NULL;
    if (p->text && !p->tokens && !p->said)
        return encode_text(t, p, index, o, line, tokens, count, err);
    if (p->tokens)
        return qn__codec_take(&t->codec, p->tokens, p->count, index, tokens, count, err);
    qn_status status = write_said(t, p, &written, err);
    if (status == QN_OK)
        status = qn__codec_encode(&t->codec, written, index, NULL, NULL, tokens, count, err);
    qn__free(written);
    return status;
}

/* Whether such an answer can ever fit. *most: the tokens that it may have. */
static qn_status check_size(const qn__texts *t, const qn__text_request *q, uint32_t count,
                            uint32_t *most, qn_error *err) {
    const uint32_t context = qn__reader_context(t->model);
    if (q->fill)
        *most = count < context ? context - count : 1;
    const uint64_t all = (uint64_t)count + *most, kept = all < context ? all : context;
    const uint64_t room = kept > t->limits.positions ? t->limits.positions : t->limits.length;
    if (all <= t->limits.length && kept <= t->limits.positions)
        return QN_OK;
    qn__fail(err, QN_USAGE,
             "the prompt has %u tokens and the answer up to %u, and both together "
             "may have %llu",
             count, *most, (unsigned long long)room);
    return qn__remedy(err, QN_USAGE, "shorten the prompt, or ask for fewer tokens");
}

static qn_status begin_answers(asked *r, uint32_t prompt, const uint32_t *tokens, uint32_t count,
                               const qn__prompt_line *line, qn_error *err) {
    const qn__question question = {&r->own.manner, tokens, count, line->tokens, line->seed};
    for (uint32_t i = 0; i < r->own.options.answers; ++i) {
        qn__answer *a = &r->answer[r->answers++];
        const qn_status status = qn__answer_begin(&question, prompt, i, a, err);
        if (status != QN_OK)
            return status;
        a->owner = r;
    }
    return QN_OK;
}

static qn_status make_prompt(const qn__texts *t, const qn__text_request *q, uint32_t index,
                             asked *r, uint32_t *all, qn_error *err) {
    const qn_generate_options *o = &r->own.options;
    qn__prompt_line line = {.tokens = o->tokens, .seed = o->seed};
    uint32_t *tokens = NULL, count = 0;
    qn_status status = encode_prompt(t, &q->prompt[index], index, o, &line, &tokens, &count, err);
    if (status == QN_OK)
        status = check_size(t, q, count, &line.tokens, err);
    if (status == QN_OK)
        status = begin_answers(r, index, tokens, count, &line, err);
    *all += count;
    qn__free(line.text);
    qn__free(tokens);
    return status;
}

static void free_asked(asked *r) {
    for (uint32_t i = 0; i < r->answers; ++i)
        qn__answer_release(&r->answer[i]);
    qn__taken_options_release(&r->own);
    qn__free(r->answer);
    qn__free(r);
}

static qn_status make_answers(const qn__texts *t, const qn__text_request *q, asked *r,
                              uint32_t *count, qn_error *err) {
    const uint64_t answers = (uint64_t)q->prompts * r->own.options.answers;
    qn_status status = QN_OK;
    if (answers > t->limits.sequences + t->limits.waiting) {
        qn__fail(err, QN_USAGE, "the request asks for %llu answers", (unsigned long long)answers);
        return qn__remedy(err, QN_USAGE, "ask for at most %u",
                          t->limits.sequences + t->limits.waiting);
    }
    r->own.manner.choices = q->choices;
    r->answer = qn__alloc(answers, sizeof *r->answer, err);
    for (uint32_t i = 0; r->answer && i < q->prompts && status == QN_OK; ++i)
        status = make_prompt(t, q, i, r, count, err);
    r->left = r->answers;
    return r->answer ? status : QN_MEMORY;
}

/* Makes the request, with its answers. */
static qn_status make_asked(const qn__texts *t, const qn__text_request *q, asked **out,
                            uint32_t *count, qn_error *err) {
    asked *r = qn__alloc(1, sizeof *r, err);
    *out = NULL;
    if (!r)
        return QN_MEMORY;
    r->request = *q;
    qn_status status = qn__taken_options_take(q->options, &r->own, err);
    if (status == QN_OK && q->choices > MOST_CHOICES)
        status = refuse_text("too many choices are asked for", "ask for at most 100", err);
    if (status == QN_OK)
        status = make_answers(t, q, r, count, err);
    if (status == QN_OK)
        *out = r;
    else
        free_asked(r);
    return status;
}

qn_status qn__texts_check(const qn_generate_options *options, qn_error *err) {
    qn__taken_options own;
    const qn_status status = qn__taken_options_take(options, &own, err);
    qn__taken_options_release(&own);
    return status;
}

/* The caller holds the lock. */
static qn_status accept_asked(qn__texts *t, asked *r, uint32_t count, qn_error *err) {
    if (t->end.status != QN_OK) {
        if (err)
            *err = t->end;
        return t->end.status;
    }
    if (t->closing)
        return qn__fail(err, QN_INTERRUPTED, "the server ends");
    if (t->answers + r->answers > t->limits.sequences + t->limits.waiting) {
        ++t->counts.refused;
        qn__fail(err, QN_BUSY, "%u answers grow or wait, which is all that may", t->answers);
        return qn__remedy(err, QN_BUSY, "try again later");
    }
    t->answers += r->answers;
    ++t->counts.requests;
    t->counts.prompt_tokens += count;
    *t->inbox_end = r;
    t->inbox_end = &r->next;
    pthread_cond_signal(&t->changed);
    return QN_OK;
}

qn_status qn__texts_submit(qn__texts *t, const qn__text_request *request, uint32_t *prompt_tokens,
                           qn_error *err) {
    asked *r;
    uint32_t count = 0;
    qn_status status = make_asked(t, request, &r, &count, err);
    if (prompt_tokens) /* before it is accepted, when it may end at once */
        *prompt_tokens = count;
    if (status != QN_OK)
        return status;
    pthread_mutex_lock(&t->lock);
    status = accept_asked(t, r, count, err);
    pthread_mutex_unlock(&t->lock);
    if (status != QN_OK)
        free_asked(r);
    return status;
}

/* ------------------------------------------------------------------------------------- what it has
 */

void qn__texts_count(qn__texts *t, qn__texts_counts *out) {
    pthread_mutex_lock(&t->lock);
    *out = t->counts;
    out->growing = t->answers < t->limits.sequences ? t->answers : t->limits.sequences;
    out->waiting = t->answers - out->growing;
    pthread_mutex_unlock(&t->lock);
}

qn_status qn__texts_piece(const qn__texts *t, const uint32_t *before, uint32_t count,
                          uint32_t token, char **text, size_t *size, qn_error *err) {
    uint32_t last[3], kept = count < 2 ? count : 2;
    memcpy(last, before + count - kept, kept * sizeof *last);
    last[kept] = token;
    return qn__codec_last(&t->codec, last, kept, kept + 1, text, size, err);
}

uint32_t qn__texts_context(const qn__texts *t) { return qn__reader_context(t->model); }

int qn__texts_have_text(const qn__texts *t) { return t->codec.tokenizer != NULL; }
