/* MULTIPLY_* and CONCAT_* (docs/exactness.md 24.31, 24.32): the ends of blocks. A lane has one
 * number. Of each block the first taps have the rows of the outputs and read the second operand;
 * those of errors have the rows of one operand and read the other. */

/* Writes an output of the block. */
QN_FN void qn_finish_join(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *taps, qn_pixel p,
                          qn_sixteen s, float z, QN_GLOBAL float *Y, QN_GLOBAL float *D,
                          QN_GLOBAL const qn_u64 *numbers, qn_u32 out, qn_u32 layer,
                          qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    const qn_u64 at = (qn_u64)s.row * qn_ld(out) + s.column;
    qn_u32 word = 0u;
    if (threshold != 0u && s.column < out)
        word = qn_pixel_word(step, numbers, p, taps->width, out, s.column, layer, seed);
    Y[at] = z + 0.0f;
    qn_finish_forward(Y + at, D + at, s.column, out, activation, threshold, keep, word);
}

QN_KERNEL(128)
qn_multiply_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                    QN_GLOBAL const float *A, QN_GLOBAL const float *other, QN_GLOBAL float *Y,
                    QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers, qn_u32 index,
                    qn_u32 channels, qn_u32 pixels, qn_u32 out, qn_u32 layer, qn_u32 activation,
                    qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_sixteen s = qn_sixteen_of(qn_ld(out));
    if (s.row >= step->items * taps->height * taps->width)
        return;
    const qn_pixel p = qn_pixel_of(step, taps->height, taps->width, s.row);
    const qn_u32 at = p.y * taps->width + p.x;
    float z = 0.0f;
    if (s.column < out) {
        const qn_u32 spread = taps->from_height * taps->from_width == 1u ? 1u : 0u;
        const qn_u32 row = qn_row_of(p, pixels, pixels == 1u ? 0u : at);
        z = A[(qn_u64)row * qn_ld(channels) + s.column] *
            other[qn_place_of_tap(taps, p, 0u, spread != 0u ? 0u : at, s.column)];
    }
    qn_finish_join(step, taps, p, s, z, Y, D, numbers, out, layer, activation, threshold, keep,
                   seed);
}

QN_KERNEL(128)
qn_concat_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                  QN_GLOBAL const float *A, QN_GLOBAL const float *other, QN_GLOBAL float *Y,
                  QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers, qn_u32 index,
                  qn_u32 channels, qn_u32 pixels, qn_u32 out, qn_u32 layer, qn_u32 activation,
                  qn_u32 threshold, float keep, qn_u64 seed) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_sixteen s = qn_sixteen_of(qn_ld(out));
    if (s.row >= step->items * pixels)
        return;
    const qn_pixel p = qn_pixel_of(step, taps->height, taps->width, s.row);
    const qn_u32 c = s.column;
    float z = 0.0f;
    if (c < channels)
        z = A[(qn_u64)s.row * qn_ld(channels) + c];
    else if (c < out)
        z = other[qn_place_of_tap(taps, p, p.y, p.x, c - channels)];
    qn_finish_join(step, taps, p, s, z, Y, D, numbers, out, layer, activation, threshold, keep,
                   seed);
}

/* `pixels`, `out`: of the errors E. A factor that was spread has a chain over the pixels. */
QN_KERNEL(128)
qn_multiply_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                   QN_GLOBAL const float *E, QN_GLOBAL const float *other, QN_GLOBAL float *to,
                   qn_u32 index, qn_u32 channels, qn_u32 pixels, qn_u32 out, qn_u32 first) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(channels), own = taps->height * taps->width;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * own)
        return;
    const qn_pixel p = qn_pixel_of(step, taps->height, taps->width, s.row);
    const qn_u32 c = s.column, at = p.y * taps->width + p.x;
    const qn_u32 spread = taps->from_height * taps->from_width == 1u ? 1u : 0u;
    float e = 0.0f;
    if (c < channels && own == pixels)
        e = E[(qn_u64)s.row * ld + c] *
            other[qn_place_of_tap(taps, p, 0u, spread != 0u ? 0u : at, c)];
    QN_ROLLED
    for (qn_u32 q = 0u; q < pixels && c < channels && own != pixels; ++q)
        e = qn_fma(E[(qn_u64)qn_row_of(p, pixels, q) * ld + c],
                   other[qn_place_of_tap(taps, p, 0u, q, c)], e);
    to[(qn_u64)s.row * ld + c] = e;
}

/* The errors of `channels` channels from number `first` on. */
QN_KERNEL(128)
qn_concat_errors(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                 QN_GLOBAL const float *E, QN_GLOBAL const float *other, QN_GLOBAL float *to,
                 qn_u32 index, qn_u32 channels, qn_u32 pixels, qn_u32 out, qn_u32 first) {
    const qn_u32 ld = qn_ld(channels);
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row >= step->items * pixels)
        return;
    to[(qn_u64)s.row * ld + s.column] =
        s.column < channels ? E[(qn_u64)s.row * qn_ld(out) + first + s.column] : 0.0f;
}
