/* ATTENTION_* (docs/exactness.md 25.20 to 25.23). A group has 16 queries, or 16 keys, of an item
 * and QN_ATTEND_WIDTH channels of a head. It goes through the others in tiles of 16: eight lanes
 * share a row of a tile's scores, each has two of them and every eighth channel. So no matrix of
 * all scores is in memory. moments is [QN_ATTEND_ARRAYS][items][heads][pixels]: m, r and D. */
#define QN_ATTEND_WIDTH 64u
#define QN_ATTEND_EACH 8
#define QN_ATTEND_EDGE 17u /* floats from a row of a tile to the next */

/* Where the values of an item are: at + position * row + channel * across. */
typedef struct qn_lines {
    qn_u64 at, row, across;
} qn_lines;

QN_FN qn_lines qn_lines_of(qn_pixel p, qn_u32 pixels, qn_u32 channels, qn_u32 planar) {
    qn_lines l;
    if (planar != 0u) {
        l.at = (qn_u64)(p.begin + p.item) * qn_ld(channels * pixels);
        l.row = 1u;
        l.across = pixels;
        return l;
    }
    l.at = ((qn_u64)p.begin * pixels + p.item) * qn_ld(channels);
    l.row = (qn_u64)p.items * qn_ld(channels);
    l.across = 1u;
    return l;
}

/* What a group computes, and its lane. */
typedef struct qn_attend {
    qn_pixel p;
    qn_u32 pixels, heads, groups, width, span, causal;
    qn_u32 length;         /* the positions that count: 25.37 */
    qn_u32 head;           /* or group of heads */
    qn_u32 first, channel; /* the first position and channel of the head */
    qn_u32 chunks;         /* of a head's channels */
    qn_u32 i, j;
    qn_u32 beyond; /* 1: there is no such group */
    float scale;
    qn_lines in, out, back;
} qn_attend;

QN_FN qn_attend qn_attend_of(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *taps,
                             QN_GLOBAL const float *items, qn_u32 tokens, qn_u32 inputs,
                             qn_u32 heads, qn_u32 groups, qn_u32 span, qn_u32 causal,
                             qn_u32 owners) {
    qn_attend a;
    a.pixels = taps->height * taps->width;
    a.heads = heads;
    a.groups = groups;
    a.width = taps->channels / (heads + 2u * groups);
    a.span = span;
    a.causal = causal;
    a.chunks = (a.width + QN_ATTEND_WIDTH - 1u) / QN_ATTEND_WIDTH;
    const qn_u32 blocks = (a.pixels + 15u) / 16u, piece = qn_group(0);
    const qn_u32 block = piece / a.chunks, owner = block / blocks, item = owner / owners;
    a.channel = (piece - block * a.chunks) * QN_ATTEND_WIDTH;
    a.first = (block - owner * blocks) * 16u;
    a.head = owner - item * owners;
    a.beyond = item < step->items ? 0u : 1u;
    a.p = qn_item_pixel(step, a.beyond != 0u ? 0u : item);
    a.length = qn_length_of(items, tokens, inputs, a.p.begin + a.p.item, a.pixels);
    a.i = qn_lane() / 8u;
    a.j = qn_lane() % 8u;
    a.scale = qn_div(1.0f, qn_sqrt((float)a.width));
    a.in = qn_lines_of(a.p, a.pixels, taps->channels, taps->planar);
    a.out = qn_lines_of(a.p, a.pixels, heads * a.width, 0u);
    a.back = qn_lines_of(a.p, a.pixels, taps->channels, 0u);
    return a;
}

QN_FN qn_u32 qn_sees(const qn_attend *a, qn_u32 t, qn_u32 u) {
    return t < a->length && u < a->length && (a->causal == 0u || u <= t) &&
                   (a->span == 0u || t < u + a->span)
               ? 1u
               : 0u;
}

/* The first keys that 16 queries from a->first on see, and the end of them; and queries that see
 * such keys. */
