/* From a text to the tokens of a byte-pair encoding (docs/exactness.md 25.53 to 25.55). */

#include "base/files/file.h"
#include "base/memory.h"
#include "data/tokens/bpe.h"
#include "data/tokens/character.h"
#include "data/tokens/token_kind.h"
#include "data/tokens/word_cache.h"
#include <stdlib.h>
#include <string.h>

/* What one thread needs. */
typedef struct worker {
    const qn__bpe *bpe;
    qn__token_ids *ids; /* where the tokens go */
    qn__word_cache cache;
    qn__split_worker split;
    qn__merge_worker merge;
    uint8_t *copy; /* a text with a space before it */
    size_t copied;
} worker;

static void worker_free(const void *state, void *own) {
    const qn__bpe *b = state;
    worker *w = own;
    if (!w)
        return;
    qn__split_worker_release(&b->splitter, &w->split);
    qn__merge_worker_release(&w->merge);
    qn__free(w->cache.place);
    free(w->copy);
    qn__free(w);
}

static void *worker_make(const void *state, qn_error *err) {
    const qn__bpe *b = state;
    worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return NULL;
    w->bpe = b;
    w->cache.place = qn__alloc((uint64_t)1 << QN__CACHE_BITS, sizeof *w->cache.place, err);
    if (!w->cache.place || qn__split_worker_make(&b->splitter, &w->split, err) != QN_OK) {
        worker_free(state, w);
        return NULL;
    }
    return w;
}

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
static qn_status encode_word(worker *w, const uint8_t *word, size_t size, qn_error *err) {
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
    if (size > QN__CACHED_BYTES)
        return encode_word(w, word, size, err);
    uint64_t key[4];
    qn__cached_word *place = qn__word_cache_place(&w->cache, word, size, key);
    qn__token_ids *ids = w->ids;
    if (qn__word_cache_has(place, key)) {
        const qn_status status = qn__token_ids_reserve(ids, QN__CACHED_TOKENS, err);
        if (status != QN_OK)
            return status;
        memcpy(ids->number + ids->count, place->token, sizeof place->token);
        ids->count += place->count;
        return QN_OK;
    }
    const size_t before = ids->count;
    const qn_status status = encode_word(w, word, size, err);
    const size_t count = ids->count - before;
    if (status == QN_OK && count && count <= QN__CACHED_TOKENS) {
        memcpy(place->word, key, sizeof place->word);
        memcpy(place->token, ids->number + before, count * sizeof *place->token);
        place->count = (uint32_t)count;
    }
    return status;
}

/* The end of the well-formed UTF-8 that begins at `at`. */
static size_t well_formed_end(const uint8_t *text, size_t size, size_t at) {
    for (size_t length; at < size; at += length) {
        uint64_t eight;
        while (size - at >= 8 && (memcpy(&eight, text + at, 8), !(eight & 0x8080808080808080u)))
            at += 8;
        length = at < size ? qn__utf8_length((const char *)text + at, size - at) : 0;
        if (!length)
            return at;
    }
    return at;
}

static size_t broken_end(const uint8_t *text, size_t size, size_t at) {
    while (at < size && !qn__utf8_length((const char *)text + at, size - at))
        at++;
    return at;
}

/* Well-formed text is cut to words; broken bytes that follow one another are a word. */
static qn_status encode_text(worker *w, const uint8_t *text, size_t size, qn_error *err) {
    const qn__split_taker taker = {take_word, w};
    qn_status status = QN_OK;
    for (size_t at = 0; status == QN_OK && at < size;) {
        const size_t end = well_formed_end(text, size, at), next = broken_end(text, size, end);
        status = qn__split(&w->bpe->splitter, &w->split, text + at, end - at, &taker, err);
        if (status == QN_OK && next > end)
            status = take_word(w, text + end, next - end, err);
        at = next;
    }
    return status;
}

static qn_status encode_with_space(worker *w, const uint8_t *text, size_t size, qn_error *err) {
    if (w->copied < size + 1) {
        uint8_t *copy = realloc(w->copy, size + 1);
        if (!copy)
            return qn__fail_memory(err, size + 1, 1);
        w->copy = copy;
        w->copied = size + 1;
    }
    w->copy[0] = ' ';
    memcpy(w->copy + 1, text, size);
    return encode_text(w, w->copy, size + 1, err);
}

/* A part of the text between added tokens: of those that are looked for first, and then of the
 * others. */
static qn_status encode_section(worker *w, int normalized, const uint8_t *text, size_t size,
                                qn_error *err) {
    qn_status status = QN_OK;
    for (size_t at = 0; status == QN_OK && at < size;) {
        size_t begin = size, end = size;
        const qn__added_token *found =
            qn__added_tokens_find(&w->bpe->added, normalized, text, size, at, &begin, &end);
        if (begin > at && !normalized)
            status = encode_section(w, 1, text + at, begin - at, err);
        else if (begin > at)
            status = w->bpe->prefix_space && text[at] != ' '
                         ? encode_with_space(w, text + at, begin - at, err)
                         : encode_text(w, text + at, begin - at, err);
        if (status == QN_OK && found) {
            status = qn__token_ids_reserve(w->ids, 1, err);
            if (status == QN_OK)
                qn__token_ids_add(w->ids, found->number);
        }
        at = end;
    }
    return status;
}

static qn_status encode(const void *state, void *own, const uint8_t *text, size_t size,
                        qn__token_ids *ids, qn_error *err) {
    (void)state;
    worker *w = own;
    w->ids = ids;
    return encode_section(w, 0, text, size, err);
}

static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    const qn__bpe *b = state;
    return b->added.cuttable ? qn__splitter_cut(&b->splitter, text, size, at) : size;
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
                                           .model = "BPE",
                                           .takes = "the file of a tokenizer, as in "
                                                    "bpe:tokenizer.json",
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
