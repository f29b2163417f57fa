/* attention as nodes of an ONNX graph. */
#ifndef QN_MODEL_EXCHANGE_ONNX_ATTENTION_H
#define QN_MODEL_EXCHANGE_ONNX_ATTENTION_H

#include "model/exchange/onnx_graph.h"

void qn__onnx_attention(qn__onnx_graph *g, const qn__layer *layer);

#endif
