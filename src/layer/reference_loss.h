/* Softmax and the losses of one output (docs/exactness.md 6 to 8), for the scalar reference. */
#ifndef QN_LAYER_REFERENCE_LOSS_H
#define QN_LAYER_REFERENCE_LOSS_H

#include "num/program.h"

/* 6.4: y, of n outputs, from z; the greatest of z and the sum of the exponentials go into 7.2. */
void qn__reference_softmax(uint32_t n, const float *z, float *y, float *max, float *sum);

/* 7.3: the chain of the loss goes on with the error d of an output. */
float qn__reference_loss_chain(const qn__program *program, float d, float acc);

/* 8.3: the derivative of the loss by an output. */
float qn__reference_loss_slope(const qn__program *program, float d);

/* 7.6 */
float qn__reference_loss_binary(float z, uint32_t label);

#endif
