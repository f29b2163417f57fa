/* Lengths of items of tokens as values of an ONNX graph (docs/exactness.md 25.37), and the pools
 * and the attention that read them. */
#ifndef QN_MODEL_EXCHANGE_ONNX_LENGTHS_H
#define QN_MODEL_EXCHANGE_ONNX_LENGTHS_H

#include "model/exchange/onnx_graph.h"

/* From the tokens, which g->at is, as floats: g->at becomes their numbers, 0 for what is not a
 * token. Other values say which are tokens, how long items are, and which positions count. */
void qn__onnx_lengths(qn__onnx_graph *g, const qn__layer *embedding);

/* g->at becomes the lengths, items x 1 x 1 x 1. */
void qn__onnx_take_length(qn__onnx_graph *g);

/* Makes the positions of g->at +0 that are not tokens. */
void qn__onnx_tokens_only(qn__onnx_graph *g);

/* Adds to the scores of attention what hides the positions that do not count. */
void qn__onnx_hide_rest(qn__onnx_graph *g, const qn__layer *attention);

/* Makes the positions of g->at +0 that do not count. */
void qn__onnx_clear_rest(qn__onnx_graph *g);

void qn__onnx_pooled(qn__onnx_graph *g, const qn__layer *pool);

#endif
