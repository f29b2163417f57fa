/* ATTENTION_INTEGER_* (docs/exactness.md 25.25, 25.26): as ATTENTION_*, with sums of integers.
 * After m, r and D moments has the bits of the absmax of the queries, keys, values and errors of
 * each head, or group of heads, at each pixel: [QN_ATTEND_BLOCKS][items][heads][pixels]. */
#define QN_BLOCK_QUERY 0u
#define QN_BLOCK_KEY 1u
#define QN_BLOCK_VALUE 2u
#define QN_BLOCK_ERROR 3u

/* An operand: a side of 16 positions, and the absmax of its blocks; with `share` each position is
 * multiplied by r. */
typedef struct qn_operand {
    QN_GLOBAL const float *from;
    qn_side side;
    QN_GLOBAL const qn_u32 *blocks;
    QN_GLOBAL const float *share;
} qn_operand;

QN_FN QN_GLOBAL const qn_u32 *qn_blocks_of(QN_GLOBAL const qn_step *step, const qn_attend *a,
                                           QN_GLOBAL const float *moments, qn_u32 which,
                                           qn_u32 head) {
    QN_GLOBAL const float *own =
        moments + (QN_ATTEND_ARRAYS + which) * qn_queries(step, a) + qn_query_at(a, head, 0u);
    return (QN_GLOBAL const qn_u32 *)own;
}

/* Some channels of an operand as integers, in local memory. */
QN_FN void qn_load_operand(const qn_attend *a, qn_u32 bits, const qn_operand *x, qn_u32 channel,
                           qn_u32 width, qn_u32 edge, QN_LOCAL_POINTER qn_i32 *to) {
    QN_ROLLED
    for (qn_u32 e = qn_lane(); e < 16u * width; e += 128u) {
        const qn_u32 row = e / width, c = e - row * width, at = x->side.first + row;
        qn_i32 q = 0;
        if (at < a->length && channel + c < a->width) {
            float v = x->from[x->side.lines.at + at * x->side.lines.row +
                              (x->side.channel + channel + c) * x->side.lines.across];
            if (x->side.factors != 0u)
                v = v * x->share[at];
            q = qn_quantize(v, qn_block_inverse(qn_block_exponent(bits, x->blocks[at])));
        }
        to[row * edge + c] = q;
    }
}

QN_FN float qn_operand_factor(const qn_attend *a, qn_u32 bits, const qn_operand *x, qn_u32 at) {
    return qn_block_factor(qn_block_exponent(bits, at < a->length ? x->blocks[at] : 0u));
}

/* The products over all channels of row i of one operand by rows j and j + 8 of the other. */
QN_FN qn_two qn_integer_dots(const qn_attend *a, qn_u32 bits, const qn_operand *x,
                             const qn_operand *y, QN_LOCAL_POINTER qn_i32 *left,
                             QN_LOCAL_POINTER qn_i32 *right) {
    qn_i64 first = 0, second = 0;
    qn_two sum;
    QN_ROLLED
    for (qn_u32 channel = 0u; channel < a->width; channel += 16u) {
        qn_load_operand(a, bits, x, channel, 16u, QN_ATTEND_EDGE, left);
        qn_load_operand(a, bits, y, channel, 16u, QN_ATTEND_EDGE, right);
        qn_barrier();
        QN_ROLLED
        for (qn_u32 c = 0u; c < 16u; ++c) {
            const qn_i64 own = left[a->i * QN_ATTEND_EDGE + c];
            first += own * right[a->j * QN_ATTEND_EDGE + c];
            second += own * right[(a->j + 8u) * QN_ATTEND_EDGE + c];
        }
        qn_barrier();
    }
    const float own = qn_operand_factor(a, bits, x, x->side.first + a->i);
    const qn_u32 other = y->side.first + a->j;
    sum.t = qn_fma(qn_float_of(first), own * qn_operand_factor(a, bits, y, other), 0.0f);
    sum.q = qn_fma(qn_float_of(second), own * qn_operand_factor(a, bits, y, other + 8u), 0.0f);
    return sum;
}

/* Both numbers times the scales of the positions of an operand, where they are seen. */
QN_FN qn_two qn_times_factors(const qn_attend *a, qn_u32 bits, qn_two x, const qn_operand *y,
                              qn_u32 first, qn_u32 second) {
    const qn_u32 at = y->side.first + a->j;
    qn_two c;
    c.t = first != 0u ? x.t * qn_operand_factor(a, bits, y, at) : 0.0f;
    c.q = second != 0u ? x.q * qn_operand_factor(a, bits, y, at + 8u) : 0.0f;
    return c;
}

