#include "layer/padding.h"

#include "layer/layer.h"

/* A convolution of the embedding, which is +0 after the last token as it is beyond the sequence. */
static int reads_zeros(const qn__layer *layer, uint32_t l) {
    const qn__layer *own = &layer[l];
    return own->kind == QN__LAYER_CONV && qn__layer_source(layer, l) == 0 &&
           layer[0].activation == QN__ACT_NONE && own->to.width == own->from.width &&
           own->window.stride[1] == 1;
}

static int keeps_apart(const qn__layer *layer, uint32_t l) {
    const qn__layer_ops *ops = qn__layer_ops_of(layer[l].kind);
    return layer[l].by_length || reads_zeros(layer, l) ||
           (ops->steps && ops->steps(&layer[l]) && !ops->forward_grain);
}

uint32_t qn__padding_mixed(const qn__layer *layer, uint32_t layers) {
    for (uint32_t l = 1; l < layers; ++l) {
        const int reads =
            qn__has_token_positions(layer, layer[l].from) ||
            (qn__layer_joins(&layer[l]) && qn__has_token_positions(layer, layer[l].second));
        if (reads && !keeps_apart(layer, l))
            return l;
    }
    return layers;
}