QN_FN qn_u32 qn_keys_begin(const qn_attend *a) {
    const qn_u32 begin = a->span != 0u && a->first >= a->span ? a->first - a->span + 1u : 0u;
    return begin / 16u * 16u;
}
QN_FN qn_u32 qn_keys_end(const qn_attend *a) {
    return a->causal != 0u && a->first + 16u < a->length ? a->first + 16u : a->length;
}
QN_FN qn_u32 qn_queries_begin(const qn_attend *a) { return a->causal != 0u ? a->first : 0u; }
QN_FN qn_u32 qn_queries_end(const qn_attend *a) {
    const qn_u32 last = a->first + 15u;
    return a->span != 0u && a->span < a->pixels - a->first && last + a->span < a->length
               ? last + a->span
               : a->length;
}

/* Where m of a query is in the moments. */
QN_FN qn_u64 qn_query_at(const qn_attend *a, qn_u32 head, qn_u32 t) {
    return ((qn_u64)(a->p.begin + a->p.item) * a->heads + head) * a->pixels + t;
}
QN_FN qn_u64 qn_queries(QN_GLOBAL const qn_step *step, const qn_attend *a) {
    return (qn_u64)step->items * a->heads * a->pixels;
}

/* One operand of a tile: 16 positions from `first` on, the channels from `channel` on, each times
 * the factor of its position if `factors` is not 0. */
typedef struct qn_side {
    qn_lines lines;
    qn_u32 first, channel, factors;
} qn_side;

QN_FN qn_side qn_side_of(qn_lines lines, qn_u32 first, qn_u32 channel, qn_u32 factors) {
    qn_side s;
    s.lines = lines;
    s.first = first;
    s.channel = channel;
    s.factors = factors;
    return s;
}

/* Some channels of it, `width` of 16 or of QN_ATTEND_WIDTH, into local memory. */
QN_FN void qn_load_side(const qn_attend *a, QN_GLOBAL const float *from, qn_side s, qn_u32 channel,
                        qn_u32 width, qn_u32 edge, QN_LOCAL_POINTER const float *factor,
                        QN_LOCAL_POINTER float *to) {
    QN_ROLLED
    for (qn_u32 e = qn_lane(); e < 16u * width; e += 128u) {
        const qn_u32 row = e / width, c = e - row * width, at = s.first + row;
        float x = 0.0f;
        if (at < a->pixels && channel + c < a->width) {
            x = from[s.lines.at + at * s.lines.row + (s.channel + channel + c) * s.lines.across];
            if (s.factors != 0u)
                x = x * factor[row];
        }
        to[row * edge + c] = x;
    }
}

/* The chains over all channels of row i of one side by rows j and j + 8 of the other. */
QN_FN qn_two qn_attend_dots(const qn_attend *a, QN_GLOBAL const float *from, qn_side x,
                            QN_GLOBAL const float *other, qn_side y,
                            QN_LOCAL_POINTER const float *factor, QN_LOCAL_POINTER float *left,
                            QN_LOCAL_POINTER float *right) {
    qn_two sum;
    sum.t = sum.q = 0.0f;
    QN_ROLLED
    for (qn_u32 channel = 0u; channel < a->width; channel += 16u) {
        const qn_u32 some = a->width - channel < 16u ? a->width - channel : 16u;
        qn_load_side(a, from, x, channel, 16u, QN_ATTEND_EDGE, factor, left);
        qn_load_side(a, other, y, channel, 16u, QN_ATTEND_EDGE, factor, right);
        qn_barrier();
        QN_ROLLED
        for (qn_u32 c = 0u; c < some; ++c) {
            const float own = left[a->i * QN_ATTEND_EDGE + c];
            sum.t = qn_fma(own, right[a->j * QN_ATTEND_EDGE + c], sum.t);
            sum.q = qn_fma(own, right[(a->j + 8u) * QN_ATTEND_EDGE + c], sum.q);
        }
        qn_barrier();
    }
    return sum;
}

/* 25.22: p of a score. */
QN_FN float qn_attend_weight(float score, float greatest) {
    const float p = qn_exp(score - greatest);
    return 0x1p-41f < p ? p : 0.0f;
}

/* What the eight lanes of a row find: the greatest score, whether one is not finite, and (25.26)
 * the largest magnitude. */
typedef struct qn_scan {
    float greatest;
    qn_u32 odd, most;
} qn_scan;

QN_FN void qn_see_score(float score, qn_u32 sees, qn_scan *row) {
    if (sees == 0u)
        return;
    row->odd |= qn_abs(score) < qn_as_float(0x7f800000) ? 0u : 1u;
    row->greatest = score > row->greatest ? score : row->greatest;
}

