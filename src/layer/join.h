/* What the ends of blocks share: a layer that reads two outputs. */
#ifndef QN_LAYER_JOIN_H
#define QN_LAYER_JOIN_H

#include "layer/layer.h"

/* A joining layer after an output of this shape, without parameters: its output has the same shape,
 * until `meet` is called. */
qn__layer qn__join_make(const qn__layer_text *text, qn__shape from, uint64_t first);

/* Whether both shapes have the same pixels or positions. */
int qn__join_same_pixels(qn__shape a, qn__shape b);

#endif
