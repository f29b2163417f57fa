/* What all devices do with layers whose positions follow one another (docs/exactness.md 25.34 to
 * 25.36). */
#ifndef QN_LAYER_RECURRENT_H
#define QN_LAYER_RECURRENT_H

#include "num/program.h"

/* Parts of the channels of an input, each as wide as the output: four of lstm, three of gru. */
static inline uint32_t qn__recurrent_gates(const qn__layer *layer) {
    return layer->from.channels / layer->to.channels;
}

/* Position number `step` in the order in which they follow one another. */
static inline uint32_t qn__recurrent_at(const qn__layer *layer, uint32_t step) {
    return layer->reverse ? qn__layer_positions(layer) - 1 - step : step;
}

#endif
