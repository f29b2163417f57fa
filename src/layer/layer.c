#include "layer/layer.h"

#include <stdio.h>

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

static const char *word_of(int kind) { return qn__layer_ops_of((qn__layer_kind)kind)->word; }

qn_status qn__layer_find(const qn__tokens *tokens, qn__layer_kind *kind) {
    const char *list[QN__LAYER_KINDS + 1] = {NULL};
    char word[64], remedy[256];
    size_t used = 0;
    for (int k = 0; k < QN__LAYER_KINDS; ++k) {
        list[k] = word_of(k);
        if (qn__tokens_is(tokens, list[k])) {
            *kind = (qn__layer_kind)k;
            return QN_OK;
        }
    }
    const char *near = qn__nearest(qn__tokens_quote(tokens, word), list);
    if (near)
        used = (size_t)snprintf(remedy, sizeof remedy, "did you mean \"%s\"? ", near);
    for (int k = 0; k < QN__LAYER_KINDS; ++k)
        used += (size_t)snprintf(remedy + used, sizeof remedy - used, "%s%s",
                                 k == 0 ? "there are: " : ", ", list[k]);
    return qn__tokens_invalid(tokens, "unknown layer", remedy);
}
