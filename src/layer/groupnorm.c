/* groupnorm G: each item's channels, in G groups, get the mean 0 and the variance 1 over the
 * channels and pixels of a group, then a weight and a bias for each channel (Wu and He 2018).
 * layernorm has one group, or with `channels` one of each pixel. Training and predictions are the
 * same. */
#include "layer/normalisation.h"
#include "num/norm.h"

static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    qn_status status =
        qn__tokens_count(tokens, "number of groups", QN__MAX_WIDTH,
                         "give the number of groups of channels, from 1, as in \"groupnorm 8\"",
                         &layer->norm_groups);
    return status == QN_OK ? qn__normalisation_words(tokens, 0, layer) : status;
}

static void write(const qn__layer_text *layer, qn__text *text) {
    qn__text_add(text, " %u", layer->norm_groups);
    qn__normalisation_write(layer, text);
}

/* layernorm: "channels", then "eps X" */
static qn_status parse_words(qn__tokens *tokens, qn__layer_text *layer) {
    layer->norm_groups = 1;
    layer->norm_alone = qn__tokens_is(tokens, "channels");
    if (layer->norm_alone)
        qn__tokens_next(tokens);
    return qn__normalisation_words(tokens, 0, layer);
}

static void write_words(const qn__layer_text *layer, qn__text *text) {
    if (layer->norm_alone)
        qn__text_add(text, " channels");
    qn__normalisation_write(layer, text);
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    *layer = qn__normalisation_make(text, from, first, QN__NORM_MEAN); /* those before it */
    layer->norm_groups = text->norm_groups;
    layer->norm_alone = text->norm_alone;
    if (from.channels % text->norm_groups == 0)
        return QN_OK;
    qn__fail(err, QN_USAGE, "%u channel%s cannot be divided into %u equal groups", from.channels,
             from.channels == 1 ? "" : "s", text->norm_groups);
    return qn__remedy(err, QN_USAGE, "the number of groups must divide that of the channels");
}

/* An item, or with norm_alone a pixel of it, is a part: it has groups of its own. Values of a part
 * follow one another. */
static uint32_t pixels_of(const qn__layer *l) {
    return l->norm_alone ? 1 : l->from.height * l->from.width;
}

static uint32_t parts_of(const qn__layer *l) {
    return l->norm_alone ? l->from.height * l->from.width : 1;
}

/* A group of a part. The value of channel c at pixel p is number p * channels + c. */
typedef struct group {
    const qn__layer *l;
    const float *a;
    uint32_t first, end, pixels; /* channels first .. end - 1 */
    float mean, inverse, count;  /* r and m of 17.9 */
} group;

/* S of 17.9: a chain for each remainder of the channel by 16, then a chain over these. */
typedef struct lanes {
    float lane[16];
} lanes;

static float sum_of(const lanes *sums) {
    float sum = 0.0f;
    for (int k = 0; k < 16; ++k)
        sum = sum + sums->lane[k];
    return sum;
}

static void add(lanes *sums, uint32_t channel, float value) {
    sums->lane[channel % 16] = sums->lane[channel % 16] + value;
}

static float shift_of(const group *g) {
    lanes sums = {{0}};
    for (uint32_t c = g->first; c < g->end; ++c)
        add(&sums, c, g->a[c]);
    return sum_of(&sums) / (float)(g->end - g->first);
}

static group measure(const qn__layer *l, const float *a, uint32_t index) {
    const uint32_t each = l->from.channels / l->norm_groups, pixels = pixels_of(l);
    group g = {l,      a,    index * each, (index + 1) * each,
               pixels, 0.0f, 0.0f,         (float)((uint64_t)each * pixels)};
    const float shift = shift_of(&g);
    lanes sums = {{0}}, squares = {{0}};
    for (uint32_t c = g.first; c < g.end; ++c) {
        float t = 0.0f, q = 0.0f;
        for (uint32_t p = 0; p < pixels; ++p) {
            const float d = a[(size_t)p * l->from.channels + c] - shift;
            t = t + d;
            q = fmaf(d, d, q);
        }
        add(&sums, c, t);
        add(&squares, c, q);
    }
    const float t = sum_of(&sums), u = t / g.count;
    const float w = qn__norm_squares(fmaf(-u, t, sum_of(&squares)));
    g.mean = shift + u;
    g.inverse = qn__norm_inverse(w / g.count, l->norm_epsilon);
    return g;
}

