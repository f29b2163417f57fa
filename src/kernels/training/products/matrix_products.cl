/* FORWARD and ERRORS of integers over the tiles of matrix.cl (15.4, 15.5), with the arguments and
 * the grid of intgemm_products.cl. */

/* Writes the factors of the blocks of a tile's rows to the local memory that held the slabs. */
QN_FN void QN_INTGEMM(qn_factors)(QN_LOCAL_POINTER float *to, const qn_u32 size,
                                  QN_GLOBAL const qn_u32 *absmax, qn_u32 first, qn_u32 rows) {
    QN_ROLLED
    for (qn_u32 n = qn_lane(); n < size; n += QN_INTGEMM_LANES) {
        const qn_u32 r = first + n < rows ? first + n : rows - 1u;
        to[n] = qn_block_factor(qn_block_exponent(7u * QN_DIGITS, absmax[r]));
    }
}

/* Writes two neighbouring numbers; +0 from column `columns` on. */
QN_FN void QN_INTGEMM(qn_keep)(QN_GLOBAL float *to, qn_u32 column, qn_u32 columns, float value,
                               float beside) {
    qn_float2 both;
    both.x = column < columns ? value : 0.0f;
    both.y = column + 1u < columns ? beside : 0.0f;
    if (column < qn_ld(columns))
        *(QN_GLOBAL qn_float2 *)to = both;
}

QN_KERNEL(QN_INTGEMM_LANES)
QN_INTGEMM(qn_intgemm_forward)(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_i32 *A,
                               QN_GLOBAL const qn_u32 *absmax, QN_GLOBAL const qn_i32 *W,
                               QN_GLOBAL const qn_u32 *outputs, QN_GLOBAL const float *parameters,
                               qn_u64 biases, QN_GLOBAL float *Y, QN_GLOBAL float *D,
                               QN_GLOBAL const qn_u64 *numbers, qn_u32 in, qn_u32 out, qn_u32 begin,
                               qn_u32 output, qn_u32 layer, qn_u32 activation, qn_u32 threshold,
                               float keep, qn_u64 seed) {
    QN_LOCAL qn_int4 buffer[QN_STAGES * QN_SLAB / 4u];
    const qn_u32 items = step->items, ld = qn_ld(out);
    const qn_u32 across = (out + QN_COLUMNS - 1u) / QN_COLUMNS;
    const qn_u32 row = qn_group(0) / across * QN_ROWS, column = qn_group(0) % across * QN_COLUMNS;
    if (row >= items)
        return;
    qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4];
    QN_INTGEMM(qn_products)
    (acc, (QN_LOCAL_POINTER qn_i32 *)buffer, A, row, items,
     W + (qn_u64)begin * QN_DIGITS * qn_width(in), column, out, qn_width(in));

    QN_LOCAL_POINTER float *factors = (QN_LOCAL_POINTER float *)buffer;
    QN_LOCAL_POINTER float *times = factors + QN_ROWS, *add = times + QN_COLUMNS;
    qn_barrier();
    QN_INTGEMM(qn_factors)(factors, QN_ROWS, absmax, row, items);
    QN_INTGEMM(qn_factors)(times, QN_COLUMNS, outputs + output, column, out);
    QN_ROLLED
    for (qn_u32 n = qn_lane(); n < QN_COLUMNS; n += QN_INTGEMM_LANES)
        add[n] = parameters[biases + (column + n < out ? column + n : 0u)];
    qn_barrier();

    const qn_u32 r0 = QN_INTGEMM(qn_lane_row)(), n0 = QN_INTGEMM(qn_lane_column)();
    const qn_u32 first = row + r0, c0 = column + n0;
    QN_GLOBAL float *to = Y + (qn_u64)first * ld + c0;
    QN_UNROLL
    for (qn_u32 i = 0u; i < 2u * QN_HIGH && first + 8u * i < items; ++i) {
        const float ta = factors[r0 + 8u * i];
        const qn_u32 n = i % 2u * 2u;
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_BROAD; ++j) {
            const qn_float2 tw = *(QN_LOCAL_POINTER const qn_float2 *)(times + n0 + 8u * j);
            const qn_float2 bias = *(QN_LOCAL_POINTER const qn_float2 *)(add + n0 + 8u * j);
            const float z0 = qn_float_of(QN_INTGEMM(qn_gathered)(acc, i / 2u, j, n));
            const float z1 = qn_float_of(QN_INTGEMM(qn_gathered)(acc, i / 2u, j, n + 1u));
            QN_INTGEMM(qn_keep)
            (to + 8u * j, c0 + 8u * j, out, qn_fma(z0, ta * tw.x, bias.x),
             qn_fma(z1, ta * tw.y, bias.y));
        }
        to += 8u * ld;
    }
    if (qn_finishes_forward(activation, threshold) == 0u)
        return;
    QN_ROLLED
    for (qn_u32 i = 0u; i < 2u * QN_HIGH * QN_BROAD; ++i) {
        qn_finish_forward_run(step, items, Y, D, numbers, first + i / QN_BROAD * 8u,
                              c0 + i % QN_BROAD * 8u, 2u, out, layer, activation, threshold, keep,
                              seed);
    }
}

