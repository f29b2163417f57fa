/* NORM_*: batchnorm (docs/exactness.md 17.8). A lane has one channel: of a pixel of a grain, of a
 * grain, or of a row. moments is [QN_NORM_ARRAYS][grains][ld(channels)]. */

/* s of 17.8 */
QN_FN float qn_norm_shift(QN_GLOBAL const qn_taps *taps, QN_GLOBAL const float *A, qn_pixel p,
                          qn_u32 c) {
    const qn_series s = qn_series_of(taps, p, 0u, 0u, c);
    float first = 0.0f;
    QN_ROLLED
    for (qn_u32 i = 0u; i < s.items; ++i)
        first = first + A[s.at + i * s.stride];
    return qn_div(first, (float)s.items);
}

QN_FN float qn_norm_inverse(float variance, float epsilon) {
    return qn_div(1.0f, qn_sqrt(variance + epsilon));
}

QN_KERNEL(128)
qn_norm_sums(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all, QN_GLOBAL const float *A,
             QN_GLOBAL const float *E, QN_GLOBAL const float *moments, QN_GLOBAL float *to,
             qn_u32 index, qn_u32 grains, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), pixels = taps->height * taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= grains * pixels)
        return;
    const qn_u32 c = s.column, g = s.row / pixels, at = s.row - g * pixels;
    float t = 0.0f, q = 0.0f;
    if (c < taps->channels) {
        const qn_pixel p = qn_grain_pixel(step, g);
        const qn_series of = qn_series_of(taps, p, at / taps->width, at % taps->width, c);
        const qn_u32 errors = flags & QN_NORM_ERRORS;
        const qn_u64 first = (qn_u64)qn_row_of(p, pixels, at) * ld + c;
        const float shift =
            errors != 0u ? moments[(qn_u64)g * ld + c] : qn_norm_shift(taps, A, p, c);
        QN_ROLLED
        for (qn_u32 i = 0u; i < of.items; ++i) {
            const float d = A[of.at + i * of.stride] - shift;
            const float factor = errors != 0u ? E[first + (qn_u64)i * ld] : d;
            t = t + factor;
            q = qn_fma(factor, d, q);
        }
    }
    to[(qn_u64)s.row * ld + c] = t;
    to[(qn_u64)(grains * pixels + s.row) * ld + c] = q;
}

QN_KERNEL(128)
qn_norm_moments(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                QN_GLOBAL const float *A, QN_GLOBAL const float *sums, QN_GLOBAL float *moments,
                qn_u32 index, qn_u32 grains, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), pixels = taps->height * taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= grains || s.column >= taps->channels)
        return;
    const qn_pixel p = qn_grain_pixel(step, s.row);
    const float m = (float)(p.items * pixels);
    const qn_u64 array = (qn_u64)grains * ld;
    QN_GLOBAL const float *t = sums + (qn_u64)s.row * pixels * ld + s.column;
    QN_GLOBAL float *to = moments + (qn_u64)s.row * ld + s.column;
    float first = 0.0f, second = 0.0f;
    QN_ROLLED
    for (qn_u32 at = 0u; at < pixels; ++at) {
        first = first + t[(qn_u64)at * ld];
        second = second + t[array * pixels + (qn_u64)at * ld];
    }
    if ((flags & QN_NORM_ERRORS) != 0u) {
        const float inverse = to[QN_NORM_INVERSE * array], scaled = second * inverse;
        to[QN_NORM_BIAS * array] = first;
        to[QN_NORM_WEIGHT * array] = scaled;
        to[QN_NORM_H * array] = qn_div(first, m);
        to[QN_NORM_K * array] = qn_div(scaled * inverse, m);
        return;
    }
    const float u = qn_div(first, m), w = qn_fma(-u, first, second);
    const float squares = w <= 0.0f ? 0.0f : w;
    to[0] = qn_norm_shift(taps, A, p, s.column) + u;
    to[QN_NORM_INVERSE * array] = qn_norm_inverse(qn_div(squares, m), taps->epsilon);
    to[QN_NORM_SQUARES * array] = squares;
}

