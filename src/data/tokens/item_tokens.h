/* Texts of which each becomes an item, or several (docs/exactness.md 25.68, 25.69). */
#ifndef QN_DATA_TOKENS_ITEM_TOKENS_H
#define QN_DATA_TOKENS_ITEM_TOKENS_H

#include "data/table/data.h"
#include "data/tokens/corpus.h"

/* Fills `data` with the tokens of each text, at least one, by the tokenizer that the options name.
 * A text whose bytes are NULL has none. One with more tokens than an item has becomes windows, and
 * a note says so. Fails where the options do not say how many an item has, as qn__data_tokenizer
 * does, or with QN_MEMORY. */
qn_status qn__item_tokens(const qn__corpus *texts, const qn_data_options *options, qn_data *data,
                          qn_error *err);

#endif
