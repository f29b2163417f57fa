/* attention with integers (docs/exactness.md 25.25, 25.26), head by head: each number of a sum is
 * made an integer again wherever it is needed. */
#include "layer/attention.h"
#include "num/elementary.h"
#include "num/intgemm_reference.h"
#include <math.h>

enum { SOME = 64 }; /* channels whose sums are computed at once */

/* A head, and its group; `space` has m, r and D of all positions, one array after the other, and
 * the factors of a sum with the scales of what they are multiplied with. */
typedef struct head {
    const qn__layer *l;
    const qn__attention_errors *x;
    int bits;
    uint32_t width, query, key, value; /* the first channel of each */
    float scale;
} head;

static head head_of(const qn__layer *l, int bits, uint32_t h, const qn__attention_errors *x) {
    const uint32_t width = qn__attention_width(l), group = h / (l->heads / l->kv_heads);
    const uint32_t key = qn__attention_keys(l, group);
    return (head){
        l, x, bits, width, h * width, key, key + l->kv_heads * width, qn__attention_scale(l)};
}

/* A block: the channels of a head at one position, each times `by`. */
typedef struct block {
    const float *x;
    qn__attended order;
    uint32_t position, channel;
    float by;
    int32_t t; /* its exponent */
    float inverse;
} block;

static float value_of(const block *b, uint32_t c) {
    return b->x[qn__attended_at(b->order, b->position, b->channel + c)] * b->by;
}

static uint32_t larger(uint32_t most, float v) {
    const uint32_t own = qn__absmax(1, &v, 1);
    return own > most ? own : most;
}

static block block_of(const head *h, const float *x, qn__attended order, uint32_t position,
                      uint32_t channel, float by) {
    block b = {x, order, position, channel, by, 0, 0.0f};
    uint32_t most = 0;
    for (uint32_t c = 0; c < h->width; ++c)
        most = larger(most, value_of(&b, c));
    b.t = qn__block_exponent(h->bits, most);
    b.inverse = qn__block_inverse(b.t);
    return b;
}

static block input_of(const head *h, uint32_t position, uint32_t channel) {
    return block_of(h, h->x->a, h->x->in, position, channel, 1.0f);
}

/* g of 25.23. */
static block error_of(const head *h, uint32_t t, float share) {
    return block_of(h, h->x->delta, h->x->out, t, h->query, share);
}

static int64_t integer_of(const block *b, uint32_t c) {
    return qn__quantize(value_of(b, c), b->inverse);
}

static float product_of(const head *h, const block *a, const block *b) {
    int64_t n = 0;
    for (uint32_t c = 0; c < h->width; ++c)
        n += integer_of(a, c) * integer_of(b, c);
    return fmaf((float)n, qn__block_factor(a->t) * qn__block_factor(b->t), 0.0f);
}

static float score(const head *h, uint32_t t, uint32_t u) {
    const block query = input_of(h, t, h->query), key = input_of(h, u, h->key);
    return product_of(h, &query, &key) * h->scale;
}

static float weight(const head *h, uint32_t t, uint32_t u, float greatest) {
    return qn__attention_cut(qn__exp(score(h, t, u) - greatest));
}

static qn__attention_query measure(const head *h, uint32_t t) {
    const qn__cover sees = qn__attention_sees(h->l, t);
    float greatest = -INFINITY;
    int finite = 1;
    int64_t units = 0;
    for (uint32_t u = sees.begin; u < sees.end; ++u) {
        const float own = score(h, t, u);
        finite &= isfinite(own);
        greatest = own > greatest ? own : greatest;
    }
    for (uint32_t u = sees.begin; u < sees.end && finite; ++u)
        units += qn__attention_units(weight(h, t, u, greatest));
    return (qn__attention_query){greatest, finite ? qn__attention_share(units) : NAN};
}

/* RN(RN(N) * 2^t) of a sum in a block with exponent t. */
static float sum_of(int64_t n, int32_t t) { return (float)n * qn__block_factor(t); }

/* -------------------------------------------------------------------------------------- outputs */

/* p times the scale of a position's values. */
static float share_of(const head *h, uint32_t t, uint32_t u, float greatest) {
    const block value = input_of(h, u, h->value);
    return weight(h, t, u, greatest) * qn__block_factor(value.t);
}

static void put_output(const head *h, uint32_t t, qn__attention_query q, float *z) {
    const qn__cover sees = qn__attention_sees(h->l, t);
    uint32_t most = 0;
    for (uint32_t u = sees.begin; u < sees.end; ++u)
        most = larger(most, share_of(h, t, u, q.greatest));
    const int32_t exponent = qn__block_exponent(h->bits, most);
    const float inverse = qn__block_inverse(exponent);
    for (uint32_t first = 0; first < h->width; first += SOME) {
        const uint32_t count = h->width - first < SOME ? h->width - first : SOME;
        int64_t n[SOME] = {0};
        for (uint32_t u = sees.begin; u < sees.end; ++u) {
            const block value = input_of(h, u, h->value);
            const int64_t own = qn__quantize(share_of(h, t, u, q.greatest), inverse);
            for (uint32_t c = 0; c < count; ++c)
                n[c] += own * integer_of(&value, first + c);
        }
        for (uint32_t c = 0; c < count; ++c) {
            const float sum = sum_of(n[c], exponent) * q.share;
            z[qn__attended_at(h->x->out, t, h->query + first + c)] = sum + 0.0f;
        }
    }
}