QN_KERNEL(128)
qn_norm_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
                QN_GLOBAL const float *moments, QN_GLOBAL float *Y, QN_GLOBAL float *D,
                QN_GLOBAL const qn_u64 *numbers, qn_u64 weights, qn_u32 index, qn_u32 grains,
                qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), height = taps->height, width = taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * height * width)
        return;
    const qn_u32 c = s.column;
    const qn_u64 at = (qn_u64)s.row * ld + c;
    float z = 0.0f;
    qn_u32 word = 0u;
    if (c < taps->channels) {
        QN_GLOBAL const float *own = parameters + weights + c;
        const qn_pixel p = qn_pixel_of(step, height, width, s.row);
        const float x = A[qn_place_of_tap(taps, p, p.y, p.x, c)];
        if (grains != 0u) {
            QN_GLOBAL const float *of = moments + (qn_u64)(p.begin / qn_grain_of(step)) * ld + c;
            z = qn_fma(x - of[0], own[0] * of[(qn_u64)QN_NORM_INVERSE * grains * ld], own[ld]);
        } else {
            const float factor = own[0] * qn_norm_inverse(own[3u * ld], taps->epsilon);
            z = qn_fma(x, factor, qn_fma(-own[2u * ld], factor, own[ld]));
        }
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, p, width, taps->channels, c, layer, seed);
    }
    Y[at] = z + 0.0f;
    qn_finish_forward(Y + at, D + at, c, taps->channels, activation, threshold, keep, word);
}

QN_KERNEL(128)
qn_norm_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
               QN_GLOBAL const float *A, QN_GLOBAL const float *parameters,
               QN_GLOBAL const float *moments, QN_GLOBAL const float *E, QN_GLOBAL float *B,
               qn_u64 weights, qn_u32 index, qn_u32 grains, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(taps->channels), height = taps->height, width = taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * height * width)
        return;
    const qn_u32 c = s.column;
    const qn_u64 at = (qn_u64)s.row * ld + c, array = (qn_u64)grains * ld;
    float e = 0.0f;
    if (c < taps->channels) {
        const qn_pixel p = qn_pixel_of(step, height, width, s.row);
        QN_GLOBAL const float *of = moments + (qn_u64)(p.begin / qn_grain_of(step)) * ld + c;
        const float d = A[qn_place_of_tap(taps, p, p.y, p.x, c)] - of[0];
        const float factor = parameters[weights + c] * of[QN_NORM_INVERSE * array];
        e = factor * qn_fma(-d, of[QN_NORM_K * array], E[at] - of[QN_NORM_H * array]);
    }
    e = e + 0.0f;
    B[at] = (flags & QN_NORM_ADD) != 0u ? e + B[at] : e;
}

QN_KERNEL(128)
qn_norm_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *moments,
                 QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_status_words *status, qn_u64 weights,
                 qn_u32 channels, qn_u32 pixels, qn_u32 grains, qn_u32 layer, float limit,
                 qn_u32 flags) {
    const qn_u32 ld = qn_ld(channels), c = qn_group(0) * 128u + qn_lane();
    const qn_u64 array = (qn_u64)grains * ld;
    if (c >= ld)
        return;
    QN_GLOBAL qn_i64 *to = sums + weights + c;
    qn_u32 bad = 0u;
    qn_i64 weight = 0, bias = 0, mean = 0, variance = 0;
    if ((flags & QN_GRADIENT_ADD) != 0u && c < channels) {
        weight = to[0];
        bias = to[ld];
        mean = to[2u * ld];
        variance = to[3u * ld];
    }
    QN_ROLLED
    for (qn_u32 g = 0u; g < grains && c < channels; ++g) {
        QN_GLOBAL const float *of = moments + (qn_u64)g * ld + c;
        const qn_u32 items = qn_grain_pixel(step, g).items, others = items * pixels - 1u;
        const float b = of[QN_NORM_BIAS * array], w = of[QN_NORM_WEIGHT * array];
        const float v = others != 0u ? qn_div(of[QN_NORM_SQUARES * array], (float)others) : 0.0f;
        const float units = (float)items * of[0] * 0x1p32f;
        const float varies = (float)items * v * 0x1p32f;
        bad |= qn_leaves(w, limit) | qn_leaves(b, limit) | qn_leaves(units, limit) |
               qn_leaves(varies, limit);
        weight = qn_plus(weight, qn_i64_of(w));
        bias = qn_plus(bias, qn_i64_of(b));
        mean = qn_plus(mean, qn_i64_of(units));
        variance = qn_plus(variance, qn_i64_of(varies));
    }
    to[0] = weight;
    to[ld] = bias;
    to[2u * ld] = mean;
    to[3u * ld] = variance;
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}

/* The running averages begin .. begin+count-1. */
QN_KERNEL(128)
qn_norm_update(QN_GLOBAL const qn_step *step, QN_GLOBAL float *parameters,
               QN_GLOBAL const qn_i64 *sums, qn_u64 begin, qn_u32 count, float rate) {
    const qn_u32 n = qn_group(0) * 128u + qn_lane();
    if (n >= count)
        return;
    const float average = parameters[begin + n];
    const float mean = qn_float_of(sums[begin + n]) * step->running;
    parameters[begin + n] = qn_fma(rate, mean - average, average);
}
