/* avgpool K [stride S] [pad P] [ceil] [uncounted], avgpool to K: the mean of each window, channel
 * by channel. */
#include "layer/pooling.h"

void qn__mean_forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                      float *z) {
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    (void)bits;
    (void)parameters;
    for (uint32_t o = 0; o < l->out; ++o)
        z[o] = 0.0f;
    do {
        if (qn__tap_find(l, t, &at))
            for (uint32_t c = 0; c < l->to.channels; ++c)
                z[at.output + c] = z[at.output + c] + a[at.input + c];
    } while (qn__tap_next(l, &t));
    for (uint32_t y = 0; y < l->to.height; ++y)
        for (uint32_t x = 0; x < l->to.width; ++x)
            for (uint32_t c = 0; c < l->to.channels; ++c, ++z)
                *z = *z * qn__pool_share(l, y, x) + 0.0f;
}

void qn__mean_backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                       const float *delta, int64_t *sums, float *e) {
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    (void)bits;
    (void)parameters;
    (void)a;
    (void)sums;
    for (uint32_t k = 0; k < l->in; ++k)
        e[k] = 0.0f;
    do {
        if (!qn__tap_find(l, t, &at))
            continue;
        for (uint32_t c = 0; c < l->to.channels; ++c) {
            const float part = delta[at.output + c] * qn__pool_share(l, t.y, t.x);
            e[at.input + c] = e[at.input + c] + part;
        }
    } while (qn__tap_next(l, &t));
}

const qn__layer_ops qn__avgpool = {
    .word = "avgpool",
    .also = "avgpool2d averagepool averagepooling2d avgpooling",
    .syntax = "avgpool HEIGHTxWIDTH [stride S] [pad P] [ceil] [uncounted], or "
              "avgpool to HEIGHTxWIDTH",
    .bare = 1,
    .contract = 5,
    .contract_of = qn__pool_contract,
    .parse = qn__pool_parse,
    .write = qn__pool_write,
    .make = qn__pool_make,
    .flops = qn__pool_flops,
    .forward = qn__mean_forward,
    .backward = qn__mean_backward};
