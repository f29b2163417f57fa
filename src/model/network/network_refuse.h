/* What is wrong with a word of a model text, and what to write instead. */
#ifndef QN_MODEL_NETWORK_NETWORK_REFUSE_H
#define QN_MODEL_NETWORK_NETWORK_REFUSE_H

#include "layer/layer.h"

/* The current word is where a layer begins, and is not the name of a layer. QN_USAGE. */
qn_status qn__network_refuse_kind(const qn__tokens *tokens);

/* The current word follows the words of a layer, and may not follow them. `activation`: 1 if an
 * activation may follow. QN_USAGE. */
qn_status qn__network_refuse_word(const qn__tokens *tokens, const qn__layer_ops *ops,
                                  int activation);

#endif
