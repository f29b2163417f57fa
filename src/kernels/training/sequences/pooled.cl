/* POOLED_FORWARD and POOLED_ERRORS (docs/exactness.md 25.38): a lane has a channel of an item, and
 * goes through its positions. */
typedef struct qn_pooled {
    qn_pixel p;
    qn_u32 begin, end; /* the positions that count */
    float share;
} qn_pooled;

QN_FN qn_pooled qn_pooled_of(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *taps,
                             QN_GLOBAL const float *items, qn_u32 pooling, qn_u32 tokens,
                             qn_u32 inputs, qn_u32 item) {
    const qn_u32 all = taps->from_height * taps->from_width;
    qn_pooled q;
    q.p = qn_item_pixel(step, item);
    q.end = qn_length_of(items, tokens, inputs, q.p.begin + q.p.item, all);
    q.begin = pooling == QN_POOLED_LAST && q.end > 0u ? q.end - 1u : 0u;
    if (pooling == QN_POOLED_FIRST && q.end > 0u)
        q.end = 1u;
    q.share = q.end > q.begin ? qn_div(1.0f, (float)(q.end - q.begin)) : 0.0f;
    return q;
}

QN_FN qn_u64 qn_pooled_at(QN_GLOBAL const qn_taps *taps, const qn_pooled *q, qn_u32 t, qn_u32 c) {
    const qn_u32 y = t / taps->from_width;
    return qn_place_of_tap(taps, q->p, y, t - y * taps->from_width, c);
}

/* The first position with the greatest value. */
QN_FN qn_u32 qn_pooled_best(QN_GLOBAL const qn_taps *taps, const qn_pooled *q,
                            QN_GLOBAL const float *A, qn_u32 c, float *value) {
    qn_u32 best = 0u;
    float m = q->end > 0u ? A[qn_pooled_at(taps, q, 0u, c)] : 0.0f;
    QN_ROLLED
    for (qn_u32 t = 1u; t < q->end; ++t) {
        const float own = A[qn_pooled_at(taps, q, t, c)];
        if (own > m) {
            m = own;
            best = t;
        }
    }
    *value = m;
    return best;
}

QN_KERNEL(128)
qn_pooled_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                  QN_GLOBAL const float *items, QN_GLOBAL const float *A, QN_GLOBAL float *Y,
                  qn_u32 index, qn_u32 pooling, qn_u32 tokens, qn_u32 inputs) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels);
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items)
        return;
    float z = 0.0f;
    if (s.column < taps->channels) {
        const qn_pooled q = qn_pooled_of(step, taps, items, pooling, tokens, inputs, s.row);
        if (pooling == QN_POOLED_MAX) {
            qn_pooled_best(taps, &q, A, s.column, &z);
        } else {
            QN_ROLLED
            for (qn_u32 t = q.begin; t < q.end; ++t)
                z = z + A[qn_pooled_at(taps, &q, t, s.column)];
            z = z * q.share;
        }
    }
    Y[(qn_u64)s.row * ld + s.column] = z + 0.0f;
}

QN_KERNEL(128)
qn_pooled_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                 QN_GLOBAL const float *items, QN_GLOBAL const float *A, QN_GLOBAL const float *E,
                 QN_GLOBAL float *B, qn_u32 index, qn_u32 pooling, qn_u32 tokens, qn_u32 inputs,
                 qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), pixels = taps->from_height * taps->from_width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items)
        return;
    qn_pooled q = qn_pooled_of(step, taps, items, pooling, tokens, inputs, s.row);
    float e = 0.0f, value;
    if (s.column < taps->channels) {
        const float delta = E[(qn_u64)s.row * ld + s.column];
        if (pooling == QN_POOLED_MAX && q.end > 0u) {
            q.begin = qn_pooled_best(taps, &q, A, s.column, &value);
            q.end = q.begin + 1u;
            e = delta + 0.0f;
        } else {
            e = delta * q.share;
            e = e + 0.0f;
        }
    }
    QN_ROLLED
    for (qn_u32 t = 0u; t < pixels; ++t) {
        const qn_u64 at = (qn_u64)qn_row_of(q.p, pixels, t) * ld + s.column;
        const float own = t >= q.begin && t < q.end ? e : 0.0f;
        B[at] = (flags & QN_POOL_ADD) != 0u ? own + B[at] : own;
    }
}
