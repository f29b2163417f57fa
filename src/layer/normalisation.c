#include "layer/normalisation.h"

qn__layer qn__normalisation_make(const qn__layer_text *text, qn__shape from, uint64_t first,
                                 uint32_t vectors) {
    return (qn__layer){.kind = text->kind,
                       .from = from,
                       .to = from,
                       .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                       .in = qn__shape_volume(from),
                       .out = qn__shape_volume(from),
                       .activation = text->activation,
                       .drop_keep = 1.0f,
                       .weights = first,
                       .biases = first,
                       .vectors = vectors,
                       .vector = from.channels};
}

void qn__normalisation_begin(const qn__layer *layer, float *parameters) {
    float *next = parameters + layer->biases;
    for (uint32_t v = 0; v < layer->vectors; ++v)
        for (uint32_t c = 0; c < layer->vector; ++c)
            *next++ = v == QN__NORM_WEIGHT || v == QN__NORM_VARIANCE ? 1.0f : 0.0f;
}

qn__flops qn__normalisation_flops(const qn__layer *layer) {
    return (qn__flops){layer->in, layer->in, layer->in};
}
