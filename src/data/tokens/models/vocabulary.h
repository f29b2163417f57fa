/* The vocabulary of a tokenizer.json: texts and their numbers. Start with {0}. */
#ifndef QN_DATA_TOKENS_MODELS_VOCABULARY_H
#define QN_DATA_TOKENS_MODELS_VOCABULARY_H

#include "base/text/json.h"
#include "base/text/text.h"
#include "data/tokens/models/token_ids.h"
#include "data/tokens/models/word_table.h"

typedef struct qn__vocabulary {
    qn__word_table texts;
    qn__token_ids number; /* of each text */
    uint32_t *entry;      /* the text of each number; QN__WORD_NONE: none has it */
    uint32_t size;        /* 1 + the greatest number */
    qn__token_ids again;  /* pairs: a text that came again, and a number that it had before */
} qn__vocabulary;

/* Adds the members of an object, each with its number. Fails with QN_FORMAT or QN_MEMORY. */
qn_status qn__vocabulary_read(qn__vocabulary *vocabulary, const qn__json_node *object,
                              qn_error *err);
/* Adds one text; nothing happens where it is there with this number. Fails with QN_FORMAT (it has
 * another number) or QN_MEMORY. */
qn_status qn__vocabulary_add(qn__vocabulary *vocabulary, const char *text, size_t size,
                             uint64_t number, qn_error *err);
/* The same, but a text that is there with another number keeps both: it is found by the new one. */
qn_status qn__vocabulary_add_again(qn__vocabulary *vocabulary, const char *text, size_t size,
                                   uint64_t number, qn_error *err);
/* After the last was added. Fails with QN_FORMAT where two have the same number, or most numbers
 * below the greatest have none. */
qn_status qn__vocabulary_end(qn__vocabulary *vocabulary, qn_error *err);
/* The number of a text; QN__WORD_NONE: it is not there. */
uint32_t qn__vocabulary_find(const qn__vocabulary *vocabulary, const char *text, size_t size);
/* The text of a number; "" and 0 where none has it. It does not end in a NUL. */
const char *qn__vocabulary_text(const qn__vocabulary *vocabulary, uint32_t number, size_t *size);
/* Writes the texts below `limit` as an object, in the order of their numbers. */
void qn__vocabulary_write(const qn__vocabulary *vocabulary, const uint8_t *left_out,
                          qn__text *json);
void qn__vocabulary_release(qn__vocabulary *vocabulary);

/* Adds `size` bytes as a JSON string. */
void qn__token_text_json(qn__text *json, const char *text, size_t size);

#endif
