/* States of positions in an ONNX graph (docs/exactness.md 25.34): the operators LSTM and GRU, which
 * also have the products that a convolution makes here. */
#ifndef QN_MODEL_EXCHANGE_ONNX_RECURRENT_H
#define QN_MODEL_EXCHANGE_ONNX_RECURRENT_H

#include "model/exchange/onnx_graph.h"

/* Whether layer `l` is a convolution that the operator of the next layer does. */
int qn__onnx_is_taken(const qn__program *program, uint32_t l);

/* From what the layer reads, or what the convolution before reads, if that is taken. */
void qn__onnx_recurrent(qn__onnx_graph *g, const qn__layer *layers, uint32_t l, int taken);

#endif
