/* POOL_FORWARD and POOL_ERRORS (docs/exactness.md 16.5, 16.6): a lane has one number. An error
 * gathers from the windows that read its pixel. */

/* Number of the tap with the greatest value of the window whose first pixel is (y, x): the first
 * one of equals. */
QN_FN qn_u32 qn_greatest(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A,
                         qn_u32 y, qn_u32 x, qn_u32 c, float *value) {
    const qn_u32 across = taps->window[1], count = taps->window[0] * across;
    float m = A[qn_place_of_tap(taps, p, y, x, c)];
    qn_u32 best = 0u;
    QN_ROLLED
    for (qn_u32 tap = 1u; tap < count; ++tap) {
        const qn_u32 i = tap / across;
        const float v = A[qn_place_of_tap(taps, p, y + i, x + (tap - i * across), c)];
        if (v > m) {
            m = v;
            best = tap;
        }
    }
    *value = m;
    return best;
}

QN_FN float qn_mean(QN_GLOBAL const qn_taps *taps, qn_pixel p, QN_GLOBAL const float *A, qn_u32 y,
                    qn_u32 x, qn_u32 c, float factor) {
    const qn_u32 across = taps->window[1], count = taps->window[0] * across;
    float sum = 0.0f;
    QN_ROLLED
    for (qn_u32 tap = 0u; tap < count; ++tap) {
        const qn_u32 i = tap / across;
        sum = sum + A[qn_place_of_tap(taps, p, y + i, x + (tap - i * across), c)];
    }
    return sum * factor;
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
        const qn_u32 y = p.y * taps->stride[0], x = p.x * taps->stride[1];
        if ((flags & QN_POOL_MAX) != 0u)
            qn_greatest(taps, p, A, y, x, s.column, &z);
        else
            z = qn_mean(taps, p, A, y, x, s.column, factor);
    }
    Y[(qn_u64)s.row * ld + s.column] = z + 0.0f;
}

/* The first window that reads pixel `at` of its direction. */
QN_FN qn_u32 qn_first_window(qn_u32 at, qn_u32 window, qn_u32 stride) {
    return at < window ? 0u : (at - window) / stride + 1u;
}

/* The end of those windows. */
QN_FN qn_u32 qn_end_window(qn_u32 at, qn_u32 stride, qn_u32 windows) {
    const qn_u32 last = at / stride;
    return last < windows ? last + 1u : windows;
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
    const qn_u32 end_y = qn_end_window(p.y, taps->stride[0], taps->height);
    const qn_u32 end_x = qn_end_window(p.x, taps->stride[1], taps->width);
    const qn_u32 pixels = taps->height * taps->width;
    float e = 0.0f;
    QN_ROLLED
    for (qn_u32 y = qn_first_window(p.y, taps->window[0], taps->stride[0]);
         y < end_y && s.column < taps->channels; ++y) {
        QN_ROLLED
        for (qn_u32 x = qn_first_window(p.x, taps->window[1], taps->stride[1]); x < end_x; ++x) {
            const float delta =
                E[(qn_u64)qn_row_of(p, pixels, y * taps->width + x) * ld + s.column];
            const qn_u32 top = y * taps->stride[0], left = x * taps->stride[1];
            float value;
            if ((flags & QN_POOL_MAX) == 0u)
                e = e + delta * factor;
            else if (qn_greatest(taps, p, A, top, left, s.column, &value) ==
                     (p.y - top) * taps->window[1] + (p.x - left))
                e = e + delta;
        }
    }
    const qn_u64 at = (qn_u64)s.row * ld + s.column;
    B[at] = (flags & QN_POOL_ADD) != 0u ? e + B[at] : e;
}
