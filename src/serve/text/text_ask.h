/* What a client asks for: the fields of a body of /v1/completions, /v1/chat/completions or
 * /v1/embeddings (docs/serve.md has the tables of them). */
#ifndef QN_SERVE_TEXT_TEXT_ASK_H
#define QN_SERVE_TEXT_TEXT_ASK_H

#include "base/text/json.h"
#include "predict/generate/text_service.h"

enum { QN__ASK_STOPS = 16 };

typedef enum qn__ask_kind {
    QN__ASK_COMPLETION = 1,
    QN__ASK_CHAT = 2,
    QN__ASK_EMBEDDING = 4
} qn__ask_kind;

/* Why it is refused. */
typedef struct qn__ask_refusal {
    unsigned status;   /* of HTTP */
    const char *param; /* the field; NULL: none */
    const char *code;  /* NULL: none */
    char message[1000];
} qn__ask_refusal;

/* Its texts are those of the document, and of `joined`. */
typedef struct qn__ask {
    qn__ask_kind kind;
    qn__json *json;
    const char *model; /* NULL: not named */
    qn_generate_options options;
    const char *stop[QN__ASK_STOPS];
    const char *tokens_field; /* which said how many tokens there may be; NULL: none */
    qn__text_prompt *prompt;
    uint32_t prompts;
    qn__said *said;   /* the messages of a chat */
    uint32_t *number; /* tokens of prompts that are lists of them */
    char **joined;    /* contents of messages that have several parts */
    uint32_t messages, choices;
    int stream, usage;   /* usage: the stream ends with it */
    int echo;            /* the text begins with the prompt */
    int base64;          /* embeddings are bytes in base64 */
    uint32_t dimensions; /* of embeddings; 0: it does not say */
} qn__ask;

/* Reads a body. Returns 0, with *no, where it is refused; `ask` is then released. */
int qn__ask_read(qn__ask_kind kind, const char *body, size_t size, qn__ask *ask,
                 qn__ask_refusal *no);
void qn__ask_release(qn__ask *ask);

/* A refusal for an error of the library, in the words of the client's fields. */
void qn__ask_refuse(const qn__ask *ask, const qn_error *err, qn__ask_refusal *no);

#endif