/* The same of all eight lanes. A magnitude has 31 bits. */
QN_FN qn_scan qn_whole_row(const qn_attend *a, qn_scan row, QN_LOCAL_POINTER float *best,
                           QN_LOCAL_POINTER qn_u32 *part) {
    best[qn_lane()] = row.greatest;
    part[qn_lane()] = row.most | row.odd << 31;
    qn_barrier();
    QN_ROLLED
    for (qn_u32 k = 0u; k < 8u; ++k) {
        const float other = best[a->i * 8u + k];
        const qn_u32 own = part[a->i * 8u + k], most = own & 0x7fffffffu;
        row.greatest = other > row.greatest ? other : row.greatest;
        row.most = most > row.most ? most : row.most;
        row.odd |= own >> 31;
    }
    qn_barrier();
    return row;
}

/* The sum of a row's weights in units of 2^-40, over its eight lanes. */
QN_FN qn_i64 qn_whole_sum(const qn_attend *a, qn_i64 units, QN_LOCAL_POINTER qn_i64 *sums) {
    qn_i64 sum = 0;
    sums[qn_lane()] = units;
    qn_barrier();
    QN_ROLLED
    for (qn_u32 k = 0u; k < 8u; ++k)
        sum = qn_plus(sum, sums[a->i * 8u + k]);
    return sum;
}

/* units + the two weights; 0 in a row with a score that is not finite. */
QN_FN qn_i64 qn_add_weights(qn_i64 units, qn_two p, qn_u32 odd) {
    return odd != 0u ? 0
                     : qn_plus(units, qn_plus(qn_i64_of(p.t * 0x1p40f), qn_i64_of(p.q * 0x1p40f)));
}

/* r of 25.22: what a row's sums are multiplied by. */
QN_FN float qn_row_share(const qn_attend *a, qn_u32 odd, qn_i64 units) {
    return a->first + a->i >= a->length ? 0.0f
           : odd != 0u                  ? qn_as_float(0x7fc00000)
                                        : qn_div(1.0f, qn_float_of(units) * 0x1p-40f);
}

QN_FN void qn_put_moments(QN_GLOBAL const qn_step *step, const qn_attend *a, float greatest,
                          float share, QN_GLOBAL float *moments) {
    const qn_u32 t = a->first + a->i;
    if (a->channel == 0u && a->j == 0u && t < a->pixels) {
        const qn_u64 at = qn_query_at(a, a->head, t);
        moments[at] = greatest;
        moments[qn_queries(step, a) + at] = share;
    }
}

/* Weights of a query's keys, or of a key's queries: a position that is not seen has +0. */
QN_FN void qn_attend_put(const qn_attend *a, qn_two x, QN_LOCAL_POINTER float *tile) {
    tile[a->i * QN_ATTEND_EDGE + a->j] = x.t;
    tile[a->i * QN_ATTEND_EDGE + a->j + 8u] = x.q;
}

/* Of the row's two scores: the weights, where the first positions t and u see each other. */
QN_FN qn_two qn_attend_weights(qn_two s, qn_u32 first, qn_u32 second, float scale, float m,
                               float n) {
    qn_two p;
    p.t = first != 0u ? qn_attend_weight(s.t * scale, m) : 0.0f;
    p.q = second != 0u ? qn_attend_weight(s.q * scale, n) : 0.0f;
    return p;
}

/* The row's products by a tile of the other side, in ascending order of its positions. */
QN_FN void qn_attend_gather(const qn_attend *a, qn_u32 first, qn_u32 keys,
                            QN_LOCAL_POINTER const float *tile, QN_LOCAL_POINTER const float *by,
                            float acc[QN_ATTEND_EACH]) {
    QN_ROLLED
    for (qn_u32 n = 0u; n < 16u; ++n) {
        const qn_u32 own = a->first + a->i, other = first + n;
        if ((keys != 0u ? qn_sees(a, own, other) : qn_sees(a, other, own)) == 0u)
            continue;
        const float x = tile[a->i * QN_ATTEND_EDGE + n];
        QN_UNROLL
        for (int k = 0; k < QN_ATTEND_EACH; ++k)
            acc[k] = qn_fma(x, by[n * QN_ATTEND_WIDTH + a->j + 8u * (qn_u32)k], acc[k]);
    }
}

