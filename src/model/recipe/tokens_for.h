/* How many tokens a ready model needs for the data at hand. */
#ifndef QN_MODEL_RECIPE_TOKENS_FOR_H
#define QN_MODEL_RECIPE_TOKENS_FOR_H

#include "data/table/data.h"

/* The size of the tokenizer of the data. Of tokens that came as numbers, the greatest one + 1. 0:
 * the items are not tokens, or there is no memory. */
uint32_t qn__tokens_for(const qn_data *data);

#endif
