#include "data/cells/ngrams.h"

#include "base/digest/siphash.h"
#include "base/memory.h"
#include "base/text/character.h"
#include <string.h>

/* A word that has no space before it in the text is a character of 3 bytes or more. So a folded
 * text, which has a space between two words, is not twice as long. */
enum { GROWTH = 2 };

/* Characters of scripts without spaces, and pictures, of which each is a word. */
static int is_word_alone(uint32_t c) {
    static const uint32_t range[][2] = {{0x0E00, 0x0EFF}, {0x1000, 0x109F},   {0x1780, 0x17FF},
                                        {0x2600, 0x27BF}, {0x3040, 0x312F},   {0x3190, 0xA4CF},
                                        {0xF900, 0xFAFF}, {0x1F000, 0x10FFFF}};
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (c >= range[i][0] && c <= range[i][1])
            return 1;
    return 0;
}

/* Capital letters of Latin, Greek and Cyrillic to small ones, which are as long. */
static uint32_t fold(uint32_t c) {
    if ((c >= 'A' && c <= 'Z') || (c >= 0xC0 && c <= 0xDE && c != 0xD7) ||
        (c >= 0x391 && c <= 0x3A9) || (c >= 0x410 && c <= 0x42F))
        return c + 0x20;
    return c >= 0x400 && c <= 0x40F ? c + 0x50 : c;
}

/* A text of small letters as parts, which are its words or its stretches without spaces, with a
 * space between two. One stands before it and one after it, too. */
typedef struct folded {
    char *text;
    size_t size, parts, characters;
} folded;

static void fold_words(const char *text, folded *to) {
    const uint8_t *from = (const uint8_t *)text;
    int in_word = 0;
    for (size_t left = strlen(text), length; left > 0; from += length, left -= length) {
        const uint32_t c = qn__character(from, left, &length);
        const int of_word = qn__character_is_word(c), alone = !of_word && is_word_alone(c);
        if (alone || (of_word && !in_word)) {
            if (to->parts++ > 0)
                to->text[to->size++] = ' ';
        }
        in_word = of_word;
        if (of_word || alone)
            to->size += qn__utf8_write(fold(c), to->text + to->size);
    }
}