/* to = acc * factor + 0 in the row's channels; with QN_NORM_ADD what is there is added. */
QN_FN void qn_attend_store(const qn_attend *a, const float acc[QN_ATTEND_EACH], float factor,
                           QN_GLOBAL float *to, qn_lines lines, qn_u32 channel, qn_u32 flags) {
    const qn_u32 t = a->first + a->i;
    QN_UNROLL
    for (int k = 0; k < QN_ATTEND_EACH; ++k) {
        const qn_u32 c = a->channel + a->j + 8u * (qn_u32)k;
        if (t < a->pixels && c < a->width) {
            const qn_u64 at = lines.at + t * lines.row + channel + c;
            float x = acc[k] * factor;
            x = x + 0.0f;
            to[at] = (flags & QN_NORM_ADD) != 0u ? x + to[at] : x;
        }
    }
}

/* Columns after the last channel are 0. */
QN_FN void qn_attend_clear(const qn_attend *a, QN_GLOBAL float *to, qn_lines lines,
                           qn_u32 channels) {
    const qn_u32 t = a->first + a->i;
    QN_ROLLED
    for (qn_u32 c = channels + a->j; c < qn_ld(channels) && t < a->pixels; c += 8u)
        to[lines.at + t * lines.row + c] = 0.0f;
}

/* The first channels of a head's keys and values. */
QN_FN qn_u32 qn_key_channel(const qn_attend *a, qn_u32 group) {
    return (a->heads + group) * a->width;
}
QN_FN qn_u32 qn_value_channel(const qn_attend *a, qn_u32 group) {
    return (a->heads + a->groups + group) * a->width;
}

QN_KERNEL(128)
qn_attention_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                     QN_GLOBAL const float *items, QN_GLOBAL const float *A, QN_GLOBAL float *Y,
                     QN_GLOBAL float *moments, qn_u32 index, qn_u32 tokens, qn_u32 inputs,
                     qn_u32 heads, qn_u32 groups, qn_u32 span, qn_u32 causal) {
    QN_LOCAL float left[16u * QN_ATTEND_EDGE], right[16u * QN_ATTEND_EDGE];
    QN_LOCAL float tile[16u * QN_ATTEND_EDGE], by[16u * QN_ATTEND_WIDTH], best[128];
    QN_LOCAL qn_u32 part[128];
    QN_LOCAL qn_i64 sums[128];
    const qn_attend a =
        qn_attend_of(step, all + index, items, tokens, inputs, heads, groups, span, causal, heads);
    if (a.beyond != 0u)
        return;
    const qn_u32 group = a.head / (heads / groups), t = a.first + a.i;
    const qn_side query = qn_side_of(a.in, a.first, a.head * a.width, 0u);
    float acc[QN_ATTEND_EACH] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    qn_scan row = {-0x1p127f, 0u, 0u};
    qn_i64 units = 0;
    /* The greatest score, then the products. They are one loop: a compiler that copies what is
     * around a barrier takes long enough for one. */
    QN_ROLLED
    for (qn_u32 pass = 0u; pass < 2u; ++pass) {
        QN_ROLLED
        for (qn_u32 u = qn_keys_begin(&a); u < qn_keys_end(&a); u += 16u) {
            const qn_side key = qn_side_of(a.in, u, qn_key_channel(&a, group), 0u);
            const qn_side value = qn_side_of(a.in, u, qn_value_channel(&a, group), 0u);
            const qn_u32 first = qn_sees(&a, t, u + a.j), second = qn_sees(&a, t, u + a.j + 8u);
            const qn_two s = qn_attend_dots(&a, A, query, A, key, best, left, right);
            if (pass == 0u) {
                qn_see_score(s.t * a.scale, first, &row);
                qn_see_score(s.q * a.scale, second, &row);
            } else {
                const qn_two p =
                    qn_attend_weights(s, first, second, a.scale, row.greatest, row.greatest);
                units = qn_add_weights(units, p, row.odd);
                qn_attend_put(&a, p, tile);
                qn_load_side(&a, A, value, a.channel, QN_ATTEND_WIDTH, QN_ATTEND_WIDTH, best, by);
            }
            qn_barrier();
            if (pass != 0u)
                qn_attend_gather(&a, u, 1u, tile, by, acc);
            qn_barrier();
        }
        row = qn_whole_row(&a, row, best, part);
    }
    const float share = qn_row_share(&a, row.odd, qn_whole_sum(&a, units, sums));
    qn_attend_store(&a, acc, share, Y, a.out, a.head * a.width, 0u);
    if (a.head + 1u == heads && a.channel == 0u)
        qn_attend_clear(&a, Y, a.out, heads * a.width);
    qn_put_moments(step, &a, row.greatest, share, moments);
}

