#include "data/tokens/steps/bert_text.h"

#include "base/text/character.h"
#include "data/tokens/unicode/unicode_forms.h"
#include <pthread.h>
#include <string.h>

/* What holds for a code point. */
enum { REMOVED = 1, MARK = 2, IDEOGRAPH = 4, PUNCTUATION = 8, SPACE = 16, CAPITAL = 32 };

enum { DOTTED_CAPITAL_I = 0x130, DOT_ABOVE = 0x307 };

static uint8_t places[QN__CHARACTER_PLACES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static unsigned flags_of(uint32_t c) { return places[qn__character_place(c)]; }

static void add(uint32_t c, unsigned flag) {
    places[qn__character_place(c)] = (uint8_t)(flags_of(c) | flag);
}

static void mark(const qn__character_range *range, unsigned flag) {
    for (; range->last; range++)
        for (uint32_t c = range->first; c <= range->last; c++)
            add(c, flag);
}

static void mark_all(void) {
    add(0, REMOVED);
    mark(qn__bert_removed, REMOVED);
    mark(qn__bert_marks, MARK);
    mark(qn__bert_ideographs, IDEOGRAPH);
    mark(qn__bert_punctuation, PUNCTUATION);
    mark(qn__character_spaces, SPACE);
    for (const qn__bert_case *k = qn__bert_capitals; k->last; k++)
        for (uint32_t c = k->first; c <= k->last; c += k->step)
            add(c, CAPITAL);
    add(DOTTED_CAPITAL_I, CAPITAL);
}

/* A text on its way. */
typedef struct maker {
    const qn__bert_normalizer *normalizer;
    qn__byte_buffer *out;
    qn_error *err;
} maker;

static qn_status put(maker *m, uint32_t character) {
    return qn__byte_buffer_character(m->out, character, m->err);
}

int qn__bert_is_punctuation(uint32_t character) {
    pthread_once(&once, mark_all);
    return character < QN__CHARACTER_BROKEN && (flags_of(character) & PUNCTUATION);
}

size_t qn__bert_lower(uint32_t character, uint32_t small[2]) {
    pthread_once(&once, mark_all);
    small[0] = character;
    if (character >= QN__CHARACTER_BROKEN || !(flags_of(character) & CAPITAL))
        return 1;
    if (character == DOTTED_CAPITAL_I) {
        small[0] = 'i';
        small[1] = DOT_ABOVE;
        return 2;
    }
    const qn__bert_case *k = qn__bert_capitals;
    while (character > k->last || character < k->first || (character - k->first) % k->step)
        k++;
    small[0] = character + (uint32_t)k->distance;
    return 1;
}

static qn_status put_lower(maker *m, uint32_t character) {
    uint32_t small[2];
    if (!m->normalizer->lower)
        return put(m, character);
    const size_t count = qn__bert_lower(character, small);
    const qn_status status = put(m, small[0]);
    return status == QN_OK && count > 1 ? put(m, small[1]) : status;
}

/* Without accents a character is what it is composed of, less the marks. */
static qn_status put_base(maker *m, uint32_t character) {
    uint32_t part[QN__UNICODE_PARTS];
    if (!m->normalizer->accents)
        return put_lower(m, character);
    const size_t count = qn__unicode_decompose(character, part);
    qn_status status = QN_OK;
    for (size_t k = 0; status == QN_OK && k < count; k++)
        if (!(flags_of(part[k]) & MARK))
            status = put_lower(m, part[k]);
    return status;
}

static qn_status put_character(maker *m, uint32_t character) {
    const qn__bert_normalizer *n = m->normalizer;
    const int ideograph = n->ideographs && (flags_of(character) & IDEOGRAPH);
    if (n->clean && (flags_of(character) & REMOVED))
        return QN_OK;
    if (n->clean && (flags_of(character) & SPACE))
        return put(m, ' ');
    qn_status status = ideograph ? put(m, ' ') : QN_OK;
    if (status == QN_OK)
        status = put_base(m, character);
    return status == QN_OK && ideograph ? put(m, ' ') : status;
}

/* Bytes of ASCII up to another one; *end: where that stands. */
static qn_status put_ascii(maker *m, const uint8_t *text, size_t size, size_t at, size_t *end) {
    const qn__bert_normalizer *n = m->normalizer;
    for (*end = at; *end < size && text[*end] < 0x80; ++*end) {
    }
    const qn_status status = qn__byte_buffer_reserve(m->out, *end - at, m->err);
    for (; status == QN_OK && at < *end; at++) {
        const uint8_t byte = text[at];
        const unsigned flags = n->clean ? flags_of(byte) : 0;
        if (flags & REMOVED)
            continue;
        const int is_capital = n->lower && byte >= 'A' && byte <= 'Z';
        m->out->bytes[m->out->size++] = flags & SPACE ? ' ' : is_capital ? byte | 0x20 : byte;
    }
    return status;
}

qn_status qn__bert_normalize(const qn__bert_normalizer *normalizer, const uint8_t *text,
                             size_t size, qn__byte_buffer *out, qn_error *err) {
    maker m = {normalizer, out, err};
    qn_status status = QN_OK;
    pthread_once(&once, mark_all);
    for (size_t at = 0, length; status == QN_OK && at < size;) {
        if (text[at] < 0x80) {
            status = put_ascii(&m, text, size, at, &at);
            continue;
        }
        const uint32_t character = qn__character(text + at, size - at, &length);
        status = put_character(&m, character < QN__CHARACTER_BROKEN ? character : 0xFFFD);
        at += length;
    }
    return status;
}
