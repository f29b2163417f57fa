/* A token is a word, or a character that is not of a word (docs/exactness.md 25.52). */

#include "base/memory.h"
#include "base/text/character.h"
#include "data/tokens/models/token_kind.h"
#include "data/tokens/models/word_table.h"
#include <stdio.h>
#include <string.h>

/* The number of a string in the table is that of its token; the unknown one follows. */
typedef struct words_state {
    qn__word_table table;
} words_state;

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

static void release(void *state) {
    words_state *s = state;
    if (s)
        qn__word_table_release(&s->table);
    qn__free(s);
}

static int is_word(const uint8_t *text, size_t size, size_t *length) {
    return qn__character_is_word(qn__character(text, size, length));
}

/* The end of the word or other character that begins at `at`; *word says which it is. */
static size_t token_end(const uint8_t *text, size_t size, size_t at, int *word) {
    size_t length;
    *word = is_word(text + at, size - at, &length);
    at += length;
    while (*word && at < size && is_word(text + at, size - at, &length))
        at += length;
    return at;
}

/* Where the next token begins: a single space between two words is not a token. */
static size_t next_begin(const uint8_t *text, size_t size, size_t end, int word) {
    size_t length;
    const int between = word && end + 1 < size && text[end] == ' ' &&
                        is_word(text + end + 1, size - end - 1, &length);
    return end + (size_t)between;
}

static qn_status count_words(qn__word_table *table, const qn__token_text *text, qn_error *err) {
    qn_status status = QN_OK;
    int word;
    for (size_t at = 0, end; status == QN_OK && at < text->size;
         at = next_begin(text->bytes, text->size, end, word)) {
        end = token_end(text->bytes, text->size, at, &word);
        if (end - at > UINT32_MAX / 2)
            return qn__fail(err, QN_INPUT, "a word has more than 2 GiB");
        status = qn__word_add(table, (const char *)text->bytes + at, end - at, 1, NULL, err);
    }
    return status;
}

static int more_frequent(const qn__word_table *table, const qn__word *a, const qn__word *b) {
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return qn__word_compare(qn__word_bytes(table, a), a->size, qn__word_bytes(table, b), b->size);
}

static qn_status read_limit(const char *after, uint64_t *most, qn_error *err) {
    *most = QN__TOKENS_MOST;
    if (!after ||
        (qn__parse_u64(after, strlen(after), most) && *most >= 2 && *most <= QN__TOKENS_MOST))
        return QN_OK;
    qn__fail(err, QN_USAGE, "\"words:%s\": there may be 2 to %d tokens", after, QN__TOKENS_MOST);
    return qn__remedy(err, QN_USAGE, "write words:20000, or words alone for all of them");
}

static qn_status count(const char *after, const qn__token_text *corpus, size_t texts,
                       uint32_t threads, qn__word_table *words, qn_error *err) {
    (void)threads;
    uint64_t most;
    qn_status status = read_limit(after, &most, err);
    for (size_t k = 0; status == QN_OK && k < texts; k++)
        status = count_words(words, &corpus[k], err);
    return status;
}

static qn_status learn(const char *after, qn__word_table *words, void **state, qn_error *err) {
    uint64_t most;
    qn_status status = read_limit(after, &most, err);
    words_state *s = *state = status == QN_OK ? qn__alloc(1, sizeof *s, err) : NULL;
    if (!s)
        return status == QN_OK ? QN_MEMORY : status;
    s->table = *words;
    *words = (qn__word_table){0};
    if (!after && s->table.count >= most) {
        qn__fail(err, QN_INPUT, "the corpus has %u different words and other characters",
                 (unsigned)s->table.count);
        return qn__remedy(err, QN_INPUT, "keep the most frequent ones: words:100000");
    }
    return qn__word_order(&s->table, more_frequent, (uint32_t)most - 1, err);
}

/* A string of the vocabulary is a word, a number another character. */
static qn_status read_entry(qn__word_table *table, const qn__json_node *node, qn_error *err) {
    char bytes[4];
    const char *text = qn__json_string(node);
    size_t size = text ? strlen(text) : 0;
    uint64_t value = 0;
    int word = 1;
    if (!text && qn__json_u64(node, &value) && value < QN__CHARACTERS &&
        (value < 0xD800 || value >= 0xE000)) {
        size = qn__character_write((uint32_t)value, bytes);
        text = bytes;
    }
    if (!size || token_end((const uint8_t *)text, size, 0, &word) != size ||
        word != (text != bytes))
        return qn__token_json_wrong(err, "\"vocabulary\" of \"words\" has an entry that is neither "
                                         "a word nor the number of another character");
    const uint32_t before = table->count;
    const qn_status status = qn__word_add(table, text, size, 1, NULL, err);
    if (status == QN_OK && table->count == before)
        return qn__token_json_wrong(err, "\"vocabulary\" of \"words\" has an entry twice");
    return status;
}

