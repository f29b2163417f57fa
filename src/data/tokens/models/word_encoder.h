/* Words to tokens by the model of a tokenizer, for one thread: with those of words that came
 * before. Start with {0}. */
#ifndef QN_DATA_TOKENS_MODELS_WORD_ENCODER_H
#define QN_DATA_TOKENS_MODELS_WORD_ENCODER_H

#include "data/tokens/models/text_path.h"
#include "data/tokens/models/word_cache.h"

typedef struct qn__word_encoder {
    qn__token_ids *ids; /* where the tokens go */
    qn__word_cache cache;
    /* Appends the tokens of a word. */
    qn_status (*encode)(void *user, const uint8_t *word, size_t size, qn_error *err);
    void *user;
} qn__word_encoder;

/* Fails with QN_MEMORY. */
qn_status qn__word_encoder_make(qn__word_encoder *encoder,
                                qn_status (*encode)(void *user, const uint8_t *word, size_t size,
                                                    qn_error *err),
                                void *user, qn_error *err);
void qn__word_encoder_release(qn__word_encoder *encoder);

/* Take a word, and an added token; `encoder` is a qn__word_encoder. */
qn_status qn__word_encoder_word(void *encoder, const uint8_t *word, size_t size, qn_error *err);
qn_status qn__word_encoder_added(void *encoder, uint32_t token, qn_error *err);

/* An encoder with the path that texts take to their words: the first member of a kind's worker.
 * Words and added tokens go to the encoder, unless the kind changes `words` after it is made. */
typedef struct qn__path_encoder {
    qn__word_encoder encoder;
    qn__path_words words;
} qn__path_encoder;

/* Fails with QN_MEMORY or QN_UNSUPPORTED; release it then, too. */
qn_status qn__path_encoder_make(qn__path_encoder *encoder, const qn__text_path *path,
                                qn_status (*encode)(void *user, const uint8_t *word, size_t size,
                                                    qn_error *err),
                                void *user, qn_error *err);
void qn__path_encoder_release(qn__path_encoder *encoder);

/* `encode` of a kind (token_kind.h) whose worker `own` begins with a qn__path_encoder. */
qn_status qn__path_encoder_encode(const void *state, void *own, const uint8_t *text, size_t size,
                                  int goes_on, qn__token_ids *ids, qn_error *err);

#endif
