/* What all devices do with numbers of tokens. */
#ifndef QN_LAYER_EMBEDDING_H
#define QN_LAYER_EMBEDDING_H

#include "num/program.h"

/* The bound of initial weights: RN(0.02 * sqrt(3)). */
#define QN__EMBEDDING_BOUND 0x1.1bc77ap-5f

/* The size of the vocabulary: the rows of the layer's weights. */
static inline uint32_t qn__layer_tokens(const qn__layer *layer) {
    return layer->vector / layer->to.channels;
}

#define QN__NO_TOKEN UINT32_MAX

/* The row of a value. Data is checked before, so that a value is a whole number below `tokens`;
 * whatever else it may be is not a token. */
static inline uint32_t qn__token_of(float value, uint32_t tokens) {
    return value >= 0.0f && value < (float)tokens ? (uint32_t)value : QN__NO_TOKEN;
}

/* 25.37: the length of an item, the positions up to its last token. */
static inline uint32_t qn__token_length(const qn__layer *layer, const float *a) {
    uint32_t length = layer->to.width;
    while (length > 0 && qn__token_of(a[length - 1], qn__layer_tokens(layer)) == QN__NO_TOKEN)
        --length;
    return length;
}

/* 25.37: layer `l` for the item with the inputs `x`. */
static inline qn__layer qn__layer_of_item(const qn__layer *layer, uint32_t l, const float *x) {
    qn__layer own = layer[l];
    if (own.by_length)
        own.length = qn__token_length(&layer[0], x);
    return own;
}

/* The target that a value is (25.14): a token, or QN__NO_ANSWER. */
static inline uint32_t qn__next_token(float value, uint32_t tokens) {
    return value >= 0.0f && value < (float)tokens ? (uint32_t)value : QN__NO_ANSWER;
}

#endif
