#include "layer/layer.h"

#include "layer/axes.h"
#include <string.h>

#define ROW(KIND, NAME) [QN__LAYER_##KIND] = &qn__##NAME,

const qn__layer_ops *qn__layer_ops_of(qn__layer_kind kind) {
    static const qn__layer_ops *const rows[] = {QN__LAYER_LIST(ROW)};
    return rows[kind];
}

int qn__layer_contract(const qn__layer_text *layer) {
    const qn__layer_ops *ops = qn__layer_ops_of(layer->kind);
    int words = ops->contract_of ? ops->contract_of(layer) : 0;
    if (layer->drop_path && words < 8)
        words = 8;
    return words > ops->contract ? words : ops->contract;
}

int qn__layer_joins(const qn__layer *layer) { return qn__layer_ops_of(layer->kind)->join != NULL; }

qn__flops qn__layer_flops(const qn__layer *layer) {
    return qn__layer_ops_of(layer->kind)->flops(layer);
}

int qn__layer_always_steps(const qn__layer *layer) {
    (void)layer;
    return 1;
}

void qn__layer_same_errors(const qn__layer *layer, int bits, const float *parameters,
                           const float *a, const float *delta, int64_t *unused, float *e) {
    (void)bits, (void)parameters, (void)a, (void)unused;
    memcpy(e, delta, layer->in * sizeof *e);
}

qn_status qn__layer_make(const qn__layer_ops *ops, const qn__layer_text *text, qn__shape from,
                         uint64_t first, qn__layer *layer, qn_error *err) {
    char shape[QN__SHAPE_TEXT];
    if (!ops->takes || ops->takes >> from.axes & 1)
        return ops->make(text, from, first, layer, err);
    qn__fail(err, QN_USAGE, "\"%s\" cannot take an input of %s (%s)", ops->word,
             qn__axes_of(from)->name, qn__shape_text(from, shape));
    return qn__remedy(err, QN_USAGE, "it takes %s",
                      ops->takes >> QN__SEQUENCE & 1 ? "positions" : "pixels");
}

int qn__layer_find(const qn__tokens *tokens, qn__layer_kind *kind) {
    for (int k = 0; k < QN__LAYER_KINDS; ++k)
        if (qn__tokens_is(tokens, qn__layer_ops_of((qn__layer_kind)k)->word)) {
            *kind = (qn__layer_kind)k;
            return 1;
        }
    return 0;
}
