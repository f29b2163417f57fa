/* Texts as the tokenizers of BERT see them: the normaliser BertNormalizer, and what punctuation is
 * (docs/exactness.md 25.56). */
#ifndef QN_DATA_TOKENS_STEPS_BERT_TEXT_H
#define QN_DATA_TOKENS_STEPS_BERT_TEXT_H

#include "data/tokens/unicode/byte_buffer.h"
#include "data/tokens/unicode/character_class.h"

/* Capitals `first`, `first + step` and so on to `last`: their small letters are `distance` on. */
typedef struct qn__bert_case {
    uint32_t first, last, step;
    int32_t distance;
} qn__bert_case;

extern const qn__character_range qn__bert_removed[], qn__bert_marks[], qn__bert_ideographs[],
    qn__bert_punctuation[];
extern const qn__bert_case qn__bert_capitals[];

/* What the normaliser does; all 0: nothing. */
typedef struct qn__bert_normalizer {
    int clean;      /* controls are dropped, white space becomes a space */
    int ideographs; /* a space stands before and after each */
    int accents;    /* they are dropped */
    int lower;      /* capitals become small letters */
} qn__bert_normalizer;

/* Whether a character is punctuation, as a word by itself. */
int qn__bert_is_punctuation(uint32_t character);
/* The small letters of a character; returns how many, 1 or 2. */
size_t qn__bert_lower(uint32_t character, uint32_t small[2]);

/* Appends what a text of any bytes becomes; a broken byte counts as U+FFFD. Fails with QN_MEMORY.
 */
qn_status qn__bert_normalize(const qn__bert_normalizer *normalizer, const uint8_t *text,
                             size_t size, qn__byte_buffer *out, qn_error *err);

#endif
