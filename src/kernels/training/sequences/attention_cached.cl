/* ATTENTION_KEEP, ATTENTION_CACHED (docs/exactness.md 25.70): attention over sequences that grow.
 * The keys and values of all positions so far are kept, for each group of heads of each sequence:
 *
 *     keys    [sequence][group][panel of 32 positions][channel][32]
 *     values  [sequence][group][position][channel]
 *
 * Neighbouring lanes read neighbouring numbers of both. A row of A is a position; it sees no later
 * one. */
#define QN_CACHE_PANEL 32u

/* What is kept of a group of heads. */
typedef struct qn_cache {
    qn_u64 keys, values;             /* where they begin */
    qn_u64 key_blocks, value_blocks; /* with integers: attention_cached_integer.cl */
    qn_u32 width;
} qn_cache;

QN_FN qn_cache qn_cache_of(QN_GLOBAL const qn_step *step, qn_u32 sequence, qn_u32 groups,
                           qn_u32 group, qn_u32 width, qn_u32 positions) {
    qn_cache c;
    const qn_u64 panels = (positions + QN_CACHE_PANEL - 1u) / QN_CACHE_PANEL;
    const qn_u64 all = panels * QN_CACHE_PANEL, slots = (qn_u64)step->sequences * groups;
    const qn_u64 slot = (qn_u64)sequence * groups + group;
    c.keys = slot * all * width;
    c.values = (slots + slot) * all * width;
    c.key_blocks = 2u * slots * all * width + slot * all;
    c.value_blocks = c.key_blocks + slots * all;
    c.width = width;
    return c;
}

QN_FN qn_u64 qn_cached_key(const qn_cache *c, qn_u32 position, qn_u32 channel) {
    return c->keys + ((qn_u64)(position / QN_CACHE_PANEL) * c->width + channel) * QN_CACHE_PANEL +
           position % QN_CACHE_PANEL;
}
QN_FN qn_u64 qn_cached_value(const qn_cache *c, qn_u32 position, qn_u32 channel) {
    return c->values + (qn_u64)position * c->width + channel;
}

/* A lane has a number of a row: a channel of a key, or of a value. */
QN_KERNEL(128)
qn_attention_keep(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                  QN_GLOBAL const qn_u64 *numbers, QN_GLOBAL float *cache, qn_u32 heads,
                  qn_u32 groups, qn_u32 width, qn_u32 positions) {
    const qn_u32 each = 2u * groups * width, at = qn_group(0) * 128u + qn_lane();
    const qn_u32 row = at / each, k = at - row * each, owner = k / width,
                 channel = k - owner * width;
    if (row >= step->items)
        return;
    const qn_growth p = qn_growth_of(numbers[row]);
    const qn_u32 group = owner < groups ? owner : owner - groups;
    const qn_cache c = qn_cache_of(step, p.sequence, groups, group, width, positions);
    cache[owner < groups ? qn_cached_key(&c, p.position, channel)
                         : qn_cached_value(&c, p.position, channel)] =
        A[(qn_u64)row * qn_ld((heads + 2u * groups) * width) + heads * width + k];
}

QN_FN float qn_cached_score(QN_GLOBAL const float *query, QN_GLOBAL const float *cache,
                            const qn_cache *c, qn_u32 position, float scale) {
    QN_GLOBAL const float *key = cache + qn_cached_key(c, position, 0u);
    float sum = 0.0f;
    QN_ROLLED
    for (qn_u32 k = 0u; k < c->width; ++k)
        sum = qn_fma(query[k], key[k * QN_CACHE_PANEL], sum);
    return sum * scale;
}

/* What a group computes: a row, a head, and 128 of its channels, one for each lane. The row sees
 * the positions from `begin` to `end` - 1. */
typedef struct qn_cached_row {
    qn_u32 row, head, channel, first; /* first: 1: its channels are the first of the head */
    qn_u32 sequence, begin, end;
} qn_cached_row;

QN_FN qn_cached_row qn_cached_row_of(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_u64 *numbers,
                                     qn_u32 heads, qn_u32 width, qn_u32 span) {
    qn_cached_row r;
    const qn_u32 chunks = (width + 127u) / 128u, owner = qn_group(0) / chunks;
    const qn_u32 chunk = qn_group(0) - owner * chunks;
    r.row = owner / heads;
    r.head = owner - r.row * heads;
    r.channel = chunk * 128u + qn_lane();
    r.first = chunk == 0u ? 1u : 0u;
    const qn_growth p = qn_growth_of(r.row < step->items ? numbers[r.row] : 0u);
    r.sequence = p.sequence;
    r.end = p.position + 1u;
    r.begin = span != 0u && r.end > span ? r.end - span : 0u;
    return r;
}

