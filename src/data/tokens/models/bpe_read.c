#include "data/tokens/models/bpe.h"

#include "base/memory.h"
#include "data/tokens/models/byte_alphabet.h"
#include "data/tokens/models/marks.h"
#include <string.h>

static qn_status refuse_others(const qn__json_node *model, qn_error *err) {
    double dropout = 0;
    if (qn__json_real(qn__json_get(model, "dropout"), &dropout) && dropout != 0)
        return qn__fail(err, QN_UNSUPPORTED, "\"model.dropout\" draws tokens at random");
    return QN_OK;
}

/* What characters of a word have around them in the vocabulary. */
static qn_status read_affix(const qn__json_node *model, const char *key, char **affix,
                            qn_error *err) {
    const char *text = qn__json_string(qn__json_get(model, key));
    if (text && strlen(text) >= QN__AFFIX_MOST)
        return qn__fail(err, QN_FORMAT, "\"model.%s\" is longer than %d bytes", key,
                        QN__AFFIX_MOST - 1);
    *affix = qn__copy_text(text ? text : "", err);
    return *affix ? QN_OK : QN_MEMORY;
}

static qn_status read_affixes(qn__bpe *b, const qn__json_node *model, qn_error *err) {
    const qn_status status = read_affix(model, "continuing_subword_prefix", &b->prefix, err);
    return status == QN_OK ? read_affix(model, "end_of_word_suffix", &b->suffix, err) : status;
}

static uint32_t find(const qn__bpe *b, const char *text, size_t size) {
    return qn__vocabulary_find(&b->vocabulary, text, size);
}

/* The two sides of a merge: "a b", or ["a", "b"]. */
static int merge_sides(const qn__json_node *node, const char *side[2], size_t size[2]) {
    const char *text = qn__json_string(node), *space = text ? strchr(text, ' ') : NULL;
    if (qn__json_is_array(node) && qn__json_count(node) == 2) {
        side[0] = qn__json_string(qn__json_at(node, 0));
        side[1] = qn__json_string(qn__json_at(node, 1));
        size[0] = side[0] ? strlen(side[0]) : 0;
        size[1] = side[1] ? strlen(side[1]) : 0;
    } else if (space && !strchr(space + 1, ' ')) {
        side[0] = text;
        side[1] = space + 1;
        size[0] = (size_t)(space - text);
        size[1] = strlen(space + 1);
    } else
        return 0;
    return size[0] && size[1];
}

static qn_status read_merge(const qn__bpe *b, const qn__json_node *node, size_t k, qn__merge *merge,
                            qn__text *both, qn_error *err) {
    const char *side[2];
    size_t size[2];
    const size_t prefix = strlen(b->prefix);
    if (!merge_sides(node, side, size) || size[1] < prefix)
        return qn__fail(err, QN_FORMAT, "merge %zu is not a pair of tokens", k);
    both->size = 0;
    qn__text_add(both, "%.*s%.*s", (int)size[0], side[0], (int)(size[1] - prefix),
                 side[1] + prefix);
    if (both->failed)
        return qn__fail_memory(err, size[0] + size[1], 1);
    *merge = (qn__merge){find(b, side[0], size[0]), find(b, side[1], size[1]),
                         find(b, both->data, both->size)};
    if (merge->left == QN__WORD_NONE || merge->right == QN__WORD_NONE ||
        merge->made == QN__WORD_NONE)
        return qn__fail(err, QN_FORMAT,
                        "merge %zu has the token \"%.*s\", which is not in the "
                        "vocabulary",
                        k,
                        merge->left == QN__WORD_NONE    ? (int)size[0]
                        : merge->right == QN__WORD_NONE ? (int)size[1]
                                                        : (int)both->size,
                        merge->left == QN__WORD_NONE    ? side[0]
                        : merge->right == QN__WORD_NONE ? side[1]
                                                        : both->data);
    return QN_OK;
}

static qn_status read_merges(qn__bpe *b, const qn__json_node *list, qn_error *err) {
    const size_t count = qn__json_count(list);
    if (!qn__json_is_array(list) || count >= UINT32_MAX / 4)
        return qn__fail(err, QN_FORMAT, "\"model.merges\" is not a list");
    qn__merge *merge = qn__alloc(count, sizeof *merge, err);
    qn__text both = {0};
    qn_status status = merge ? QN_OK : QN_MEMORY;
    for (size_t k = 0; status == QN_OK && k < count; k++)
        status = read_merge(b, qn__json_at(list, k), k, &merge[k], &both, err);
    qn__text_release(&both);
    if (status != QN_OK) {
        qn__free(merge);
        return status;
    }
    uint32_t twice;
    status = qn__merges_make(&b->merges, merge, (uint32_t)count, &twice, err);
    if (status == QN_OK && twice < count)
        return qn__fail(err, QN_FORMAT, "merge %u is there before, too", (unsigned)twice);
    return status;
}

