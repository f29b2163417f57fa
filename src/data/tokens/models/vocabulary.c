#include "data/tokens/models/vocabulary.h"

#include "base/memory.h"
#include "data/tokens/models/token_kind.h"
#include <string.h>

/* *entry: the text; *is_new: it was not there, and has the number now. */
static qn_status add(qn__vocabulary *vocabulary, const char *text, size_t size, uint64_t number,
                     uint32_t *entry, int *is_new, qn_error *err) {
    if (number >= QN__TOKENS_MOST)
        return qn__fail(err, QN_FORMAT, "the token \"%.*s\" has the number %llu; the most is %d",
                        (int)(size < 60 ? size : 60), text, (unsigned long long)number,
                        QN__TOKENS_MOST - 1);
    const uint32_t before = vocabulary->texts.count;
    qn_status status = qn__word_add(&vocabulary->texts, text, size, 1, entry, err);
    *is_new = status == QN_OK && *entry == before;
    if (*is_new)
        status = qn__token_ids_reserve(&vocabulary->number, 1, err);
    if (*is_new && status == QN_OK)
        qn__token_ids_add(&vocabulary->number, (uint32_t)number);
    return status;
}

qn_status qn__vocabulary_add(qn__vocabulary *vocabulary, const char *text, size_t size,
                             uint64_t number, qn_error *err) {
    uint32_t entry = 0;
    int is_new = 0;
    const qn_status status = add(vocabulary, text, size, number, &entry, &is_new, err);
    if (status != QN_OK || is_new || vocabulary->number.number[entry] == number)
        return status;
    return qn__fail(err, QN_FORMAT, "the token \"%.*s\" has two numbers: %u and %u",
                    (int)(size < 60 ? size : 60), text, (unsigned)vocabulary->number.number[entry],
                    (unsigned)number);
}

qn_status qn__vocabulary_add_again(qn__vocabulary *vocabulary, const char *text, size_t size,
                                   uint64_t number, qn_error *err) {
    uint32_t entry = 0;
    int is_new = 0;
    qn_status status = add(vocabulary, text, size, number, &entry, &is_new, err);
    if (status != QN_OK || is_new || vocabulary->number.number[entry] == number)
        return status;
    status = qn__token_ids_reserve(&vocabulary->again, 2, err);
    if (status == QN_OK) {
        qn__token_ids_add(&vocabulary->again, entry);
        qn__token_ids_add(&vocabulary->again, vocabulary->number.number[entry]);
        vocabulary->number.number[entry] = (uint32_t)number;
    }
    return status;
}

qn_status qn__vocabulary_read(qn__vocabulary *vocabulary, const qn__json_node *object,
                              qn_error *err) {
    qn_status status = QN_OK;
    if (!qn__json_is_object(object))
        return qn__fail(err, QN_FORMAT, "\"model.vocab\" is not an object");
    for (size_t k = 0; status == QN_OK && k < qn__json_count(object); k++) {
        const qn__json_node *node = qn__json_at(object, k);
        const char *text = qn__json_key(node);
        uint64_t number;
        if (!qn__json_u64(node, &number))
            return qn__fail(err, QN_FORMAT, "the token \"%s\" has no number", text);
        status = qn__vocabulary_add(vocabulary, text, strlen(text), number, err);
    }
    return status;
}

static qn_status set_text(qn__vocabulary *vocabulary, uint32_t number, uint32_t entry,
                          qn_error *err) {
    if (vocabulary->entry[number] != QN__WORD_NONE)
        return qn__fail(err, QN_FORMAT, "two tokens have the number %u", (unsigned)number);
    vocabulary->entry[number] = entry;
    return QN_OK;
}

qn_status qn__vocabulary_end(qn__vocabulary *vocabulary, qn_error *err) {
    const qn__token_ids *again = &vocabulary->again;
    const uint32_t count = vocabulary->texts.count;
    vocabulary->size = 0;
    for (uint32_t k = 0; k < count; k++)
        if (vocabulary->number.number[k] >= vocabulary->size)
            vocabulary->size = vocabulary->number.number[k] + 1;
    if (!count)
        return qn__fail(err, QN_FORMAT, "the vocabulary is empty");
    if (vocabulary->size / 4 > count + again->count / 2 + 1024)
        return qn__fail(err, QN_FORMAT, "the vocabulary has %u tokens, but their numbers go to %u",
                        (unsigned)count, (unsigned)vocabulary->size - 1);
    vocabulary->entry = qn__alloc(vocabulary->size, sizeof *vocabulary->entry, err);
    if (!vocabulary->entry)
        return QN_MEMORY;
    memset(vocabulary->entry, 0xFF, vocabulary->size * sizeof *vocabulary->entry);
    qn_status status = QN_OK;
    for (uint32_t k = 0; status == QN_OK && k < count; k++)
        status = set_text(vocabulary, vocabulary->number.number[k], k, err);
    for (size_t k = 0; status == QN_OK && k < again->count; k += 2)
        status = set_text(vocabulary, again->number[k + 1], again->number[k], err);
    return status;
}

uint32_t qn__vocabulary_find(const qn__vocabulary *vocabulary, const char *text, size_t size) {
    const uint32_t entry = qn__word_find(&vocabulary->texts, text, size);
    return entry == QN__WORD_NONE ? entry : vocabulary->number.number[entry];
}

const char *qn__vocabulary_text(const qn__vocabulary *vocabulary, uint32_t number, size_t *size) {
    const uint32_t entry = vocabulary->entry[number];
    *size = 0;
    if (entry == QN__WORD_NONE)
        return "";
    *size = vocabulary->texts.word[entry].size;
    return qn__word_bytes(&vocabulary->texts, &vocabulary->texts.word[entry]);
}

void qn__token_text_json(qn__text *json, const char *text, size_t size) {
    char small[256], *copy = size < sizeof small ? small : qn__alloc(size + 1, 1, NULL);
    if (!copy) {
        json->failed = 1;
        return;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    qn__text_add_json(json, copy);
    if (copy != small)
        qn__free(copy);
}

void qn__vocabulary_write(const qn__vocabulary *vocabulary, const uint8_t *left_out,
                          qn__text *json) {
    const char *between = "";
    qn__text_add(json, "{");
    for (uint32_t k = 0; k < vocabulary->size; k++) {
        size_t size;
        const char *text = qn__vocabulary_text(vocabulary, k, &size);
        if (vocabulary->entry[k] == QN__WORD_NONE || left_out[k])
            continue;
        qn__text_add(json, "%s", between);
        qn__token_text_json(json, text, size);
        qn__text_add(json, ": %u", (unsigned)k);
        between = ", ";
    }
    qn__text_add(json, "}");
}

void qn__vocabulary_release(qn__vocabulary *vocabulary) {
    qn__word_table_release(&vocabulary->texts);
    qn__token_ids_release(&vocabulary->number);
    qn__token_ids_release(&vocabulary->again);
    qn__free(vocabulary->entry);
    *vocabulary = (qn__vocabulary){0};
}