QN_FN qn_u32 qn_larger_two(qn_u32 most, qn_two x) {
    return qn_larger(most, qn_larger(qn_magnitude(x.t), qn_magnitude(x.q)));
}

/* The row's sums over a tile of the other side, where `on` is not 0: acc += q(x) * by. */
QN_FN void qn_integer_gather(const qn_attend *a, qn_u32 bits, qn_u32 on, qn_two x, qn_u32 absmax,
                             const qn_operand *y, QN_LOCAL_POINTER qn_i32 *tile,
                             QN_LOCAL_POINTER qn_i32 *by, qn_i64 acc[QN_ATTEND_EACH]) {
    if (on != 0u) {
        const float inverse = qn_block_inverse(qn_block_exponent(bits, absmax));
        tile[a->i * QN_ATTEND_EDGE + a->j] = qn_quantize(x.t, inverse);
        tile[a->i * QN_ATTEND_EDGE + a->j + 8u] = qn_quantize(x.q, inverse);
        qn_load_operand(a, bits, y, a->channel, QN_ATTEND_WIDTH, QN_ATTEND_WIDTH, by);
    }
    qn_barrier();
    QN_ROLLED
    for (qn_u32 n = 0u; n < 16u && on != 0u; ++n) {
        const qn_i64 own = tile[a->i * QN_ATTEND_EDGE + n];
        QN_UNROLL
        for (int k = 0; k < QN_ATTEND_EACH; ++k)
            acc[k] += own * by[n * QN_ATTEND_WIDTH + a->j + 8u * (qn_u32)k];
    }
    qn_barrier();
}

/* to = to + RN(RN(N) * 2^t), from +0. */
QN_FN void qn_integer_add(qn_u32 bits, const qn_i64 acc[QN_ATTEND_EACH], qn_u32 absmax,
                          float to[QN_ATTEND_EACH]) {
    const float factor = qn_block_factor(qn_block_exponent(bits, absmax));
    QN_UNROLL
    for (int k = 0; k < QN_ATTEND_EACH; ++k) {
        const float own = qn_float_of(acc[k]) * factor;
        to[k] = to[k] + own;
    }
}

QN_FN void qn_clear_sums(qn_i64 acc[QN_ATTEND_EACH]) {
    QN_UNROLL
    for (int k = 0; k < QN_ATTEND_EACH; ++k)
        acc[k] = 0;
}

QN_FN qn_operand qn_operand_of(QN_GLOBAL const float *from, qn_side side,
                               QN_GLOBAL const qn_u32 *blocks, QN_GLOBAL const float *share) {
    qn_operand x;
    x.from = from;
    x.side = side;
    x.blocks = blocks;
    x.share = share;
    return x;
}

/* Operands of 16 positions from `first` on: queries and errors of a head, keys and values of a
 * group. */
QN_FN qn_operand qn_query_operand(QN_GLOBAL const qn_step *step, const qn_attend *a,
                                  QN_GLOBAL const float *A, QN_GLOBAL const float *moments,
                                  qn_u32 head, qn_u32 first) {
    return qn_operand_of(A, qn_side_of(a->in, first, head * a->width, 0u),
                         qn_blocks_of(step, a, moments, QN_BLOCK_QUERY, head), moments);
}
QN_FN qn_operand qn_error_operand(QN_GLOBAL const qn_step *step, const qn_attend *a,
                                  QN_GLOBAL const float *E, QN_GLOBAL const float *moments,
                                  qn_u32 head, qn_u32 first) {
    return qn_operand_of(E, qn_side_of(a->out, first, head * a->width, 1u),
                         qn_blocks_of(step, a, moments, QN_BLOCK_ERROR, head),
                         moments + qn_queries(step, a) + qn_query_at(a, head, 0u));
}
QN_FN qn_operand qn_key_operand(QN_GLOBAL const qn_step *step, const qn_attend *a,
                                QN_GLOBAL const float *A, QN_GLOBAL const float *moments,
                                qn_u32 group, qn_u32 first) {
    return qn_operand_of(A, qn_side_of(a->in, first, qn_key_channel(a, group), 0u),
                         qn_blocks_of(step, a, moments, QN_BLOCK_KEY, group), moments);
}
QN_FN qn_operand qn_value_operand(QN_GLOBAL const qn_step *step, const qn_attend *a,
                                  QN_GLOBAL const float *A, QN_GLOBAL const float *moments,
                                  qn_u32 group, qn_u32 first) {
    return qn_operand_of(A, qn_side_of(a->in, first, qn_value_channel(a, group), 0u),
                         qn_blocks_of(step, a, moments, QN_BLOCK_VALUE, group), moments);
}

