#include "data/cells/ngrams.h"

#include "base/digest/siphash.h"
#include "base/memory.h"
#include "base/text/character.h"
#include <stdlib.h>
#include <string.h>

/* A character without a space after it takes 3 bytes or more. So a folded text, which has a space
 * between two words, is not twice as long. */
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

/* Writes the words, with a space between two; returns their number, and their bytes in *size. */
static size_t fold_words(const char *text, char *to, size_t *size) {
    const uint8_t *from = (const uint8_t *)text;
    size_t words = 0, used = 0;
    int in_word = 0;
    for (size_t left = strlen(text), length; left > 0; from += length, left -= length) {
        const uint32_t c = qn__character(from, left, &length);
        const int of_word = qn__character_is_word(c), alone = !of_word && is_word_alone(c);
        if (alone || (of_word && !in_word)) {
            if (words++ > 0)
                to[used++] = ' ';
        }
        in_word = of_word;
        if (of_word || alone)
            used += qn__utf8_write(fold(c), to + used);
    }
    *size = used;
    return words;
}

static qn_status reserve(qn__ngrams *space, const char *text, qn_error *err) {
    const size_t size = strlen(text), needed = GROWTH * size + 8;
    if (needed > space->folded_capacity) {
        qn__free(space->folded);
        space->folded_capacity = 2 * needed;
        space->folded = qn__alloc(space->folded_capacity, 1, err);
    }
    if (!space->folded) {
        space->folded_capacity = 0;
        return QN_MEMORY;
    }
    return QN_OK;
}

int qn__ngrams_number(qn__ngrams *space, const char *text, uint64_t *number, qn_error *err) {
    size_t size;
    if (reserve(space, text, err) != QN_OK)
        return 0;
    const size_t words = fold_words(text, space->folded, &size);
    *number = words > 0 ? 2 * words - 1 : 0;
    return 1;
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

static int by_number(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The buckets of all words and of all pairs, sorted; their number. */
static size_t find_all(qn__ngrams *space, size_t size, uint32_t bits) {
    const char *text = space->folded, *before = NULL;
    size_t found = 0;
    for (size_t at = 0; at < size;) {
        const char *space_at = memchr(text + at, ' ', size - at);
        const size_t end = space_at ? (size_t)(space_at - text) : size;
        space->found[found++] = bucket_of(text + at, end - at, bits);
        if (before)
            space->found[found++] = bucket_of(before, (size_t)(text + end - before), bits);
        before = text + at;
        at = end + 1;
    }
    if (found > 1) /* the array is NULL without words */
        qsort(space->found, found, sizeof *space->found, by_number);
    return found;
}

qn_status qn__ngrams_find(qn__ngrams *space, const char *text, uint32_t bits, qn_error *err) {
    size_t size;
    space->count = 0;
    if (reserve(space, text, err) != QN_OK)
        return QN_MEMORY;
    const size_t words = fold_words(text, space->folded, &size);
    if (2 * words > space->capacity) {
        qn__free(space->gram);
        qn__free(space->found);
        space->capacity = 4 * words;
        space->gram = qn__alloc(space->capacity, sizeof *space->gram, err);
        space->found = qn__alloc(space->capacity, sizeof *space->found, err);
        if (!space->gram || !space->found) {
            space->capacity = 0;
            return QN_MEMORY;
        }
    }
    const size_t found = find_all(space, size, bits);
    for (size_t i = 0; i < found; i++)
        if (i > 0 && space->found[i] == space->found[i - 1])
            space->gram[space->count - 1].count++;
        else
            space->gram[space->count++] = (qn__ngram){space->found[i], 1};
    return QN_OK;
}

void qn__ngrams_release(qn__ngrams *space) {
    qn__free(space->gram);
    qn__free(space->found);
    qn__free(space->folded);
    *space = (qn__ngrams){0};
}
