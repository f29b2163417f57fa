/* ATTENTION_KEEP_BLOCKS, ATTENTION_CACHED_INTEGER (docs/exactness.md 25.25): as ATTENTION_CACHED,
 * with sums of integers. After the keys and values the cache has the bits of the absmax of each of
 * their blocks: [keys, values][sequence][group][position]. */

/* A lane has a block of a row. */
QN_KERNEL(128)
qn_attention_keep_blocks(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                         QN_GLOBAL const qn_u64 *numbers, QN_GLOBAL float *cache, qn_u32 heads,
                         qn_u32 groups, qn_u32 width, qn_u32 positions) {
    const qn_u32 at = qn_group(0) * 128u + qn_lane(), row = at / (2u * groups);
    const qn_u32 owner = at - row * 2u * groups;
    if (row >= step->items)
        return;
    const qn_growth p = qn_growth_of(numbers[row]);
    const qn_u32 group = owner < groups ? owner : owner - groups;
    const qn_cache c = qn_cache_of(step, p.sequence, groups, group, width, positions);
    QN_GLOBAL const float *own =
        A + (qn_u64)row * qn_ld((heads + 2u * groups) * width) + (heads + owner) * width;
    qn_u32 most = 0u;
    QN_ROLLED
    for (qn_u32 k = 0u; k < width; ++k)
        most = qn_larger(most, qn_magnitude(own[k]));
    cache[(owner < groups ? c.key_blocks : c.value_blocks) + p.position] = qn_as_float(most);
}

/* A query, and what it is multiplied with. */
typedef struct qn_cached_query {
    QN_GLOBAL const float *query, *cache;
    qn_cache c;
    qn_u32 bits;
    qn_i32 exponent;
    float scale;
} qn_cached_query;

QN_FN qn_i32 qn_cached_exponent(const qn_cached_query *q, qn_u64 blocks, qn_u32 position) {
    return qn_block_exponent(q->bits, qn_as_u32(q->cache[blocks + position]));
}

QN_FN float qn_integer_score(const qn_cached_query *q, qn_u32 position) {
    QN_GLOBAL const float *key = q->cache + qn_cached_key(&q->c, position, 0u);
    const qn_i32 exponent = qn_cached_exponent(q, q->c.key_blocks, position);
    const float own = qn_block_inverse(q->exponent), other = qn_block_inverse(exponent);
    qn_i64 sum = 0;
    QN_ROLLED
    for (qn_u32 k = 0u; k < q->c.width; ++k)
        sum += (qn_i64)qn_quantize(q->query[k], own) * qn_quantize(key[k * QN_CACHE_PANEL], other);
    return qn_fma(qn_float_of(sum), qn_block_factor(q->exponent) * qn_block_factor(exponent),
                  0.0f) *
           q->scale;
}

QN_FN qn_cached_query qn_cached_query_of(QN_GLOBAL const float *query, QN_GLOBAL const float *cache,
                                         qn_cache c, qn_u32 bits) {
    qn_cached_query q;
    qn_u32 most = 0u;
    QN_ROLLED
    for (qn_u32 k = 0u; k < c.width; ++k)
        most = qn_larger(most, qn_magnitude(query[k]));
    q.query = query;
    q.cache = cache;
    q.c = c;
    q.bits = bits;
    q.exponent = qn_block_exponent(bits, most);
    q.scale = qn_div(1.0f, qn_sqrt((float)c.width));
    return q;
}

/* The weight of a position times the scale of its values. */
QN_FN float qn_scaled_weight(const qn_cached_query *q, qn_u32 position, float weight) {
    return weight * qn_block_factor(qn_cached_exponent(q, q->c.value_blocks, position));
}

QN_KERNEL(128)
qn_attention_cached_integer(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                            QN_GLOBAL const qn_u64 *numbers, QN_GLOBAL const float *cache,
                            QN_GLOBAL float *Y, qn_u32 heads, qn_u32 groups, qn_u32 width,
                            qn_u32 positions, qn_u32 span, qn_u32 bits) {
    QN_LOCAL float best[128];
    QN_LOCAL qn_i64 part[128];
    QN_LOCAL qn_i32 integers[128];
    const qn_cached_row r = qn_cached_row_of(step, numbers, heads, width, span);
    if (r.row >= step->items)
        return;
    const qn_cached_query q = qn_cached_query_of(
        A + (qn_u64)r.row * qn_ld((heads + 2u * groups) * width) + r.head * width, cache,
        qn_cache_of(step, r.sequence, groups, r.head / (heads / groups), width, positions), bits);
    float greatest = qn_as_float(0xff800000);
    qn_u32 odd = 0u, most = 0u;
    qn_i64 units = 0, acc = 0;
    QN_ROLLED
    for (qn_u32 u = r.begin + qn_lane(); u < r.end; u += 128u) {
        const float score = qn_integer_score(&q, u);
        odd |= qn_abs(score) < qn_as_float(0x7f800000) ? 0u : 1u;
        greatest = score > greatest ? score : greatest;
    }
    greatest = qn_greatest_of_group(greatest, &odd, best, part);
    QN_ROLLED
    for (qn_u32 u = r.begin + qn_lane(); u < r.end; u += 128u) {
        const float weight = qn_attend_weight(qn_integer_score(&q, u), greatest);
        if (odd == 0u)
            units = qn_plus(units, qn_i64_of(weight * 0x1p40f));
        most = qn_larger(most, qn_magnitude(qn_scaled_weight(&q, u, weight)));
    }
    part[qn_lane()] = (qn_i64)most;
    qn_barrier();
    QN_ROLLED
    for (qn_u32 k = 0u; k < 128u; ++k)
        most = qn_larger(most, (qn_u32)part[k]);
    qn_barrier();
    const qn_i32 exponent = qn_block_exponent(bits, most);
    QN_ROLLED
    for (qn_u32 u = r.begin; u < r.end; u += 128u) {
        const qn_u32 own = u + qn_lane(), some = r.end - u < 128u ? r.end - u : 128u;
        qn_i32 integer = 0;
        float inverse = 0.0f;
        if (own < r.end) {
            const float weight = qn_attend_weight(qn_integer_score(&q, own), greatest);
            integer = qn_quantize(qn_scaled_weight(&q, own, weight), qn_block_inverse(exponent));
            inverse = qn_block_inverse(qn_cached_exponent(&q, q.c.value_blocks, own));
        }
        integers[qn_lane()] = integer;
        best[qn_lane()] = inverse;
        qn_barrier();
        if (r.channel < width) {
            QN_GLOBAL const float *value = cache + qn_cached_value(&q.c, u, r.channel);
            QN_ROLLED
            for (qn_u32 n = 0u; n < some; ++n)
                acc += (qn_i64)integers[n] * qn_quantize(value[(qn_u64)n * width], best[n]);
        }
        qn_barrier();
    }
    const float share = qn_share_of_group(units, odd, part);
    qn_put_cached(Y, &r, heads, width, qn_float_of(acc) * qn_block_factor(exponent), share);
}
