/* States of positions in an ONNX graph (docs/exactness.md 25.34): the operators LSTM and GRU, which
 * also have the products that a convolution makes here. */
#ifndef QN_MODEL_EXCHANGE_ONNX_RECURRENT_H
#define QN_MODEL_EXCHANGE_ONNX_RECURRENT_H

#include "model/exchange/onnx_graph.h"

/* From what the layer reads. `taken`: it and the convolution before are a pair
 * (qn__recurrent_pair), which is one operator; then from what the convolution reads. */
void qn__onnx_recurrent(qn__onnx_graph *g, const qn__layer *layers, uint32_t l, int taken);

#endif
