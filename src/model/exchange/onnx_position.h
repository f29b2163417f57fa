/* Layers of positions in ONNX graphs. */
#ifndef QN_MODEL_EXCHANGE_ONNX_POSITION_H
#define QN_MODEL_EXCHANGE_ONNX_POSITION_H

#include "model/exchange/onnx_graph.h"

/* What is added to each channel of each position: parameters; sines and cosines. */
void qn__onnx_position(qn__onnx_graph *g, const qn__layer *layer);
void qn__onnx_sinusoid(qn__onnx_graph *g, const qn__layer *layer);

/* Queries and keys are turned. */
void qn__onnx_rotary(qn__onnx_graph *g, const qn__layer *layer);

#endif
