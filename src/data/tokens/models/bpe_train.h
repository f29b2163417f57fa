/* Learning a byte-level BPE from a corpus (docs/exactness.md 25.55). */
#ifndef QN_DATA_TOKENS_MODELS_BPE_TRAIN_H
#define QN_DATA_TOKENS_MODELS_BPE_TRAIN_H

#include "data/tokens/models/token_kind.h"

/* As qn__token_kind.count and .learn: `after` is the number of tokens, from 257 on. */
qn_status qn__bpe_count(const char *after, const qn__token_text *corpus, size_t count,
                        uint32_t threads, qn__word_table *words, qn_error *err);
qn_status qn__bpe_train(const char *after, qn__word_table *words, void **state, qn_error *err);

#endif
