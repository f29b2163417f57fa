/* From a text to the tokens of a byte-pair encoding (docs/exactness.md 25.53 to 25.55). */

#include "base/memory.h"
#include "base/text/character.h"
#include "data/tokens/models/bpe.h"
#include "data/tokens/models/bpe_train.h"
#include "data/tokens/models/marks.h"
#include "data/tokens/models/word_encoder.h"

/* What one thread needs. */
typedef struct worker {
    qn__path_encoder path; /* first */
    const qn__bpe *bpe;
    qn__merge_worker merge;
} worker;

/* The first tokens of a word on their way. */
typedef struct first {
    const qn__bpe *bpe;
    uint32_t *token;
    size_t count;
    int unknown; /* an unknown one waits */
} first;

/* One for each byte. */
static size_t first_bytes(const qn__bpe *b, const uint8_t *word, size_t size, uint32_t *token) {
    size_t count = 0;
    int unknown = 0; /* the last one was */
    for (size_t k = 0; k < size; k++) {
        const uint32_t own = b->byte[qn__bpe_place(k == 0, k + 1 == size)][word[k]];
        const int is_unknown = own == QN__WORD_NONE;
        if (!is_unknown)
            token[count++] = own;
        else if (b->unknown != QN__WORD_NONE && !(unknown && b->fuse_unknown))
            token[count++] = b->unknown;
        unknown = is_unknown;
    }
    return count;
}

static uint32_t find(const qn__bpe *b, const uint8_t *text, size_t size) {
    const uint32_t token = qn__vocabulary_find(&b->vocabulary, (const char *)text, size);
    return token == QN__WORD_NONE || b->not_model[token] ? QN__WORD_NONE : token;
}

/* The bytes of a character; 0: one has no token. */
static int put_bytes(first *f, const uint8_t *bytes, size_t size) {
    for (size_t k = 0; k < size; k++)
        if (f->bpe->byte[0][bytes[k]] == QN__WORD_NONE)
            return 0;
    for (size_t k = 0; k < size; k++)
        f->token[f->count++] = f->bpe->byte[0][bytes[k]];
    return 1;
}

static void put_character(first *f, const uint8_t *text, size_t size) {
    const uint32_t own = find(f->bpe, text, size), unknown = f->bpe->unknown;
    if (own == QN__WORD_NONE && put_bytes(f, text, size))
        return;
    if (f->unknown && (own != QN__WORD_NONE || !f->bpe->fuse_unknown)) {
        f->token[f->count++] = unknown;
        f->unknown = 0;
    }
    if (own != QN__WORD_NONE)
        f->token[f->count++] = own;
    else
        f->unknown = unknown != QN__WORD_NONE;
}

/* A character with the affixes of its place. */
static void put_with_affixes(first *f, const uint8_t *text, size_t size, unsigned place) {
    char whole[2 * QN__AFFIX_MOST + 8];
    const size_t prefix = place & 1 ? strlen(f->bpe->prefix) : 0;
    const size_t suffix = place & 2 ? strlen(f->bpe->suffix) : 0;
    memcpy(whole, f->bpe->prefix, prefix);
    memcpy(whole + prefix, text, size);
    memcpy(whole + prefix + size, f->bpe->suffix, suffix);
    put_character(f, (const uint8_t *)whole, prefix + size + suffix);
}

/* One for each character, or several for its bytes. */
static size_t first_characters(const qn__bpe *b, const uint8_t *word, size_t size,
                               uint32_t *token) {
    first f = {.bpe = b, .token = token};
    for (size_t at = 0, length; at < size; at += length) {
        (void)qn__character(word + at, size - at, &length);
        if (*b->prefix || *b->suffix)
            put_with_affixes(&f, word + at, length, qn__bpe_place(at == 0, at + length == size));
        else
            put_character(&f, word + at, length);
    }
    if (f.unknown)
        token[f.count++] = b->unknown;
    return f.count;
}

