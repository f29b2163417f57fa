/* A token is a character (docs/exactness.md 25.51). */

#include "base/memory.h"
#include "base/text/character.h"
#include "data/tokens/models/token_kind.h"

typedef struct chars_state {
    uint32_t count; /* characters; their number is also that of the unknown token */
    uint32_t *character;
    uint32_t *number; /* of each of QN__CHARACTERS */
} chars_state;

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

static void release(void *state) {
    chars_state *s = state;
    if (!s)
        return;
    qn__free(s->character);
    qn__free(s->number);
    qn__free(s);
}

/* Characters that occur, with a nonzero `number`, get their numbers in ascending order. */
static qn_status number_characters(chars_state *s, qn_error *err) {
    for (uint32_t c = 0; c < QN__CHARACTERS; c++)
        s->count += s->number[c] != 0;
    s->character = qn__alloc(s->count, sizeof *s->character, err);
    if (!s->character)
        return QN_MEMORY;
    uint32_t next = 0;
    for (uint32_t c = 0; c < QN__CHARACTERS; c++) {
        const int occurs = s->number[c] != 0;
        s->number[c] = occurs ? next : s->count;
        if (occurs)
            s->character[next++] = c;
    }
    return QN_OK;
}

static chars_state *make(void **state, qn_error *err) {
    chars_state *s = *state = qn__alloc(1, sizeof *s, err);
    if (s)
        s->number = qn__alloc(QN__CHARACTERS, sizeof *s->number, err);
    return s && s->number ? s : NULL;
}

/* A character that occurs is counted once, as a word of four bytes. */
enum { WORD = 4 };

static qn_status count_one(uint32_t character, qn__word_table *words, qn_error *err) {
    char word[WORD];
    for (int k = 0; k < WORD; k++)
        word[k] = (char)(character >> 8 * k);
    return qn__word_add(words, word, WORD, 1, NULL, err);
}

static qn_status count(const char *after, const qn__token_text *corpus, size_t texts,
                       uint32_t threads, qn__word_table *words, qn_error *err) {
    (void)after, (void)threads;
    uint8_t *occurs = qn__alloc(QN__CHARACTERS, 1, err);
    qn_status status = occurs ? QN_OK : QN_MEMORY;
    for (size_t k = 0; occurs && k < texts; k++)
        for (size_t at = 0, length; at < corpus[k].size; at += length)
            occurs[qn__character(corpus[k].bytes + at, corpus[k].size - at, &length)] = 1;
    for (uint32_t c = 0; status == QN_OK && c < QN__CHARACTERS; c++)
        if (occurs[c])
            status = count_one(c, words, err);
    qn__free(occurs);
    return status;
}

static qn_status learn(const char *after, qn__word_table *words, void **state, qn_error *err) {
    (void)after;
    chars_state *s = make(state, err);
    if (!s)
        return QN_MEMORY;
    for (uint32_t k = 0; k < words->count; k++) {
        const qn__word *w = &words->word[k];
        uint32_t c = w->size == WORD ? 0 : QN__CHARACTERS;
        for (uint32_t b = 0; b < WORD && w->size == WORD; b++)
            c |= (uint32_t)(uint8_t)qn__word_bytes(words, w)[b] << 8 * b;
        if (c >= QN__CHARACTERS)
            return qn__fail(err, QN_FORMAT, "what was counted is not a character");
        s->number[c] = 1;
    }
    return number_characters(s, err);
}

static qn_status read(const qn__json_node *root, void **state, qn_error *err) {
    const qn__json_node *list = qn__json_get(root, "vocabulary");
    if (!qn__json_is_array(list) || qn__json_count(root) != 2)
        return qn__token_json_wrong(err,
                                    "\"chars\" needs the list \"vocabulary\" and nothing else");
    chars_state *s = make(state, err);
    if (!s)
        return QN_MEMORY;
    uint64_t least = 0, value;
    for (size_t k = 0; k < qn__json_count(list); k++) {
        if (!qn__json_u64(qn__json_at(list, k), &value) || value < least ||
            value >= QN__CHARACTERS || (value >= 0xD800 && value < 0xE000))
            return qn__token_json_wrong(err, "\"vocabulary\" of \"chars\" is not a list of "
                                             "characters in ascending order");
        s->number[value] = 1;
        least = value + 1;
    }
    return number_characters(s, err);
}

static void write(const void *state, const qn__token_frame *frame, qn__text *json) {
    (void)frame;
    const chars_state *s = state;
    qn__text_add(json, "{\"kind\": \"chars\", \"vocabulary\": [");
    for (uint32_t k = 0; k < s->count; k++)
        qn__text_add(json, "%s%u", k ? ", " : "", (unsigned)s->character[k]);
    qn__text_add(json, "]}");
}

static uint32_t unknown(const void *state) { return ((const chars_state *)state)->count; }

static uint32_t size_of(const void *state) { return unknown(state) + 1; }

static void decode(const void *state, const uint32_t *tokens, uint64_t count,
                   qn__token_output *output) {
    const chars_state *s = state;
    char bytes[4];
    for (uint64_t k = 0; k < count; k++) {
        if (tokens[k] == s->count)
            qn__token_write(output, replacement, 3);
        else
            qn__token_write(output, bytes, qn__character_write(s->character[tokens[k]], bytes));
    }
}

static size_t cut(const void *state, const uint8_t *text, size_t size, size_t at) {
    (void)state;
    return qn__character_cut(text, size, at);
}

static qn_status encode(const void *state, void *worker, const uint8_t *text, size_t size,
                        int goes_on, qn__token_ids *ids, qn_error *err) {
    (void)goes_on;
    (void)worker;
    const chars_state *s = state;
    const qn_status status = qn__token_ids_reserve(ids, size, err);
    for (size_t at = 0, length; status == QN_OK && at < size; at += length)
        qn__token_ids_add(ids, s->number[qn__character(text + at, size - at, &length)]);
    return status;
}

const qn__token_kind qn__token_chars_kind = {.name = "chars",
                                             .keeps_bytes = 1,
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
