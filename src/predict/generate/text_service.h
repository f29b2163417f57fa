/* Answers to requests that come from any thread at any time. A thread of the service has an engine,
 * whose answers grow together:
 *
 *     any thread           qn__texts_submit: encodes the prompt, and hands the request over
 *     the service's one    a step, and tell() for each answer that has a further token; another
 * step
 *
 * The bits of an answer are those of `quern generate` for its prompt alone with its options. They
 * do not depend on other requests, on when they came, or on whose clients left. */
#ifndef QN_PREDICT_GENERATE_TEXT_SERVICE_H
#define QN_PREDICT_GENERATE_TEXT_SERVICE_H

#include "base/error.h"
#include "predict/generate/choice.h"
#include <quern/generate.h>

typedef struct qn__texts qn__texts;

typedef struct qn__texts_options {
    uint32_t sequences; /* answers that grow at once; 0: 16 */
    uint32_t waiting;   /* answers that wait for a sequence; 0: 256 */
    uint32_t positions; /* of a sequence: the tokens whose keys and values are kept. 0, or more than
                           the model's context: the context */
    uint32_t length;    /* tokens of a prompt and an answer to it; 0: 65,536, or the context where
                           that is longer */
    const char *chat; /* whose marks conversations get: "chatml" or "llama3"; NULL: the one that the
                         tokenizer has marks for. The text must outlive the service. */
} qn__texts_options;

/* Whether `chat` of the options may be this. */
int qn__texts_know_chat(const char *chat);

/* A message of a conversation. */
typedef struct qn__said {
    const char *role, *content;
} qn__said;

/* What tell() gets, valid during the call: an answer with a further token, as it is so far; or
 * without an answer the end of the request, which comes once and last. */
typedef struct qn__text_news {
    const qn_answer *answer;
    const qn__text_choice *choices; /* of its tokens, [count][choices of the request] */
    const qn_error *failure;        /* at the end; NULL: all answers are complete */
} qn__text_news;

/* A prompt: the first of these that is not NULL. */
typedef struct qn__text_prompt {
    const uint32_t *tokens;
    const qn__said *said;
    const char *text;
    uint32_t count; /* of tokens, or of messages */
} qn__text_prompt;

/* A request. All but `user` is read during the call only. */
typedef struct qn__text_request {
    const qn_generate_options *options; /* not `compute` and `batch`; `lines`, `chat` and `system`
                                           are for prompts that are texts */
    const qn__text_prompt *prompt;
    uint32_t prompts; /* from 1; each gets options->answers */
    uint32_t choices; /* so many are told of each place of an answer */
    int fill; /* 1: an answer may have as many tokens as the context has room for, at least one,
                 instead of options->tokens */
    /* From the service's thread, which is stopped meanwhile. It may submit requests. */
    void (*tell)(void *user, const qn__text_news *news);
    /* Whether somebody still wants the answers; asked between two steps. NULL: always. */
    int (*wanted)(void *user);
    void *user;
} qn__text_request;

/* What happened so far, and what the service has now. */
typedef struct qn__texts_counts {
    uint64_t requests, refused, dropped, failed; /* dropped: not wanted any more */
    uint64_t prompt_tokens, tokens;              /* of requests; drawn */
    uint32_t growing, waiting;                   /* answers, now */
} qn__texts_counts;

/* Whether the model tells the next token, so that a service can be opened for it. */
int qn__texts_fit(const qn_model *model);
/* The model must outlive *out. `compute` (NULL: the defaults) has no cluster. Fails as
 * qn_generator_open does, and with QN_USAGE where an option is out of range. */
qn_status qn__texts_open(const qn_model *model, const qn_compute *compute,
                         const qn__texts_options *options, qn__texts **out, qn_error *err);
/* Requests that are left end with QN_INTERRUPTED. Accepts NULL. In tell(), of the last request, it
 * is allowed: then the service ends after that call. */
void qn__texts_close(qn__texts *texts);

/* Checks options of requests: QN_USAGE. */
qn_status qn__texts_check(const qn_generate_options *options, qn_error *err);

/* Hands a request over. *prompt_tokens (or NULL) becomes the number of tokens of its prompts. After
 * a failure tell() is never called: QN_USAGE (an option, a request that can never fit), QN_INPUT
 * (the prompt), QN_BUSY (too many wait: the caller may try again), QN_MEMORY, or what ended the
 * service, such as QN_DEVICE. */
qn_status qn__texts_submit(qn__texts *texts, const qn__text_request *request,
                           uint32_t *prompt_tokens, qn_error *err);

void qn__texts_count(qn__texts *texts, qn__texts_counts *out);

/* The text that `token` adds after `count` others, for qn__free, with a NUL after its *size bytes,
 * which may be a part of a character. */
qn_status qn__texts_piece(const qn__texts *texts, const uint32_t *before, uint32_t count,
                          uint32_t token, char **text, size_t *size, qn_error *err);
/* The most positions that the network reads at once. */
uint32_t qn__texts_context(const qn__texts *texts);
/* Whether prompts are texts; else numbers of tokens. */
int qn__texts_have_text(const qn__texts *texts);

#endif