/* b and g of 17.9, of one channel. */
static void sum_errors(const group *g, const float *delta, uint32_t c, float *errors,
                       float *products) {
    *errors = *products = 0.0f;
    for (uint32_t p = 0; p < g->pixels; ++p) {
        const size_t at = (size_t)p * g->l->from.channels + c;
        *errors = *errors + delta[at];
        *products = fmaf(delta[at], g->a[at] - g->mean, *products);
    }
}

static void forward_part(const qn__layer *l, const float *parameters, const float *a, float *z) {
    const float *weight = parameters + l->biases, *bias = weight + l->vector;
    for (uint32_t i = 0; i < l->norm_groups; ++i) {
        const group g = measure(l, a, i);
        for (uint32_t p = 0; p < g.pixels; ++p)
            for (uint32_t c = g.first; c < g.end; ++c) {
                const size_t at = (size_t)p * l->from.channels + c;
                z[at] = fmaf(a[at] - g.mean, weight[c] * g.inverse, bias[c]) + 0.0f;
            }
    }
}

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    const size_t size = l->in / parts_of(l);
    (void)bits; /* with integers, too, it is float32 */
    for (size_t at = 0; at < l->in; at += size)
        forward_part(l, parameters, a + at, z + at);
}

static void backward_part(const qn__layer *l, const float *parameters, const float *a,
                          const float *delta, float *e) {
    const float *weight = parameters + l->biases;
    for (uint32_t i = 0; i < l->norm_groups; ++i) {
        const group g = measure(l, a, i);
        lanes sums = {{0}}, slopes = {{0}};
        for (uint32_t c = g.first; c < g.end; ++c) {
            float errors, products;
            sum_errors(&g, delta, c, &errors, &products);
            add(&sums, c, weight[c] * errors);
            add(&slopes, c, weight[c] * products);
        }
        const float h = sum_of(&sums) / g.count;
        const float k = sum_of(&slopes) * g.inverse * g.inverse / g.count;
        for (uint32_t p = 0; p < g.pixels; ++p)
            for (uint32_t c = g.first; c < g.end; ++c) {
                const size_t at = (size_t)p * l->from.channels + c;
                const float own = fmaf(weight[c], delta[at], -h);
                e[at] = g.inverse * fmaf(-(a[at] - g.mean), k, own) + 0.0f;
            }
    }
}

static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *unused, float *e) {
    const size_t size = l->in / parts_of(l);
    (void)bits;
    (void)unused;
    for (size_t at = 0; at < l->in; at += size)
        backward_part(l, parameters, a + at, delta + at, e + at);
}

static void gradient_part(const qn__layer *l, const float *a, const float *delta, float *partial) {
    float *bias = partial + l->vector;
    for (uint32_t i = 0; i < l->norm_groups; ++i) {
        const group g = measure(l, a, i);
        for (uint32_t c = g.first; c < g.end; ++c) {
            float errors, products;
            sum_errors(&g, delta, c, &errors, &products);
            const float own = products * g.inverse;
            partial[c] = partial[c] + own;
            bias[c] = bias[c] + errors;
        }
    }
}

/* Pixels in their order, the items of each in theirs. */
static void gradient(const qn__layer *l, uint64_t items, const float *a, const float *delta,
                     float *partial) {
    const size_t size = l->in / parts_of(l);
    for (size_t at = 0; at < l->in; at += size)
        for (uint64_t item = 0; item < items; ++item)
            gradient_part(l, a + item * l->in + at, delta + item * l->out + at, partial);
}

static const char *const names[] = {"weight", "bias"};

static int steps(const qn__layer *l) { return l->norm_alone; }

const qn__layer_ops qn__groupnorm = {
    .word = "groupnorm",
    .also = "gn groupnormalization",
    .syntax = "groupnorm GROUPS [eps X] [ACTIVATION] [dropout|droppath P]",
    .contract = 6,
    .contract_of = qn__normalisation_contract,
    .parse = parse,
    .write = write,
    .make = make,
    .flops = qn__normalisation_flops,
    .forward = forward,
    .backward = backward,
    .gradient = gradient,
    .begin = qn__normalisation_begin,
    .names = names};

const qn__layer_ops qn__layernorm = {
    .word = "layernorm",
    .also = "ln layernormalization",
    .syntax = "layernorm [channels] [eps X] [ACTIVATION] [dropout|droppath P]",
    .contract = 6,
    .contract_of = qn__normalisation_contract,
    .parse = parse_words,
    .write = write_words,
    .steps = steps,
    .make = make,
    .flops = qn__normalisation_flops,
    .forward = forward,
    .backward = backward,
    .gradient = gradient,
    .begin = qn__normalisation_begin,
    .names = names};
