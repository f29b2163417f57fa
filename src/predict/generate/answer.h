/* An answer that grows by one token after the other: docs/exactness.md 25.72 to 25.76. */
#ifndef QN_PREDICT_GENERATE_ANSWER_H
#define QN_PREDICT_GENERATE_ANSWER_H

#include "num/draw_token.h"
#include "predict/generate/choice.h"
#include "predict/generate/codec.h"
#include <quern/generate.h>

enum { QN__GENERATE_STOPS = 16 };

/* How the tokens of answers are drawn, what ends answers, and what is told of each token. */
typedef struct qn__manner {
    qn__drawing drawing;
    char *stop[QN__GENERATE_STOPS];
    uint32_t stops;
    int log_probabilities; /* 1: answers have them */
    uint32_t choices;      /* the so many most probable tokens are told of each place, too */
} qn__manner;

/* An answer: the tokens of its prompt and its own. */
typedef struct qn__answer {
    const qn__manner *manner;
    uint32_t prompt, number;
    uint32_t most; /* tokens that the answer may have */
    uint64_t seed;
    uint8_t digest[32]; /* of the prompt's tokens */
    uint32_t *token, count, prompt_count;
    float *log_probability;     /* of its own */
    qn__text_choice *choice;    /* of its own, [tokens][choices]; NULL: none are told */
    char *text;                 /* without what follows `shown` bytes while it goes on */
    size_t bytes, shown, space; /* space: of `text` */
    qn_answer_end end;
    uint32_t base;            /* the place of the token that the network reads first: 25.70 */
    struct qn__answer *after; /* of those that wait in an engine */
    void *owner;              /* for the caller */
} qn__answer;

/* What the answers to a prompt have in common. The manner must outlive the answer. */
typedef struct qn__question {
    const qn__manner *manner;
    const uint32_t *token;
    uint32_t count, most;
    uint64_t seed;
} qn__question;

/* Begins answer `number` to prompt `prompt`, with space for all of its tokens. It is then for
 * qn__answer_release, also after a failure (QN_MEMORY). */
qn_status qn__answer_begin(const qn__question *question, uint32_t prompt, uint32_t number,
                           qn__answer *answer, qn_error *err);
void qn__answer_release(qn__answer *answer);

/* After a token was added: its text, and whether the answer has ended. */
qn_status qn__answer_grow(const qn__codec *codec, qn__answer *answer, qn_error *err);

/* What callers see of it, valid until it grows. */
void qn__answer_show(const qn__answer *answer, qn_answer *out);

#endif