/* The absmax of blocks: a lane has a head at a pixel. Of the inputs, or, with `back`, of g of
 * 25.23. */
QN_KERNEL(128)
qn_attention_blocks(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                    QN_GLOBAL const float *X, QN_GLOBAL float *moments, qn_u32 index, qn_u32 heads,
                    qn_u32 groups, qn_u32 back) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 pixels = taps->height * taps->width, owners = heads + 2u * groups;
    const qn_u32 width = taps->channels / owners, each = back != 0u ? heads : owners;
    const qn_u64 at = (qn_u64)qn_group(0) * 128u + qn_lane();
    const qn_u64 queries = (qn_u64)step->items * heads * pixels;
    if (at >= (qn_u64)step->items * each * pixels)
        return;
    const qn_u32 t = (qn_u32)(at % pixels), head = (qn_u32)(at / pixels % each);
    const qn_pixel p = qn_item_pixel(step, (qn_u32)(at / pixels / each));
    const qn_lines lines = qn_lines_of(p, pixels, back != 0u ? heads * width : taps->channels,
                                       back != 0u ? 0u : taps->planar);
    const qn_u32 which = back != 0u              ? QN_BLOCK_ERROR
                         : head < heads          ? QN_BLOCK_QUERY
                         : head < heads + groups ? QN_BLOCK_KEY
                                                 : QN_BLOCK_VALUE;
    const qn_u32 own = head < heads ? head : (head - heads) % groups;
    const qn_u64 to = ((qn_u64)(p.begin + p.item) * heads + own) * pixels + t;
    qn_u32 most = 0u;
    QN_ROLLED
    for (qn_u32 c = 0u; c < width; ++c) {
        float v = X[lines.at + t * lines.row + (head * width + c) * lines.across];
        if (back != 0u)
            v = v * moments[queries + to];
        most = qn_larger(most, qn_magnitude(v));
    }
    moments[(QN_ATTEND_ARRAYS + which) * queries + to] = qn_as_float(most);
}

QN_KERNEL(128)
qn_attention_integer_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                             QN_GLOBAL const float *items, QN_GLOBAL const float *A,
                             QN_GLOBAL float *Y, QN_GLOBAL float *moments, qn_u32 index,
                             qn_u32 tokens, qn_u32 inputs, qn_u32 heads, qn_u32 groups, qn_u32 span,
                             qn_u32 causal, qn_u32 bits) {
    QN_LOCAL qn_i32 left[16u * QN_ATTEND_EDGE], right[16u * QN_ATTEND_EDGE];
    QN_LOCAL qn_i32 tile[16u * QN_ATTEND_EDGE], by[16u * QN_ATTEND_WIDTH];
    QN_LOCAL qn_u32 part[128];
    QN_LOCAL float best[128];
    QN_LOCAL qn_i64 sums[128];
    const qn_attend a =
        qn_attend_of(step, all + index, items, tokens, inputs, heads, groups, span, causal, heads);
    if (a.beyond != 0u)
        return;
    const qn_u32 group = a.head / (heads / groups), t = a.first + a.i;
    const qn_operand query = qn_query_operand(step, &a, A, moments, a.head, a.first);
    float z[QN_ATTEND_EACH] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    qn_scan row = {-0x1p127f, 0u, 0u};
    qn_i64 units = 0, acc[QN_ATTEND_EACH];
    qn_clear_sums(acc);
    /* The greatest score; then the weights' sum and scale; then the products. */
    QN_ROLLED
    for (qn_u32 pass = 0u; pass < 3u; ++pass) {
        QN_ROLLED
        for (qn_u32 u = qn_keys_begin(&a); u < qn_keys_end(&a); u += 16u) {
            const qn_operand key = qn_key_operand(step, &a, A, moments, group, u);
            const qn_operand value = qn_value_operand(step, &a, A, moments, group, u);
            const qn_u32 first = qn_sees(&a, t, u + a.j), second = qn_sees(&a, t, u + a.j + 8u);
            const qn_two s = qn_integer_dots(&a, bits, &query, &key, left, right);
            qn_two c = {0.0f, 0.0f};
            if (pass == 0u) {
                qn_see_score(s.t * a.scale, first, &row);
                qn_see_score(s.q * a.scale, second, &row);
            } else {
                const qn_two p =
                    qn_attend_weights(s, first, second, a.scale, row.greatest, row.greatest);
                c = qn_times_factors(&a, bits, p, &value, first, second);
                if (pass == 1u) {
                    row.most = qn_larger_two(row.most, c);
                    units = qn_add_weights(units, p, row.odd);
                }
            }
            qn_integer_gather(&a, bits, pass == 2u ? 1u : 0u, c, row.most, &value, tile, by, acc);
        }
        row = qn_whole_row(&a, row, best, part);
    }
    const float share = qn_row_share(&a, row.odd, qn_whole_sum(&a, units, sums));
    qn_integer_add(bits, acc, row.most, z);
    qn_attend_store(&a, z, share, Y, a.out, a.head * a.width, 0u);
    if (a.head + 1u == heads && a.channel == 0u)
        qn_attend_clear(&a, Y, a.out, heads * a.width);
    qn_put_moments(step, &a, row.greatest, share, moments);
}

