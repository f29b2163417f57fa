/* The layers of a model as nodes of an ONNX graph. */
#ifndef QN_MODEL_EXCHANGE_ONNX_LAYERS_H
#define QN_MODEL_EXCHANGE_ONNX_LAYERS_H

#include "model/exchange/onnx_graph.h"

/* Adds the nodes from g->at, the scaled inputs, to the outputs of the last layer, which g->at is
 * afterwards: items x outputs. */
void qn__onnx_layers(qn__onnx_graph *g, const qn__program *program);

#endif
