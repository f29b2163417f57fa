/* RMS_NORM_* (docs/exactness.md 25.30): the channels of each pixel. Sixteen lanes share a sum over
 * them: each has the channels of one remainder by 16, as the contract adds them. Otherwise a lane
 * has one number, or in the gradient a channel. moments is [2][rows]: r, and k of the errors. */
QN_FN float qn_rms_lane(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A,
                        QN_GLOBAL const float *weight, QN_GLOBAL const float *E, qn_u32 k,
                        qn_u32 flags) {
    const qn_u32 channels = taps->channels;
    float sum = 0.0f;
    QN_ROLLED
    for (qn_u32 c = k; c < channels; c += 16u) {
        const float x = A[qn_place_of_tap(taps, p, p.y, p.x, c)];
        const float factor = (flags & QN_NORM_ERRORS) != 0u ? weight[c] * E[c] : x;
        sum = qn_fma(factor, x, sum);
    }
    return sum;
}

QN_KERNEL(128)
qn_rms_norm_moments(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                    QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
                    QN_GLOBAL const float *E, QN_GLOBAL float *moments, qn_u64 weights,
                    qn_u32 index, qn_u32 flags) {
    QN_LOCAL float lane[128];
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 row = qn_group(0) * 8u + qn_lane() / 16u, k = qn_lane() % 16u;
    const qn_u32 rows = step->items * taps->height * taps->width, own = row < rows ? row : 0u;
    const qn_u64 ld = qn_ld(taps->channels);
    const qn_pixel p = qn_pixel_of(step, taps->height, taps->width, own);
    lane[qn_lane()] = qn_rms_lane(taps, p, A, parameters + weights, E + own * ld, k, flags);
    qn_barrier();
    if (k == 0u && row < rows) {
        const float count = (float)taps->channels;
        float sum = 0.0f;
        QN_ROLLED
        for (qn_u32 l = 0u; l < 16u; ++l)
            sum = sum + lane[qn_lane() + l];
        if ((flags & QN_NORM_ERRORS) != 0u)
            moments[(qn_u64)rows + row] = qn_div(sum * moments[row] * moments[row], count);
        else
            moments[row] = qn_norm_inverse(qn_div(sum, count), taps->epsilon);
    }
}

QN_KERNEL(128)
qn_rms_norm_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                    QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
                    QN_GLOBAL const float *moments, QN_GLOBAL float *Y, QN_GLOBAL float *D,
                    QN_GLOBAL const qn_u64 *numbers, qn_u64 weights, qn_u32 index, qn_u32 divisions,
                    qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 channels = taps->channels, ld = qn_ld(channels), c = qn_sixteen_of(ld).column;
    const qn_u32 row = qn_sixteen_of(ld).row, height = taps->height, width = taps->width;
    (void)divisions;
    if (row >= step->items * height * width)
        return;
    const qn_u64 at = (qn_u64)row * ld + c;
    float z = 0.0f;
    qn_u32 word = 0u;
    if (c < channels) {
        const qn_pixel p = qn_pixel_of(step, height, width, row);
        z = A[qn_place_of_tap(taps, p, p.y, p.x, c)] * moments[row] * parameters[weights + c];
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, p, width, channels, c, layer, seed);
    }
    Y[at] = z + 0.0f;
    qn_finish_forward(Y + at, D + at, c, channels, activation, threshold, keep, word);
}

QN_KERNEL(128)
qn_rms_norm_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                   QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
                   QN_GLOBAL const float *moments, QN_GLOBAL const float *E, QN_GLOBAL float *B,
                   qn_u64 weights, qn_u32 index, qn_u32 divisions, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 channels = taps->channels, ld = qn_ld(channels), c = qn_sixteen_of(ld).column;
    const qn_u32 row = qn_sixteen_of(ld).row, rows = step->items * taps->height * taps->width;
    const qn_u64 at = (qn_u64)row * ld + c;
    float e = 0.0f;
    (void)divisions;
    if (row >= rows)
        return;
    if (c < channels) {
        const qn_pixel p = qn_pixel_of(step, taps->height, taps->width, row);
        const float x = A[qn_place_of_tap(taps, p, p.y, p.x, c)];
        const float own = parameters[weights + c] * E[at];
        e = moments[row] * qn_fma(-x, moments[(qn_u64)rows + row], own);
    }
    e = e + 0.0f;
    B[at] = (flags & QN_NORM_ADD) != 0u ? e + B[at] : e;
}

/* The partial of a grain: over the items of each pixel, and over the pixels. */
QN_FN float qn_rms_partial(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A,
                           QN_GLOBAL const float *E, QN_GLOBAL const float *inverse, qn_u32 c) {
    const qn_u32 width = taps->width, pixels = taps->height * width, ld = qn_ld(taps->channels);
    float sum = 0.0f;
    QN_ROLLED
    for (qn_u32 at = 0u; at < pixels; ++at) {
        const qn_series a = qn_series_of(taps, p, at / width, at % width, c);
        const qn_u64 row = qn_row_of(p, pixels, at);
        QN_ROLLED
        for (qn_u32 i = 0u; i < a.items; ++i) {
            const float x = A[a.at + i * a.stride] * inverse[row + i];
            sum = qn_fma(E[(row + i) * ld + c], x, sum);
        }
    }
    return sum;
}

QN_KERNEL(128)
qn_rms_norm_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                     QN_GLOBAL const float *A, QN_GLOBAL const float *E,
                     QN_GLOBAL const float *moments, QN_GLOBAL qn_i64 *sums,
                     QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 index, qn_u32 layer,
                     float limit, qn_u32 k_blocks, qn_u32 flags) {
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
        const float partial = qn_rms_partial(taps, qn_grain_pixel(step, g), A, E, moments, c);
        bad |= qn_leaves(partial, limit);
        total = qn_plus(total, qn_i64_of(partial));
    }
    qn_put_units(sums + weights + c, total, k_blocks, flags);
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
