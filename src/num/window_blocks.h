/* Blocks of integers of a sequence (docs/exactness.md 25.24, 25.27). */
#ifndef QN_NUM_WINDOW_BLOCKS_H
#define QN_NUM_WINDOW_BLOCKS_H

#include "num/program.h"

/* Whether a layer of integers has a block of inputs for each position of its outputs, and one of
 * errors for each position of its inputs: what the position reads. In others an item is one block.
 * With qn__layer_has_position_blocks this is one position. */
static inline int qn__layer_has_window_blocks(const qn__layer *layer) {
    return qn__layer_on_positions(layer) && qn__layer_is_integer(layer);
}

#endif
