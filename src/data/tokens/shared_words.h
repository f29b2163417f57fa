/* Counts of words of one process, for others (part_reading.h). */
#ifndef QN_DATA_TOKENS_SHARED_WORDS_H
#define QN_DATA_TOKENS_SHARED_WORDS_H

#include "base/text/text.h"
#include "data/tokens/models/word_table.h"

/* Appends all words and their counts. Fails with QN_MEMORY. */
qn_status qn__shared_words_write(const qn__word_table *words, qn__text *to, qn_error *err);

/* Adds what was written. Fails with QN_CLUSTER where it is malformed, or with QN_MEMORY. */
qn_status qn__shared_words_add(const uint8_t *from, uint64_t bytes, qn__word_table *words,
                               qn_error *err);

#endif
