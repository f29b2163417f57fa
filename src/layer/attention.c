/* attention H: each position mixes the values of the positions that it sees, by how well its query
 * fits their keys (Vaswani et al. 2017). The input's channels are H heads of queries, then keys and
 * values of as many heads, or of fewer that several queries share (Ainslie et al. 2023). It has no
 * parameters. */
#include "layer/attention.h"
#include "layer/layer.h"
#include "num/elementary.h"
#include <math.h>

/* The sum of units of 2^-40 is below 2^63. */
#define MOST_POSITIONS ((uint32_t)1 << 22)

static qn_status parse_groups(qn__tokens *tokens, qn__layer_text *layer) {
    const size_t at = tokens->at;
    const qn_status status = qn__tokens_count(
        tokens, "number of heads of keys", QN__MAX_WIDTH,
        "give a divisor of the number of heads, as in \"attention 8 kv 2\"", &layer->kv_heads);
    if (status != QN_OK || layer->heads % layer->kv_heads == 0)
        return status;
    return qn__tokens_fail(tokens, at, "the heads cannot be divided among those of the keys",
                           "the number after \"kv\" must divide that of the heads");
}

/* causal, kv G, window W, each at most once, in any order. */
static qn_status parse(qn__tokens *tokens, qn__layer_text *layer) {
    size_t window = 0;
    int seen[3] = {0};
    qn_status status = qn__tokens_count(
        tokens, "number of heads", QN__MAX_WIDTH,
        "give the number of heads, from 1, as in \"attention 6 causal\"", &layer->heads);
    while (status == QN_OK && !qn__tokens_ended(tokens)) {
        const int word = qn__tokens_is(tokens, "causal")   ? 0
                         : qn__tokens_is(tokens, "kv")     ? 1
                         : qn__tokens_is(tokens, "window") ? 2
                                                           : -1;
        if (word < 0)
            return qn__tokens_invalid(
                tokens, "attention has no word",
                "its words are \"causal\", \"kv G\" and \"window W\"; activations and dropout "
                "belong to the layer after it");
        if (seen[word]++)
            return qn__tokens_invalid(tokens, "a layer has only one", "take one of the two out");
        window = word == 2 ? tokens->at : window;
        qn__tokens_next(tokens);
        if (word == 1)
            status = parse_groups(tokens, layer);
        else if (word == 2)
            status = qn__tokens_count(
                tokens, "window", MOST_POSITIONS,
                "give how many positions one sees, its own included: \"attention 6 causal window "
                "256\"",
                &layer->span);
    }
    layer->causal = seen[0];
    if (status == QN_OK && layer->span && !layer->causal)
        return qn__tokens_fail(tokens, window, "a window needs \"causal\"",
                               "it counts positions before its own: \"attention 6 causal window "
                               "256\"");
    if (layer->kv_heads == layer->heads)
        layer->kv_heads = 0;
    return status;
}

static void write(const qn__layer_text *layer, qn__text *text) {
    qn__text_add(text, " %u", layer->heads);
    if (layer->causal)
        qn__text_add(text, " causal");
    if (layer->kv_heads)
        qn__text_add(text, " kv %u", layer->kv_heads);
    if (layer->span)
        qn__text_add(text, " window %u", layer->span);
}

static qn_status refuse_channels(qn__shape from, uint32_t heads, uint32_t kv_heads, qn_error *err) {
    const uint64_t all = heads + 2 * (uint64_t)kv_heads;
    qn__fail(err, QN_USAGE, "%u channel%s cannot be divided into %llu equal heads", from.channels,
             from.channels == 1 ? "" : "s", (unsigned long long)all);
    return qn__remedy(err, QN_USAGE,
                      "attention reads %u heads of queries, %u of keys and %u of values: let the "
                      "layer before give a multiple of %llu channels, as \"conv %llu 1x1\"",
                      heads, kv_heads, kv_heads, (unsigned long long)all,
                      (unsigned long long)((from.channels / all + 1) * all));
}

