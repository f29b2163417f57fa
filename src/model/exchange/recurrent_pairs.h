/* The two layers of "lstm N" and "gru N" as one module of other programs: a convolution of what
 * comes from outside, and a recurrent layer (docs/exactness.md 25.34). */
#ifndef QN_MODEL_EXCHANGE_RECURRENT_PAIRS_H
#define QN_MODEL_EXCHANGE_RECURRENT_PAIRS_H

#include "model/exchange/state_dict.h"
#include "num/program.h"

/* Whether layer `l` of `count` is the convolution of such a pair: only layer l + 1 reads it. */
int qn__recurrent_pair(const qn__layer *layers, uint32_t count, uint32_t l);

/* Whether the module of an LSTM or GRU has the shapes of pair[0] and pair[1]. */
int qn__recurrent_fits(const qn__layer *pair, const qn__module *module);

/* Parameters of a pair from a module that fits: the two biases of a gate are added, but for the
 * third gate of gru, which has one in each layer. */
void qn__recurrent_take(const qn__layer *pair, const qn__module *module, float *parameters);

/* What the pair needs, such as "weight_ih of 80x12 and weight_hh of 80x20". */
void qn__recurrent_tell_need(const qn__layer *pair, char text[160]);

#endif