/* The greatest number of all lanes, and whether any has `odd`. */
QN_FN float qn_greatest_of_group(float greatest, qn_u32 *odd, QN_LOCAL_POINTER float *best,
                                 QN_LOCAL_POINTER qn_i64 *part) {
    best[qn_lane()] = greatest;
    part[qn_lane()] = (qn_i64)*odd;
    qn_barrier();
    QN_ROLLED
    for (qn_u32 k = 0u; k < 128u; ++k) {
        greatest = best[k] > greatest ? best[k] : greatest;
        *odd |= (qn_u32)part[k];
    }
    qn_barrier();
    return greatest;
}

/* r of 25.22, from the units of all lanes. */
QN_FN float qn_share_of_group(qn_i64 units, qn_u32 odd, QN_LOCAL_POINTER qn_i64 *part) {
    qn_i64 sum = 0;
    part[qn_lane()] = units;
    qn_barrier();
    QN_ROLLED
    for (qn_u32 k = 0u; k < 128u; ++k)
        sum = qn_plus(sum, part[k]);
    return odd != 0u ? qn_as_float(0x7fc00000) : qn_div(1.0f, qn_float_of(sum) * 0x1p-40f);
}

/* The output of a lane. Columns after the last channel are 0. */
QN_FN void qn_put_cached(QN_GLOBAL float *Y, const qn_cached_row *r, qn_u32 heads, qn_u32 width,
                         float acc, float share) {
    const qn_u32 out = heads * width;
    QN_GLOBAL float *to = Y + (qn_u64)r->row * qn_ld(out);
    if (r->channel < width) {
        const float y = acc * share;
        to[r->head * width + r->channel] = y + 0.0f;
    }
    if (r->head + 1u == heads && r->first != 0u)
        for (qn_u32 k = out + qn_lane(); k < qn_ld(out); k += 128u)
            to[k] = 0.0f;
}

/* First a lane has every 128th position, and finds the greatest score of all. Then it has one of
 * each 128 positions, whose weights all lanes read, and a channel. */
QN_KERNEL(128)
qn_attention_cached(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                    QN_GLOBAL const qn_u64 *numbers, QN_GLOBAL const float *cache,
                    QN_GLOBAL float *Y, qn_u32 heads, qn_u32 groups, qn_u32 width, qn_u32 positions,
                    qn_u32 span) {
    QN_LOCAL float weights[128];
    QN_LOCAL qn_i64 part[128];
    const qn_cached_row r = qn_cached_row_of(step, numbers, heads, width, span);
    if (r.row >= step->items)
        return;
    const qn_cache c =
        qn_cache_of(step, r.sequence, groups, r.head / (heads / groups), width, positions);
    QN_GLOBAL const float *query =
        A + (qn_u64)r.row * qn_ld((heads + 2u * groups) * width) + r.head * width;
    const float scale = qn_div(1.0f, qn_sqrt((float)width));
    float greatest = qn_as_float(0xff800000), acc = 0.0f;
    qn_u32 odd = 0u;
    qn_i64 units = 0;
    QN_ROLLED
    for (qn_u32 u = r.begin + qn_lane(); u < r.end; u += 128u) {
        const float score = qn_cached_score(query, cache, &c, u, scale);
        odd |= qn_abs(score) < qn_as_float(0x7f800000) ? 0u : 1u;
        greatest = score > greatest ? score : greatest;
    }
    greatest = qn_greatest_of_group(greatest, &odd, weights, part);
    QN_ROLLED
    for (qn_u32 u = r.begin; u < r.end; u += 128u) {
        const qn_u32 own = u + qn_lane(), some = r.end - u < 128u ? r.end - u : 128u;
        float weight = 0.0f;
        if (own < r.end)
            weight = qn_attend_weight(qn_cached_score(query, cache, &c, own, scale), greatest);
        if (odd == 0u)
            units = qn_plus(units, qn_i64_of(weight * 0x1p40f));
        weights[qn_lane()] = weight;
        qn_barrier();
        if (r.channel < width) {
            QN_GLOBAL const float *value = cache + qn_cached_value(&c, u, r.channel);
            QN_ROLLED
            for (qn_u32 n = 0u; n < some; ++n)
                acc = qn_fma(weights[n], value[(qn_u64)n * width], acc);
        }
        qn_barrier();
    }
    qn_put_cached(Y, &r, heads, width, acc, qn_share_of_group(units, odd, part));
}
