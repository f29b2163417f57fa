/* POSITION_* (docs/exactness.md 25.12): a parameter of each channel at each pixel. A lane has one
 * number. */
QN_KERNEL(128)
qn_position_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                    QN_GLOBAL const float *A, QN_GLOBAL const float *parameters, QN_GLOBAL float *Y,
                    QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers, qn_u64 weights,
                    qn_u32 index, qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep,
                    qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 channels = taps->channels, ld = qn_ld(channels), c = qn_sixteen_of(ld).column;
    const qn_u32 row = qn_sixteen_of(ld).row, height = taps->height, width = taps->width;
    if (row >= step->items * height * width)
        return;
    const qn_u64 at = (qn_u64)row * ld + c;
    float z = 0.0f;
    qn_u32 word = 0u;
    if (c < channels) {
        const qn_pixel p = qn_pixel_of(step, height, width, row);
        const qn_u64 own = (qn_u64)qn_table_row(step, numbers, p, width, row) * ld + c;
        z = A[qn_place_of_tap(taps, p, p.y, p.x, c)] + parameters[weights + own];
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, p, width, channels, c, layer, seed);
    }
    Y[at] = z;
    qn_finish_forward(Y + at, D + at, c, channels, activation, threshold, keep, word);
}

QN_KERNEL(128)
qn_position_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                   QN_GLOBAL const float *E, QN_GLOBAL float *B, qn_u32 index, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), row = qn_sixteen_of(ld).row;
    const qn_u64 at = (qn_u64)row * ld + qn_sixteen_of(ld).column;
    if (row >= step->items * taps->height * taps->width)
        return;
    B[at] = (flags & QN_NORM_ADD) != 0u ? E[at] + B[at] : E[at];
}

/* A lane has a channel of a pixel: a chain over the items of each grain. */
QN_KERNEL(128)
qn_position_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *E,
                     QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_status_words *status, qn_u64 weights,
                     qn_u32 pixels, qn_u32 channels, qn_u32 layer, float limit, qn_u32 flags) {
    const qn_u32 ld = qn_ld(channels), c = qn_sixteen_of(ld).column, at = qn_sixteen_of(ld).row;
    const qn_u32 grain = qn_grain_of(step), grains = (step->items + grain - 1u) / grain;
    qn_i64 total = 0;
    qn_u32 bad = 0u;
    if (at >= pixels || c >= channels)
        return;
    QN_ROLLED
    for (qn_u32 g = 0u; g < grains; ++g) {
        const qn_pixel p = qn_grain_pixel(step, g);
        float partial = 0.0f;
        QN_ROLLED
        for (qn_u32 i = 0u; i < p.items; ++i)
            partial = partial + E[(qn_u64)(p.begin * pixels + at * p.items + i) * ld + c];
        bad |= qn_leaves(partial, limit);
        total = qn_plus(total, qn_i64_of(partial));
    }
    qn_put_units(sums + weights + (qn_u64)at * ld + c, total, 1u, flags);
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
