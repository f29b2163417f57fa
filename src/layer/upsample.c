/* upsample N: each pixel becomes NxN pixels of the same value. It is the mean of a window of one
 * pixel: that of the input which the output pixel covers (docs/exactness.md 24.41). */
#include "layer/pooling.h"

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    layer->window = (qn__window){.stride = {1, 1}, .dilation = {1, 1}};
    return qn__tokens_pair(tokens, "factor", 1, 255,
                           "a factor is a whole number from 1 to 255: \"upsample 2\", or one for "
                           "rows and one for columns: \"upsample 1x2\"",
                           layer->window.kernel);
}

static void write(const qn__layer_text *layer, qn__text *text) {
    const uint32_t *factor = layer->window.kernel;
    qn__text_add(text, " %u", factor[0]);
    if (factor[0] != factor[1])
        qn__text_add(text, "x%u", factor[1]);
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    const uint32_t *factor = text->window.kernel;
    const uint64_t to[2] = {(uint64_t)factor[0] * from.height, (uint64_t)factor[1] * from.width};
    return qn__window_fit(text, from, to, first, layer, err);
}

const qn__layer_ops qn__upsample = {
    .word = "upsample",
    .also = "upsampling upsampling2d interpolate nearest unpool upsamplingnearest2d resize",
    .syntax = "upsample FACTOR",
    .bare = 1,
    .contract = 8,
    .parse = parse,
    .write = write,
    .make = make,
    .flops = qn__pool_flops,
    .forward = qn__mean_forward,
    .backward = qn__mean_backward};
