/* Layers with angles of positions: position sinusoid and position rotary (docs/exactness.md 25.13,
 * 25.31). A worker computes their table once; a position can be computed by itself. */
#ifndef QN_LAYER_TURNED_H
#define QN_LAYER_TURNED_H

#include "layer/layer.h"

enum {
    QN__TURNED_POSITIONS = 1 << 22
}; /* the most: angles are exact to the last bit up to there */

/* The words after "position rotary". */
qn_status qn__rotary_words(qn__tokens *tokens, qn__layer_text *layer);

/* Pairs of channels: of a head of rotary, of a position of sinusoid. */
uint32_t qn__turned_pairs(const qn__layer *layer);

/* The channels of rotary that are turned: those of queries and keys. */
static inline uint32_t qn__rotary_channels(const qn__layer *layer) {
    return 2 * qn__turned_pairs(layer) * (layer->heads + layer->kv_heads);
}

/* Fails with QN_USAGE where there are more positions. */
qn_status qn__turned_check(qn__shape from, qn_error *err);

/* The cosines, then the sines of `count` positions from `first` on: table[count][2][pairs]. */
void qn__turned_table(const qn__layer *layer, uint32_t first, uint32_t count, float *table);

#endif
