#include "layer/layer.h"

const qn__layer_ops *qn__layer_ops_of(qn__layer_kind kind) {
    switch (kind) {
    case QN__LAYER_DENSE:
        return &qn__dense;
    case QN__LAYER_CONV:
        return &qn__conv;
    case QN__LAYER_MAXPOOL:
        return &qn__maxpool;
    case QN__LAYER_AVGPOOL:
        return &qn__avgpool;
    case QN__LAYER_GLOBALPOOL:
        return &qn__globalpool;
    case QN__LAYER_BATCHNORM:
        return &qn__batchnorm;
    case QN__LAYER_GROUPNORM:
        return &qn__groupnorm;
    case QN__LAYER_LAYERNORM:
        return &qn__layernorm;
    case QN__LAYER_ADD:
        return &qn__residual;
    }
    return NULL;
}

qn__flops qn__layer_flops(const qn__layer *layer) {
    return qn__layer_ops_of(layer->kind)->flops(layer);
}

int qn__layer_find(const qn__tokens *tokens, qn__layer_kind *kind) {
    for (int k = 0; k < QN__LAYER_KINDS; ++k)
        if (qn__tokens_is(tokens, qn__layer_ops_of((qn__layer_kind)k)->word)) {
            *kind = (qn__layer_kind)k;
            return 1;
        }
    return 0;
}
