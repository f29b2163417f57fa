/* concat { A | B }: the channels of two paths of layers from the same input, those of A first. The
 * kind is the layer at the end of the block. */
#include "layer/join.h"
#include "layer/product.h"
#include <string.h>

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    (void)err;
    *layer = qn__join_make(text, from, first);
    return QN_OK;
}

static int parts_meet(qn__layer *l) {
    const uint64_t channels = (uint64_t)l->from.channels + l->second.channels;
    const uint64_t values = (uint64_t)qn__shape_volume(l->from) + qn__shape_volume(l->second);
    if (!qn__join_same_pixels(l->from, l->second) || channels > QN__MAX_VALUES ||
        values > QN__MAX_VALUES)
        return 0;
    l->to.channels = (uint32_t)channels;
    l->out = (uint32_t)values;
    return 1;
}

static qn__flops flops(const qn__layer *l) {
    (void)l;
    return (qn__flops){.forward = 0};
}

/* Copies the channels of each pixel from one array to another, whose pixels have `from` and `to`
 * channels. */
static void copy(const qn__layer *l, uint32_t channels, uint32_t from, const float *a, uint32_t to,
                 float *b) {
    const uint32_t pixels = l->to.height * l->to.width;
    for (size_t p = 0; p < pixels; ++p)
        memcpy(b + p * to, a + p * from, channels * sizeof *b);
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)bits;
    (void)parameters;
    copy(l, l->from.channels, l->from.channels, a, l->to.channels, z);
}

/* 24.32 */
static void join(const qn__layer *l, const float *b, float *z) {
    copy(l, l->second.channels, l->second.channels, b, l->to.channels, z + l->from.channels);
    qn__plain_zeros(l->out, z);
}

static void backward_both(const qn__layer *l, const float *a, const float *b, const float *delta,
                          float *e, float *f) {
    (void)a;
    (void)b;
    copy(l, l->from.channels, l->to.channels, delta, l->from.channels, e);
    copy(l, l->second.channels, l->to.channels, delta + l->from.channels, l->second.channels, f);
    qn__plain_zeros(l->in, e);
    qn__plain_zeros(qn__shape_volume(l->second), f);
}

const qn__layer_ops qn__concat = {
    .word = "concat",
    .also = "concatenate cat stack dense_block denseblock unet",
    .syntax = "concat { LAYERS [| LAYERS] } [ACTIVATION] [dropout|droppath P]",
    .block = 1,
    .contract = 8,
    .verb = "a concat block joins",
    .fit = "both paths must have the same pixels, and together at most 2^28 values: "
           "\"concat { conv 16 3x3 relu | conv 16 1x1 relu }\"",
    .steps = qn__layer_always_steps,
    .make = make,
    .meet = parts_meet,
    .flops = flops,
    .forward = forward,
    .join = join,
    .backward_both = backward_both};
