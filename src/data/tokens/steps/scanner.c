#include "data/tokens/steps/scanner.h"

#include "data/tokens/unicode/character_class.h"
#include <string.h>

const qn__scanner qn__scanner_gpt2 = {
    .pattern =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"};

#define LLAMA(digits)                                                                              \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const qn__scanner others[] = {
    {.pattern = LLAMA("\\p{N}{1,3}"), .capitals = 1, .any_prefix = 1, .digits = 3, .breaks = 1},
    {.pattern = LLAMA("\\p{N}"), .capitals = 1, .any_prefix = 1, .digits = 1, .breaks = 1},
    {.pattern = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}"
                "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
     .capitals = 1,
     .any_prefix = 1,
     .digits = 3,
     .breaks = 1},
};

const qn__scanner *qn__scanner_find(const char *pattern) {
    if (strcmp(pattern, qn__scanner_gpt2.pattern) == 0)
        return &qn__scanner_gpt2;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (strcmp(pattern, others[k].pattern) == 0)
            return &others[k];
    return NULL;
}

/* The end of at most `most` characters of a class from `at` on. */
static size_t run_end(const uint8_t *classes, const uint8_t *text, size_t size, size_t at,
                      unsigned class, size_t most) {
    size_t length;
    while (at < size && most-- &&
           classes[qn__character_place(qn__code_point(text + at, &length))] == class)
        at += length;
    return at;
}

/* Bytes of an ending such as 's or 'LL after the apostrophe at `at`; 0: none. The long s is a
 * small letter of S. */
static size_t ending(const qn__scanner *s, const uint8_t *text, size_t size, size_t at) {
    const uint8_t none = 0, low = s->capitals ? 0x20 : 0;
    const uint8_t a = at + 1 < size ? text[at + 1] | low : none;
    const uint8_t b = at + 2 < size ? text[at + 2] : none;
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return 1;
    if (((a == 'r' || a == 'v') && (b | low) == 'e') || (a == 'l' && (b | low) == 'l'))
        return 2;
    return s->capitals && at + 2 < size && text[at + 1] == 0xC5 && b == 0xBF ? 2 : 0;
}

static int is_break(uint8_t byte) { return byte == '\n' || byte == '\r'; }

/* Where white space begins at `at`: with its last line break, or all but what stands before the
 * next word. */
static size_t space_end(const qn__scanner *s, const uint8_t *classes, const uint8_t *text,
                        size_t size, size_t at) {
    size_t end = at, last = at, length, broken = 0;
    for (; end < size &&
           classes[qn__character_place(qn__code_point(text + end, &length))] == QN__CLASS_SPACE;
         end += length) {
        last = end;
        if (is_break(text[end]))
            broken = end + 1;
    }
    if (s->breaks && broken)
        return broken;
    return end == size || last == at ? end : last;
}

static size_t other_end(const qn__scanner *s, const uint8_t *classes, const uint8_t *text,
                        size_t size, size_t at) {
    at = run_end(classes, text, size, at, QN__CLASS_OTHER, size);
    while (s->breaks && at < size && is_break(text[at]))
        at++;
    return at;
}

size_t qn__scanner_end(const qn__scanner *scanner, const uint8_t *classes, const uint8_t *text,
                       size_t size, size_t at) {
    size_t length;
    if (text[at] == '\'') {
        const size_t more = ending(scanner, text, size, at);
        if (more)
            return at + 1 + more;
    }
    const unsigned first = classes[qn__character_place(qn__code_point(text + at, &length))];
    const size_t next = at + length;
    const unsigned second = next < size
                                ? classes[qn__character_place(qn__code_point(text + next, &length))]
                                : QN__CLASS_SPACE;
    if (first == QN__CLASS_LETTER)
        return run_end(classes, text, size, next, first, size);
    const int prefix = text[at] == ' ' ||
                       (scanner->any_prefix && first != QN__CLASS_NUMBER && !is_break(text[at]));
    if (prefix && second == QN__CLASS_LETTER)
        return run_end(classes, text, size, next, second, size);
    if (first == QN__CLASS_NUMBER)
        return run_end(classes, text, size, at, first,
                       scanner->digits ? (size_t)scanner->digits : size);
    if (text[at] == ' ' && !scanner->digits && second == QN__CLASS_NUMBER)
        return run_end(classes, text, size, next, second, size);
    if (first == QN__CLASS_OTHER || (text[at] == ' ' && second == QN__CLASS_OTHER))
        return other_end(scanner, classes, text, size, first == QN__CLASS_OTHER ? at : next);
    return space_end(scanner, classes, text, size, at);
}

size_t qn__scanner_cut(const uint8_t *text, size_t size, size_t at) {
    for (at += !at; at + 1 < size; at++)
        if (text[at] == ' ' && qn__is_latin_letter(text[at - 1]) &&
            qn__is_latin_letter(text[at + 1]))
            return at;
    return size;
}
