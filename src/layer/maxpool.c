/* maxpool K [stride S] [pad P] [ceil], maxpool to K: the greatest value of each window, channel by
 * channel. */
#include "layer/pooling.h"

/* 16.5: where the greatest value of a window stands in the input; the first one of equals. */
static size_t greatest(const qn__layer *l, uint32_t y, uint32_t x, uint32_t c, const float *a) {
    qn__tap t = {y, x, 0, 0};
    qn__places at;
    size_t best = SIZE_MAX;
    for (t.ky = 0; t.ky < l->window.kernel[0]; ++t.ky)
        for (t.kx = 0; t.kx < l->window.kernel[1]; ++t.kx)
            if (qn__tap_find(l, t, &at) && (best == SIZE_MAX || a[at.input + c] > a[best]))
                best = at.input + c;
    return best;
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)bits;
    (void)parameters;
    for (uint32_t y = 0; y < l->to.height; ++y)
        for (uint32_t x = 0; x < l->to.width; ++x)
            for (uint32_t c = 0; c < l->to.channels; ++c, ++z)
                *z = a[greatest(l, y, x, c, a)] + 0.0f;
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *sums, float *e) {
    (void)bits;
    (void)parameters;
    (void)sums;
    for (uint32_t k = 0; k < l->in; ++k)
        e[k] = 0.0f;
    for (uint32_t y = 0; y < l->to.height; ++y)
        for (uint32_t x = 0; x < l->to.width; ++x)
            for (uint32_t c = 0; c < l->to.channels; ++c, ++delta) {
                float *to = e + greatest(l, y, x, c, a);
                *to = *to + *delta;
            }
}

const qn__layer_ops qn__maxpool = {.word = "maxpool",
                                   .also = "maxpool2d maxpooling maxpooling2d pooling",
                                   .syntax = "maxpool HEIGHTxWIDTH [stride S] [pad P] [ceil], or "
                                             "maxpool to HEIGHTxWIDTH",
                                   .bare = 1,
                                   .contract = 5,
                                   .contract_of = qn__pool_contract,
                                   .parse = qn__pool_parse,
                                   .write = qn__pool_write,
                                   .make = qn__pool_make,
                                   .flops = qn__pool_flops,
                                   .forward = forward,
                                   .backward = backward};
