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
    qn_u64 keys, values; /* where they begin */
    qn_u32 width;
} qn_cache;

QN_FN qn_cache qn_cache_of(QN_GLOBAL const qn_step *step, qn_u32 sequence, qn_u32 groups,
                           qn_u32 group, qn_u32 width, qn_u32 positions) {
    qn_cache c;
    const qn_u64 panels = (positions + QN_CACHE_PANEL - 1u) / QN_CACHE_PANEL;
    const qn_u64 own = panels * QN_CACHE_PANEL * width, slot = (qn_u64)sequence * groups + group;
    c.keys = slot * own;
    c.values = ((qn_u64)step->sequences * groups + slot) * own;
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

/* A group has a row, a head, and 128 of its channels. First a lane has every 128th position, and
 * finds the greatest score of all. Then it has one of each 128 positions, whose weights all lanes
 * read, and a channel. */
QN_KERNEL(128)
qn_attention_cached(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                    QN_GLOBAL const qn_u64 *numbers, QN_GLOBAL const float *cache,
                    QN_GLOBAL float *Y, qn_u32 heads, qn_u32 groups, qn_u32 width, qn_u32 positions,
                    qn_u32 span) {
    QN_LOCAL float weights[128];
    QN_LOCAL qn_i64 part[128];
    const qn_u32 chunks = (width + 127u) / 128u, owner = qn_group(0) / chunks;
    const qn_u32 row = owner / heads, head = owner - row * heads,
                 first = qn_group(0) - owner * chunks;
    const qn_u32 channel = first * 128u + qn_lane(), out = heads * width;
    if (row >= step->items)
        return;
    const qn_growth p = qn_growth_of(numbers[row]);
    const qn_cache c =
        qn_cache_of(step, p.sequence, groups, head / (heads / groups), width, positions);
    const qn_u32 end = p.position + 1u, begin = span != 0u && end > span ? end - span : 0u;
    QN_GLOBAL const float *query =
        A + (qn_u64)row * qn_ld((heads + 2u * groups) * width) + head * width;
    QN_GLOBAL float *to = Y + (qn_u64)row * qn_ld(out);
    const float scale = qn_div(1.0f, qn_sqrt((float)width));
    float greatest = qn_as_float(0xff800000), acc = 0.0f;
    qn_u32 odd = 0u;
    qn_i64 units = 0;
    QN_ROLLED
    for (qn_u32 u = begin + qn_lane(); u < end; u += 128u) {
        const float score = qn_cached_score(query, cache, &c, u, scale);
        odd |= qn_abs(score) < qn_as_float(0x7f800000) ? 0u : 1u;
        greatest = score > greatest ? score : greatest;
    }
    weights[qn_lane()] = greatest;
    part[qn_lane()] = (qn_i64)odd;
    qn_barrier();
    QN_ROLLED
    for (qn_u32 k = 0u; k < 128u; ++k) {
        greatest = weights[k] > greatest ? weights[k] : greatest;
        odd |= (qn_u32)part[k];
    }
    qn_barrier();
    QN_ROLLED
    for (qn_u32 u = begin; u < end; u += 128u) {
        const qn_u32 own = u + qn_lane(), some = end - u < 128u ? end - u : 128u;
        float weight = 0.0f;
        if (own < end)
            weight = qn_attend_weight(qn_cached_score(query, cache, &c, own, scale), greatest);
        if (odd == 0u)
            units = qn_plus(units, qn_i64_of(weight * 0x1p40f));
        weights[qn_lane()] = weight;
        qn_barrier();
        if (channel < width) {
            QN_GLOBAL const float *value = cache + qn_cached_value(&c, u, channel);
            QN_ROLLED
            for (qn_u32 n = 0u; n < some; ++n)
                acc = qn_fma(weights[n], value[(qn_u64)n * width], acc);
        }
        qn_barrier();
    }
    part[qn_lane()] = units;
    qn_barrier();
    units = 0;
    QN_ROLLED
    for (qn_u32 k = 0u; k < 128u; ++k)
        units = qn_plus(units, part[k]);
    const float share =
        odd != 0u ? qn_as_float(0x7fc00000) : qn_div(1.0f, qn_float_of(units) * 0x1p-40f);
    if (channel < width) {
        const float y = acc * share;
        to[head * width + channel] = y + 0.0f;
    }
    if (head + 1u == heads && first == 0u)
        for (qn_u32 k = out + qn_lane(); k < qn_ld(out); k += 128u)
            to[k] = 0.0f;
}
