#include "layer/layer.h"

#define ROW(KIND, NAME) [QN__LAYER_##KIND] = &qn__##NAME,

const qn__layer_ops *qn__layer_ops_of(qn__layer_kind kind) {
    static const qn__layer_ops *const rows[] = {QN__LAYER_LIST(ROW)};
    return rows[kind];
}

int qn__layer_joins(const qn__layer *layer) { return qn__layer_ops_of(layer->kind)->join != NULL; }

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
