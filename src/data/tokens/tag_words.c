#include "data/tokens/tag_words.h"

#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

static int is_blank(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

int qn__word_next(qn__token_text *rest, qn__token_text *word) {
    size_t from = 0, to;
    while (from < rest->size && is_blank(rest->bytes[from]))
        from++;
    for (to = from; to < rest->size && !is_blank(rest->bytes[to]);)
        to++;
    *word = (qn__token_text){rest->bytes + from, to - from};
    *rest = (qn__token_text){rest->bytes + to, rest->size - to};
    return to > from;
}

static uint64_t count_words(qn__token_text text) {
    qn__token_text word;
    uint64_t count = 0;
    while (text.bytes && qn__word_next(&text, &word))
        count++;
    return count;
}

qn__token_text qn__tags_of(const qn_data *data, uint64_t item) {
    const char *text = data->schema->class_name[data->labels[item]];
    return (qn__token_text){(const uint8_t *)text, strlen(text)};
}

static qn_status refuse_item(const char *path, uint64_t item, uint64_t words, uint64_t tags,
                             qn_error *err) {
    qn__fail(err, QN_INPUT, "a text has %llu word%s, and its label %llu tag%s",
             (unsigned long long)words, words == 1 ? "" : "s", (unsigned long long)tags,
             tags == 1 ? "" : "s");
    qn__at(err, "%s, item %llu (from 0)", path, (unsigned long long)item);
    return qn__remedy(err, QN_INPUT,
                      "give each word a tag, both with spaces between; -100 is one that does not "
                      "count; where the label is a class, set `data.task` to classify");
}

/* Whether the labels are tags. Where most texts of several words have as many, all must have. */
static qn_status compare(const qn_data *data, const qn__token_text *text, int wanted,
                         const char *path, int *are, qn_error *err) {
    uint64_t same = 0, differ = 0, first = 0, words, tags;
    for (uint64_t i = 0; i < data->items; i++) {
        words = count_words(text[i]);
        tags = count_words(qn__tags_of(data, i));
        if (words != tags && differ++ == 0)
            first = i;
        same += words == tags && words > 1;
    }
    *are = wanted || same > differ;
    if (!*are || differ == 0)
        return QN_OK;
    words = count_words(text[first]);
    tags = count_words(qn__tags_of(data, first));
    return refuse_item(path, first, words, tags, err);
}

static int by_text(const void *one, const void *other) {
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static int is_ignored(const qn__token_text *tag) {
    return tag->size == 4 && memcmp(tag->bytes, "-100", 4) == 0;
}

static int is(const char *name, const qn__token_text *tag) {
    return strncmp(name, (const char *)tag->bytes, tag->size) == 0 && name[tag->size] == '\0';
}

/* Before they are sorted, the one found last stands first. */
static int has(const qn__tags *tags, const qn__token_text *tag) {
    for (uint32_t k = 0; k < tags->count; k++)
        if (is(tags->name[k], tag)) {
            char *found = tags->name[k];
            tags->name[k] = tags->name[0];
            tags->name[0] = found;
            return 1;
        }
    return 0;
}

static qn_status add(qn__tags *tags, const qn__token_text *tag, const char *path, qn_error *err) {
    if (is_ignored(tag) || has(tags, tag))
        return QN_OK;
    if (tags->count == QN__TAGS_MOST) {
        qn__fail(err, QN_INPUT, "the words have more than %d different tags", QN__TAGS_MOST);
        qn__at(err, "%s", path);
        return qn__remedy(err, QN_INPUT,
                          "a word has one of at most 255 classes; where the label is a class of "
                          "the text, set `data.task` to classify");
    }
    char *name = qn__alloc(tag->size + 1, 1, err);
    if (!name)
        return QN_MEMORY;
    memcpy(name, tag->bytes, tag->size);
    tags->name[tags->count++] = name;
    return QN_OK;
}

static qn_status collect(const qn_data *data, const char *path, qn__tags *out, qn_error *err) {
    qn_status status = QN_OK;
    out->name = qn__alloc(QN__TAGS_MOST, sizeof *out->name, err);
    if (!out->name)
        return QN_MEMORY;
    for (uint32_t c = 0; c < data->schema->classes; c++) {
        const char *text = data->schema->class_name[c];
        qn__token_text rest = {(const uint8_t *)text, strlen(text)}, tag;
        while (status == QN_OK && qn__word_next(&rest, &tag))
            status = add(out, &tag, path, err);
    }
    if (out->count)
        qsort(out->name, out->count, sizeof *out->name, by_text);
    return status;
}

qn_status qn__tags_find(const qn_data *data, const qn__token_text *text, int wanted,
                        const char *path, qn__tags *out, qn_error *err) {
    int are;
    *out = (qn__tags){.count = 0};
    if (!data->labels || !data->schema || data->schema->target != QN__TARGET_CLASS)
        return QN_OK;
    qn_status status = compare(data, text, wanted, path, &are, err);
    if (status == QN_OK && are)
        status = collect(data, path, out, err);
    if (status != QN_OK)
        qn__tags_release(out);
    return status;
}

void qn__tags_release(qn__tags *tags) {
    for (uint32_t k = 0; k < tags->count; k++)
        qn__free(tags->name[k]);
    qn__free((void *)tags->name);
    *tags = (qn__tags){.count = 0};
}

uint8_t qn__tag_number(const qn__tags *tags, const qn__token_text *tag) {
    if (is_ignored(tag))
        return QN__TAG_IGNORED;
    for (uint32_t k = 0; k < tags->count; k++)
        if (is(tags->name[k], tag))
            return (uint8_t)k;
    return QN__TAG_IGNORED;
}