/* A word that is in the vocabulary. */
static uint32_t whole_word(const qn__bpe *b, const uint8_t *word, size_t size) {
    if (!b->path.byte_level)
        return find(b, word, size);
    const uint32_t found = qn__word_find(&b->words, (const char *)word, size);
    return found == QN__WORD_NONE ? found : (uint32_t)(b->words.word[found].count - 1);
}

/* The tokens of a word at the end of the array. */
static qn_status encode_word(void *user, const uint8_t *word, size_t size, qn_error *err) {
    worker *w = user;
    const qn__bpe *b = w->bpe;
    qn__token_ids *ids = w->path.encoder.ids;
    const size_t most = size * (1 + strlen(b->prefix)) + strlen(b->suffix); /* all their bytes */
    qn_status status = qn__token_ids_reserve(ids, most, err);
    if (status != QN_OK)
        return status;
    const uint32_t whole = b->whole_words ? whole_word(b, word, size) : QN__WORD_NONE;
    if (whole != QN__WORD_NONE) {
        qn__token_ids_add(ids, whole);
        return QN_OK;
    }
    uint32_t *token = ids->number + ids->count;
    const size_t count = b->path.byte_level ? first_bytes(b, word, size, token)
                                            : first_characters(b, word, size, token);
    ids->count += qn__merges_apply(&b->merges, &w->merge, token, count, &status, err);
    return status;
}

/* Parts of a word that no merge joins. */
static qn_status take_marked(void *user, const uint8_t *word, size_t size, qn_error *err) {
    worker *w = user;
    int before;
    const char *mark = qn__text_path_mark(&w->bpe->path, &before);
    qn_status status = QN_OK;
    for (size_t at = 0, end; status == QN_OK && at < size; at = end) {
        end = qn__marked_end(word, size, at, mark, w->bpe->mark_size);
        status = qn__word_encoder_word(&w->path.encoder, word + at, end - at, err);
    }
    return status;
}

static qn_status take_added(void *user, uint32_t token, qn_error *err) {
    return qn__word_encoder_added(&((worker *)user)->path.encoder, token, err);
}

static void worker_free(const void *state, void *own) {
    (void)state;
    worker *w = own;
    if (!w)
        return;
    qn__path_encoder_release(&w->path);
    qn__merge_worker_release(&w->merge);
    qn__free(w);
}

static void *worker_make(const void *state, qn_error *err) {
    worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return NULL;
    w->bpe = state;
    if (qn__path_encoder_make(&w->path, &w->bpe->path, encode_word, w, err) != QN_OK) {
        worker_free(state, w);
        return NULL;
    }
    if (w->bpe->mark_size) {
        w->path.words.word = take_marked;
        w->path.words.added = take_added;
        w->path.words.user = w;
    }
    return w;
}

static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    return qn__text_path_cut(&((const qn__bpe *)state)->path, text, size, at);
}

/* Its bytes then end with a space, which the last token of a text does not write. */
static int ends_word(const qn__bpe *b, uint32_t token) {
    size_t size;
    const char *text = qn__vocabulary_text(&b->vocabulary, token, &size);
    return !b->not_model[token] && b->begin[token + 1] > b->begin[token] &&
           b->bytes[b->begin[token + 1] - 1] == ' ' && qn__bpe_ends_word(b, text, size);
}

static void decode(const void *state, const uint32_t *tokens, uint64_t count,
                   qn__token_output *output) {
    const qn__bpe *b = state;
    for (uint64_t k = 0; k < count; k++) {
        const size_t *begin = &b->begin[tokens[k]];
        const size_t space = k + 1 == count && ends_word(b, tokens[k]);
        qn__marked_write(output, k, b->drops_space, b->bytes + begin[0],
                         begin[1] - begin[0] - space);
    }
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
                                           .count = qn__bpe_count,
                                           .learn = qn__bpe_train,
                                           .is_file = 1,
                                           .read = qn__bpe_read,
                                           .write = qn__bpe_write,
                                           .release = qn__bpe_release,
                                           .size = size_of,
                                           .unknown = unknown,
                                           .worker = worker_make,
                                           .worker_free = worker_free,
                                           .cut = cut,
                                           .encode = qn__path_encoder_encode,
                                           .decode = decode};
