/* The losses of one output (docs/exactness.md 7 and 8), for the scalar reference. */
#ifndef QN_LAYER_REFERENCE_LOSS_H
#define QN_LAYER_REFERENCE_LOSS_H

#include "num/program.h"

/* 7.3: the chain of the loss goes on with the error d of an output. */
float qn__reference_loss_chain(const qn__program *program, float d, float acc);

/* 8.3: the derivative of the loss by an output. */
float qn__reference_loss_slope(const qn__program *program, float d);

/* 7.6 */
float qn__reference_loss_binary(float z, uint32_t label);

#endif
