/* FORWARD and ERRORS of integers over the tiles of intgemm.cl (15.4, 15.5). The grid has one
 * direction; the columns of a row of tiles come first. */

/* Stores a number; +0 in the padding from column `columns` on. */
QN_FN void QN_INTGEMM(qn_keep)(QN_GLOBAL float *to, qn_u32 row, qn_u32 rows, qn_u32 column,
                               qn_u32 columns, float value) {
    if (row < rows && column < qn_ld(columns))
        to[(qn_u64)row * qn_ld(columns) + column] = column < columns ? value : 0.0f;
}

QN_KERNEL(QN_INTGEMM_LANES)
QN_INTGEMM(qn_intgemm_forward)(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_i32 *A,
                               QN_GLOBAL const qn_u32 *absmax, QN_GLOBAL const qn_i32 *W,
                               QN_GLOBAL const qn_u32 *outputs, QN_GLOBAL const float *parameters,
                               qn_u64 biases, QN_GLOBAL float *Y, QN_GLOBAL float *D,
                               QN_GLOBAL const qn_u64 *numbers, qn_u32 in, qn_u32 out, qn_u32 begin,
                               qn_u32 output, qn_u32 layer, qn_u32 activation, qn_u32 threshold,
                               float keep, qn_u64 seed) {
    QN_LOCAL qn_int4 buffer[2u * QN_SLAB / 4u];
    const qn_u32 items = step->items;
    const qn_u32 across = (out + QN_COLUMNS - 1u) / QN_COLUMNS;
    const qn_u32 row = qn_group(0) / across * QN_ROWS, column = qn_group(0) % across * QN_COLUMNS;
    if (row >= items)
        return;
    qn_i64 exact[QN_RUN][QN_RUN];
    QN_INTGEMM(qn_products)
    (exact, (QN_LOCAL_POINTER qn_i32 *)buffer, A, row, items,
     W + (qn_u64)begin * QN_DIGITS * qn_width(in), column, out, qn_width(in));

    const qn_u32 first = row + QN_INTGEMM(qn_lane_row)(),
                 c0 = column + QN_INTGEMM(qn_lane_column)();
    QN_UNROLL
    for (qn_u32 j = 0u; j < QN_RUN; ++j) {
        const qn_u32 c = c0 + j, known = c < out ? c : 0u;
        const float tw =
            qn_block_factor(qn_block_exponent(7u * QN_DIGITS, outputs[output + known]));
        const float bias = parameters[biases + known];
        QN_UNROLL
        for (qn_u32 i = 0u; i < QN_RUN; ++i) {
            const qn_u32 r = first + i < items ? first + i : items - 1u;
            const float ta = qn_block_factor(qn_block_exponent(7u * QN_DIGITS, absmax[r]));
            QN_INTGEMM(qn_keep)
            (Y, first + i, items, c, out, qn_fma(qn_float_of(exact[i][j]), ta * tw, bias));
        }
    }
    if (qn_finishes_forward(activation, threshold) == 0u)
        return;
    QN_ROLLED
    for (qn_u32 i = 0u; i < QN_RUN; ++i)
        qn_finish_forward_run(step, items, Y, D, numbers, first + i, c0, QN_RUN, out, layer,
                              activation, threshold, keep, seed);
}

QN_KERNEL(QN_INTGEMM_LANES)
QN_INTGEMM(qn_intgemm_errors)(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_i32 *E,
                              QN_GLOBAL const qn_u32 *absmax, QN_GLOBAL const qn_i32 *W,
                              QN_GLOBAL const float *Y, QN_GLOBAL float *B,
                              QN_GLOBAL const qn_u64 *numbers, qn_u32 in, qn_u32 out, qn_u32 layer,
                              qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_LOCAL qn_int4 buffer[2u * QN_SLAB / 4u];
    const qn_u32 items = step->items;
    const qn_u32 across = (in + QN_COLUMNS - 1u) / QN_COLUMNS;
    const qn_u32 row = qn_group(0) / across * QN_ROWS, column = qn_group(0) % across * QN_COLUMNS;
    if (row >= items)
        return;
    qn_i64 exact[QN_RUN][QN_RUN];
    QN_INTGEMM(qn_products)
    (exact, (QN_LOCAL_POINTER qn_i32 *)buffer, E, row, items, W, column, in, qn_width(out));

    const qn_u32 first = row + QN_INTGEMM(qn_lane_row)(),
                 c0 = column + QN_INTGEMM(qn_lane_column)();
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_RUN; ++i) {
        const qn_u32 r = first + i < items ? first + i : items - 1u;
        const float tc = qn_block_factor(qn_block_exponent(7u * QN_DIGITS, absmax[r]));
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_RUN; ++j)
            QN_INTGEMM(qn_keep)(B, first + i, items, c0 + j, in, qn_float_of(exact[i][j]) * tc);
    }
    if (qn_finishes_errors(activation, threshold) == 0u)
        return;
    QN_ROLLED
    for (qn_u32 i = 0u; i < QN_RUN; ++i)
        qn_finish_errors_run(step, items, B, Y, numbers, first + i, c0, QN_RUN, in, layer,
                             activation, threshold, keep, seed);
}
