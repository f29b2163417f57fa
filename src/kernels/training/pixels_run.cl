/* PIXELS_FORWARD and PIXELS_ERRORS: what follows the chains of layers with pixels; and ADD_FORWARD.
 * A lane has one number. */

/* The chain of column o in the order of 16.4, from `acc`. Taps outside are left out. */
QN_FN float qn_chain_of(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *from,
                        QN_GLOBAL const float *weights, qn_u32 ld, qn_u32 o, float acc) {
    const qn_u32 channels = taps->channels, count = taps->window[0] * taps->window[1];
    QN_ROLLED
    for (qn_u32 tap = 0u; tap < count; ++tap) {
        qn_u32 y, x;
        if (qn_find_tap(taps, p, tap, &y, &x) == 0u)
            continue;
        QN_ROLLED
        for (qn_u32 c = 0u; c < channels; ++c)
            acc = qn_fma(from[qn_place_of_tap(taps, p, y, x, c)],
                         weights[(qn_u64)(tap * channels + c) * ld + o], acc);
    }
    return acc;
}

QN_KERNEL(128)
qn_pixels_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                  QN_GLOBAL const float *from, QN_GLOBAL const float *A,
                  QN_GLOBAL const float *parameters, QN_GLOBAL float *Y, QN_GLOBAL float *D,
                  QN_GLOBAL const qn_u64 *numbers, qn_u64 weights, qn_u64 biases, qn_u32 index,
                  qn_u32 first, qn_u32 count, qn_u32 out, qn_u32 flags, qn_u32 layer,
                  qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(out);
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= count)
        return;
    const qn_u32 c = s.column, inside = c < out ? 1u : 0u;
    const qn_pixel p = qn_pixel_of(step, taps->height, taps->width, first + s.row);
    float z = from[(qn_u64)s.row * ld + c];
    qn_u32 word = 0u;
    if (z != z && inside != 0u && (flags & QN_PIXELS_CHAINS) != 0u)
        z = qn_chain_of(taps, p, A, parameters + weights, ld, c, parameters[biases + c]);
    if (threshold != 0u && inside != 0u)
        word = qn_pixel_word(step, numbers, p, taps->width, out, c, layer, seed);
    const qn_u64 at = (qn_u64)(first + s.row) * ld + c;
    Y[at] = z + 0.0f;
    qn_finish_forward(Y + at, D + at, c, out, activation, threshold, keep, word);
}

QN_KERNEL(128)
qn_pixels_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                 QN_GLOBAL const float *from, QN_GLOBAL const float *E,
                 QN_GLOBAL const float *weights, QN_GLOBAL const float *Y, QN_GLOBAL float *B,
                 QN_GLOBAL const qn_u64 *numbers, qn_u32 index, qn_u32 first, qn_u32 count,
                 qn_u32 in, qn_u32 flags, qn_u32 layer, qn_u32 activation, qn_u32 threshold,
                 float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(in), height = taps->height, width = taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= count)
        return;
    const qn_u32 c = s.column, inside = c < in ? 1u : 0u;
    const qn_pixel p = qn_pixel_of(step, height, width, first + s.row);
    qn_u64 place = (qn_u64)s.row * ld + c;
    if ((flags & QN_PIXELS_FLAT) != 0u)
        place =
            (qn_u64)(p.begin + p.item) * qn_ld(height * width * in) + (p.y * width + p.x) * in + c;
    float e = inside != 0u ? from[place] : 0.0f;
    qn_u32 word = 0u;
    if (e != e && (flags & QN_PIXELS_CHAINS) != 0u)
        e = qn_chain_of(taps, p, E, weights, ld, c, 0.0f);
    if (threshold != 0u && inside != 0u)
        word = qn_pixel_word(step, numbers, p, width, in, c, layer, seed);
    const qn_u64 at = (qn_u64)(first + s.row) * ld + c;
    e = e + 0.0f;
    B[at] = (flags & QN_PIXELS_ADD) != 0u ? e + B[at] : e;
    qn_finish_errors(B + at, Y + at, c, in, activation, threshold, keep, word);
}

/* 17.7 */
QN_KERNEL(128)
qn_add_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
               QN_GLOBAL const float *A, QN_GLOBAL const float *other, QN_GLOBAL float *Y,
               QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers, qn_u32 index, qn_u32 layer,
               qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
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
        const qn_pixel p = qn_pixel_of(step, height, width, s.row);
        z = A[at] + other[qn_place_of_tap(taps, p, p.y, p.x, c)];
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, p, width, taps->channels, c, layer, seed);
    }
    Y[at] = z + 0.0f;
    qn_finish_forward(Y + at, D + at, c, taps->channels, activation, threshold, keep, word);
}