static qn_status make(const qn__layer_text *text, qn__shape from, uint64_t first, qn__layer *layer,
                      qn_error *err) {
    const uint32_t kv_heads = text->kv_heads ? text->kv_heads : text->heads;
    const uint64_t all = text->heads + 2 * (uint64_t)kv_heads;
    const uint64_t positions = (uint64_t)from.height * from.width;
    qn__shape to = from;
    if (from.channels % all != 0)
        return refuse_channels(from, text->heads, kv_heads, err);
    if (positions > MOST_POSITIONS)
        return qn__remedy(err,
                          qn__fail(err, QN_USAGE, "attention over %llu positions is too long",
                                   (unsigned long long)positions),
                          "it takes at most %u: shorten the sequence, or make the picture smaller",
                          MOST_POSITIONS);
    to.channels = (uint32_t)(from.channels / all * text->heads);
    *layer = (qn__layer){.kind = text->kind,
                         .from = from,
                         .to = to,
                         .window = {{1, 1}, {1, 1}, {0, 0}, {1, 1}},
                         .in = qn__shape_volume(from),
                         .out = qn__shape_volume(to),
                         .drop_keep = 1.0f,
                         .weights = first,
                         .biases = first,
                         .heads = text->heads,
                         .kv_heads = kv_heads,
                         .span = text->span,
                         .causal = text->causal};
    return QN_OK;
}

/* Of each pair of positions that see each other: two products forward; backward the scores again,
 * and four products. */
static qn__flops flops(const qn__layer *l) {
    uint64_t pairs = 0;
    for (uint32_t t = 0; t < l->from.height * l->from.width; ++t) {
        const qn__cover sees = qn__attention_sees(l, t);
        pairs += sees.end - sees.begin;
    }
    const uint64_t product = 2 * pairs * l->to.channels;
    return (qn__flops){.forward = 2 * product, .backward = 5 * product};
}

/* A head, and its group. */
typedef struct head {
    const qn__layer *l;
    const float *a;
    qn__attended in;
    uint32_t width, query, key, value; /* the first channel of each */
    float scale;
} head;

static head head_of(const qn__layer *l, uint32_t h, const float *a, qn__attended in) {
    const uint32_t width = qn__attention_width(l), group = h / (l->heads / l->kv_heads);
    const uint32_t key = qn__attention_keys(l, group);
    return (head){
        l, a, in, width, h * width, key, key + l->kv_heads * width, qn__attention_scale(l)};
}

static float score(const head *h, uint32_t t, uint32_t u) {
    float sum = 0.0f;
    for (uint32_t c = 0; c < h->width; ++c)
        sum = fmaf(h->a[qn__attended_at(h->in, t, h->query + c)],
                   h->a[qn__attended_at(h->in, u, h->key + c)], sum);
    return sum * h->scale;
}

static float weight(float own, float greatest) {
    return qn__attention_cut(qn__exp(own - greatest));
}

static qn__attention_query measure(const head *h, uint32_t t) {
    const qn__cover sees = qn__attention_sees(h->l, t);
    float greatest = -INFINITY;
    int finite = 1;
    int64_t units = 0;
    for (uint32_t u = sees.begin; u < sees.end; ++u) {
        const float own = score(h, t, u);
        finite &= isfinite(own);
        if (own > greatest)
            greatest = own;
    }
    for (uint32_t u = sees.begin; u < sees.end && finite; ++u)
        units += qn__attention_units(weight(score(h, t, u), greatest));
    return (qn__attention_query){greatest, finite ? qn__attention_share(units) : NAN};
}

void qn__attention_head(const qn__layer *l, int bits, uint32_t number, const float *a,
                        qn__attended in, float *z, qn__attended out, qn__attention_query *query) {
    if (bits) {
        qn__attention_integer_head(l, bits, number, a, in, z, out, query);
        return;
    }
    const head h = head_of(l, number, a, in);
    qn__attention_clear_rest(l, h.query, z, out);
    for (uint32_t t = 0; t < qn__layer_positions(l); ++t) {
        const qn__attention_query q = measure(&h, t);
        const qn__cover sees = qn__attention_sees(l, t);
        for (uint32_t c = 0; c < h.width; ++c)
            z[qn__attended_at(out, t, h.query + c)] = 0.0f;
        for (uint32_t u = sees.begin; u < sees.end; ++u) {
            const float p = weight(score(&h, t, u), q.greatest);
            for (uint32_t c = 0; c < h.width; ++c) {
                float *own = &z[qn__attended_at(out, t, h.query + c)];
                *own = fmaf(p, a[qn__attended_at(in, u, h.value + c)], *own);
            }
        }
        for (uint32_t c = 0; c < h.width; ++c) {
            float *own = &z[qn__attended_at(out, t, h.query + c)];
            *own = *own * q.share;
            *own = *own + 0.0f;
        }
        if (query)
            query[t] = q;
    }
}

