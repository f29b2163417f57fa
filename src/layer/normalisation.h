/* What the normalisation layers share. */
#ifndef QN_LAYER_NORMALISATION_H
#define QN_LAYER_NORMALISATION_H

#include "layer/layer.h"

/* The arrays of parameters that a layer may have, each with a value for a channel. */
enum { QN__NORM_WEIGHT, QN__NORM_BIAS, QN__NORM_MEAN, QN__NORM_VARIANCE, QN__NORM_VECTORS };

/* "eps X", and of a layer with running averages "momentum X", in any order, each once. */
qn_status qn__normalisation_words(qn__tokens *tokens, int running, qn__layer_text *layer);

/* Appends those that are not the usual ones. */
void qn__normalisation_write(const qn__layer_text *layer, qn__text *text);

/* The version of the contract that these words need. */
int qn__normalisation_contract(const qn__layer_text *layer);

/* A layer whose output has the shape of its input, with the first `vectors` of these arrays. */
qn__layer qn__normalisation_make(const qn__layer_text *text, qn__shape from, uint64_t first,
                                 uint32_t vectors);

/* Weights and variances begin as 1, all others as 0. */
void qn__normalisation_begin(const qn__layer *layer, float *parameters);

/* The cost: a prediction reads each value once, training once more for the sums, and so does the
 * backward pass. */
qn__flops qn__normalisation_flops(const qn__layer *layer);

#endif
