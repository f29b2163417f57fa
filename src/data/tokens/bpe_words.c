#include "data/tokens/bpe_words.h"

#include "base/text/character.h"
#include <stdlib.h>
#include <string.h>

qn_status qn__bpe_words_make(qn__bpe_words *words, const qn__bpe *bpe, qn_error *err) {
    words->bpe = bpe;
    return qn__split_worker_make(&bpe->splitter, &words->split, err);
}

void qn__bpe_words_release(qn__bpe_words *words) {
    if (words->bpe)
        qn__split_worker_release(&words->bpe->splitter, &words->split);
    free(words->copy);
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
static qn_status each_stretch(qn__bpe_words *w, const uint8_t *text, size_t size, qn_error *err) {
    const qn__split_taker taker = {w->word, w->user};
    qn_status status = QN_OK;
    for (size_t at = 0; status == QN_OK && at < size;) {
        const size_t end = well_formed_end(text, size, at), next = broken_end(text, size, end);
        status = qn__split(&w->bpe->splitter, &w->split, text + at, end - at, &taker, err);
        if (status == QN_OK && next > end)
            status = w->word(w->user, text + end, next - end, err);
        at = next;
    }
    return status;
}

static qn_status with_space(qn__bpe_words *w, const uint8_t *text, size_t size, qn_error *err) {
    if (w->copied < size + 1) {
        uint8_t *copy = realloc(w->copy, size + 1);
        if (!copy)
            return qn__fail_memory(err, size + 1, 1);
        w->copy = copy;
        w->copied = size + 1;
    }
    w->copy[0] = ' ';
    memcpy(w->copy + 1, text, size);
    return each_stretch(w, w->copy, size + 1, err);
}

/* A part of the text between added tokens: of those that are looked for first, and then of the
 * others. */
static qn_status each_section(qn__bpe_words *w, int normalized, const uint8_t *text, size_t size,
                              qn_error *err) {
    qn_status status = QN_OK;
    for (size_t at = 0; status == QN_OK && at < size;) {
        size_t begin = size, end = size;
        const qn__added_token *found =
            qn__added_tokens_find(&w->bpe->added, normalized, text, size, at, &begin, &end);
        if (begin > at && !normalized)
            status = each_section(w, 1, text + at, begin - at, err);
        else if (begin > at)
            status = w->bpe->prefix_space && text[at] != ' '
                         ? with_space(w, text + at, begin - at, err)
                         : each_stretch(w, text + at, begin - at, err);
        if (status == QN_OK && found)
            status = w->added(w->user, found->number, err);
        at = end;
    }
    return status;
}

qn_status qn__bpe_words_each(qn__bpe_words *words, const uint8_t *text, size_t size,
                             qn_error *err) {
    return each_section(words, 0, text, size, err);
}

size_t qn__bpe_words_cut(const qn__bpe *bpe, const uint8_t *text, size_t size, size_t at) {
    return bpe->added.cuttable ? qn__splitter_cut(&bpe->splitter, text, size, at) : size;
}