QN_KERNEL(QN_INTGEMM_LANES)
QN_INTGEMM(qn_intgemm_errors)(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_i32 *E,
                              QN_GLOBAL const qn_u32 *absmax, QN_GLOBAL const qn_i32 *W,
                              QN_GLOBAL const float *Y, QN_GLOBAL float *B,
                              QN_GLOBAL const qn_u64 *numbers, qn_u32 in, qn_u32 out, qn_u32 layer,
                              qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_LOCAL qn_int4 buffer[QN_STAGES * QN_SLAB / 4u];
    const qn_u32 items = step->items, ld = qn_ld(in);
    const qn_u32 across = (in + QN_COLUMNS - 1u) / QN_COLUMNS;
    const qn_u32 row = qn_group(0) / across * QN_ROWS, column = qn_group(0) % across * QN_COLUMNS;
    if (row >= items)
        return;
    qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4];
    QN_INTGEMM(qn_products)
    (acc, (QN_LOCAL_POINTER qn_i32 *)buffer, E, row, items, W, column, in, qn_width(out));

    QN_LOCAL_POINTER float *factors = (QN_LOCAL_POINTER float *)buffer;
    qn_barrier();
    QN_INTGEMM(qn_factors)(factors, QN_ROWS, absmax, row, items);
    qn_barrier();

    const qn_u32 r0 = QN_INTGEMM(qn_lane_row)(), c0 = column + QN_INTGEMM(qn_lane_column)();
    const qn_u32 first = row + r0;
    QN_GLOBAL float *to = B + (qn_u64)first * ld + c0;
    QN_UNROLL
    for (qn_u32 i = 0u; i < 2u * QN_HIGH && first + 8u * i < items; ++i) {
        const float tc = factors[r0 + 8u * i];
        const qn_u32 n = i % 2u * 2u;
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_BROAD; ++j) {
            const float e0 = qn_float_of(QN_INTGEMM(qn_gathered)(acc, i / 2u, j, n));
            const float e1 = qn_float_of(QN_INTGEMM(qn_gathered)(acc, i / 2u, j, n + 1u));
            QN_INTGEMM(qn_keep)(to + 8u * j, c0 + 8u * j, in, e0 * tc, e1 * tc);
        }
        to += 8u * ld;
    }
    if (qn_finishes_errors(activation, threshold) == 0u)
        return;
    QN_ROLLED
    for (qn_u32 i = 0u; i < 2u * QN_HIGH * QN_BROAD; ++i) {
        qn_finish_errors_run(step, items, B, Y, numbers, first + i / QN_BROAD * 8u,
                             c0 + i % QN_BROAD * 8u, 2u, in, layer, activation, threshold, keep,
                             seed);
    }
}
