/* Tokens of SentencePiece: a character such as U+2581 stands for a space, and <0x0A> for a byte. */
#ifndef QN_DATA_TOKENS_MODELS_MARKS_H
#define QN_DATA_TOKENS_MODELS_MARKS_H

#include "base/text/text.h"
#include "data/tokens/models/text_path.h"
#include "data/tokens/models/token_kind.h"

/* The name of a byte, 6 characters without a NUL; returns 6. */
size_t qn__byte_name(uint8_t byte, char name[8]);

/* The bytes for which a token stands, at most as many as its text has: `fallback`: it may be a
 * byte. */
size_t qn__marked_bytes(const qn__text_path *path, int fallback, const char *text, size_t size,
                        uint8_t *bytes);

/* The end of the word that begins at `at`: where a mark follows another character. */
size_t qn__marked_end(const uint8_t *text, size_t size, size_t at, const char *mark,
                      size_t mark_size);

/* Writes the bytes of token `k` of a text; `drops`: the space at the beginning of the text is left
 * out. */
void qn__marked_write(qn__token_output *output, uint64_t k, int drops, const char *bytes,
                      size_t size);

/* Writes the decoder that `tokenizers` needs for the same. */
void qn__marked_decoder(const qn__text_path *path, qn__text *json);

#endif