/* The bytes of a token of the model, at most as many as its text has; SIZE_MAX: it is not of
 * letters for bytes. */
static size_t bytes_of(const qn__bpe *b, const char *text, size_t size, uint8_t *bytes) {
    return b->path.byte_level ? qn__bytes_of_letters(text, size, bytes)
                              : qn__marked_bytes(&b->path, b->fallback, text, size, bytes);
}

/* The same without its prefix, and with a space in the place of its suffix. */
static size_t bytes_within(const qn__bpe *b, const char *text, size_t size, uint8_t *bytes) {
    const size_t prefix = strlen(b->prefix), suffix = strlen(b->suffix);
    if (prefix && size > prefix && memcmp(text, b->prefix, prefix) == 0) {
        text += prefix;
        size -= prefix;
    }
    if (!qn__bpe_ends_word(b, text, size))
        return bytes_of(b, text, size, bytes);
    const size_t length = bytes_of(b, text, size - suffix, bytes);
    if (length != SIZE_MAX)
        bytes[length] = ' ';
    return length == SIZE_MAX ? length : length + 1;
}

/* The bytes of each token. One that is added, or has other characters than those for bytes, stands
 * for its own text. */
static qn_status make_bytes(qn__bpe *b, qn_error *err) {
    const uint32_t count = b->vocabulary.size;
    b->bytes = qn__alloc(b->vocabulary.texts.bytes_used, 1, err);
    b->begin = b->bytes ? qn__alloc((uint64_t)count + 1, sizeof *b->begin, err) : NULL;
    if (!b->begin)
        return QN_MEMORY;
    size_t at = 0, size;
    for (uint32_t k = 0; k < count; k++) {
        const char *text = qn__vocabulary_text(&b->vocabulary, k, &size);
        size_t length = SIZE_MAX;
        if (!b->not_model[k])
            length = bytes_within(b, text, size, (uint8_t *)b->bytes + at);
        if (length == SIZE_MAX) {
            memcpy(b->bytes + at, text, size);
            length = size;
        }
        at += length;
        b->begin[k + 1] = at;
    }
    return QN_OK;
}

/* The token of a byte-level character at a place of a word. */
static uint32_t find_letter(const qn__bpe *b, uint8_t byte, unsigned place) {
    char text[2 * QN__AFFIX_MOST + 8];
    size_t size = place & 1 ? strlen(b->prefix) : 0;
    memcpy(text, b->prefix, size);
    size += qn__byte_letters(&byte, 1, text + size);
    if (place & 2) {
        memcpy(text + size, b->suffix, strlen(b->suffix));
        size += strlen(b->suffix);
    }
    return find(b, text, size);
}

static uint32_t find_byte(const qn__bpe *b, uint8_t byte) {
    char name[8];
    const uint32_t token = find(b, name, qn__byte_name(byte, name));
    return !b->fallback || token == QN__WORD_NONE || b->not_model[token] ? QN__WORD_NONE : token;
}

static void find_bytes(qn__bpe *b) {
    for (unsigned place = 0; place < 4; place++)
        for (unsigned k = 0; k < 256; k++)
            b->byte[place][k] =
                b->path.byte_level ? find_letter(b, (uint8_t)k, place) : find_byte(b, (uint8_t)k);
}

/* For `whole_words`: only texts of letters for bytes can be words. */
static qn_status index_words(qn__bpe *b, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t k = 0;
         status == QN_OK && b->whole_words && b->path.byte_level && k < b->vocabulary.size; k++) {
        size_t length, size;
        const char *text = qn__vocabulary_text(&b->vocabulary, k, &length);
        uint8_t *bytes = length ? qn__alloc(length, 1, err) : NULL;
        if (length && !bytes)
            return QN_MEMORY;
        size = length ? qn__bytes_of_letters(text, length, bytes) : SIZE_MAX;
        if (size != SIZE_MAX && !b->not_model[k])
            status = qn__word_add(&b->words, (char *)bytes, size, (uint64_t)k + 1, NULL, err);
        qn__free(bytes);
    }
    return status;
}

