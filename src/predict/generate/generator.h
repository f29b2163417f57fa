/* The inside of a qn_generator. */
#ifndef QN_PREDICT_GENERATE_GENERATOR_H
#define QN_PREDICT_GENERATE_GENERATOR_H

#include "num/draw_token.h"
#include "predict/generate/codec.h"
#include "predict/generate/reader.h"
#include <quern/generate.h>

enum { QN__GENERATE_STOPS = 16 };

/* An answer: the tokens of its prompt and its own. */
typedef struct qn__answer {
    uint32_t prompt, number;
    uint32_t most; /* tokens that the answer may have */
    uint64_t seed;
    uint8_t digest[32]; /* of the prompt's tokens */
    uint32_t *token, count, prompt_count;
    float *log_probability;     /* of its own */
    char *text;                 /* without what follows `shown` bytes while it goes on */
    size_t bytes, shown, space; /* space: of `text` */
    qn_answer_end end;
    uint32_t base; /* the place of the token that the network reads first: 25.70 */
} qn__answer;

/* A sequence of the reader: the answer that it computes, and how many of its positions it has. */
typedef struct qn__generating {
    qn__answer *answer; /* NULL: it is free */
    uint32_t fed;
} qn__generating;

struct qn_generator {
    const qn_model *model;
    qn_generate_options options; /* its texts are copies */
    char *stop[QN__GENERATE_STOPS], *chat, *system;
    char **prompt; /* the texts */
    uint32_t prompts;
    qn__codec codec;
    qn__reader *reader;
    qn_cluster *cluster;               /* NULL: no other ranks */
    struct qn__shared_answers *shared; /* NULL: this rank computes all answers */
    uint32_t context, vocabulary;
    uint32_t drawn; /* tokens that are drawn: those below it have a text */
    qn__answer *answer;
    uint32_t answers;
    uint32_t next, until; /* the first one that was not begun; those before `until` are begun */
    qn__generating *sequence;
    uint32_t sequences;
    uint32_t *row[3]; /* tokens, sequences and positions of the rows of an extension */
    float *logits;    /* of all sequences */
    float *changed;   /* of one, after the penalty */
    void *space;      /* of the draws */
};

/* The place of the token that the network reads first, before token `count`. */
uint32_t qn__generate_base(uint32_t context, uint32_t count);

/* Checks options and takes them over. */
qn_status qn__generate_options_take(const qn_generate_options *options, qn_generator *g,
                                    qn_error *err);

/* After each token that was added: text, end. */
qn_status qn__answer_grow(const qn_generator *g, qn__answer *answer, qn_error *err);

/* The options that decide answers, as JSON. */
void qn__answers_add_options(const qn_generator *g, qn__text *to);

/* All answers as JSON: *out is for qn__free. */
qn_status qn__answers_json(const qn_generator *g, char **out, size_t *size, qn_error *err);

#endif
