#include "data/tokens/models/added_tokens.h"

#include "base/memory.h"
#include "base/text/character.h"
#include "data/tokens/unicode/character_class.h"
#include "data/tokens/steps/scanner.h"
#include <stdlib.h>
#include <string.h>

static int is_true(const qn__json_node *object, const char *key) {
    return qn__json_is_true(qn__json_get(object, key));
}

/* token->pattern, and its size. */
static qn_status make_pattern(qn__added_token *token, const qn__normalizer *normalizer,
                              qn_error *err) {
    qn__normalizer_worker worker = {0};
    const uint8_t *text = (const uint8_t *)token->text;
    size_t size = strlen(token->text);
    qn_status status = QN_OK;
    if (token->normalized) {
        status = qn__normalizer_worker_make(normalizer, &worker, err);
        if (status == QN_OK)
            status = qn__normalize(normalizer, &worker, 0, &text, &size, err);
    }
    if (status == QN_OK && !size)
        status = qn__fail(err, QN_FORMAT, "the normaliser leaves nothing of the added token \"%s\"",
                          token->text);
    token->pattern = status == QN_OK ? qn__alloc(size + 1, 1, err) : NULL;
    if (status == QN_OK && !token->pattern)
        status = QN_MEMORY;
    if (status == QN_OK) {
        memcpy(token->pattern, text, size);
        token->size = size;
    }
    qn__normalizer_worker_release(&worker);
    return status;
}

static qn_status read_token(qn__added_token *token, const qn__json_node *node,
                            const qn__normalizer *normalizer, qn__vocabulary *vocabulary,
                            qn_error *err) {
    const char *content = qn__json_string(qn__json_get(node, "content"));
    uint64_t number;
    if (!content || !*content || !qn__json_u64(qn__json_get(node, "id"), &number))
        return qn__fail(err, QN_FORMAT, "an added token has no \"content\" or no \"id\"");
    *token = (qn__added_token){.text = qn__copy_text(content, err),
                               .number = (uint32_t)number,
                               .left = is_true(node, "lstrip"),
                               .right = is_true(node, "rstrip"),
                               .normalized = is_true(node, "normalized"),
                               .special = is_true(node, "special"),
                               .single = is_true(node, "single_word")};
    if (!token->text)
        return QN_MEMORY;
    const qn_status status =
        qn__vocabulary_add(vocabulary, token->text, strlen(token->text), number, err);
    return status == QN_OK ? make_pattern(token, normalizer, err) : status;
}

static int by_first_byte(const void *a, const void *b) {
    const qn__added_token *x = a, *y = b;
    const uint8_t first = (uint8_t)*x->pattern, other = (uint8_t)*y->pattern;
    if (first != other)
        return first < other ? -1 : 1;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    return memcmp(x->pattern, y->pattern, x->size);
}

static int is_cuttable(const qn__added_token *t) {
    return qn__scanner_cut((const uint8_t *)t->text, strlen(t->text), 0) == strlen(t->text) &&
           !(t->text[0] == ' ' || (t->left && qn__is_latin_letter((uint8_t)t->text[0]))) &&
           !(t->text[strlen(t->text) - 1] == ' ' ||
             (t->right && qn__is_latin_letter((uint8_t)t->text[strlen(t->text) - 1])));
}

static qn_status index_tokens(qn__added_tokens *added, qn_error *err) {
    qsort(added->token, added->count, sizeof *added->token, by_first_byte);
    added->cuttable = 1;
    for (uint32_t k = 0; k < added->count; k++) {
        const qn__added_token *t = &added->token[k];
        if (k && by_first_byte(t - 1, t) == 0)
            return qn__fail(err, QN_FORMAT, "the token \"%s\" is added twice", t->text);
        added->first[(uint8_t)*t->pattern + 1] = k + 1;
        added->cuttable &= is_cuttable(t);
    }
    for (size_t k = 1; k < 257; k++)
        if (added->first[k] < added->first[k - 1])
            added->first[k] = added->first[k - 1];
    return QN_OK;
}

