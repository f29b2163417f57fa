/* The tokenizer of a table that is read: what the options name, or that of a model. */
#ifndef QN_DATA_TOKENS_DATA_TOKENIZER_H
#define QN_DATA_TOKENS_DATA_TOKENIZER_H

#include "data/table/data.h"
#include "data/tokens/models/token_kind.h"

/* What a tokenizer may learn from: `count` files, or as many texts in memory. */
typedef struct qn__learned_from {
    const char *const *path; /* NULL: `text` */
    const qn__token_text *text;
    size_t count;
} qn__learned_from;

/* Makes the tokenizer of options->tokens, or takes that of the model for which `data` is read. Sets
 * the type, `tokens` and `tokenizer` of `data`. *out is for qn_tokenizer_free, also after a
 * failure. Fails as qn_tokenizer_open does, and with QN_USAGE where it is not that of the model. */
qn_status qn__data_tokenizer(const qn__learned_from *from, const qn_data_options *options,
                             qn_data *data, qn_tokenizer **out, qn_error *err);

/* Whether the tokenizer of the options is learned from the texts: by all ranks together where the
 * data are in parts (part_reading.h). */
int qn__data_tokenizer_learns(const qn_data_options *options);

#endif