/* What a query adds to the errors of its head and group. */
static void add_errors(const head *h, uint32_t t, const float *z, const float *delta,
                       qn__attended out, float *e, qn__attended to) {
    const qn__attention_query q = measure(h, t);
    const qn__cover sees = qn__attention_sees(h->l, t);
    float mean = 0.0f;
    for (uint32_t c = 0; c < h->width; ++c) {
        const size_t own = qn__attended_at(out, t, h->query + c);
        const float g = delta[own] * q.share;
        mean = fmaf(g, z[own], mean);
    }
    for (uint32_t u = sees.begin; u < sees.end; ++u) {
        const float p = weight(score(h, t, u), q.greatest);
        float slope = 0.0f;
        for (uint32_t c = 0; c < h->width; ++c) {
            const float g = delta[qn__attended_at(out, t, h->query + c)] * q.share;
            slope = fmaf(g, h->a[qn__attended_at(h->in, u, h->value + c)], slope);
        }
        const float x = p * (slope - mean);
        for (uint32_t c = 0; c < h->width; ++c) {
            float *query = &e[qn__attended_at(to, t, h->query + c)],
                  *key = &e[qn__attended_at(to, u, h->key + c)];
            float *value = &e[qn__attended_at(to, u, h->value + c)];
            const float g = delta[qn__attended_at(out, t, h->query + c)] * q.share;
            *query = fmaf(x, h->a[qn__attended_at(h->in, u, h->key + c)], *query);
            *key = fmaf(x, h->a[qn__attended_at(h->in, t, h->query + c)], *key);
            *value = fmaf(p, g, *value);
        }
    }
}

static void scale_group(const qn__layer *l, uint32_t group, float factor, float value, float *e,
                        qn__attended to) {
    const uint32_t share = l->heads / l->kv_heads;
    for (uint32_t i = group * share; i < (group + 1) * share; ++i) {
        const head h = head_of(l, i, NULL, to);
        qn__attention_scale_errors(l, h.query, factor, e, to);
        if (i > group * share)
            continue;
        qn__attention_scale_errors(l, h.key, factor, e, to);
        qn__attention_scale_errors(l, h.value, value, e, to);
    }
}

void qn__attention_group_errors(const qn__layer *l, int bits, uint32_t group,
                                const qn__attention_errors *x) {
    const uint32_t share = l->heads / l->kv_heads;
    if (bits) {
        qn__attention_integer_errors(l, bits, group, x);
        return;
    }
    scale_group(l, group, 0.0f, 0.0f, x->e, x->to);
    for (uint32_t i = group * share; i < (group + 1) * share; ++i) {
        const head h = head_of(l, i, x->a, x->in);
        for (uint32_t t = 0; t < qn__layer_positions(l); ++t)
            add_errors(&h, t, x->z, x->delta, x->out, x->e, x->to);
    }
    scale_group(l, group, qn__attention_scale(l), 1.0f, x->e, x->to);
}

/* The order of the reference: the channels of a position follow one another. */
static qn__attended plain(qn__shape shape) { return (qn__attended){16, shape.channels}; }

static void forward(const qn__layer *l, int bits, const float *parameters, const float *a,
                    float *z) {
    (void)parameters;
    for (uint32_t h = 0; h < l->heads; ++h)
        qn__attention_head(l, bits, h, a, plain(l->from), z, plain(l->to), NULL);
}

/* The outputs are computed again, in the place of the sums, which has room for as many floats as
 * twice the inputs. */
static void backward(const qn__layer *l, int bits, const float *parameters, const float *a,
                     const float *delta, int64_t *sums, float *e) {
    float *z = (float *)(void *)sums;
    const qn__attention_errors errors = {.a = a,
                                         .z = z,
                                         .delta = delta,
                                         .e = e,
                                         .in = plain(l->from),
                                         .out = plain(l->to),
                                         .to = plain(l->from),
                                         .space = z + l->out};
    forward(l, bits, parameters, a, z);
    for (uint32_t g = 0; g < l->kv_heads; ++g)
        qn__attention_group_errors(l, bits, g, &errors);
}

static int steps(const qn__layer *l) { return l->causal; }

const qn__layer_ops qn__attention = {
    .word = "attention",
    .also = "self_attention selfattention multihead_attention multiheadattention mha gqa mqa "
            "scaled_dot_product_attention sdpa transformer",
    .syntax = "attention H [causal] [kv G] [window W]",
    .bare = 1,
    .contract = 9,
    .reads_length = 1,
    .parse = parse,
    .write = write,
    .steps = steps,
    .make = make,
    .flops = flops,
    .forward = forward,
    .backward = backward};
