/* batchnorm: each channel gets the mean 0 and the variance 1 over the pixels and items of a grain,
 * then a weight and a bias (Ioffe and Szegedy 2015). A prediction takes running averages. */
#include "layer/normalisation.h"
#include "num/norm.h"

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    return qn__normalisation_words(tokens, 1, layer);
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    (void)err;
    *layer = qn__normalisation_make(text, from, first, QN__NORM_VECTORS);
    layer->running = 2 * from.channels;
    layer->running_rate = text->rate != 0.0f ? text->rate : QN__RUNNING_RATE;
    return QN_OK;
}

/* Parameter `v` of channel c. */
static float parameter(const qn__layer *l, const float *parameters, uint32_t v, uint32_t c) {
    return parameters[l->biases + (uint64_t)v * l->vector + c];
}

/* A channel of a grain: the values at pixel p of item i are number i * out + p * channels + c. */
typedef struct channel {
    const qn__layer *l;
    uint64_t items;
    uint32_t c, pixels;
    float count; /* m */
} channel;

static channel channel_of(const qn__layer *l, uint64_t items, uint32_t c) {
    const uint32_t pixels = l->from.height * l->from.width;
    return (channel){l, items, c, pixels, (float)(items * pixels)};
}

static size_t place(const channel *ch, uint64_t item, uint32_t pixel) {
    return item * ch->l->out + (size_t)pixel * ch->l->to.channels + ch->c;
}

typedef struct moments {
    float mean, squares, inverse; /* W and r of 17.8 */
} moments;

static moments measure(const channel *ch, const float *a) {
    float first = 0.0f, sum = 0.0f, squares = 0.0f;
    for (uint64_t i = 0; i < ch->items; ++i)
        first = first + a[place(ch, i, 0)];
    const float shift = first / (float)ch->items;
    for (uint32_t p = 0; p < ch->pixels; ++p) {
        float t = 0.0f, q = 0.0f;
        for (uint64_t i = 0; i < ch->items; ++i) {
            const float d = a[place(ch, i, p)] - shift;
            t = t + d;
            q = fmaf(d, d, q);
        }
        sum = sum + t;
        squares = squares + q;
    }
    const float u = sum / ch->count;
    const float w = qn__norm_squares(fmaf(-u, sum, squares));
    return (moments){shift + u, w, qn__norm_inverse(w / ch->count, ch->l->norm_epsilon)};
}

/* B and G of 17.8: the sums of errors, and of errors by deviations. */
static void sum_errors(const channel *ch, float mean, const float *a, const float *delta, float *b,
                       float *g) {
    *b = *g = 0.0f;
    for (uint32_t p = 0; p < ch->pixels; ++p) {
        float own = 0.0f, scaled = 0.0f;
        for (uint64_t i = 0; i < ch->items; ++i) {
            const size_t at = place(ch, i, p);
            own = own + delta[at];
            scaled = fmaf(delta[at], a[at] - mean, scaled);
        }
        *b = *b + own;
        *g = *g + scaled;
    }
}

static void forward_grain(const qn__layer *l, const float *parameters, uint64_t items,
                          const float *a, float *z) {
    for (uint32_t c = 0; c < l->vector; ++c) {
        const channel ch = channel_of(l, items, c);
        const moments m = measure(&ch, a);
        const float factor = parameter(l, parameters, QN__NORM_WEIGHT, c) * m.inverse;
        const float bias = parameter(l, parameters, QN__NORM_BIAS, c);
        for (uint32_t p = 0; p < ch.pixels; ++p)
            for (uint64_t i = 0; i < items; ++i) {
                const size_t at = place(&ch, i, p);
                z[at] = fmaf(a[at] - m.mean, factor, bias) + 0.0f;
            }
    }
}

static void backward_grain(const qn__layer *l, const float *parameters, uint64_t items,
                           const float *a, const float *delta, float *e) {
    for (uint32_t c = 0; c < l->vector; ++c) {
        const channel ch = channel_of(l, items, c);
        const moments m = measure(&ch, a);
        float b, g;
        sum_errors(&ch, m.mean, a, delta, &b, &g);
        const float factor = parameter(l, parameters, QN__NORM_WEIGHT, c) * m.inverse;
        const float h = b / ch.count, k = g * m.inverse * m.inverse / ch.count;
        for (uint32_t p = 0; p < ch.pixels; ++p)
            for (uint64_t i = 0; i < items; ++i) {
                const size_t at = place(&ch, i, p);
                e[at] = factor * fmaf(-(a[at] - m.mean), k, delta[at] - h) + 0.0f;
            }
    }
}

static void gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                     float *partial) {
    for (uint32_t c = 0; c < l->vector; ++c) {
        const channel ch = channel_of(l, items, c);
        const moments m = measure(&ch, a);
        const float others = (float)(items * ch.pixels - 1);
        float b, g;
        sum_errors(&ch, m.mean, a, delta, &b, &g);
        partial[QN__NORM_WEIGHT * l->vector + c] = g * m.inverse;
        partial[QN__NORM_BIAS * l->vector + c] = b;
        partial[QN__NORM_MEAN * l->vector + c] = (float)items * m.mean * QN__RUNNING_UNIT;
        partial[QN__NORM_VARIANCE * l->vector + c] =
            (float)items * (others > 0.0f ? m.squares / others : 0.0f) * QN__RUNNING_UNIT;
    }
}

/* Of a prediction. */
static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)bits; /* with integers, too, it is float32 */
    for (uint32_t o = 0; o < l->out; ++o) {
        const uint32_t c = o % l->vector;
        const float factor =
            parameter(l, parameters, QN__NORM_WEIGHT, c) *
            qn__norm_inverse(parameter(l, parameters, QN__NORM_VARIANCE, c), l->norm_epsilon);
        const float rest = fmaf(-parameter(l, parameters, QN__NORM_MEAN, c), factor,
                                parameter(l, parameters, QN__NORM_BIAS, c));
        z[o] = fmaf(a[o], factor, rest) + 0.0f;
    }
}

static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};

const qn__layer_ops qn__batchnorm = {
    .word = "batchnorm",
    .also = "bn batchnorm2d batchnormalization",
    .syntax = "batchnorm [eps X] [momentum X] [ACTIVATION] [dropout|droppath P]",
    .contract = 6,
    .contract_of = qn__normalisation_contract,
    .parse = parse,
    .write = qn__normalisation_write,
    .steps = qn__layer_always_steps,
    .make = make,
    .flops = qn__normalisation_flops,
    .forward = forward,
    .forward_grain = forward_grain,
    .backward_grain = backward_grain,
    .gradient = gradient,
    .begin = qn__normalisation_begin,
    .names = names};
