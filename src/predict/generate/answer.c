/* An answer that grows by a token: its text, what of it may be shown, and whether it has ended. */
#include "predict/generate/answer.h"

#include "base/binary/little_endian.h"
#include "base/digest/sha256.h"
#include "base/encoding.h"
#include "base/memory.h"
#include <string.h>

static void digest_prompt(const uint32_t *tokens, uint32_t count, uint8_t digest[32]) {
    qn__sha256 hash;
    qn__sha256_begin(&hash);
    qn__sha256_add_little(&hash, tokens, count);
    qn__sha256_end(&hash, digest);
}

qn_status qn__answer_begin(const qn__question *q, uint32_t prompt, uint32_t number, qn__answer *a,
                           qn_error *err) {
    *a = (qn__answer){.manner = q->manner,
                      .prompt = prompt,
                      .number = number,
                      .most = q->most,
                      .seed = q->seed,
                      .count = q->count,
                      .prompt_count = q->count,
                      .space = 1};
    a->token = qn__alloc((uint64_t)q->count + a->most, sizeof *a->token, err);
    a->log_probability = qn__alloc(a->most, sizeof *a->log_probability, err);
    a->text = qn__alloc(a->space, 1, err);
    if (q->manner->choices)
        a->choice = qn__alloc((uint64_t)a->most * q->manner->choices, sizeof *a->choice, err);
    if (!a->token || !a->log_probability || !a->text || (q->manner->choices && !a->choice))
        return QN_MEMORY;
    memcpy(a->token, q->token, q->count * sizeof *q->token);
    digest_prompt(q->token, q->count, a->digest);
    return QN_OK;
}

void qn__answer_release(qn__answer *a) {
    qn__free(a->token);
    qn__free(a->log_probability);
    qn__free(a->choice);
    qn__free(a->text);
}

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
static size_t find_stop(const qn__manner *m, const char *text, size_t before, size_t size) {
    size_t first = size;
    for (uint32_t i = 0; i < m->stops; ++i) {
        const size_t length = strlen(m->stop[i]);
        for (size_t at = before < length ? 0 : before - length + 1;
             at < first && at + length <= size; ++at)
            if (memcmp(text + at, m->stop[i], length) == 0)
                first = at;
    }
    return first;
}

/* The first `before` bytes of the text were there before the last token. */
static void find_end(const qn__codec *codec, qn__answer *a, size_t before) {
    const uint32_t last = a->token[a->count - 1];
    const size_t stop = find_stop(a->manner, a->text, before, a->bytes);
    if (stop < a->bytes) {
        a->end = QN_ANSWER_STOP;
        a->bytes = stop;
        a->text[stop] = '\0';
    } else if (qn__codec_is_end(codec, last)) {
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

static qn_status append_last(const qn__codec *codec, qn__answer *a, qn_error *err) {
    char *text = NULL;
    size_t size = 0;
    if (qn__codec_is_end(codec, a->token[a->count - 1]))
        return QN_OK;
    qn_status status =
        qn__codec_last(codec, a->token, a->prompt_count, a->count, &text, &size, err);
    if (status == QN_OK)
        status = append(a, text, size, err);
    qn__free(text);
    return status;
}

qn_status qn__answer_grow(const qn__codec *codec, qn__answer *a, qn_error *err) {
    const size_t before = a->bytes;
    const qn_status status = append_last(codec, a, err);
    if (status != QN_OK)
        return status;
    find_end(codec, a, before);
    a->shown = a->bytes;
    if (a->end != QN_ANSWER_GOES_ON)
        return QN_OK;
    a->shown -= incomplete(a->text, a->bytes);
    for (uint32_t i = 0; i < a->manner->stops; ++i) {
        const size_t rest = a->bytes - held(a->manner->stop[i], a->text, a->bytes);
        a->shown = rest < a->shown ? rest : a->shown;
    }
    return QN_OK;
}

void qn__answer_show(const qn__answer *a, qn_answer *out) {
    *out =
        (qn_answer){.size = sizeof *out,
                    .prompt = a->prompt,
                    .number = a->number,
                    .text = a->text,
                    .bytes = a->shown,
                    .tokens = a->token + a->prompt_count,
                    .count = a->count - a->prompt_count,
                    .log_probabilities = a->manner->log_probabilities ? a->log_probability : NULL,
                    .prompt_tokens = a->token,
                    .prompt_count = a->prompt_count,
                    .end = a->end,
                    .slid = a->base > 0};
}
