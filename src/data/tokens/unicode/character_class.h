/* What a character is to a pre-tokeniser. The ranges are of one version of Unicode, so that a
 * text is cut alike on every machine. */
#ifndef QN_DATA_TOKENS_UNICODE_CHARACTER_CLASS_H
#define QN_DATA_TOKENS_UNICODE_CHARACTER_CLASS_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__character_range {
    uint32_t first, last;
} qn__character_range;

/* The last range of each is {0, 0}. */
extern const qn__character_range qn__character_letters[], qn__character_numbers[],
    qn__character_spaces[];

enum { QN__CLASS_OTHER = 0, QN__CLASS_LETTER = 1, QN__CLASS_NUMBER = 2, QN__CLASS_SPACE = 3 };

/* Tables of code points are short: no character from 0x34000 on has a place to itself, but those of
 * tags and variations. The planes for private use share one, and so does all else. */
enum { QN__TAGS = 0xE0000, QN__CHARACTER_PLACES = 0x35002 };

static inline uint32_t qn__character_place(uint32_t c) {
    if (c < 0x34000)
        return c;
    if (c - QN__TAGS < 0x1000)
        return 0x34000 + (c - QN__TAGS);
    return c >= 0xF0000 && (c & 0xFFFE) != 0xFFFE ? 0x35000 : 0x35001;
}

/* The class at the place of each code point below 0x110000; made at the first call. Any thread. */
const uint8_t *qn__character_classes(void);

/* Whether a character is in one of the ranges, of which the last is {0, 0}. */
int qn__character_is_in(const qn__character_range *range, uint32_t character);

/* Pairs: first and last of ranges of characters of words that are not letters. */
extern const uint32_t qn__word_others[];
extern const size_t qn__word_other_count; /* pairs */

/* Whether a character of 25.51 is what \w means in an expression (docs/exactness.md 25.58). */
int qn__character_is_of_word(uint32_t character);

/* Whether a character of 25.51 is white space. */
int qn__character_is_space(uint32_t character);

/* a to z and A to Z, which are letters to every pre-tokeniser. */
static inline int qn__is_latin_letter(uint8_t byte) {
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

/* The code point that begins at `text`, which is well-formed UTF-8, and its length. */
static inline uint32_t qn__code_point(const uint8_t *text, size_t *length) {
    const uint32_t a = text[0];
    if (a < 0x80) {
        *length = 1;
        return a;
    }
    if (a < 0xE0) {
        *length = 2;
        return (a & 0x1F) << 6 | (text[1] & 0x3Fu);
    }
    if (a < 0xF0) {
        *length = 3;
        return (a & 0x0F) << 12 | (text[1] & 0x3Fu) << 6 | (text[2] & 0x3Fu);
    }
    *length = 4;
    return (a & 0x07) << 18 | (text[1] & 0x3Fu) << 12 | (text[2] & 0x3Fu) << 6 | (text[3] & 0x3Fu);
}

#endif
