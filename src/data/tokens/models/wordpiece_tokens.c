/* WordPiece of a tokenizer.json, as BERT has it (docs/exactness.md 25.56). */

#include "base/memory.h"
#include "data/tokens/models/token_kind.h"
#include "data/tokens/models/word_encoder.h"
#include <string.h>

/* Bytes of a prefix such as ##, at most. */
enum { PREFIX_MOST = 32 };

typedef struct wordpiece {
    qn__vocabulary vocabulary; /* also of the added tokens */
    qn__text_path path;
    char prefix[PREFIX_MOST]; /* of a piece that does not begin a word */
    size_t prefix_size;
    uint64_t most; /* characters of a word; a longer one is unknown */
    uint32_t unknown;
    uint8_t *not_model; /* of each token: 1 where it is an added one that the model does not have */
    size_t longest;     /* bytes of the longest token */
} wordpiece;

/* What one thread needs. */
typedef struct worker {
    qn__path_encoder path; /* first */
    const wordpiece *piece;
    char *text; /* a prefix and a piece */
} worker;

static void release(void *state) {
    wordpiece *p = state;
    if (!p)
        return;
    qn__vocabulary_release(&p->vocabulary);
    qn__text_path_release(&p->path);
    qn__free(p->not_model);
    qn__free(p);
}

/* ---- reading ---- */

static qn_status read_model(wordpiece *p, const qn__json_node *model, qn_error *err) {
    const char *unknown = qn__json_string(qn__json_get(model, "unk_token"));
    const char *prefix = qn__json_string(qn__json_get(model, "continuing_subword_prefix"));
    p->most = 100;
    (void)qn__json_u64(qn__json_get(model, "max_input_chars_per_word"), &p->most);
    p->unknown =
        unknown ? qn__vocabulary_find(&p->vocabulary, unknown, strlen(unknown)) : QN__WORD_NONE;
    if (p->unknown == QN__WORD_NONE)
        return qn__fail(err, QN_FORMAT, "\"model.unk_token\" is not in the vocabulary");
    if (!prefix)
        prefix = "##";
    p->prefix_size = strlen(prefix);
    if (p->prefix_size >= PREFIX_MOST)
        return qn__fail(err, QN_FORMAT,
                        "\"model.continuing_subword_prefix\" is longer than %d "
                        "bytes",
                        PREFIX_MOST - 1);
    memcpy(p->prefix, prefix, p->prefix_size + 1);
    return QN_OK;
}

static qn_status read_vocabulary(wordpiece *p, const qn__json_node *root, qn_error *err) {
    qn_status status = qn__vocabulary_read(&p->vocabulary,
                                           qn__json_get(qn__json_get(root, "model"), "vocab"), err);
    const uint32_t own = p->vocabulary.texts.count;
    if (status == QN_OK)
        status = qn__text_path_read(&p->path, root, &p->vocabulary, err);
    if (status == QN_OK)
        status = qn__vocabulary_end(&p->vocabulary, err);
    if (status != QN_OK)
        return status;
    p->not_model = qn__alloc(p->vocabulary.size, 1, err);
    for (uint32_t k = 0; p->not_model && k < p->vocabulary.texts.count; k++) {
        p->not_model[p->vocabulary.number.number[k]] = k >= own;
        if (p->vocabulary.texts.word[k].size > p->longest)
            p->longest = p->vocabulary.texts.word[k].size;
    }
    return p->not_model ? QN_OK : QN_MEMORY;
}

static qn_status read(const qn__json_node *root, void **state, qn_error *err) {
    wordpiece *p = *state = qn__alloc(1, sizeof *p, err);
    qn_status status = p ? read_vocabulary(p, root, err) : QN_MEMORY;
    if (status == QN_OK)
        status = read_model(p, qn__json_get(root, "model"), err);
    if (status == QN_OK && p->path.byte_level)
        return qn__fail(err, QN_UNSUPPORTED,
                        "the pre-tokeniser ByteLevel is not supported with WordPiece");
    return status;
}

/* ---- writing ---- */

static void write(const void *state, const qn__token_frame *frame, qn__text *json) {
    const wordpiece *p = state;
    size_t size;
    qn__text_path_write(&p->path, frame, json);
    qn__text_add(json, ", \"decoder\": {\"type\": \"WordPiece\", \"prefix\": ");
    qn__text_add_json(json, p->prefix);
    qn__text_add(json, ", \"cleanup\": false}, \"model\": {\"type\": \"WordPiece\", "
                       "\"unk_token\": ");
    const char *text = qn__vocabulary_text(&p->vocabulary, p->unknown, &size);
    qn__token_text_json(json, text, size);
    qn__text_add(json, ", \"continuing_subword_prefix\": ");
    qn__text_add_json(json, p->prefix);
    qn__text_add(json,
                 ", \"max_input_chars_per_word\": %llu, \"vocab\": ", (unsigned long long)p->most);
    qn__vocabulary_write(&p->vocabulary, p->not_model, json);
    qn__text_add(json, "}}");
}

