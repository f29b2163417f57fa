/* POOL_FORWARD and POOL_ERRORS (docs/exactness.md 16.5, 16.6): a lane has one number. An error
 * gathers from the windows that read its pixel. */

/* The pixels from `begin` to `end` - 1 of one direction that a window reads. `first`: the position
 * of its first tap, below 0 in the padding. */
typedef struct qn_span {
    qn_i32 first;
    qn_u32 begin, end;
} qn_span;

/* 24.40: of `limit` pixels those that pixel `at` of `size` covers. */
QN_FN qn_span qn_cover_of(qn_u32 at, qn_u32 size, qn_u32 limit) {
    const qn_u64 begin = (qn_u64)at * limit;
    qn_span s;
    s.begin = (qn_u32)(begin / size);
    s.end = (qn_u32)((begin + limit + size - 1u) / size);
    s.first = (qn_i32)s.begin;
    return s;
}

/* 24.43: where pixel `at` of the output is in the input, whose pixels are 2 * factor apart. */
QN_FN qn_u32 qn_blend_place(qn_u32 at, qn_u32 factor) {
    const qn_u32 middle = 2u * at + 1u;
    return middle > factor ? middle - factor : 0u;
}

/* The one or two pixels of the input that pixel `at` of the output reads. */
QN_FN qn_span qn_blend_of(qn_u32 at, qn_u32 factor, qn_u32 limit) {
    const qn_u32 place = qn_blend_place(at, factor);
    qn_span s;
    s.begin = place / (2u * factor);
    s.end = s.begin + (place != s.begin * 2u * factor && s.begin + 1u < limit ? 2u : 1u);
    s.first = (qn_i32)s.begin;
    return s;
}

/* The pixels of the output that read pixel `at` of the input. */
QN_FN qn_span qn_blend_readers(qn_u32 at, qn_u32 factor, qn_u32 limit) {
    qn_span s;
    s.begin = at == 0u ? 0u : factor * (at - 1u) + (factor - 1u) / 2u + 1u;
    s.end = at + 1u == limit ? factor * limit : factor * (at + 1u) + factor / 2u;
    s.first = (qn_i32)s.begin;
    return s;
}

/* The weight of the input's pixel `tap` in the output's pixel `at`, which reads it. */
QN_FN qn_u32 qn_blend_weight(qn_u32 at, qn_u32 tap, qn_u32 factor, qn_u32 limit) {
    const qn_u32 whole = 2u * factor, place = qn_blend_place(at, factor), own = whole * tap;
    if (place < own)
        return whole - (own - place);
    return tap + 1u == limit ? whole : whole - (place - own);
}

/* The weight of the pixel (y, x) of the input in the pixel (to_y, to_x) of the output. */
QN_FN float qn_blend_share(QN_GLOBAL const qn_taps *taps, qn_u32 to_y, qn_u32 to_x, qn_u32 y,
                           qn_u32 x, float unit) {
    const qn_u32 down = taps->height / taps->from_height, along = taps->width / taps->from_width;
    return (float)(qn_blend_weight(to_y, y, down, taps->from_height) *
                   qn_blend_weight(to_x, x, along, taps->from_width)) *
           unit;
}

QN_FN qn_span qn_span_of(QN_GLOBAL const qn_taps *taps, qn_u32 d, qn_u32 at, qn_u32 limit) {
    const qn_u32 size = d == 0u ? taps->height : taps->width;
    qn_span s;
    if (taps->fitted == QN_BLENDS)
        return qn_blend_of(at, size / limit, limit);
    if (taps->fitted != 0u)
        return qn_cover_of(at, size, limit);
    s.first = (qn_i32)(at * taps->stride[d]) + taps->first[d];
    s.begin = s.first < 0 ? 0u : (qn_u32)s.first;
    s.end = (qn_u32)(s.first + (qn_i32)taps->window[d]);
    s.end = s.end < limit ? s.end : limit;
    return s;
}

/* Number of the tap with the greatest value of a window: the first one of equals. */
QN_FN qn_u32 qn_greatest(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A,
                         qn_span rows, qn_span columns, qn_u32 c, float *value) {
    qn_u32 row = rows.begin, column = columns.begin;
    float m = A[qn_place_of_tap(taps, p, row, column, c)];
    QN_ROLLED
    for (qn_u32 y = rows.begin; y < rows.end; ++y) {
        QN_ROLLED
        for (qn_u32 x = columns.begin; x < columns.end; ++x) {
            const float v = A[qn_place_of_tap(taps, p, y, x, c)];
            if (v > m) {
                m = v;
                row = y;
                column = x;
            }
        }
    }
    *value = m;
    return (qn_u32)((qn_i32)row - rows.first) * taps->window[1] +
           (qn_u32)((qn_i32)column - columns.first);
}

