/* The messages of a worker when numbers are out of range: the same on every device. */
#ifndef QN_DEVICE_NUMERIC_H
#define QN_DEVICE_NUMERIC_H

#include "base/error.h"
#include "num/program.h"
#include <stdint.h>

/* In place of a layer: not determined. */
#define QN__NO_LAYER UINT32_MAX

/* The loss of a grain is NaN or, with `nan` 0, too large. `bad` is the first layer with inputs that
 * are not finite: nearly everything that is computed from a NaN or an infinity is not finite
 * either. `bad` is program->layers when all are finite: then the last layer's outputs are
 * not finite, or so far from the targets that the loss is too large. Returns QN_NUMERIC. */
qn_status qn__fail_loss(int nan, uint32_t bad, const qn__program *program, qn_error *err);

/* A partial of the gradient of a layer is out of range; of several layers the last one. `averages`:
 * or what a grain adds to its running averages. Returns QN_NUMERIC. */
qn_status qn__fail_gradient(uint32_t layer, int averages, qn_error *err);

#endif