/* p and x of 25.23: of the row's scores and slopes; m and D are those of each. */
typedef struct qn_slopes {
    qn_two p, x;
} qn_slopes;

QN_FN qn_slopes qn_slopes_of(const qn_attend *a, qn_two s, qn_two w, qn_u32 first, qn_u32 second,
                             qn_two greatest, qn_two mean) {
    qn_slopes o;
    o.p = qn_attend_weights(s, first, second, a->scale, greatest.t, greatest.q);
    o.x.t = first != 0u ? o.p.t * (w.t - mean.t) : 0.0f;
    o.x.q = second != 0u ? o.p.q * (w.q - mean.q) : 0.0f;
    return o;
}

QN_KERNEL(128)
qn_attention_integer_queries(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                             QN_GLOBAL const float *items, QN_GLOBAL const float *A,
                             QN_GLOBAL const float *E, QN_GLOBAL const float *moments,
                             QN_GLOBAL float *B, qn_u32 index, qn_u32 tokens, qn_u32 inputs,
                             qn_u32 heads, qn_u32 groups, qn_u32 span, qn_u32 causal, qn_u32 flags,
                             qn_u32 bits) {
    QN_LOCAL qn_i32 left[16u * QN_ATTEND_EDGE], right[16u * QN_ATTEND_EDGE];
    QN_LOCAL qn_i32 tile[16u * QN_ATTEND_EDGE], by[16u * QN_ATTEND_WIDTH];
    QN_LOCAL qn_u32 part[128];
    QN_LOCAL float best[128];
    const qn_attend a =
        qn_attend_of(step, all + index, items, tokens, inputs, heads, groups, span, causal, heads);
    if (a.beyond != 0u)
        return;
    const qn_u32 group = a.head / (heads / groups), t = a.first + a.i;
    const qn_u64 at = qn_query_at(&a, a.head, t < a.pixels ? t : a.first);
    const qn_u64 queries = qn_queries(step, &a);
    const qn_operand query = qn_query_operand(step, &a, A, moments, a.head, a.first);
    const qn_operand error = qn_error_operand(step, &a, E, moments, a.head, a.first);
    float e[QN_ATTEND_EACH] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    qn_two greatest, mean;
    qn_i64 acc[QN_ATTEND_EACH];
    qn_scan row = {-0x1p127f, 0u, 0u};
    greatest.t = greatest.q = moments[at];
    mean.t = mean.q = moments[2u * queries + at];
    qn_clear_sums(acc);
    QN_ROLLED
    for (qn_u32 pass = 0u; pass < 2u; ++pass) {
        QN_ROLLED
        for (qn_u32 u = qn_keys_begin(&a); u < qn_keys_end(&a); u += 16u) {
            const qn_operand key = qn_key_operand(step, &a, A, moments, group, u);
            const qn_operand value = qn_value_operand(step, &a, A, moments, group, u);
            const qn_u32 first = qn_sees(&a, t, u + a.j), second = qn_sees(&a, t, u + a.j + 8u);
            const qn_two s = qn_integer_dots(&a, bits, &query, &key, left, right);
            const qn_two w = qn_integer_dots(&a, bits, &error, &value, left, right);
            const qn_slopes o = qn_slopes_of(&a, s, w, first, second, greatest, mean);
            const qn_two c = qn_times_factors(&a, bits, o.x, &key, first, second);
            if (pass == 0u)
                row.most = qn_larger_two(row.most, c);
            qn_integer_gather(&a, bits, pass, c, row.most, &key, tile, by, acc);
        }
        row = qn_whole_row(&a, row, best, part);
    }
    qn_integer_add(bits, acc, row.most, e);
    qn_attend_store(&a, e, a.scale, B, a.back, a.head * a.width, flags);
}

