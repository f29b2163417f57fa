#include "data/tokens/models/word_encoder.h"

#include "base/memory.h"

qn_status qn__word_encoder_make(qn__word_encoder *encoder,
                                qn_status (*encode)(void *user, const uint8_t *word, size_t size,
                                                    qn_error *err),
                                void *user, qn_error *err) {
    encoder->encode = encode;
    encoder->user = user;
    encoder->cache.place =
        qn__alloc((uint64_t)1 << QN__CACHE_BITS, sizeof *encoder->cache.place, err);
    return encoder->cache.place ? QN_OK : QN_MEMORY;
}

void qn__word_encoder_release(qn__word_encoder *encoder) { qn__free(encoder->cache.place); }

qn_status qn__word_encoder_word(void *encoder, const uint8_t *word, size_t size, qn_error *err) {
    qn__word_encoder *e = encoder;
    return qn__word_cache_encode(&e->cache, e->ids, word, size, e->encode, e->user, err);
}

qn_status qn__word_encoder_added(void *encoder, uint32_t token, qn_error *err) {
    qn__word_encoder *e = encoder;
    const qn_status status = qn__token_ids_reserve(e->ids, 1, err);
    if (status == QN_OK)
        qn__token_ids_add(e->ids, token);
    return status;
}

qn_status qn__path_encoder_make(qn__path_encoder *encoder, const qn__text_path *path,
                                qn_status (*encode)(void *user, const uint8_t *word, size_t size,
                                                    qn_error *err),
                                void *user, qn_error *err) {
    encoder->words.word = qn__word_encoder_word;
    encoder->words.added = qn__word_encoder_added;
    encoder->words.user = &encoder->encoder;
    const qn_status status = qn__word_encoder_make(&encoder->encoder, encode, user, err);
    return status == QN_OK ? qn__path_words_make(&encoder->words, path, err) : status;
}

void qn__path_encoder_release(qn__path_encoder *encoder) {
    qn__path_words_release(&encoder->words);
    qn__word_encoder_release(&encoder->encoder);
}

qn_status qn__path_encoder_encode(const void *state, void *own, const uint8_t *text, size_t size,
                                  int goes_on, qn__token_ids *ids, qn_error *err) {
    (void)state;
    qn__path_encoder *e = own;
    e->encoder.ids = ids;
    return qn__path_words_each(&e->words, text, size, goes_on, err);
}
