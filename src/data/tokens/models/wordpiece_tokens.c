/* WordPiece of a tokenizer.json, as BERT has it (docs/exactness.md 25.56). */

#include "base/memory.h"
#include "data/tokens/models/added_tokens.h"
#include "data/tokens/steps/bert_text.h"
#include "data/tokens/steps/scanner.h"
#include "data/tokens/models/token_kind.h"
#include "data/tokens/models/word_encoder.h"
#include <string.h>

/* Bytes of a prefix such as ##, at most. */
enum { PREFIX_MOST = 32 };

typedef struct wordpiece {
    qn__vocabulary vocabulary; /* also of the added tokens */
    qn__added_tokens added;
    qn__bert_normalizer normalizer;
    char prefix[PREFIX_MOST]; /* of a piece that does not begin a word */
    size_t prefix_size;
    uint64_t most; /* characters of a word; a longer one is unknown */
    uint32_t unknown;
    uint8_t *not_model; /* of each token: 1 where it is an added one that the model does not have */
    size_t longest;     /* bytes of the longest token */
} wordpiece;

/* What one thread needs. */
typedef struct worker {
    const wordpiece *piece;
    qn__word_encoder encoder;
    qn__byte_buffer word;
    char *text; /* a prefix and a piece */
} worker;

static void release(void *state) {
    wordpiece *p = state;
    if (!p)
        return;
    qn__vocabulary_release(&p->vocabulary);
    qn__added_tokens_release(&p->added);
    qn__free(p->not_model);
    qn__free(p);
}

/* ---- reading ---- */

static int type_is(const qn__json_node *node, const char *type) {
    const char *own = qn__json_string(qn__json_get(node, "type"));
    return own && strcmp(own, type) == 0;
}

static int flag(const qn__json_node *node, const char *key) {
    return qn__json_is_true(qn__json_get(node, key));
}

/* `strip_accents` is as `lowercase` where it is absent or null. */
static qn_status read_normalizer(wordpiece *p, const qn__json_node *node, qn_error *err) {
    if (!node || qn__json_is_null(node))
        return QN_OK;
    const char *type = qn__json_string(qn__json_get(node, "type"));
    if (!type || strcmp(type, "BertNormalizer") != 0)
        return qn__fail(err, QN_UNSUPPORTED, "the normaliser %s is not supported with WordPiece",
                        type ? type : "?");
    const qn__json_node *accents = qn__json_get(node, "strip_accents");
    p->normalizer.clean = flag(node, "clean_text");
    p->normalizer.ideographs = flag(node, "handle_chinese_chars");
    p->normalizer.lower = flag(node, "lowercase");
    p->normalizer.accents =
        accents && !qn__json_is_null(accents) ? qn__json_is_true(accents) : p->normalizer.lower;
    return QN_OK;
}

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
        status = qn__added_tokens_read(&p->added, qn__json_get(root, "added_tokens"),
                                       &(qn__normalizer){0}, &p->vocabulary, err);
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

/* Tokens that are looked for after the normaliser would have to be normalised, too. */
static qn_status check_added(const wordpiece *p, qn_error *err) {
    for (uint32_t k = 0; k < p->added.count; k++)
        if (p->added.token[k].normalized)
            return qn__fail(err, QN_UNSUPPORTED,
                            "the added token \"%s\" is normalised, which is not supported with "
                            "WordPiece",
                            p->added.token[k].text);
    return QN_OK;
}

static qn_status read(const qn__json_node *root, void **state, qn_error *err) {
    wordpiece *p = *state = qn__alloc(1, sizeof *p, err);
    qn_status status = p ? read_vocabulary(p, root, err) : QN_MEMORY;
    if (status == QN_OK)
        status = check_added(p, err);
    if (status == QN_OK)
        status = read_model(p, qn__json_get(root, "model"), err);
    if (status == QN_OK)
        status = read_normalizer(p, qn__json_get(root, "normalizer"), err);
    if (status == QN_OK && !type_is(qn__json_get(root, "pre_tokenizer"), "BertPreTokenizer"))
        return qn__fail(err, QN_UNSUPPORTED, "WordPiece needs the pre-tokeniser BertPreTokenizer");
    return status;
}

/* ---- writing ---- */

static void write(const void *state, const qn__token_frame *frame, qn__text *json) {
    const wordpiece *p = state;
    const qn__bert_normalizer *n = &p->normalizer;
    size_t size;
    qn__text_add(json, "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, "
                       "\"added_tokens\": ");
    qn__added_tokens_write(&p->added, json);
    qn__text_add(json,
                 ", \"normalizer\": {\"type\": \"BertNormalizer\", \"clean_text\": %s, "
                 "\"handle_chinese_chars\": %s, \"strip_accents\": %s, \"lowercase\": %s}, "
                 "\"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"post_processor\": ",
                 qn__truth_json(n->clean), qn__truth_json(n->ideographs),
                 qn__truth_json(n->accents), qn__truth_json(n->lower));
    qn__token_frame_write(frame, json);
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
    qn__word_encoder_release(&w->encoder);
    qn__byte_buffer_release(&w->word);
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
    qn__token_ids *ids = w->encoder.ids;
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
    if (!w->text || qn__word_encoder_make(&w->encoder, encode_word, w, err) != QN_OK) {
        worker_free(state, w);
        return NULL;
    }
    return w;
}

static qn_status encode(const void *state, void *own, const uint8_t *text, size_t size, int goes_on,
                        qn__token_ids *ids, qn_error *err) {
    (void)goes_on;
    const wordpiece *p = state;
    worker *w = own;
    const qn__split_taker taker = {qn__word_encoder_word, &w->encoder};
    qn_status status = QN_OK;
    w->encoder.ids = ids;
    for (size_t at = 0; status == QN_OK && at < size;) {
        size_t begin = size, end = size;
        const qn__added_token *found =
            qn__added_tokens_find(&p->added, 0, text, size, at, &begin, &end);
        status = qn__bert_words(&p->normalizer, &w->word, text + at, begin - at, &taker, err);
        if (status == QN_OK && found)
            status = qn__word_encoder_added(&w->encoder, found->number, err);
        at = end;
    }
    return status;
}

static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    const wordpiece *p = state;
    return p->added.cuttable ? qn__scanner_cut(text, size, at) : size;
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
                                                 .encode = encode,
                                                 .decode = decode};
