/* ROTARY_* (docs/exactness.md 25.31): a channel becomes itself by the cosine and its partner, half
 * a head further on or back, by the sine. A lane has one number. table is [pixels][2][pairs]. */
QN_FN float qn_turned(QN_GLOBAL const float *row, qn_u32 pairs, qn_u32 c, float x, float other,
                      float sign) {
    const float own = c % (2u * pairs) < pairs ? sign : -sign;
    return qn_fma(other, own * row[pairs + c % pairs], x * row[c % pairs]);
}

QN_FN qn_u32 qn_partner(qn_u32 pairs, qn_u32 c) {
    return c % (2u * pairs) < pairs ? c + pairs : c - pairs;
}

QN_KERNEL(128)
qn_rotary_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                  QN_GLOBAL const float *A, QN_GLOBAL const float *table, QN_GLOBAL float *Y,
                  QN_GLOBAL const qn_u64 *numbers, qn_u32 index, qn_u32 pairs, qn_u32 turned) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 channels = taps->channels, ld = qn_ld(channels), c = qn_sixteen_of(ld).column;
    const qn_u32 row = qn_sixteen_of(ld).row, height = taps->height, width = taps->width;
    if (row >= step->items * height * width)
        return;
    float z = 0.0f;
    if (c < channels) {
        const qn_pixel p = qn_pixel_of(step, height, width, row);
        z = A[qn_place_of_tap(taps, p, p.y, p.x, c)];
        if (c < turned) {
            const float other = A[qn_place_of_tap(taps, p, p.y, p.x, qn_partner(pairs, c))];
            const qn_u64 own = (qn_u64)qn_table_row(step, numbers, p, width, row) * 2u * pairs;
            z = qn_turned(table + own, pairs, c, z, other, -1.0f);
        }
    }
    Y[(qn_u64)row * ld + c] = z + 0.0f;
}

QN_KERNEL(128)
qn_rotary_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                 QN_GLOBAL const float *table, QN_GLOBAL const float *E, QN_GLOBAL float *B,
                 qn_u32 index, qn_u32 pairs, qn_u32 turned, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 channels = taps->channels, ld = qn_ld(channels), c = qn_sixteen_of(ld).column;
    const qn_u32 row = qn_sixteen_of(ld).row, height = taps->height, width = taps->width;
    if (row >= step->items * height * width)
        return;
    const qn_u64 at = (qn_u64)row * ld;
    float e = c < channels ? E[at + c] : 0.0f;
    if (c < turned) {
        const qn_pixel p = qn_pixel_of(step, height, width, row);
        e = qn_turned(table + (qn_u64)(p.y * width + p.x) * 2u * pairs, pairs, c, e,
                      E[at + qn_partner(pairs, c)], 1.0f);
    }
    e = e + 0.0f;
    B[at + c] = (flags & QN_NORM_ADD) != 0u ? e + B[at + c] : e;
}
