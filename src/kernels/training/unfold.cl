/* UNFOLD and TRANSPOSE_WEIGHTS: a layer with windows as a product of matrices. A lane writes
 * vectors of four columns, which have the same taps in QN_UNFOLD_ROWS consecutive rows. */
#define QN_UNFOLD_ROWS 16u
#define QN_UNFOLD_ONE 0xfffffffeu

/* A column of unfolded rows. */
typedef struct qn_column {
    qn_i32 y, x;    /* of the tap, relative to stride times pixel */
    qn_u32 channel; /* QN_OUTSIDE: padding, QN_UNFOLD_ONE: after the last tap */
} qn_column;

QN_FN qn_column qn_column_of(QN_GLOBAL const qn_taps *taps, qn_u32 k, qn_u32 end) {
    qn_column c;
    const qn_u32 across = taps->window[1], tap = k / taps->channels;
    const qn_u32 i = tap / across, j = tap - i * across;
    c.y = taps->first[0] + (qn_i32)(i * taps->dilation[0]);
    c.x = taps->first[1] + (qn_i32)(j * taps->dilation[1]);
    c.channel = k - tap * taps->channels;
    if (tap >= taps->window[0] * across)
        c.channel = QN_UNFOLD_ONE;
    if (k >= end)
        c.channel = QN_OUTSIDE;
    return c;
}

/* Sets *at to the place that the column reads for a row; 0 if there is none. */
QN_FN qn_u32 qn_column_at(QN_GLOBAL const qn_taps *taps, qn_pixel p, qn_column c, qn_u64 *at) {
    const qn_u32 y =
        qn_tap_at((qn_i32)(p.y * taps->stride[0]) + c.y, taps->divisor[0], taps->from_height);
    const qn_u32 x =
        qn_tap_at((qn_i32)(p.x * taps->stride[1]) + c.x, taps->divisor[1], taps->from_width);
    if (c.channel >= QN_UNFOLD_ONE || y == QN_OUTSIDE || x == QN_OUTSIDE)
        return 0u;
    *at = qn_place_of_tap(taps, p, y, x, c.channel);
    return 1u;
}

QN_KERNEL(128)
qn_unfold(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all, QN_GLOBAL const float *from,
          QN_GLOBAL float *to, QN_GLOBAL qn_step *rows, qn_u32 index, qn_u32 first, qn_u32 count,
          qn_u32 column, qn_u32 columns, qn_u32 grain) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 ld = qn_ld(columns), across = ld / 4u, end = column + columns;
    const qn_u32 n = qn_group(0) * 128u + qn_lane(), block = n / across;
    const qn_u32 begin = block * QN_UNFOLD_ROWS, k = (n - block * across) * 4u;
    const qn_u32 height = taps->height, width = taps->width;
    if (n == 0u) {
        rows->items = count;
        rows->grain = grain;
    }
    if (begin >= count)
        return;
    /* Four columns of one tap are read at once. */
    const qn_u32 together =
        taps->planar == 0u && taps->channels % 4u == 0u && column + k + 3u < end &&
                column + k + 3u < taps->channels * taps->window[0] * taps->window[1]
            ? 1u
            : 0u;
    const qn_column c0 = qn_column_of(taps, column + k, end);
    const qn_column c1 = qn_column_of(taps, column + k + 1u, end);
    const qn_column c2 = qn_column_of(taps, column + k + 2u, end);
    const qn_column c3 = qn_column_of(taps, column + k + 3u, end);
    qn_pixel p = qn_pixel_of(step, height, width, first + begin);
    QN_ROLLED
    for (qn_u32 r = begin; r < count && r - begin < QN_UNFOLD_ROWS; ++r) {
        qn_float4 v;
        qn_u64 at = 0u;
        v.x = c0.channel == QN_UNFOLD_ONE ? 1.0f : 0.0f;
        v.y = c1.channel == QN_UNFOLD_ONE ? 1.0f : 0.0f;
        v.z = c2.channel == QN_UNFOLD_ONE ? 1.0f : 0.0f;
        v.w = c3.channel == QN_UNFOLD_ONE ? 1.0f : 0.0f;
        if (together != 0u) {
            if (qn_column_at(taps, p, c0, &at) != 0u)
                v = *(QN_GLOBAL const qn_float4 *)(from + at);
        } else {
            if (qn_column_at(taps, p, c0, &at) != 0u)
                v.x = from[at];
            if (qn_column_at(taps, p, c1, &at) != 0u)
                v.y = from[at];
            if (qn_column_at(taps, p, c2, &at) != 0u)
                v.z = from[at];
            if (qn_column_at(taps, p, c3, &at) != 0u)
                v.w = from[at];
        }
        *(QN_GLOBAL qn_float4 *)(to + (qn_u64)r * ld + k) = v;
        p = qn_next_pixel(step, height, width, p);
    }
}

QN_KERNEL(128)
qn_transpose_weights(QN_GLOBAL const float *parameters, QN_GLOBAL float *to, qn_u64 weights,
                     qn_u32 taps, qn_u32 in, qn_u32 out) {
    const qn_u32 ld = qn_ld(in), rows = taps * out;
    const qn_sixteen s = qn_sixteen_of(ld);
    if (s.row > rows)
        return;
    const qn_u32 tap = s.row / out, o = s.row - tap * out;
    float v = 0.0f;
    if (s.row < rows && s.column < in)
        v = parameters[weights + (qn_u64)((taps - 1u - tap) * in + s.column) * qn_ld(out) + o];
    to[(qn_u64)s.row * ld + s.column] = v;
}
