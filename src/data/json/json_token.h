/* The tokens of JSON (RFC 8259) in a large text: strings, numbers and words, one after the other.
 * The reader of small texts, which makes a tree, is base/text/json.h. */
#ifndef QN_DATA_JSON_JSON_TOKEN_H
#define QN_DATA_JSON_JSON_TOKEN_H

#include <stddef.h>
#include <stdint.h>

/* A place in the text. The text is changed: a string is decoded in place. The byte at `end` must be
 * readable and not be part of a number. */
typedef struct qn__json_scan {
    char *at, *end;
    uint64_t line;   /* of `at`, from 1 */
    uint64_t zeros;  /* escapes of U+0000 and of surrogates alone: each became U+FFFD */
    uint64_t zeroed; /* the line of the first one */
    uint64_t strict; /* 1: a surrogate alone is refused, as in names */
} qn__json_scan;

typedef enum qn__token_kind {
    QN__TOKEN_BAD,
    QN__TOKEN_TEXT,
    QN__TOKEN_BOOL,
    QN__TOKEN_WHOLE,  /* an integer of 64 bits */
    QN__TOKEN_NUMBER, /* another number: the nearest binary64, perhaps an infinity */
    QN__TOKEN_NULL,   /* and NaN, which Python writes */
    QN__TOKEN_OBJECT, /* its first byte: nothing of it is read */
    QN__TOKEN_ARRAY
} qn__token_kind;

typedef struct qn__token {
    qn__token_kind kind;
    const char *text; /* TEXT: UTF-8 without U+0000, in the text that is scanned */
    size_t size;
    int64_t whole; /* WHOLE and BOOL */
    double number;
    /* BAD: why, such as "a text does not end", and of an array without words; `at` is where. */
    const char *what;
} qn__token;

/* Skips white space. Returns the next byte, or '\0' at the end. */
char qn__json_next(qn__json_scan *scan);
/* Reads the value at `at`, after white space. */
void qn__json_token(qn__json_scan *scan, qn__token *out);
/* Reads the array at `at`, whose elements are words, as one TEXT with spaces between them. Words
 * are whole numbers and texts that are neither empty nor have white space. An ARRAY: it has
 * something else. */
void qn__json_words(qn__json_scan *scan, qn__token *out);

#endif
