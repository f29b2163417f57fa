/* Integers of layers with pixels (docs/exactness.md 17.12): the blocks are those of items and of
 * grains, whose numbers are in rows of pixels, and unfolded in rows of taps. Of a sequence each row
 * is a block (25.24). */

/* PIXELS_ABSMAX: a group processes an item at a time. */
QN_KERNEL(128)
qn_pixels_absmax(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *from,
                 QN_GLOBAL const qn_u32 *outputs, QN_GLOBAL qn_u32 *items, QN_GLOBAL qn_u32 *grains,
                 QN_GLOBAL qn_status_words *status, qn_u32 columns, qn_u32 pixels, qn_u32 bits,
                 qn_u32 output, qn_u32 grain, qn_u32 layer, qn_u32 flags) {
    QN_LOCAL qn_u32 plain[QN_QUANTIZE_LANES], weighed[QN_QUANTIZE_LANES];
    const qn_u32 lane = qn_lane(), ld = qn_ld(columns);
    for (qn_u32 item = qn_group(0); item < step->items; item += qn_groups(0)) {
        const qn_pixel p = qn_item_pixel(step, item);
        qn_u32 most = 0u, most_weighed = 0u;
        for (qn_u32 n = lane; n < pixels * ld; n += QN_QUANTIZE_LANES) {
            const qn_u32 at = n / ld, c = n - at * ld;
            if (c >= columns)
                continue;
            const float v = from[(qn_u64)qn_row_of(p, pixels, at) * ld + c];
            most = qn_larger(most, qn_magnitude(v));
            most_weighed = qn_larger(most_weighed,
                                     qn_magnitude(qn_weighed(v, flags, bits, outputs + output, c)));
        }
        plain[lane] = most;
        weighed[lane] = most_weighed;
        qn_note_item(plain, weighed, items + item, grains + grain + item / qn_grain_of(step),
                     status, layer, flags);
        qn_barrier();
    }
}

/* QUANTIZE_ROWS: a lane has a word of a row. */
QN_KERNEL(128)
qn_quantize_rows(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_taps *all,
                 QN_GLOBAL const float *from, QN_GLOBAL const qn_u32 *outputs,
                 QN_GLOBAL const qn_u32 *items, QN_GLOBAL qn_u32 *rows, QN_GLOBAL qn_u32 *to,
                 qn_u32 index, qn_u32 first, qn_u32 count, qn_u32 columns, qn_u32 channels,
                 qn_u32 bits, qn_u32 output, qn_u32 flags) {
    QN_GLOBAL const qn_taps *taps = all + index;
    const qn_u32 width = qn_width(columns), digits = bits / 7u;
    const qn_u64 n = (qn_u64)qn_group(0) * 128u + qn_lane();
    const qn_u32 row = (qn_u32)(n / width), w = (qn_u32)(n % width);
    if (row >= count)
        return;
    const qn_pixel p = qn_pixel_of(step, taps->height, taps->width, first + row);
    const qn_u32 own = flags & QN_QUANTIZE_OWN;
    const qn_u32 absmax = own != 0u ? rows[row] : items[p.begin + p.item];
    const float inverse = qn_block_inverse(qn_block_exponent(bits, absmax));
    QN_GLOBAL const float *x = from + (qn_u64)row * qn_ld(columns);
    qn_i32 q[4];
    for (qn_u32 e = 0u; e < 4u; ++e) {
        const qn_u32 k = 4u * w + e;
        q[e] = 0;
        if (k < columns)
            q[e] =
                qn_quantize(qn_weighed(x[k], flags, bits, outputs + output, k % channels), inverse);
    }
    qn_write_words(to + (qn_u64)row * digits * width + w, digits, width, q[0], q[1], q[2], q[3]);
    if (w == 0u && own == 0u)
        rows[row] = absmax;
}

/* ROWS_ABSMAX: a lane has the absmax of a row of a chunk, which is a block by itself (25.24). */
QN_KERNEL(128)
qn_rows_absmax(QN_GLOBAL const float *from, QN_GLOBAL const qn_u32 *outputs, QN_GLOBAL qn_u32 *rows,
               qn_u32 count, qn_u32 columns, qn_u32 channels, qn_u32 bits, qn_u32 output,
               qn_u32 flags) {
    const qn_u64 row = (qn_u64)qn_group(0) * 128u + qn_lane();
    qn_u32 most = 0u;
    if (row >= count)
        return;
    QN_GLOBAL const float *x = from + row * qn_ld(columns);
    for (qn_u32 c = 0u; c < columns; ++c)
        most = qn_larger(
            most, qn_magnitude(qn_weighed(x[c], flags, bits, outputs + output, c % channels)));
    rows[row] = most;
}

/* GRAINS_ABSMAX: a group has a row at a time, of rows from `first` on. */
QN_KERNEL(128)
qn_grains_absmax(QN_GLOBAL const float *from, QN_GLOBAL qn_u32 *grains, qn_u32 first, qn_u32 count,
                 qn_u32 columns, qn_u32 span, qn_u32 place) {
    QN_LOCAL qn_u32 most[QN_QUANTIZE_LANES];
    const qn_u32 lane = qn_lane(), ld = qn_ld(columns);
    for (qn_u32 row = qn_group(0); row < count; row += qn_groups(0)) {
        QN_GLOBAL const float *x = from + (qn_u64)row * ld;
        qn_u32 own = 0u;
        for (qn_u32 c = lane; c < columns; c += QN_QUANTIZE_LANES)
            own = qn_larger(own, qn_magnitude(x[c]));
        most[lane] = own;
        qn_barrier();
        for (qn_u32 other = QN_QUANTIZE_LANES / 2u; other > 0u; other /= 2u) {
            if (lane < other)
                most[lane] = qn_larger(most[lane], most[lane + other]);
            qn_barrier();
        }
        if (lane == 0u)
            qn_atomic_max(grains + place + (first + row) / span, most[0]);
        qn_barrier();
    }
}

/* QUANTIZE_TRANSPOSED: a lane has a word of an input channel. */
QN_KERNEL(128)
qn_quantize_transposed(QN_GLOBAL const float *parameters, QN_GLOBAL const qn_u32 *outputs,
                       QN_GLOBAL qn_u32 *to, qn_u64 weights, qn_u32 taps, qn_u32 in, qn_u32 out,
                       qn_u32 output, qn_u32 bits) {
    const qn_u32 links = taps * out, width = qn_width(links), digits = bits / 7u;
    const qn_u64 n = (qn_u64)qn_group(0) * 128u + qn_lane();
    const qn_u32 c = (qn_u32)(n / width), w = (qn_u32)(n % width);
    if (c >= in)
        return;
    qn_i32 q[4];
    for (qn_u32 e = 0u; e < 4u; ++e) {
        const qn_u32 k = 4u * w + e, tap = k / out, o = k - tap * out;
        q[e] = 0;
        if (k < links)
            q[e] = qn_quantize(
                parameters[weights + (qn_u64)((taps - 1u - tap) * in + c) * qn_ld(out) + o],
                qn_block_inverse(qn_block_exponent(bits, outputs[output + o])));
    }
    qn_write_words(to + (qn_u64)c * digits * width + w, digits, width, q[0], q[1], q[2], q[3]);
}