static int has_all_bytes(const qn__bpe *b) {
    for (unsigned k = 0; k < 256; k++)
        if (b->byte[0][k] == QN__WORD_NONE)
            return 0;
    return 1;
}

/* Words are cut before the character for a space where no token of a merge has it after another
 * one: then no merge reaches over the cut, and the tokens are those of the whole word. Unknown
 * characters must not be joined over it, so the character is a token. */
static void find_mark(qn__bpe *b) {
    const char *mark = qn__text_path_mark(&b->path, &b->drops_space);
    const size_t size = strlen(mark);
    const uint32_t token = find(b, mark, size);
    int cuts = size && !*b->prefix && !*b->suffix && !b->path.byte_level && !b->whole_words &&
               token != QN__WORD_NONE && !b->not_model[token] && (!b->fallback || has_all_bytes(b));
    b->drops_space &= !b->path.byte_level;
    for (uint32_t k = 0; cuts && k < b->merges.count; k++) {
        size_t length;
        const char *text = qn__vocabulary_text(&b->vocabulary, b->merges.merge[k].made, &length);
        cuts = qn__marked_end((const uint8_t *)text, length, 0, mark, size) == length;
    }
    b->mark_size = cuts ? size : 0;
    b->path.spaces_cut = cuts;
}

static qn_status read_unknown(qn__bpe *b, const qn__json_node *model, qn_error *err) {
    const char *text = qn__json_string(qn__json_get(model, "unk_token"));
    b->unknown = text ? find(b, text, strlen(text)) : QN__WORD_NONE;
    b->fuse_unknown = qn__json_is_true(qn__json_get(model, "fuse_unk"));
    b->fallback = qn__json_is_true(qn__json_get(model, "byte_fallback"));
    b->whole_words = qn__json_is_true(qn__json_get(model, "ignore_merges"));
    if (text && b->unknown == QN__WORD_NONE)
        return qn__fail(err, QN_FORMAT, "\"model.unk_token\" is not in the vocabulary");
    return QN_OK;
}

/* The model's vocabulary and then the added tokens, which it may have or not. */
static qn_status read_vocabulary(qn__bpe *b, const qn__json_node *root, const qn__json_node *model,
                                 qn_error *err) {
    qn_status status = qn__vocabulary_read(&b->vocabulary, qn__json_get(model, "vocab"), err);
    const uint32_t own = b->vocabulary.texts.count;
    if (status == QN_OK)
        status = qn__text_path_read(&b->path, root, &b->vocabulary, err);
    if (status == QN_OK)
        status = qn__vocabulary_end(&b->vocabulary, err);
    if (status != QN_OK)
        return status;
    b->not_model = qn__alloc(b->vocabulary.size, 1, err);
    for (uint32_t k = own; b->not_model && k < b->vocabulary.texts.count; k++)
        b->not_model[b->vocabulary.number.number[k]] = 1;
    return b->not_model ? QN_OK : QN_MEMORY;
}

qn_status qn__bpe_read(const qn__json_node *root, void **bpe, qn_error *err) {
    qn__bpe *b = *bpe = qn__alloc(1, sizeof *b, err);
    const qn__json_node *model = qn__json_get(root, "model");
    qn_status status = b ? refuse_others(model, err) : QN_MEMORY;
    if (status == QN_OK)
        status = read_vocabulary(b, root, model, err);
    if (status == QN_OK)
        status = read_unknown(b, model, err);
    if (status == QN_OK)
        status = read_affixes(b, model, err);
    if (status == QN_OK)
        status = read_merges(b, qn__json_get(model, "merges"), err);
    if (status == QN_OK)
        status = make_bytes(b, err);
    if (status == QN_OK) {
        find_bytes(b);
        find_mark(b);
        status = index_words(b, err);
    }
    return status;
}

void qn__bpe_release(void *bpe) {
    qn__bpe *b = bpe;
    if (!b)
        return;
    qn__vocabulary_release(&b->vocabulary);
    qn__text_path_release(&b->path);
    qn__merges_release(&b->merges);
    qn__word_table_release(&b->words);
    qn__free(b->prefix);
    qn__free(b->suffix);
    qn__free(b->not_model);
    qn__free(b->bytes);
    qn__free(b->begin);
    qn__free(b);
}
