/* An answer that grows by a token: its text, what of it may be shown, and whether it has ended. */
#include "predict/generate/generator.h"

#include "base/encoding.h"
#include "base/memory.h"
#include <string.h>

/* The bytes at the end that may become a character with the next token. */
static size_t incomplete(const char *text, size_t size) {
    for (size_t back = 1; back <= 3 && back <= size; ++back) {
        const uint8_t first = (uint8_t)text[size - back];
        if ((first & 0xC0) == 0x80)
            continue;
        const size_t length = first >= 0xF0 && first < 0xF5   ? 4
                              : first >= 0xE0 && first < 0xF0 ? 3
                              : first >= 0xC2 && first < 0xE0 ? 2
                                                              : 1;
        return length > back ? back : 0;
    }
    return 0;
}

/* The bytes at the end that a text of `stop` may begin with. */
static size_t held(const char *stop, const char *text, size_t size) {
    const size_t length = strlen(stop);
    for (size_t n = length - 1 < size ? length - 1 : size; n > 0; --n)
        if (memcmp(text + size - n, stop, n) == 0)
            return n;
    return 0;
}

/* Where the first of the texts of `stop` begins; `size`: none is there. None ends in the first
 * `before` bytes. */
static size_t find_stop(const qn_generator *g, const char *text, size_t before, size_t size) {
    size_t first = size;
    for (uint32_t i = 0; i < g->options.stops; ++i) {
        const size_t length = strlen(g->stop[i]);
        for (size_t at = before < length ? 0 : before - length + 1;
             at < first && at + length <= size; ++at)
            if (memcmp(text + at, g->stop[i], length) == 0)
                first = at;
    }
    return first;
}

/* The first `before` bytes of the text were there before the last token. */
static void find_end(const qn_generator *g, qn__answer *a, size_t before) {
    const uint32_t last = a->token[a->count - 1];
    const size_t stop = find_stop(g, a->text, before, a->bytes);
    if (stop < a->bytes) {
        a->end = QN_ANSWER_STOP;
        a->bytes = stop;
        a->text[stop] = '\0';
    } else if (qn__codec_is_end(&g->codec, last)) {
        a->end = QN_ANSWER_END;
    } else if (a->count - a->prompt_count >= a->most) {
        a->end = QN_ANSWER_LENGTH;
    }
}

static qn_status append(qn__answer *a, const char *text, size_t size, qn_error *err) {
    const size_t needed = a->bytes + size + 1;
    if (needed > a->space) {
        char *larger = qn__alloc(needed, 2, err);
        if (!larger)
            return QN_MEMORY;
        memcpy(larger, a->text, a->bytes);
        qn__free(a->text);
        a->text = larger;
        a->space = 2 * needed;
    }
    memcpy(a->text + a->bytes, text, size);
    a->bytes += size;
    a->text[a->bytes] = '\0';
    return QN_OK;
}

static qn_status append_last(const qn_generator *g, qn__answer *a, qn_error *err) {
    char *text = NULL;
    size_t size = 0;
    if (qn__codec_is_end(&g->codec, a->token[a->count - 1]))
        return QN_OK;
    qn_status status =
        qn__codec_last(&g->codec, a->token, a->prompt_count, a->count, &text, &size, err);
    if (status == QN_OK)
        status = append(a, text, size, err);
    qn__free(text);
    return status;
}

qn_status qn__answer_grow(const qn_generator *g, qn__answer *a, qn_error *err) {
    const size_t before = a->bytes;
    const qn_status status = append_last(g, a, err);
    if (status != QN_OK)
        return status;
    find_end(g, a, before);
    a->shown = a->bytes;
    if (a->end != QN_ANSWER_GOES_ON)
        return QN_OK;
    a->shown -= incomplete(a->text, a->bytes);
    for (uint32_t i = 0; i < g->options.stops; ++i) {
        const size_t rest = a->bytes - held(g->stop[i], a->text, a->bytes);
        a->shown = rest < a->shown ? rest : a->shown;
    }
    return QN_OK;
}
