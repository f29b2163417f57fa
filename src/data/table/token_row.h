/* A corpus: one row of tokens, cut into items that share one token (docs/exactness.md 25.42). */
#ifndef QN_DATA_TABLE_TOKEN_ROW_H
#define QN_DATA_TABLE_TOKEN_ROW_H

#include "data/table/data.h"

/* Makes items of context + 1 tokens of a table of items of one token, where they lie. `path` is for
 * messages. A note says how many tokens at the end are left out. Fails with QN_INPUT where the
 * tokens do not fill one item, or `context` is 0. A part of a row is not cut (part_reading.h). */
qn_status qn__token_row_cut(qn_data *data, uint32_t context, const char *path, qn_error *err);

/* Fails as above for a row of so many tokens. */
qn_status qn__token_row_check(uint64_t tokens, uint32_t context, const char *path, qn_error *err);

/* Adds that note, if tokens are left. Fails with QN_MEMORY. */
qn_status qn__token_row_note(uint64_t left, uint64_t tokens, qn_data *data, qn_error *err);

/* Fails with QN_INPUT: items of a corpus have neither labels nor weights. */
qn_status qn__token_row_refuse_labels(const char *path, qn_error *err);

/* The given context, or that of a model. */
static inline uint32_t qn__token_row_context(const qn_data_options *options) {
    return options->context ? options->context : options->expected_context;
}

#endif
