/* Pools, and layers that enlarge, as nodes of an ONNX graph. */
#ifndef QN_MODEL_EXCHANGE_ONNX_POOLS_H
#define QN_MODEL_EXCHANGE_ONNX_POOLS_H

#include "model/exchange/onnx_graph.h"

/* `op`: MaxPool or AveragePool. */
void qn__onnx_pool(qn__onnx_graph *g, const qn__layer *layer, const char *op);

void qn__onnx_upsample(qn__onnx_graph *g, const qn__layer *layer);

#endif