/* 16.6, 24.21: r; `whole`: of a window that counts all its taps. */
QN_FN float qn_share_of(qn_span rows, qn_span columns, qn_u32 flags, float whole) {
    const qn_u32 count = (rows.end - rows.begin) * (columns.end - columns.begin);
    return (flags & QN_POOL_PARTIAL) != 0u ? qn_div(1.0f, (float)count) : whole;
}

QN_FN float qn_sum_of(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A,
                      qn_span rows, qn_span columns, qn_u32 c) {
    float sum = 0.0f;
    QN_ROLLED
    for (qn_u32 y = rows.begin; y < rows.end; ++y) {
        QN_ROLLED
        for (qn_u32 x = columns.begin; x < columns.end; ++x)
            sum = sum + A[qn_place_of_tap(taps, p, y, x, c)];
    }
    return sum;
}

QN_FN float qn_blend_sum(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A,
                         qn_span rows, qn_span columns, qn_u32 c, float unit) {
    float sum = 0.0f;
    QN_ROLLED
    for (qn_u32 y = rows.begin; y < rows.end; ++y) {
        QN_ROLLED
        for (qn_u32 x = columns.begin; x < columns.end; ++x)
            sum = sum +
                  A[qn_place_of_tap(taps, p, y, x, c)] * qn_blend_share(taps, p.y, p.x, y, x, unit);
    }
    return sum;
}

QN_KERNEL(128)
qn_pool_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                QN_GLOBAL const float *A, QN_GLOBAL float *Y, qn_u32 index, qn_u32 flags,
                float factor) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), height = taps->height, width = taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * height * width)
        return;
    float z = 0.0f;
    if (s.column < taps->channels) {
        const qn_pixel p = qn_pixel_of(step, height, width, s.row);
        const qn_span rows = qn_span_of(taps, 0u, p.y, taps->from_height);
        const qn_span columns = qn_span_of(taps, 1u, p.x, taps->from_width);
        if ((flags & QN_POOL_MAX) != 0u)
            qn_greatest(taps, p, A, rows, columns, s.column, &z);
        else if (taps->fitted == QN_BLENDS)
            z = qn_blend_sum(taps, p, A, rows, columns, s.column, factor);
        else
            z = qn_sum_of(taps, p, A, rows, columns, s.column) *
                qn_share_of(rows, columns, flags, factor);
    }
    Y[(qn_u64)s.row * ld + s.column] = z + 0.0f;
}

/* Which of `windows` windows read pixel `at` of the `limit` of its direction; `first` is not used.
 */
QN_FN qn_span qn_readers_of(QN_GLOBAL const qn_taps *taps, qn_u32 d, qn_u32 at, qn_u32 limit,
                            qn_u32 windows) {
    const qn_u32 padded = (qn_u32)((qn_i32)at - taps->first[d]), stride = taps->stride[d];
    const qn_u32 last = padded / stride, window = taps->window[d];
    qn_span s;
    if (taps->fitted == QN_BLENDS)
        return qn_blend_readers(at, windows / limit, limit);
    if (taps->fitted != 0u)
        return qn_cover_of(at, limit, windows);
    s.first = 0;
    s.begin = padded < window ? 0u : (padded - window) / stride + 1u;
    s.end = last < windows ? last + 1u : windows;
    return s;
}

QN_KERNEL(128)
qn_pool_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
               QN_GLOBAL const float *A, QN_GLOBAL const float *E, QN_GLOBAL float *B, qn_u32 index,
               qn_u32 flags, float factor) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), height = taps->from_height, width = taps->from_width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * height * width)
        return;
    const qn_pixel p = qn_pixel_of(step, height, width, s.row);
    const qn_span down = qn_readers_of(taps, 0u, p.y, height, taps->height);
    const qn_span along = qn_readers_of(taps, 1u, p.x, width, taps->width);
    const qn_u32 pixels = taps->height * taps->width;
    float e = 0.0f;
    QN_ROLLED
    for (qn_u32 y = down.begin; y < down.end && s.column < taps->channels; ++y) {
        const qn_span rows = qn_span_of(taps, 0u, y, height);
        QN_ROLLED
        for (qn_u32 x = along.begin; x < along.end; ++x) {
            const qn_span columns = qn_span_of(taps, 1u, x, width);
            const float delta =
                E[(qn_u64)qn_row_of(p, pixels, y * taps->width + x) * ld + s.column];
            float value;
            if (taps->fitted == QN_BLENDS)
                e = e + delta * qn_blend_share(taps, y, x, p.y, p.x, factor);
            else if ((flags & QN_POOL_MAX) == 0u)
                e = e + delta * qn_share_of(rows, columns, flags, factor);
            else if (qn_greatest(taps, p, A, rows, columns, s.column, &value) ==
                     (qn_u32)((qn_i32)p.y - rows.first) * taps->window[1] +
                         (qn_u32)((qn_i32)p.x - columns.first))
                e = e + delta;
        }
    }
    const qn_u64 at = (qn_u64)s.row * ld + s.column;
    B[at] = (flags & QN_POOL_ADD) != 0u ? e + B[at] : e;
}
