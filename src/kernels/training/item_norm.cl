/* ITEM_NORM_*: groupnorm and layernorm (docs/exactness.md 17.9, 24.13). Where groups is 0, each
 * pixel is normalised by itself: it is a part, with one group. Otherwise the parts are the items. A
 * lane has one channel of a part, or with fifteen others the sum over a group's channels. moments
 * is [QN_ITEM_ARRAYS][parts][groups], sums is [2][parts][ld(channels)]. */
typedef struct qn_parts {
    qn_u32 count, pixels, groups; /* of the pass, of a part, of a part */
} qn_parts;

QN_FN qn_parts qn_parts_of(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *taps,
                           qn_u32 groups) {
    const qn_u32 pixels = taps->height * taps->width;
    qn_parts all;
    all.count = step->items * (groups == 0u ? pixels : 1u);
    all.pixels = groups == 0u ? 1u : pixels;
    all.groups = groups == 0u ? 1u : groups;
    return all;
}

/* The first pixel of an item of the pass. */
QN_FN qn_pixel qn_item_pixel(QN_GLOBAL const qn_step *step, qn_u32 item) {
    qn_pixel p = qn_grain_pixel(step, item / qn_grain_of(step));
    p.item = item - p.begin;
    return p;
}

/* That of a part. */
QN_FN qn_pixel qn_part_pixel(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *taps,
                             qn_u32 part, qn_u32 groups) {
    if (groups == 0u)
        return qn_pixel_of(step, taps->height, taps->width, part);
    return qn_item_pixel(step, part);
}

/* The number of channel c in the moments of a part. */
QN_FN qn_u64 qn_part_group(qn_u32 part, qn_u32 c, qn_u32 channels, qn_u32 groups) {
    return (qn_u64)part * groups + c / (channels / groups);
}

QN_KERNEL(128)
qn_item_norm_sums(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                  QN_GLOBAL const float *A, QN_GLOBAL const float *E,
                  QN_GLOBAL const float *moments, QN_GLOBAL float *to, qn_u32 index, qn_u32 groups,
                  qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), width = taps->width;
    const qn_parts all_parts = qn_parts_of(step, taps, groups);
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= all_parts.count)
        return;
    const qn_u32 c = s.column;
    float t = 0.0f, q = 0.0f;
    if (c < taps->channels) {
        const qn_pixel p = qn_part_pixel(step, taps, s.row, groups);
        const float shift = moments[qn_part_group(s.row, c, taps->channels, all_parts.groups)];
        const qn_u32 first = p.y * width + p.x, pixels = taps->height * width;
        QN_ROLLED
        for (qn_u32 at = first; at < first + all_parts.pixels; ++at) {
            const float x = A[qn_place_of_tap(taps, p, at / width, at % width, c)];
            const float d = x - shift;
            const float factor =
                (flags & QN_NORM_ERRORS) != 0u ? E[(qn_u64)qn_row_of(p, pixels, at) * ld + c] : d;
            t = t + factor;
            q = qn_fma(factor, d, q);
        }
    }
    to[(qn_u64)s.row * ld + c] = t;
    to[((qn_u64)all_parts.count + s.row) * ld + c] = q;
}

/* What a group's sum S of 17.9 adds for channel c: two numbers. */
typedef struct qn_two {
    float t, q;
} qn_two;

QN_FN qn_two qn_item_terms(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A,
                           QN_GLOBAL const float *weights, QN_GLOBAL const float *sums,
                           qn_u64 second, qn_u32 c, qn_u32 flags) {
    qn_two v;
    if ((flags & QN_NORM_SHIFT) != 0u) {
        v.t = A[qn_place_of_tap(taps, p, p.y, p.x, c)];
        v.q = 0.0f;
        return v;
    }
    v.t = sums[c];
    v.q = sums[second + c];
    if ((flags & QN_NORM_ERRORS) != 0u) {
        v.t = weights[c] * v.t;
        v.q = weights[c] * v.q;
    }
    return v;
}

/* The moments of a group, from S(t) and S(q) over its channels. `to` is its place in the first
 * array. */
QN_FN void qn_item_finish(QN_GLOBAL float *to, qn_u64 array, qn_two sum, qn_u32 each, float count,
                          float epsilon, qn_u32 flags) {
    if ((flags & QN_NORM_SHIFT) != 0u) {
        to[0] = qn_div(sum.t, (float)each);
    } else if ((flags & QN_NORM_ERRORS) != 0u) {
        const float inverse = to[QN_ITEM_INVERSE * array];
        to[QN_ITEM_H * array] = qn_div(sum.t, count);
        to[QN_ITEM_K * array] = qn_div(sum.q * inverse * inverse, count);
    } else {
        const float u = qn_div(sum.t, count), w = qn_fma(-u, sum.t, sum.q);
        to[0] = to[0] + u;
        to[QN_ITEM_INVERSE * array] = qn_norm_inverse(qn_div(w <= 0.0f ? 0.0f : w, count), epsilon);
    }
}