qn_status qn__added_tokens_read(qn__added_tokens *added, const qn__json_node *array,
                                const qn__normalizer *normalizer, qn__vocabulary *vocabulary,
                                qn_error *err) {
    if (array && !qn__json_is_null(array) && !qn__json_is_array(array))
        return qn__fail(err, QN_FORMAT, "\"added_tokens\" is not a list");
    const size_t count = qn__json_is_array(array) ? qn__json_count(array) : 0;
    added->token = qn__alloc(count, sizeof *added->token, err);
    qn_status status = added->token ? QN_OK : QN_MEMORY;
    for (size_t k = 0; status == QN_OK && k < count; k++) {
        added->count++;
        status = read_token(&added->token[k], qn__json_at(array, k), normalizer, vocabulary, err);
    }
    return status == QN_OK ? index_tokens(added, err) : status;
}

static int by_number(const void *a, const void *b) {
    const qn__added_token *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

void qn__added_tokens_write(const qn__added_tokens *added, qn__text *json) {
    qn__added_token *sorted = qn__alloc(added->count, sizeof *sorted, NULL);
    if (!sorted) {
        json->failed = 1;
        return;
    }
    memcpy(sorted, added->token, added->count * sizeof *sorted);
    qsort(sorted, added->count, sizeof *sorted, by_number);
    qn__text_add(json, "[");
    for (uint32_t k = 0; k < added->count; k++) {
        const qn__added_token *t = &sorted[k];
        qn__text_add(json, "%s{\"id\": %u, \"content\": ", k ? ", " : "", (unsigned)t->number);
        qn__text_add_json(json, t->text);
        qn__text_add(json,
                     ", \"single_word\": %s, \"lstrip\": %s, \"rstrip\": %s, "
                     "\"normalized\": %s, \"special\": %s}",
                     qn__truth_json(t->single), qn__truth_json(t->left), qn__truth_json(t->right),
                     qn__truth_json(t->normalized), qn__truth_json(t->special));
    }
    qn__text_add(json, "]");
    qn__free(sorted);
}

void qn__added_tokens_release(qn__added_tokens *added) {
    for (uint32_t k = 0; added->token && k < added->count; k++) {
        qn__free(added->token[k].text);
        qn__free(added->token[k].pattern);
    }
    qn__free(added->token);
    *added = (qn__added_tokens){0};
}

/* The character before `begin`, which does not begin before `from`, and its place. */
static uint32_t character_before(const uint8_t *text, size_t from, size_t begin, size_t *place) {
    size_t at = begin - 1, length;
    while (at > from && (text[at] & 0xC0) == 0x80)
        at--;
    const uint32_t character = qn__character(text + at, begin - at, &length);
    *place = at;
    return at + length == begin ? character : QN__CHARACTER_BROKEN;
}

/* White space before `begin`, not before `from`, and after `end`. */
static size_t space_before(const uint8_t *text, size_t from, size_t begin) {
    size_t at = begin;
    while (begin > from && qn__character_is_space(character_before(text, from, begin, &at)))
        begin = at;
    return begin;
}

static size_t space_after(const uint8_t *text, size_t size, size_t end) {
    size_t length;
    while (end < size && qn__character_is_space(qn__character(text + end, size - end, &length)))
        end += length;
    return end;
}

static const qn__added_token *token_at(const qn__added_tokens *added, int normalized,
                                       const uint8_t *text, size_t size) {
    for (uint32_t k = added->first[text[0]]; k < added->first[text[0] + 1]; k++) {
        const qn__added_token *t = &added->token[k];
        if (t->normalized == normalized && t->size <= size &&
            memcmp(t->pattern, text, t->size) == 0)
            return t;
    }
    return NULL;
}

/* Whether a character of a word stands right before `begin` or after `end`. */
static int is_in_word(const uint8_t *text, size_t size, size_t begin, size_t end) {
    size_t other;
    return (begin && qn__character_is_of_word(character_before(text, 0, begin, &other))) ||
           (end < size && qn__character_is_of_word(qn__character(text + end, size - end, &other)));
}

const qn__added_token *qn__added_tokens_find(const qn__added_tokens *added, int normalized,
                                             const uint8_t *text, size_t size, size_t at,
                                             size_t *begin, size_t *end) {
    for (size_t place = at; added->count && place < size; place++) {
        if (added->first[text[place]] == added->first[text[place] + 1])
            continue;
        const qn__added_token *t = token_at(added, normalized, text + place, size - place);
        if (!t)
            continue;
        if (t->single && is_in_word(text, size, place, place + t->size)) {
            place += t->size - 1;
            continue;
        }
        *begin = t->left ? space_before(text, at, place) : place;
        *end = t->right ? space_after(text, size, place + t->size) : place + t->size;
        return t;
    }
    return NULL;
}
