/* What stands after the last token of an item (docs/exactness.md 25.37). */
#ifndef QN_LAYER_PADDING_H
#define QN_LAYER_PADDING_H

#include "num/program.h"

/* Whether a shape has the positions of the tokens. */
static inline int qn__has_token_positions(const qn__layer *layer, qn__shape shape) {
    return layer[0].kind == QN__LAYER_EMBEDDING && shape.axes == QN__SEQUENCE &&
           shape.height == 1 && shape.width == layer[0].to.width;
}

/* The first layer by which what stands at a position after the last token can change other outputs;
 * `layers` where there is none. Then the errors of these positions are 0, too. */
uint32_t qn__padding_mixed(const qn__layer *layer, uint32_t layers);

#endif