/* Sixteen lanes have a group of an item: lane k the channels c with c mod 16 = k. */
QN_KERNEL(128)
qn_item_norm_moments(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                     QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
                     QN_GLOBAL const float *sums, QN_GLOBAL float *moments, qn_u64 weights,
                     qn_u32 index, qn_u32 groups, qn_u32 flags) {
    QN_LOCAL float first[128], second[128];
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_parts parts = qn_parts_of(step, taps, groups);
    const qn_u32 channels = taps->channels, ld = qn_ld(channels), each = channels / parts.groups;
    const qn_u32 piece = qn_group(0) * 8u + qn_lane() / 16u, k = qn_lane() % 16u;
    const qn_u32 part = piece / parts.groups, begin = (piece - part * parts.groups) * each;
    const qn_u32 end = part < parts.count ? begin + each : 0u;
    const qn_pixel p = qn_part_pixel(step, taps, part < parts.count ? part : 0u, groups);
    float t = 0.0f, q = 0.0f;
    QN_ROLLED
    for (qn_u32 c = begin + (k - begin) % 16u; c < end; c += 16u) {
        const qn_two v = qn_item_terms(taps, p, A, parameters + weights, sums + (qn_u64)part * ld,
                                       (qn_u64)parts.count * ld, c, flags);
        t = t + v.t;
        q = q + v.q;
    }
    first[qn_lane()] = t;
    second[qn_lane()] = q;
    qn_barrier();
    if (k == 0u && end != 0u) {
        qn_two sum;
        sum.t = sum.q = 0.0f;
        QN_ROLLED
        for (qn_u32 l = 0u; l < 16u; ++l) {
            sum.t = sum.t + first[qn_lane() + l];
            sum.q = sum.q + second[qn_lane() + l];
        }
        qn_item_finish(moments + piece, (qn_u64)parts.count * parts.groups, sum, each,
                       (float)(each * parts.pixels), taps->epsilon, flags);
    }
}

QN_KERNEL(128)
qn_item_norm_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                     QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
                     QN_GLOBAL const float *moments, QN_GLOBAL float *Y, QN_GLOBAL float *D,
                     QN_GLOBAL const qn_u64 *numbers, qn_u64 weights, qn_u32 index, qn_u32 groups,
                     qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 channels = taps->channels, ld = qn_ld(channels);
    const qn_u32 height = taps->height, width = taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * height * width)
        return;
    const qn_u32 c = s.column;
    const qn_parts parts = qn_parts_of(step, taps, groups);
    const qn_u64 at = (qn_u64)s.row * ld + c, array = (qn_u64)parts.count * parts.groups;
    float z = 0.0f;
    qn_u32 word = 0u;
    if (c < channels) {
        QN_GLOBAL const float *own = parameters + weights + c;
        const qn_pixel p = qn_pixel_of(step, height, width, s.row);
        QN_GLOBAL const float *of = moments + qn_part_group(groups == 0u ? s.row : p.begin + p.item,
                                                            c, channels, parts.groups);
        const float x = A[qn_place_of_tap(taps, p, p.y, p.x, c)];
        z = qn_fma(x - of[0], own[0] * of[QN_ITEM_INVERSE * array], own[ld]);
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, p, width, channels, c, layer, seed);
    }
    Y[at] = z + 0.0f;
    qn_finish_forward(Y + at, D + at, c, channels, activation, threshold, keep, word);
}

QN_KERNEL(128)
qn_item_norm_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                    QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
                    QN_GLOBAL const float *moments, QN_GLOBAL const float *E, QN_GLOBAL float *B,
                    qn_u64 weights, qn_u32 index, qn_u32 groups, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 channels = taps->channels, ld = qn_ld(channels);
    const qn_u32 height = taps->height, width = taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * height * width)
        return;
    const qn_u32 c = s.column;
    const qn_parts parts = qn_parts_of(step, taps, groups);
    const qn_u64 at = (qn_u64)s.row * ld + c, array = (qn_u64)parts.count * parts.groups;
    float e = 0.0f;
    if (c < channels) {
        const qn_pixel p = qn_pixel_of(step, height, width, s.row);
        QN_GLOBAL const float *of = moments + qn_part_group(groups == 0u ? s.row : p.begin + p.item,
                                                            c, channels, parts.groups);
        const float d = A[qn_place_of_tap(taps, p, p.y, p.x, c)] - of[0];
        const float own = qn_fma(parameters[weights + c], E[at], -of[QN_ITEM_H * array]);
        e = of[QN_ITEM_INVERSE * array] * qn_fma(-d, of[QN_ITEM_K * array], own);
    }
    e = e + 0.0f;
    B[at] = (flags & QN_NORM_ADD) != 0u ? e + B[at] : e;
}

QN_KERNEL(128)
qn_item_norm_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *sums_of,
                      QN_GLOBAL const float *moments, QN_GLOBAL qn_i64 *sums,
                      QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 channels,
                      qn_u32 groups, qn_u32 pixels, qn_u32 layer, float limit, qn_u32 flags) {
    const qn_u32 ld = qn_ld(channels), c = qn_group(0) * 128u + qn_lane(), items = step->items;
    const qn_u32 grain = qn_grain_of(step), parts = items * pixels;
    if (c >= ld)
        return;
    QN_GLOBAL qn_i64 *to = sums + weights + c;
    QN_GLOBAL const float *inverse = moments + (qn_u64)parts * groups * QN_ITEM_INVERSE;
    const qn_u32 add = (flags & QN_GRADIENT_ADD) != 0u && c < channels ? 1u : 0u;
    qn_i64 weight = add != 0u ? to[0] : 0, bias = add != 0u ? to[ld] : 0;
    qn_u32 bad = 0u;
    QN_ROLLED
    for (qn_u32 begin = 0u; begin < items && c < channels; begin += grain) {
        const qn_u32 end = (begin + qn_grain_items(step, begin)) * pixels;
        float w = 0.0f, b = 0.0f;
        QN_ROLLED
        for (qn_u32 part = begin * pixels; part < end; ++part) {
            const float products = sums_of[((qn_u64)parts + part) * ld + c];
            const float own = products * inverse[qn_part_group(part, c, channels, groups)];
            w = w + own;
            b = b + sums_of[(qn_u64)part * ld + c];
        }
        bad |= qn_leaves(w, limit) | qn_leaves(b, limit);
        weight = qn_plus(weight, qn_i64_of(w));
        bias = qn_plus(bias, qn_i64_of(b));
    }
    to[0] = weight;
    to[ld] = bias;
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
