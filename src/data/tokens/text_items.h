/* A column of texts whose tokens become the items of a table (docs/exactness.md 25.46). */
#ifndef QN_DATA_TOKENS_TEXT_ITEMS_H
#define QN_DATA_TOKENS_TEXT_ITEMS_H

#include "data/table/data.h"
#include <string.h>

/* Whether the options ask for tokens that a tokenizer makes, and not for a corpus. */
static inline int qn__text_items_wanted(const qn_data_options *options) {
    return options->tokens && strcmp(options->tokens, QN__TOKENS_IDS) != 0 &&
           options->expected_context == 0 && !(options->task && strcmp(options->task, "next") == 0);
}

/* What the columns of texts of a table become: marks them (qn__prose_find), or replaces the
 * features by the tokens of one of them, as many as the context says, where tokens are wanted and
 * the format has columns. Then the type, features, values, tokenizer and columns of `data` change;
 * its labels and weights do not. Notes say which columns were left out, and how many texts were
 * cut. `path` is for messages. Fails with QN_INPUT (such a column is missing, or not the only one;
 * the options say no context), as qn__prose_find and qn__data_tokenizer do, or with QN_MEMORY. */
qn_status qn__text_columns(qn_data *data, int columns, const qn_data_options *options,
                           const char *path, qn_error *err);

#endif
