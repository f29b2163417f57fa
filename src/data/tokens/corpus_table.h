/* Documents as a table of tokens. */
#ifndef QN_DATA_TOKENS_CORPUS_TABLE_H
#define QN_DATA_TOKENS_CORPUS_TABLE_H

#include "data/bytes/part_files.h"
#include "data/table/data.h"
#include "data/tokens/corpus.h"
#include "data/tokens/tokenizer.h"

/* Fills `data` with the tokens of texts (docs/exactness.md 25.44), by the tokenizer that the
 * options name. `path` is for messages. */
qn_status qn__corpus_table(const qn__corpus *corpus, const qn_data_options *options,
                           const char *path, qn_data *data, qn_error *err);

/* The same of files, of which one is open at a time once the tokenizer is known. */
qn_status qn__corpus_table_of_files(qn__part_files *files, const qn_data_options *options,
                                    qn_data *data, qn_error *err);

/* Writes the tokens of texts as qn_tokenizer_write does. */
qn_status qn__corpus_write(const qn_tokenizer *tokenizer, const qn__corpus *corpus,
                           uint32_t threads, const char *path, uint64_t *tokens, qn_error *err);

#endif
