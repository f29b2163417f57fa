/* Bytes as the characters that stand for them in the vocabulary of a byte-level tokenizer: those of
 * Latin-1 that can be seen stand for themselves, the other 68 bytes are U+0100 and on. */
#ifndef QN_DATA_TOKENS_MODELS_BYTE_ALPHABET_H
#define QN_DATA_TOKENS_MODELS_BYTE_ALPHABET_H

#include <stddef.h>
#include <stdint.h>

/* The characters of `size` bytes as UTF-8, at most two bytes each, without a NUL; returns their
 * number. */
size_t qn__byte_letters(const uint8_t *bytes, size_t size, char *text);

/* The bytes of a text of such characters, at most as many as the text has; SIZE_MAX: it has
 * others. */
size_t qn__bytes_of_letters(const char *text, size_t size, uint8_t *bytes);

#endif
