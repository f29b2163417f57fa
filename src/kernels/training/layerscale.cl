/* LAYERSCALE_* (docs/exactness.md 24.14): a factor for each channel. A lane has one number, or in
 * the gradient a channel. */
QN_KERNEL(128)
qn_layerscale_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                      QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
                      QN_GLOBAL float *Y, QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers,
                      qn_u64 weights, qn_u32 index, qn_u32 layer, qn_u32 activation,
                      qn_u32 threshold, float keep, qn_u64 seed) {
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
        z = A[qn_place_of_tap(taps, p, p.y, p.x, c)] * parameters[weights + c];
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, p, width, channels, c, layer, seed);
    }
    Y[at] = z + 0.0f;
    qn_finish_forward(Y + at, D + at, c, channels, activation, threshold, keep, word);
}

QN_KERNEL(128)
qn_layerscale_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                     QN_GLOBAL const float *parameters, QN_GLOBAL const float *E,
                     QN_GLOBAL float *B, qn_u64 weights, qn_u32 index, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 channels = taps->channels, ld = qn_ld(channels), c = qn_sixteen_of(ld).column;
    const qn_u32 row = qn_sixteen_of(ld).row;
    if (row >= step->items * taps->height * taps->width)
        return;
    const qn_u64 at = (qn_u64)row * ld + c;
    float e = c < channels ? E[at] * parameters[weights + c] : 0.0f;
    e = e + 0.0f;
    B[at] = (flags & QN_NORM_ADD) != 0u ? e + B[at] : e;
}

/* The partial of a grain: over the items of each pixel, then over the pixels. */
QN_FN float qn_layerscale_partial(QN_GLOBAL const qn_taps *taps, qn_pixel p,
                                  QN_GLOBAL const float *A, QN_GLOBAL const float *E, qn_u32 c) {
    const qn_u32 width = taps->width, pixels = taps->height * width, ld = qn_ld(taps->channels);
    float total = 0.0f;
    QN_ROLLED
    for (qn_u32 at = 0u; at < pixels; ++at) {
        const qn_series a = qn_series_of(taps, p, at / width, at % width, c);
        const qn_u64 e = (qn_u64)qn_row_of(p, pixels, at) * ld + c;
        float sum = 0.0f;
        QN_ROLLED
        for (qn_u32 i = 0u; i < a.items; ++i)
            sum = qn_fma(E[e + (qn_u64)i * ld], A[a.at + i * a.stride], sum);
        total = total + sum;
    }
    return total;
}

QN_KERNEL(128)
qn_layerscale_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                       QN_GLOBAL const float *A, QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums,
                       QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 index,
                       qn_u32 layer, float limit, qn_u32 k_blocks, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 grain = qn_grain_of(step), grains = (step->items + grain - 1u) / grain;
    const qn_u32 end = qn_block_begin(grains, qn_group(2) + 1u, k_blocks);
    const qn_u32 c = qn_group(0) * 128u + qn_lane();
    if (c >= qn_ld(taps->channels))
        return;
    qn_i64 total = 0;
    qn_u32 bad = 0u;
    QN_ROLLED
    for (qn_u32 g = qn_block_begin(grains, qn_group(2), k_blocks); g < end && c < taps->channels;
         ++g) {
        const float partial = qn_layerscale_partial(taps, qn_grain_pixel(step, g), A, E, c);
        bad |= qn_leaves(partial, limit);
        total = qn_plus(total, qn_i64_of(partial));
    }
    qn_put_units(sums + weights + c, total, k_blocks, flags);
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
