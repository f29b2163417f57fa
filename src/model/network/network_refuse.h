/* What is wrong with a word of a model text, and what to write instead. */
#ifndef QN_MODEL_NETWORK_NETWORK_REFUSE_H
#define QN_MODEL_NETWORK_NETWORK_REFUSE_H

#include "layer/layer.h"

/* The current word stands where a layer begins, and names none. */
qn_status qn__network_refuse_kind(const qn__tokens *tokens);

/* The current word stands after the words of a layer, and is none of those that may follow.
 * `activation`: an activation may. */
qn_status qn__network_refuse_word(const qn__tokens *tokens, const qn__layer_ops *ops,
                                  int activation);

#endif