void qn__attention_integer_head(const qn__layer *l, int bits, uint32_t number, const float *a,
                                qn__attended in, float *z, qn__attended out,
                                qn__attention_query *query) {
    const qn__attention_errors inputs = {.a = a, .in = in, .out = out};
    const head h = head_of(l, bits, number, &inputs);
    qn__attention_clear_rest(l, h.query, z, out);
    for (uint32_t t = 0; t < qn__layer_positions(l); ++t) {
        const qn__attention_query q = measure(&h, t);
        put_output(&h, t, q, z);
        if (query)
            query[t] = q;
    }
}

void qn__attention_integer_row(const qn__layer *l, int bits, uint32_t t, const float *a,
                               qn__attended in, float *z, qn__attended out) {
    const qn__attention_errors inputs = {.a = a, .in = in, .out = out};
    const head h = head_of(l, bits, 0, &inputs);
    put_output(&h, t, measure(&h, t), z);
}

/* --------------------------------------------------------------------------------------- errors */

/* What is known of a query. */
static float greatest_of(const head *h, uint32_t t) { return h->x->space[t]; }
static float share_at(const head *h, uint32_t t) {
    return h->x->space[qn__layer_positions(h->l) + t];
}
static float mean_of(const head *h, uint32_t t) {
    return h->x->space[2 * qn__layer_positions(h->l) + t];
}

static void measure_all(const head *h) {
    const uint32_t all = qn__layer_positions(h->l);
    for (uint32_t t = 0; t < all; ++t) {
        const qn__attention_query q = measure(h, t);
        float mean = 0.0f;
        for (uint32_t c = 0; c < h->width; ++c) {
            const size_t own = qn__attended_at(h->x->out, t, h->query + c);
            const float g = h->x->delta[own] * q.share;
            mean = fmaf(g, h->x->z[own], mean);
        }
        h->x->space[t] = q.greatest;
        h->x->space[all + t] = q.share;
        h->x->space[2 * all + t] = mean;
    }
}

/* x of 25.23. */
static float slope_of(const head *h, uint32_t t, uint32_t u) {
    const block g = error_of(h, t, share_at(h, t)), value = input_of(h, u, h->value);
    const float w = product_of(h, &g, &value);
    return weight(h, t, u, greatest_of(h, t)) * (w - mean_of(h, t));
}

/* Sums of a query over its keys, of a key over its queries, of a value over the errors of its
 * queries. */
typedef enum sum { QUERY, KEY, VALUE } sum;

/* What position `other` is multiplied with. */
static block other_of(const head *h, sum of, uint32_t other) {
    return of == QUERY ? input_of(h, other, h->key)
           : of == KEY ? input_of(h, other, h->query)
                       : error_of(h, other, share_at(h, other));
}

static float factor_of(const head *h, sum of, uint32_t own, uint32_t other) {
    const uint32_t t = of == QUERY ? own : other, u = of == QUERY ? other : own;
    return of == VALUE ? weight(h, t, u, greatest_of(h, t)) : slope_of(h, t, u);
}

/* The same channel c, without the exponent. */
static block channel_of(const head *h, sum of, uint32_t other) {
    if (of == VALUE)
        return (block){h->x->delta, h->x->out, other, h->query, share_at(h, other), 0, 0.0f};
    return (block){h->x->a, h->x->in, other, of == QUERY ? h->key : h->query, 1.0f, 0, 0.0f};
}

/* Adds the sums of a position to its errors, channels from `first` on. */
static void add_sums(const head *h, sum of, uint32_t own, uint32_t first) {
    const uint32_t all = qn__layer_positions(h->l);
    const qn__cover over =
        of == QUERY ? qn__attention_sees(h->l, own) : qn__attention_seen(h->l, own);
    float *factor = h->x->space + (size_t)3 * all, *inverse = factor + all;
    uint32_t most = 0;
    for (uint32_t i = over.begin; i < over.end; ++i) {
        const block by = other_of(h, of, i);
        factor[i] = factor_of(h, of, own, i) * qn__block_factor(by.t);
        inverse[i] = qn__block_inverse(by.t);
        most = larger(most, factor[i]);
    }
    const int32_t exponent = qn__block_exponent(h->bits, most);
    const float own_inverse = qn__block_inverse(exponent);
    for (uint32_t c = 0; c < h->width; ++c) {
        float *e = &h->x->e[qn__attended_at(h->x->to, own, first + c)];
        int64_t n = 0;
        for (uint32_t i = over.begin; i < over.end; ++i) {
            const block by = channel_of(h, of, i);
            n += (int64_t)qn__quantize(factor[i], own_inverse) *
                 qn__quantize(value_of(&by, c), inverse[i]);
        }
        *e = *e + sum_of(n, exponent);
    }
}

void qn__attention_integer_errors(const qn__layer *l, int bits, uint32_t group,
                                  const qn__attention_errors *x) {
    const uint32_t share = l->heads / l->kv_heads, all = qn__layer_positions(l);
    const head own = head_of(l, bits, group * share, x);
    qn__attention_scale_errors(l, own.key, 0.0f, x->e, x->to);
    qn__attention_scale_errors(l, own.value, 0.0f, x->e, x->to);
    for (uint32_t i = group * share; i < (group + 1) * share; ++i) {
        const head h = head_of(l, bits, i, x);
        measure_all(&h);
        qn__attention_scale_errors(l, h.query, 0.0f, x->e, x->to);
        for (uint32_t t = 0; t < all; ++t) {
            add_sums(&h, QUERY, t, h.query);
            add_sums(&h, KEY, t, h.key);
            add_sums(&h, VALUE, t, h.value);
        }
        qn__attention_scale_errors(l, h.query, h.scale, x->e, x->to);
    }
    qn__attention_scale_errors(l, own.key, own.scale, x->e, x->to);
    qn__attention_scale_errors(l, own.value, 1.0f, x->e, x->to);
}
