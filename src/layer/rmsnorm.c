/* rmsnorm: the channels of each pixel are divided by the root of the mean of their squares, and
 * multiplied by a weight of each channel (Zhang and Sennrich 2019). A mean is not subtracted, and
 * there is no bias. */
#include "layer/normalisation.h"
#include "num/norm.h"

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    return qn__normalisation_words(tokens, 0, layer);
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    (void)err;
    *layer = qn__normalisation_make(text, from, first, QN__NORM_BIAS); /* those before it */
    return QN_OK;
}

/* S of 25.30: a chain for each remainder of the channel by 16, then a chain over these. `weight`
 * NULL: of the squares. */
static float sum_of(const qn__layer *l, const float *weight, const float *delta, const float *x) {
    float lane[16] = {0}, sum = 0.0f;
    for (uint32_t c = 0; c < l->vector; ++c)
        lane[c % 16] = fmaf(weight ? weight[c] * delta[c] : x[c], x[c], lane[c % 16]);
    for (int k = 0; k < 16; ++k)
        sum = sum + lane[k];
    return sum;
}

/* r of 25.30. */
static float inverse_of(const qn__layer *l, const float *x) {
    return qn__norm_inverse(sum_of(l, NULL, NULL, x) / (float)l->vector, l->norm_epsilon);
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    const float *weight = parameters + l->biases;
    (void)bits; /* with integers, too, it is float32 */
    for (size_t at = 0; at < l->in; at += l->vector) {
        const float r = inverse_of(l, a + at);
        for (uint32_t c = 0; c < l->vector; ++c)
            z[at + c] = a[at + c] * r * weight[c] + 0.0f;
    }
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *unused, float *e) {
    const float *weight = parameters + l->biases;
    (void)bits;
    (void)unused;
    for (size_t at = 0; at < l->in; at += l->vector) {
        const float r = inverse_of(l, a + at);
        const float k = sum_of(l, weight, delta + at, a + at) * r * r / (float)l->vector;
        for (uint32_t c = 0; c < l->vector; ++c) {
            const float own = weight[c] * delta[at + c];
            e[at + c] = r * fmaf(-a[at + c], k, own) + 0.0f;
        }
    }
}

/* Pixels in their order, the items of each in theirs. */
static void gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                     float *partial) {
    for (size_t pixel = 0; pixel < l->in; pixel += l->vector)
        for (size_t at = pixel; at < items * l->in; at += l->in) {
            const float r = inverse_of(l, a + at);
            for (uint32_t c = 0; c < l->vector; ++c) {
                const float x = a[at + c] * r;
                partial[c] = fmaf(delta[at + c], x, partial[c]);
            }
        }
}

static const char *const names[] = {"weight"};

const qn__layer_ops qn__rmsnorm = {.word = "rmsnorm",
                                   .also = "rms_norm llamarmsnorm rmsnormalization",
                                   .syntax = "rmsnorm [eps X] [ACTIVATION] [dropout|droppath P]",
                                   .contract = 9,
                                   .contract_of = qn__normalisation_contract,
                                   .parse = parse,
                                   .write = qn__normalisation_write,
                                   .make = make,
                                   .flops = qn__normalisation_flops,
                                   .forward = forward,
                                   .backward = backward,
                                   .gradient = gradient,
                                   .steps = qn__layer_always_steps,
                                   .begin = qn__normalisation_begin,
                                   .names = names};
