/* Prompts and answers as tokens of a model, and as texts. */
#ifndef QN_PREDICT_GENERATE_CODEC_H
#define QN_PREDICT_GENERATE_CODEC_H

#include "base/text/text.h"
#include "model/formats/model.h"
#include <quern/generate.h>
#include <quern/tokenizer.h>

enum { QN__CODEC_ENDS = 8 };
enum { QN__GENERATE_TOKENS = 1 << 24 }; /* of an answer, at most */

typedef struct qn__codec {
    qn_tokenizer *tokenizer;            /* NULL: texts are numbers of tokens, with spaces between */
    uint32_t vocabulary;                /* of the network */
    uint32_t end[QN__CODEC_ENDS], ends; /* the tokens that end a text; the first one is that between
                                           two texts */
    int begins;                         /* 1: an empty prompt is that first one */
    const char *chat;                   /* whose marks the tokenizer has; NULL: none */
} qn__codec;

/* For the checked model; `codec` is then for qn__codec_close, also after a failure. */
qn_status qn__codec_open(const qn_model *model, qn__codec *codec, qn_error *err);
void qn__codec_close(qn__codec *codec);

/* Whether a template of that name exists. */
int qn__codec_has_chat(const char *name);

/* Write a conversation in the template of that name: its begin, a message, and what comes before
 * the answer. qn__codec_write_chat: all of a conversation with what one user says. */
void qn__codec_begin_chat(const char *chat, qn__text *to);
void qn__codec_add_message(const char *chat, const char *role, const char *content, qn__text *to);
void qn__codec_end_chat(const char *chat, qn__text *to);
void qn__codec_write_chat(const char *chat, const char *prompt, const char *system, qn__text *to);

/* The tokens of a prompt: *count numbers for qn__free. `index` of the prompt is for messages. Fails
 * with QN_INPUT: it is empty, or has what the vocabulary lacks. */
qn_status qn__codec_encode(const qn__codec *codec, const char *prompt, uint32_t index,
                           const char *chat, const char *system, uint32_t **tokens, uint32_t *count,
                           qn_error *err);

/* The same for tokens that the caller has. */
qn_status qn__codec_take(const qn__codec *codec, const uint32_t *from, uint32_t size,
                         uint32_t index, uint32_t **tokens, uint32_t *count, qn_error *err);

/* What the last of `count` tokens adds to the text of those before: *text is for qn__free, with a
 * NUL after its *size bytes. The first `prompt` tokens are not of the answer. */
qn_status qn__codec_last(const qn__codec *codec, const uint32_t *tokens, uint32_t prompt,
                         uint32_t count, char **text, size_t *size, qn_error *err);

/* Whether the token ends a text. */
int qn__codec_is_end(const qn__codec *codec, uint32_t token);

#endif
