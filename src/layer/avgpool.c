/* avgpool K [stride S]: the mean of each window, channel by channel. */
#include "layer/pooling.h"

/* 16.6 */
static float share(const qn__layer *l) { return 1.0f / (float)qn__window_taps(l); }

void qn__mean_forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                      float *z) {
    qn__tap t = {0, 0, 0, 0};
    qn__places at;
    (void)bits;
    (void)parameters;
    for (uint32_t o = 0; o < l->out; ++o)
        z[o] = 0.0f;
    do {
        qn__tap_find(l, t, &at); /* windows lie inside */
        for (uint32_t c = 0; c < l->to.channels; ++c)
            z[at.output + c] = z[at.output + c] + a[at.input + c];
    } while (qn__tap_next(l, &t));
    for (uint32_t o = 0; o < l->out; ++o)
        z[o] = z[o] * share(l) + 0.0f;
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
        qn__tap_find(l, t, &at);
        for (uint32_t c = 0; c < l->to.channels; ++c) {
            const float part = delta[at.output + c] * share(l);
            e[at.input + c] = e[at.input + c] + part;
        }
    } while (qn__tap_next(l, &t));
}

const qn__layer_ops qn__avgpool = {.word = "avgpool",
                                   .also = "avgpool2d averagepool averagepooling2d avgpooling",
                                   .syntax = "avgpool HEIGHTxWIDTH [stride S]",
                                   .bare = 1,
                                   .contract = 5,
                                   .parse = qn__pool_parse,
                                   .write = qn__pool_write,
                                   .make = qn__pool_make,
                                   .flops = qn__pool_flops,
                                   .forward = qn__mean_forward,
                                   .backward = qn__mean_backward};
