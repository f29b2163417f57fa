/* The pre-tokeniser of a tokenizer.json. */
#ifndef QN_DATA_TOKENS_STEPS_PRE_TOKENIZER_H
#define QN_DATA_TOKENS_STEPS_PRE_TOKENIZER_H

#include "base/text/json.h"
#include "base/text/text.h"
#include "data/tokens/steps/splitter.h"

/* Reads `pre_tokenizer`, NULL where there is none. *byte_level: it ends with ByteLevel.
 * *prefix_space: with it, a space is put before a text that does not begin with one. Fails with
 * QN_FORMAT, QN_UNSUPPORTED, by name, or QN_MEMORY. */
qn_status qn__pre_tokenizer_read(const qn__json_node *node, qn__splitter *splitter, int *byte_level,
                                 int *prefix_space, qn_error *err);
/* Writes it in its canonical form. */
void qn__pre_tokenizer_write(const qn__splitter *splitter, int byte_level, int prefix_space,
                             qn__text *json);

#endif