static int is_space(uint32_t c) {
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

static void fold_stretches(const char *text, folded *to) {
    const uint8_t *from = (const uint8_t *)text;
    int in_part = 0;
    for (size_t left = strlen(text), length; left > 0; from += length, left -= length) {
        const uint32_t c = qn__character(from, left, &length);
        if (!is_space(c)) {
            if (!in_part && to->parts++ > 0)
                to->text[to->size++] = ' ';
            to->characters++;
            to->size += qn__character_write(fold(c), to->text + to->size);
        }
        in_part = !is_space(c);
    }
}

static qn_status fold_text(qn__ngrams *space, const char *text, qn__gram_kind kind, folded *to,
                           qn_error *err) {
    const size_t needed = GROWTH * strlen(text) + 8;
    if (needed > space->folded_capacity) {
        qn__free(space->folded);
        space->folded_capacity = 2 * needed;
        space->folded = qn__alloc(space->folded_capacity, 1, err);
    }
    if (!space->folded) {
        space->folded_capacity = 0;
        return QN_MEMORY;
    }
    *to = (folded){.text = space->folded + 1};
    if (kind == QN__GRAM_WORDS)
        fold_words(text, to);
    else
        fold_stretches(text, to);
    to->text[-1] = to->text[to->size] = ' ';
    return QN_OK;
}

uint64_t qn__ngrams_spoken(const char *text) {
    const uint8_t *from = (const uint8_t *)text;
    uint64_t found = 0;
    uint32_t before = 0;
    for (size_t left = strlen(text), length; left > 0; from += length, left -= length) {
        const uint32_t c = qn__character(from, left, &length);
        const int digit = c >= '0' && c <= '9';
        found +=
            (uint64_t)(is_word_alone(c) || (before == ' ' && !digit && qn__character_is_word(c)));
        before = c;
    }
    return found;
}

static uint32_t bucket_of(const char *text, size_t size, uint32_t bits) {
    static const qn__siphash_key key = {
        {UINT64_C(0x0706050403020100), UINT64_C(0x0F0E0D0C0B0A0908)}};
    return (uint32_t)(qn__siphash(&key, text, size) & ((UINT64_C(1) << bits) - 1));
}

/* ------------------------------------------------------------------------------------- the grams
 */

/* Where grams go. */
typedef struct taking {
    uint32_t *bucket; /* NULL: they are only counted */
    uint32_t bits;
    int words; /* 1: a gram consists of words, 0: of characters */
    uint64_t count;
} taking;

static void take(taking *t, const char *first, const char *end) {
    if (t->bucket)
        t->bucket[t->count] = bucket_of(first, (size_t)(end - first) - (size_t)t->words, t->bits);
    t->count++;
}

/* Where the next character begins, or the next word after the space before it. */
static const char *next(const taking *t, const char *at, const char *end) {
    if (t->words)
        return (const char *)memchr(at, ' ', (size_t)(end - at)) + 1;
    do
        ++at;
    while (at < end && ((uint8_t)*at & 0xC0) == 0x80);
    return at;
}

/* All grams of `size` characters or words from `first` to before `end`, which for words is after a
 * space; returns their number. */
static uint64_t take_size(taking *t, const char *first, const char *end, uint32_t size) {
    const uint64_t before = t->count;
    const char *last = first;
    uint32_t have = 0;
    for (; have < size && last < end; ++have)
        last = next(t, last, end);
    if (have < size)
        return 0;
    for (; last < end; last = next(t, last, end), first = next(t, first, end))
        take(t, first, last);
    take(t, first, last);
    return t->count - before;
}

/* A short word counts once, whatever sizes are wanted. */
static void take_within(taking *t, const qn__grams *which, const char *first, const char *end) {
    uint64_t taken = 2;
    for (uint32_t size = which->least; size <= which->most && taken > 1; ++size)
        taken = take_size(t, first, end, size);
    if (taken == 0)
        take(t, first, end);
}

static void take_all(taking *t, const qn__grams *which, const folded *text) {
    const char *first = text->text, *end = first + text->size;
    if (text->parts == 0)
        return;
    if (which->kind != QN__GRAM_CHARS) {
        for (uint32_t size = which->least; size <= which->most; ++size)
            take_size(t, first, end + t->words, size);
        return;
    }
    while (first < end) {
        const char *space = memchr(first, ' ', (size_t)(end + 1 - first));
        take_within(t, which, first - 1, space + 1);
        first = space + 1;
    }
}

int qn__ngrams_number(qn__ngrams *space, const char *text, const qn__grams *which, uint64_t *number,
                      qn_error *err) {
    folded own;
    taking t = {.words = which->kind == QN__GRAM_WORDS};
    if (fold_text(space, text, (qn__gram_kind)which->kind, &own, err) != QN_OK)
        return 0;
    take_all(&t, which, &own);
    *number = t.count;
    return 1;
}

/* Memory for the grams of a text. */
static qn_status reserve(qn__ngrams *space, const qn__grams *which, const folded *text,
                         qn_error *err) {
    const size_t units =
        which->kind == QN__GRAM_WORDS ? text->parts : text->characters + 2 * text->parts;
    const size_t most = units * (1u + which->most - which->least);
    if (most <= space->capacity)
        return QN_OK;
    qn__free(space->gram);
    qn__free(space->found);
    space->capacity = 2 * most;
    space->gram = qn__alloc(space->capacity, sizeof *space->gram, err);
    space->found = qn__alloc(space->capacity, 2 * sizeof *space->found, err);
    if (space->gram && space->found)
        return QN_OK;
    space->capacity = 0;
    return QN_MEMORY;
}

/* Sorts numbers of `bits` bits by six of them at a time, from the lowest on; returns where they are
 * then: there or in `other`. A text has too few of them for more bits at a time, and too many for
 * comparisons. */
static uint32_t *sort(uint32_t *number, uint32_t *other, size_t count, uint32_t bits) {
    enum { DIGIT = 6, DIGITS = 1 << DIGIT };
    for (uint32_t shift = 0; shift < bits; shift += DIGIT) {
        size_t place[DIGITS + 1] = {0};
        for (size_t i = 0; i < count; i++)
            place[(number[i] >> shift) % DIGITS + 1]++;
        for (size_t digit = 1; digit < DIGITS; digit++)
            place[digit] += place[digit - 1];
        for (size_t i = 0; i < count; i++)
            other[place[(number[i] >> shift) % DIGITS]++] = number[i];
        uint32_t *sorted = other;
        other = number;
        number = sorted;
    }
    return number;
}

qn_status qn__ngrams_find(qn__ngrams *space, const char *text, const qn__grams *which,
                          qn_error *err) {
    folded own;
    space->count = 0;
    if (fold_text(space, text, (qn__gram_kind)which->kind, &own, err) != QN_OK ||
        reserve(space, which, &own, err) != QN_OK)
        return QN_MEMORY;
    taking t = {space->found, which->bits, which->kind == QN__GRAM_WORDS, 0};
    take_all(&t, which, &own);
    if (t.count == 0)
        return QN_OK;
    const uint32_t *found = sort(space->found, space->found + space->capacity, t.count, t.bits);
    for (size_t i = 0; i < t.count; i++)
        if (i > 0 && found[i] == found[i - 1])
            space->gram[space->count - 1].count++;
        else
            space->gram[space->count++] = (qn__ngram){found[i], 1};
    return QN_OK;
}

void qn__ngrams_release(qn__ngrams *space) {
    qn__free(space->gram);
    qn__free(space->found);
    qn__free(space->folded);
    *space = (qn__ngrams){0};
}
