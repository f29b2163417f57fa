/* What all devices do with the positions of a pool (docs/exactness.md 25.38). */
#ifndef QN_LAYER_POOLED_H
#define QN_LAYER_POOLED_H

#include "num/program.h"

/* The positions begin .. end - 1 that the pool reads; none where the length is 0. */
static inline qn__cover qn__pooled_cover(const qn__layer *layer) {
    const uint32_t all = qn__layer_positions(layer);
    return (qn__cover){layer->pooling == QN__POOL_LAST && all > 0 ? all - 1 : 0,
                       layer->pooling == QN__POOL_FIRST && all > 0 ? 1 : all};
}

/* r, the share of one of them in their mean. */
static inline float qn__pooled_share(qn__cover read) {
    return read.end > read.begin ? 1.0f / (float)(read.end - read.begin) : 0.0f;
}

#endif
