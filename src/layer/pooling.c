#include "layer/pooling.h"

qn_status qn__pool_parse(qn__tokens *tokens, qn__layer_text *layer) {
    const qn_status status = qn__window_kernel(tokens, &layer->window);
    if (status != QN_OK)
        return status;
    for (int d = 0; d < 2; ++d)
        layer->window.stride[d] = layer->window.kernel[d];
    return qn__window_stride(tokens, &layer->window);
}

void qn__pool_write(const qn__layer_text *layer, qn__text *text) {
    const qn__window *w = &layer->window;
    qn__text_add(text, " %ux%u", w->kernel[0], w->kernel[1]);
    if (w->stride[0] != w->kernel[0] || w->stride[1] != w->kernel[1])
        qn__window_write("stride", w->stride, text);
}

qn_status qn__pool_make(const qn__layer_text *text, qn__shape from, uint64_t first,
                        qn__layer *layer, qn_error *err) {
    return qn__window_make(text, from, from.channels, first, layer, err);
}

qn__flops qn__pool_flops(const qn__layer *layer) {
    const uint64_t flops = (uint64_t)layer->out * qn__window_taps(layer);
    return (qn__flops){flops, flops, 0};
}