/* D of 25.23: a lane has a query. */
QN_KERNEL(128)
qn_attention_means(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                   QN_GLOBAL const float *Y, QN_GLOBAL const float *E, QN_GLOBAL float *moments,
                   qn_u32 index, qn_u32 heads, qn_u32 groups) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 pixels = taps->height * taps->width;
    const qn_u32 width = taps->channels / (heads + 2u * groups);
    const qn_u64 at = (qn_u64)qn_group(0) * 128u + qn_lane();
    const qn_u64 queries = (qn_u64)step->items * heads * pixels;
    if (at >= queries)
        return;
    const qn_u64 owner = at / pixels, item = owner / heads;
    const qn_lines out = qn_lines_of(qn_item_pixel(step, (qn_u32)item), pixels, heads * width, 0u);
    const qn_u64 row = out.at + (at - owner * pixels) * out.row + (owner - item * heads) * width;
    const float share = moments[queries + at];
    float sum = 0.0f;
    QN_ROLLED
    for (qn_u32 c = 0u; c < width; ++c) {
        const float g = E[row + c] * share;
        sum = qn_fma(g, Y[row + c], sum);
    }
    moments[2u * queries + at] = sum;
}

QN_KERNEL(128)
qn_attention_queries(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                     QN_GLOBAL const float *items, QN_GLOBAL const float *A,
                     QN_GLOBAL const float *E, QN_GLOBAL const float *moments, QN_GLOBAL float *B,
                     qn_u32 index, qn_u32 tokens, qn_u32 inputs, qn_u32 heads, qn_u32 groups,
                     qn_u32 span, qn_u32 causal, qn_u32 flags) {
    QN_LOCAL float left[16u * QN_ATTEND_EDGE], right[16u * QN_ATTEND_EDGE];
    QN_LOCAL float tile[16u * QN_ATTEND_EDGE], by[16u * QN_ATTEND_WIDTH], share[16];
    const qn_attend a =
        qn_attend_of(step, all + index, items, tokens, inputs, heads, groups, span, causal, heads);
    if (a.beyond != 0u)
        return;
    const qn_u32 group = a.head / (heads / groups), t = a.first + a.i;
    const qn_u64 at = qn_query_at(&a, a.head, t < a.pixels ? t : a.first);
    const qn_u64 queries = qn_queries(step, &a);
    const float greatest = moments[at], mean = moments[2u * queries + at];
    const qn_side query = qn_side_of(a.in, a.first, a.head * a.width, 0u);
    const qn_side error = qn_side_of(a.out, a.first, a.head * a.width, 1u);
    float acc[QN_ATTEND_EACH] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    if (a.j == 0u)
        share[a.i] = moments[queries + at];
    qn_barrier();
    QN_ROLLED
    for (qn_u32 u = qn_keys_begin(&a); u < qn_keys_end(&a); u += 16u) {
        const qn_side key = qn_side_of(a.in, u, qn_key_channel(&a, group), 0u);
        const qn_side value = qn_side_of(a.in, u, qn_value_channel(&a, group), 0u);
        const qn_two s = qn_attend_dots(&a, A, query, A, key, share, left, right);
        const qn_two w = qn_attend_dots(&a, E, error, A, value, share, left, right);
        const qn_u32 first = qn_sees(&a, t, u + a.j), second = qn_sees(&a, t, u + a.j + 8u);
        const qn_two p = qn_attend_weights(s, first, second, a.scale, greatest, greatest);
        qn_two x;
        x.t = p.t * (w.t - mean);
        x.q = p.q * (w.q - mean);
        qn_attend_put(&a, x, tile);
        qn_load_side(&a, A, key, a.channel, QN_ATTEND_WIDTH, QN_ATTEND_WIDTH, share, by);
        qn_barrier();
        qn_attend_gather(&a, u, 1u, tile, by, acc);
        qn_barrier();
    }
    qn_attend_store(&a, acc, a.scale, B, a.back, a.head * a.width, flags);
}