/* Numbers of two queries of a tile from position t on. */
QN_FN qn_two qn_moments_at(const qn_attend *a, QN_GLOBAL const float *moments, qn_u32 head,
                           qn_u32 t) {
    const qn_u32 first = t + a->j, second = first + 8u, last = a->pixels - 1u;
    qn_two m;
    m.t = moments[qn_query_at(a, head, first < last ? first : last)];
    m.q = moments[qn_query_at(a, head, second < last ? second : last)];
    return m;
}

QN_KERNEL(128)
qn_attention_integer_keys(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                          QN_GLOBAL const float *items, QN_GLOBAL const float *A,
                          QN_GLOBAL const float *E, QN_GLOBAL const float *moments,
                          QN_GLOBAL float *B, qn_u32 index, qn_u32 tokens, qn_u32 inputs,
                          qn_u32 heads, qn_u32 groups, qn_u32 span, qn_u32 causal, qn_u32 flags,
                          qn_u32 bits) {
    QN_LOCAL qn_i32 left[16u * QN_ATTEND_EDGE], right[16u * QN_ATTEND_EDGE];
    QN_LOCAL qn_i32 tile[16u * QN_ATTEND_EDGE], by[16u * QN_ATTEND_WIDTH];
    QN_LOCAL qn_u32 part[128];
    QN_LOCAL float best[128];
    const qn_attend a =
        qn_attend_of(step, all + index, items, tokens, inputs, heads, groups, span, causal, groups);
    if (a.beyond != 0u)
        return;
    const qn_u32 u = a.first + a.i, each = heads / groups, end = qn_queries_end(&a);
    const qn_u64 queries = qn_queries(step, &a);
    const qn_operand key = qn_key_operand(step, &a, A, moments, a.head, a.first);
    const qn_operand value = qn_value_operand(step, &a, A, moments, a.head, a.first);
    float keys[QN_ATTEND_EACH] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    float values[QN_ATTEND_EACH] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
    QN_ROLLED
    for (qn_u32 h = a.head * each; h < (a.head + 1u) * each; ++h) {
        qn_i64 key_acc[QN_ATTEND_EACH], value_acc[QN_ATTEND_EACH];
        qn_scan key_row = {-0x1p127f, 0u, 0u}, value_row = {-0x1p127f, 0u, 0u};
        qn_clear_sums(key_acc);
        qn_clear_sums(value_acc);
        QN_ROLLED
        for (qn_u32 pass = 0u; pass < 2u; ++pass) {
            QN_ROLLED
            for (qn_u32 t = qn_queries_begin(&a); t < end; t += 16u) {
                const qn_operand query = qn_query_operand(step, &a, A, moments, h, t);
                const qn_operand error = qn_error_operand(step, &a, E, moments, h, t);
                const qn_u32 first = qn_sees(&a, t + a.j, u), second = qn_sees(&a, t + a.j + 8u, u);
                const qn_two s = qn_integer_dots(&a, bits, &key, &query, left, right);
                const qn_two w = qn_integer_dots(&a, bits, &value, &error, left, right);
                const qn_slopes o =
                    qn_slopes_of(&a, s, w, first, second, qn_moments_at(&a, moments, h, t),
                                 qn_moments_at(&a, moments + 2u * queries, h, t));
                const qn_two c = qn_times_factors(&a, bits, o.x, &query, first, second);
                const qn_two d = qn_times_factors(&a, bits, o.p, &error, first, second);
                if (pass == 0u) {
                    key_row.most = qn_larger_two(key_row.most, c);
                    value_row.most = qn_larger_two(value_row.most, d);
                }
                qn_integer_gather(&a, bits, pass, c, key_row.most, &query, tile, by, key_acc);
                qn_integer_gather(&a, bits, pass, d, value_row.most, &error, tile, by, value_acc);
            }
            key_row = qn_whole_row(&a, key_row, best, part);
            value_row = qn_whole_row(&a, value_row, best, part);
        }
        qn_integer_add(bits, key_acc, key_row.most, keys);
        qn_integer_add(bits, value_acc, value_row.most, values);
    }
    qn_attend_store(&a, keys, a.scale, B, a.back, qn_key_channel(&a, a.head), flags);
    qn_attend_store(&a, values, 1.0f, B, a.back, qn_value_channel(&a, a.head), flags);
    if (a.head + 1u == groups && a.channel == 0u && (flags & QN_NORM_ADD) == 0u)
        qn_attend_clear(&a, B, a.back, (heads + 2u * groups) * a.width);
}
