/* The tokens of words that came before, for one thread. What it gives does not depend on it. */
#ifndef QN_DATA_TOKENS_MODELS_WORD_CACHE_H
#define QN_DATA_TOKENS_MODELS_WORD_CACHE_H

#include "data/tokens/models/token_ids.h"
#include <string.h>

/* A word that is longer, or has more tokens, is not kept. */
enum { QN__CACHED_BYTES = 31, QN__CACHED_TOKENS = 7 };

/* One word and its tokens, in one line of the processor's cache. */
typedef struct qn__cached_word {
    uint64_t word[4]; /* its bytes, zeros, and in the last byte its length */
    uint32_t token[QN__CACHED_TOKENS];
    uint32_t count; /* of tokens; 0: the place is free */
} qn__cached_word;

enum { QN__CACHE_BITS = 15 };

typedef struct qn__word_cache {
    qn__cached_word *place; /* 2^QN__CACHE_BITS of them */
} qn__word_cache;

/* The place of a word of at most QN__CACHED_BYTES; *key becomes the word as it is kept. */
static inline qn__cached_word *qn__word_cache_place(const qn__word_cache *cache,
                                                    const uint8_t *word, size_t size,
                                                    uint64_t key[4]) {
    memset(key, 0, 32);
    memcpy(key, word, size);
    ((uint8_t *)key)[31] = (uint8_t)size;
    uint64_t hash = key[0] * 0x9E3779B97F4A7C15u ^ key[1] * 0xC2B2AE3D27D4EB4Fu ^
                    key[2] * 0x165667B19E3779F9u ^ key[3] * 0xD6E8FEB86659FD93u;
    hash = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15u;
    return &cache->place[hash >> (64 - QN__CACHE_BITS)];
}

static inline int qn__word_cache_has(const qn__cached_word *place, const uint64_t key[4]) {
    return place->count && place->word[0] == key[0] && place->word[1] == key[1] &&
           place->word[2] == key[2] && place->word[3] == key[3];
}

/* Appends the tokens of a word: from the cache, or of `encode`, which appends them. */
static inline qn_status qn__word_cache_encode(const qn__word_cache *cache, qn__token_ids *ids,
                                              const uint8_t *word, size_t size,
                                              qn_status (*encode)(void *user, const uint8_t *word,
                                                                  size_t size, qn_error *err),
                                              void *user, qn_error *err) {
    if (size > QN__CACHED_BYTES)
        return encode(user, word, size, err);
    uint64_t key[4];
    qn__cached_word *place = qn__word_cache_place(cache, word, size, key);
    if (qn__word_cache_has(place, key)) {
        const qn_status status = qn__token_ids_reserve(ids, QN__CACHED_TOKENS, err);
        if (status != QN_OK)
            return status;
        memcpy(ids->number + ids->count, place->token, sizeof place->token);
        ids->count += place->count;
        return QN_OK;
    }
    const size_t before = ids->count;
    const qn_status status = encode(user, word, size, err);
    const size_t count = ids->count - before;
    if (status == QN_OK && count && count <= QN__CACHED_TOKENS) {
        memcpy(place->word, key, sizeof place->word);
        memcpy(place->token, ids->number + before, count * sizeof *place->token);
        place->count = (uint32_t)count;
    }
    return status;
}

#endif