QN_KERNEL(128)
qn_attention_keys(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                  QN_GLOBAL const float *items, QN_GLOBAL const float *A, QN_GLOBAL const float *E,
                  QN_GLOBAL const float *moments, QN_GLOBAL float *B, qn_u32 index, qn_u32 tokens,
                  qn_u32 inputs, qn_u32 heads, qn_u32 groups, qn_u32 span, qn_u32 causal,
                  qn_u32 flags) {
    QN_LOCAL float left[16u * QN_ATTEND_EDGE], right[16u * QN_ATTEND_EDGE];
    QN_LOCAL float tile[16u * QN_ATTEND_EDGE], slopes[16u * QN_ATTEND_EDGE];
    QN_LOCAL float query_by[16u * QN_ATTEND_WIDTH], error_by[16u * QN_ATTEND_WIDTH];
    QN_LOCAL float greatest[16], share[16], mean[16];
    const qn_attend a =
        qn_attend_of(step, all + index, items, tokens, inputs, heads, groups, span, causal, groups);
    if (a.beyond != 0u)
        return;
    const qn_u32 u = a.first + a.i, each = heads / groups, end = qn_queries_end(&a);
    const qn_u64 queries = qn_queries(step, &a);
    const qn_side key = qn_side_of(a.in, a.first, qn_key_channel(&a, a.head), 0u);
    const qn_side value = qn_side_of(a.in, a.first, qn_value_channel(&a, a.head), 0u);
    float keys[QN_ATTEND_EACH] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    float values[QN_ATTEND_EACH] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    QN_ROLLED
    for (qn_u32 h = a.head * each; h < (a.head + 1u) * each; ++h) {
        QN_ROLLED
        for (qn_u32 t = qn_queries_begin(&a); t < end; t += 16u) {
            const qn_side query = qn_side_of(a.in, t, h * a.width, 0u);
            const qn_side error = qn_side_of(a.out, t, h * a.width, 1u);
            if (qn_lane() < 16u) {
                const qn_u32 own = t + qn_lane() < a.pixels ? t + qn_lane() : t;
                const qn_u64 at = qn_query_at(&a, h, own);
                greatest[qn_lane()] = moments[at];
                share[qn_lane()] = moments[queries + at];
                mean[qn_lane()] = moments[2u * queries + at];
            }
            qn_barrier();
            const qn_two s = qn_attend_dots(&a, A, key, A, query, share, left, right);
            const qn_two w = qn_attend_dots(&a, A, value, E, error, share, left, right);
            const qn_u32 first = qn_sees(&a, t + a.j, u), second = qn_sees(&a, t + a.j + 8u, u);
            const qn_two p =
                qn_attend_weights(s, first, second, a.scale, greatest[a.j], greatest[a.j + 8u]);
            qn_two x;
            x.t = p.t * (w.t - mean[a.j]);
            x.q = p.q * (w.q - mean[a.j + 8u]);
            qn_attend_put(&a, p, tile);
            qn_attend_put(&a, x, slopes);
            qn_load_side(&a, A, query, a.channel, QN_ATTEND_WIDTH, QN_ATTEND_WIDTH, share,
                         query_by);
            qn_load_side(&a, E, error, a.channel, QN_ATTEND_WIDTH, QN_ATTEND_WIDTH, share,
                         error_by);
            qn_barrier();
            qn_attend_gather(&a, t, 0u, slopes, query_by, keys);
            qn_attend_gather(&a, t, 0u, tile, error_by, values);
            qn_barrier();
        }
    }
    qn_attend_store(&a, keys, a.scale, B, a.back, qn_key_channel(&a, a.head), flags);
    qn_attend_store(&a, values, 1.0f, B, a.back, qn_value_channel(&a, a.head), flags);
    if (a.head + 1u == groups && a.channel == 0u && (flags & QN_NORM_ADD) == 0u)
        qn_attend_clear(&a, B, a.back, (heads + 2u * groups) * a.width);
}