static qn_status read(const qn__json_node *root, void **state, qn_error *err) {
    const qn__json_node *list = qn__json_get(root, "vocabulary");
    if (!qn__json_is_array(list) || qn__json_count(root) != 2 ||
        qn__json_count(list) >= QN__TOKENS_MOST)
        return qn__token_json_wrong(err,
                                    "\"words\" needs the list \"vocabulary\" and nothing else");
    words_state *s = *state = qn__alloc(1, sizeof *s, err);
    qn_status status = s ? QN_OK : QN_MEMORY;
    for (size_t k = 0; status == QN_OK && k < qn__json_count(list); k++)
        status = read_entry(&s->table, qn__json_at(list, k), err);
    return status;
}

static int is_word_token(const words_state *s, uint32_t token) {
    size_t length;
    if (token == s->table.count)
        return 1;
    const qn__word *w = &s->table.word[token];
    return is_word((const uint8_t *)qn__word_bytes(&s->table, w), w->size, &length);
}

/* The bytes of one token. */
typedef struct token_bytes {
    const char *bytes;
    size_t size;
} token_bytes;

static token_bytes token_of(const void *state, uint32_t token) {
    const words_state *s = state;
    if (token == s->table.count)
        return (token_bytes){replacement, 3};
    const qn__word *w = &s->table.word[token];
    return (token_bytes){qn__word_bytes(&s->table, w), w->size};
}

static void write_entry(const words_state *s, uint32_t token, qn__text *json) {
    const token_bytes bytes = token_of(s, token);
    size_t length;
    if (is_word_token(s, token))
        qn__text_add(json, "\"%.*s\"", (int)bytes.size, bytes.bytes);
    else
        qn__text_add(json, "%u",
                     (unsigned)qn__character((const uint8_t *)bytes.bytes, bytes.size, &length));
}

static void write(const void *state, const qn__token_frame *frame, qn__text *json) {
    (void)frame;
    const words_state *s = state;
    qn__text_add(json, "{\"kind\": \"words\", \"vocabulary\": [");
    for (uint32_t k = 0; k < s->table.count; k++) {
        qn__text_add(json, "%s", k ? ", " : "");
        write_entry(s, k, json);
    }
    qn__text_add(json, "]}");
}

static uint32_t unknown(const void *state) { return ((const words_state *)state)->table.count; }

static uint32_t size_of(const void *state) { return unknown(state) + 1; }

/* A line feed is a token wherever it stands, and the space between words is not beside one. */
static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    (void)state;
    const uint8_t *found = at < size ? memchr(text + at, '\n', size - at) : NULL;
    return found ? (size_t)(found - text) : size;
}

static qn_status encode(const void *state, void *worker, const uint8_t *text, size_t size,
                        int goes_on, qn__token_ids *ids, qn_error *err) {
    (void)goes_on;
    (void)worker;
    const words_state *s = state;
    qn_status status = QN_OK;
    int word;
    for (size_t at = 0, end; at < size; at = next_begin(text, size, end, word)) {
        end = token_end(text, size, at, &word);
        const uint32_t found = qn__word_find(&s->table, (const char *)text + at, end - at);
        status = qn__token_ids_reserve(ids, 1, err);
        if (status != QN_OK)
            return status;
        qn__token_ids_add(ids, found == QN__WORD_NONE ? s->table.count : found);
    }
    return status;
}

static void decode(const void *state, const uint32_t *tokens, uint64_t count,
                   qn__token_output *output) {
    int before = 0;
    for (uint64_t k = 0; k < count; k++) {
        const int word = is_word_token(state, tokens[k]);
        const token_bytes bytes = token_of(state, tokens[k]);
        if (before && word)
            qn__token_write(output, " ", 1);
        qn__token_write(output, bytes.bytes, bytes.size);
        before = word;
    }
}

const qn__token_kind qn__token_words_kind = {.name = "words",
                                             .takes = "a number of tokens, as in words:20000",
                                             .count = count,
                                             .learn = learn,
                                             .read = read,
                                             .write = write,
                                             .release = release,
                                             .size = size_of,
                                             .unknown = unknown,
                                             .cut = cut,
                                             .encode = encode,
                                             .decode = decode};