/* ---- encoding ---- */

static void worker_free(const void *state, void *own) {
    (void)state;
    worker *w = own;
    if (!w)
        return;
    qn__path_encoder_release(&w->path);
    qn__free(w->text);
    qn__free(w);
}

static uint32_t find(const wordpiece *p, const char *text, size_t size) {
    const uint32_t token = qn__vocabulary_find(&p->vocabulary, text, size);
    return token == QN__WORD_NONE || p->not_model[token] ? QN__WORD_NONE : token;
}

/* The longest token at `at`, and where it ends. */
static uint32_t longest_at(worker *w, const uint8_t *word, size_t size, size_t at, size_t *end) {
    const wordpiece *p = w->piece;
    const size_t prefix = at ? p->prefix_size : 0;
    if (p->longest < prefix)
        return QN__WORD_NONE;
    const size_t most = p->longest - prefix;
    *end = size - at > most ? at + most : size;
    memcpy(w->text, p->prefix, prefix);
    memcpy(w->text + prefix, word + at, *end - at);
    for (; *end > at; --*end) {
        if (*end < size && (word[*end] & 0xC0) == 0x80)
            continue;
        const uint32_t token = find(p, w->text, prefix + *end - at);
        if (token != QN__WORD_NONE)
            return token;
    }
    return QN__WORD_NONE;
}

static uint64_t characters(const uint8_t *word, size_t size) {
    uint64_t count = 0;
    for (size_t k = 0; k < size; k++)
        count += (word[k] & 0xC0) != 0x80;
    return count;
}

static qn_status encode_word(void *user, const uint8_t *word, size_t size, qn_error *err) {
    worker *w = user;
    const wordpiece *p = w->piece;
    qn__token_ids *ids = w->path.encoder.ids;
    const size_t before = ids->count;
    int known = characters(word, size) <= p->most;
    qn_status status = qn__token_ids_reserve(ids, known ? size : 1, err);
    if (status != QN_OK)
        return status;
    for (size_t at = 0, end; known && at < size; at = end) {
        const uint32_t token = longest_at(w, word, size, at, &end);
        known = token != QN__WORD_NONE;
        if (known)
            qn__token_ids_add(ids, token);
    }
    if (!known) {
        ids->count = before;
        qn__token_ids_add(ids, p->unknown);
    }
    return QN_OK;
}

static void *worker_make(const void *state, qn_error *err) {
    worker *w = qn__alloc(1, sizeof *w, err);
    if (!w)
        return NULL;
    w->piece = state;
    w->text = qn__alloc(w->piece->longest + PREFIX_MOST, 1, err);
    if (!w->text ||
        qn__path_encoder_make(&w->path, &w->piece->path, encode_word, w, err) != QN_OK) {
        worker_free(state, w);
        return NULL;
    }
    return w;
}

static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    return qn__text_path_cut(&((const wordpiece *)state)->path, text, size, at);
}

/* Words with spaces between them; a piece with the prefix belongs to the one before. */
static void decode(const void *state, const uint32_t *tokens, uint64_t count,
                   qn__token_output *output) {
    const wordpiece *p = state;
    for (uint64_t k = 0; k < count; k++) {
        size_t size;
        const char *text = qn__vocabulary_text(&p->vocabulary, tokens[k], &size);
        const int goes_on = k && p->prefix_size && size >= p->prefix_size &&
                            memcmp(text, p->prefix, p->prefix_size) == 0;
        if (k && !goes_on)
            qn__token_write(output, " ", 1);
        const size_t left_out = goes_on ? p->prefix_size : 0;
        qn__token_write(output, text + left_out, size - left_out);
    }
}

static uint32_t size_of(const void *state) { return ((const wordpiece *)state)->vocabulary.size; }

static uint32_t unknown(const void *state) { return ((const wordpiece *)state)->unknown; }

const qn__token_kind qn__token_wordpiece_kind = {.name = "wordpiece",
                                                 .model = "WordPiece",
                                                 .takes = "a file",
                                                 .is_file = 1,
                                                 .read = read,
                                                 .write = write,
                                                 .release = release,
                                                 .size = size_of,
                                                 .unknown = unknown,
                                                 .worker = worker_make,
                                                 .worker_free = worker_free,
                                                 .cut = cut,
                                                 .encode = qn__path_encoder_encode,
                                                 .decode = decode};
