/* What a worker says when numbers left their range: the same words on every device. */
#ifndef QN_DEVICE_NUMERIC_H
#define QN_DEVICE_NUMERIC_H

#include "base/error.h"
#include <stdint.h>

/* In the place of a layer: nobody looked. */
#define QN__NO_LAYER UINT32_MAX

/* The loss of a grain is NaN or, with `nan` 0, too large. `bad` is the first layer with inputs that
 * are not finite, since a NaN or an infinity makes NaN or infinities of nearly all that is computed
 * with it; `layers` when there is none: then the last layer's outputs are not finite, or only so
 * far from what they should be that the loss is too large. Returns QN_NUMERIC. */
qn_status qn__fail_loss(int nan, uint32_t bad, uint32_t layers, qn_error *err);

/* A partial of the gradient of a layer, of several the last one. Returns QN_NUMERIC. */
qn_status qn__fail_gradient(uint32_t layer, qn_error *err);

#endif
