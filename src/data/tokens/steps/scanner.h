/* The regular expressions of known pre-tokenisers, as code. They give what the expressions say
 * with the classes of character_class.h, and are many times as fast. */
#ifndef QN_DATA_TOKENS_STEPS_SCANNER_H
#define QN_DATA_TOKENS_STEPS_SCANNER_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__scanner {
    const char *pattern;
    int capitals;   /* endings such as 's also in capitals */
    int any_prefix; /* any character but a line break may stand before letters; else a space */
    int digits;     /* digits in a word, at most; 0: any number */
    int breaks;     /* line breaks belong to what stands before them */
} qn__scanner;

/* The scanner of an expression; NULL: it is none of the known ones. */
const qn__scanner *qn__scanner_find(const char *pattern);

extern const qn__scanner qn__scanner_gpt2;

/* The end of the word that begins at `at` in well-formed UTF-8. Words follow one another without
 * gaps. */
size_t qn__scanner_end(const qn__scanner *scanner, const uint8_t *classes, const uint8_t *text,
                       size_t size, size_t at);

/* A place from `at` on where a text can be cut for each of the scanners: before a space between
 * two letters of ASCII. `size`: there is none. */
size_t qn__scanner_cut(const uint8_t *text, size_t size, size_t at);

#endif
