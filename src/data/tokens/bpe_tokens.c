/* From a text to the tokens of a byte-pair encoding (docs/exactness.md 25.53 to 25.55). */

#include "base/memory.h"
#include "data/tokens/bpe_train.h"
#include "data/tokens/bpe_words.h"
#include "data/tokens/token_kind.h"
#include "data/tokens/word_cache.h"
#include <string.h>

/* What one thread needs. */
typedef struct worker {
    const qn__bpe *bpe;
    qn__token_ids *ids; /* where the tokens go */
    qn__word_cache cache;
    qn__bpe_words words;
    qn__merge_worker merge;
} worker;

/* The first tokens of a word: one for each byte. */
static size_t first_tokens(const qn__bpe *b, const uint8_t *word, size_t size, uint32_t *token) {
    size_t count = 0;
    int unknown = 0; /* the last one was */
    for (size_t k = 0; k < size; k++) {
        const uint32_t own = b->byte[word[k]];
        const int is_unknown = own == QN__WORD_NONE;
        if (!is_unknown)
            token[count++] = own;
        else if (b->unknown != QN__WORD_NONE && !(unknown && b->fuse_unknown))
            token[count++] = b->unknown;
        unknown = is_unknown;
    }
    return count;
}

/* The tokens of a word at the end of the array. */
static qn_status encode_word(void *user, const uint8_t *word, size_t size, qn_error *err) {
    worker *w = user;
    const qn__bpe *b = w->bpe;
    qn_status status = qn__token_ids_reserve(w->ids, size, err);
    if (status != QN_OK)
        return status;
    if (b->whole_words) {
        const uint32_t found = qn__word_find(&b->words, (const char *)word, size);
        if (found != QN__WORD_NONE) {
            qn__token_ids_add(w->ids, (uint32_t)(b->words.word[found].count - 1));
            return QN_OK;
        }
    }
    uint32_t *token = w->ids->number + w->ids->count;
    const size_t count = first_tokens(b, word, size, token);
    w->ids->count += qn__merges_apply(&b->merges, &w->merge, token, count, &status, err);
    return status;
}

static qn_status take_word(void *user, const uint8_t *word, size_t size, qn_error *err) {
    worker *w = user;
    return qn__word_cache_encode(&w->cache, w->ids, word, size, encode_word, w, err);
}

static qn_status take_added(void *user, uint32_t token, qn_error *err) {
    worker *w = user;
    const qn_status status = qn__token_ids_reserve(w->ids, 1, err);
    if (status == QN_OK)
        qn__token_ids_add(w->ids, token);
    return status;
}

static void worker_free(const void *state, void *own) {
    (void)state;
    worker *w = own;
    if (!w)
        return;
    qn__bpe_words_release(&w->words);
    qn__merge_worker_release(&w->merge);
    qn__free(w->cache.place);
    qn__free(w);
}

static void *worker_make(const void *state, qn_error *err) {
    worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return NULL;
    w->bpe = state;
    w->cache.place = qn__alloc((uint64_t)1 << QN__CACHE_BITS, sizeof *w->cache.place, err);
    w->words.word = take_word;
    w->words.added = take_added;
    w->words.user = w;
    if (!w->cache.place || qn__bpe_words_make(&w->words, w->bpe, err) != QN_OK) {
        worker_free(state, w);
        return NULL;
    }
    return w;
}

static qn_status encode(const void *state, void *own, const uint8_t *text, size_t size,
                        qn__token_ids *ids, qn_error *err) {
    (void)state;
    worker *w = own;
    w->ids = ids;
    return qn__bpe_words_each(&w->words, text, size, err);
}

static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    return qn__bpe_words_cut(state, text, size, at);
}

static void decode(const void *state, const uint32_t *tokens, uint64_t count,
                   qn__token_output *output) {
    const qn__bpe *b = state;
    for (uint64_t k = 0; k < count; k++)
        qn__token_write(output, b->bytes + b->begin[tokens[k]],
                        b->begin[tokens[k] + 1] - b->begin[tokens[k]]);
}

static uint32_t size_of(const void *state) { return ((const qn__bpe *)state)->vocabulary.size; }

static uint32_t unknown(const void *state) {
    const qn__bpe *b = state;
    return b->unknown == QN__WORD_NONE ? b->vocabulary.size : b->unknown;
}

const qn__token_kind qn__token_bpe_kind = {.name = "bpe",
                                           .keeps_bytes = 1,
                                           .ends = 1,
                                           .model = "BPE",
                                           .takes = "a file or a number of tokens",
                                           .learn = qn__bpe_train,
                                           .learns = 1,
                                           .is_file = 1,
                                           .read = qn__bpe_read,
                                           .write = qn__bpe_write,
                                           .release = qn__bpe_release,
                                           .size = size_of,
                                           .unknown = unknown,
                                           .worker = worker_make,
                                           .worker_free = worker_free,
                                           .cut = cut,
                                           .encode = encode,
                                           .decode = decode};
