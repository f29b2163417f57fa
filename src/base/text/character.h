/* The characters of a text of any bytes (docs/exactness.md 25.51). */
#ifndef QN_BASE_TEXT_CHARACTER_H
#define QN_BASE_TEXT_CHARACTER_H

#include "base/encoding.h"
#include <stdint.h>

/* Code points are below QN__CHARACTER_BROKEN. A byte that begins no well-formed sequence of UTF-8
 * is a character by itself: its value above that. */
enum { QN__CHARACTER_BROKEN = 0x110000, QN__CHARACTERS = 0x110000 + 256 };

/* The character at `text`, of which `size` bytes, at least 1, may be read; *length is its length.
 */
static inline uint32_t qn__character(const uint8_t *text, size_t size, size_t *length) {
    *length = 1;
    if (text[0] < 0x80)
        return text[0];
    const size_t own = qn__utf8_length((const char *)text, size);
    if (!own)
        return QN__CHARACTER_BROKEN + text[0];
    *length = own;
    uint32_t code = text[0] & (0xFFu >> (own + 1));
    for (size_t k = 1; k < own; k++)
        code = code << 6 | (text[k] & 0x3Fu);
    return code;
}

/* The bytes of a character; returns their number. */
size_t qn__character_write(uint32_t character, char bytes[4]);

/* The first place from `at` on where a character begins, whatever stands before it. */
static inline size_t qn__character_cut(const uint8_t *text, size_t size, size_t at) {
    while (at < size && (text[at] & 0xC0) == 0x80)
        at++;
    return at;
}

/* Whether words consist of it: letters and digits of scripts that put spaces between words, and
 * the low line. */
int qn__character_is_word(uint32_t character);

#endif
