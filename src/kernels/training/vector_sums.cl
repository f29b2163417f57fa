/* SUMS_OUT and SUMS_IN for CPU devices, the vector variants of those of sums.cl. Blocks of 16 x 16
 * integers are transposed, so that both layouts are accessed in runs of 16. Groups process blocks
 * with the stride of the grid, and so they copy the rows after the weights. */
QN_INLINE void qn_transpose_out(QN_GLOBAL const qn_i64 *sums, QN_GLOBAL qn_i64 *canonical, qn_u32 k,
                                qn_u32 o, qn_u32 in, qn_u32 out) {
    const qn_u32 rows = in - k < 16u ? in - k : 16u, columns = out - o < 16u ? out - o : 16u;
    qn_i64 block[16][16];
    for (qn_u32 y = 0u; y < rows; ++y)
        for (qn_u32 x = 0u; x < 16u; ++x)
            block[x][y] = sums[(qn_u64)(k + y) * qn_ld(out) + o + x];
    for (qn_u32 x = 0u; x < columns; ++x) {
        QN_GLOBAL qn_i64 *to = canonical + (qn_u64)(o + x) * in + k;
        if (rows == 16u)
            vstore16(vload16(0, block[x]), 0, to);
        for (qn_u32 y = 0u; y < rows && rows < 16u; ++y)
            to[y] = block[x][y];
    }
}

QN_INLINE void qn_transpose_in(QN_GLOBAL qn_i64 *sums, QN_GLOBAL const qn_i64 *canonical, qn_u32 k,
                               qn_u32 o, qn_u32 in, qn_u32 out) {
    const qn_u32 rows = in - k < 16u ? in - k : 16u, columns = out - o < 16u ? out - o : 16u;
    qn_i64 block[16][16];
    for (qn_u32 x = 0u; x < 16u; ++x)
        for (qn_u32 y = 0u; y < rows; ++y)
            block[y][x] = x < columns ? canonical[(qn_u64)(o + x) * in + k + y] : 0;
    for (qn_u32 y = 0u; y < rows; ++y)
        vstore16(vload16(0, block[y]), 0, sums + (qn_u64)(k + y) * qn_ld(out) + o);
}

QN_KERNEL(1)
qn_sums_out_vector(QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_i64 *canonical, qn_u64 weights, qn_u32 in,
                   qn_u32 out, qn_u64 offset, qn_u32 biases) {
    const qn_u32 across = qn_ld(out) / 16u;
    const qn_u64 blocks = (qn_u64)across * ((in + 15u) / 16u);
    QN_GLOBAL const qn_i64 *from = sums + weights;
    QN_GLOBAL qn_i64 *to = canonical + offset;
    for (qn_u64 n = qn_group(0); n < blocks; n += qn_groups(0))
        qn_transpose_out(from, to, (qn_u32)(n / across) * 16u, (qn_u32)(n % across) * 16u, in, out);
    for (qn_u64 row = qn_group(0); row < biases; row += qn_groups(0))
        for (qn_u32 o = 0u; o < out; ++o)
            to[(in + row) * out + o] = from[(in + row) * qn_ld(out) + o];
}

QN_KERNEL(1)
qn_sums_in_vector(QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_i64 *canonical, qn_u64 weights, qn_u32 in,
                  qn_u32 out, qn_u64 offset, qn_u32 biases) {
    const qn_u32 across = qn_ld(out) / 16u;
    const qn_u64 blocks = (qn_u64)across * ((in + 15u) / 16u);
    QN_GLOBAL qn_i64 *to = sums + weights;
    QN_GLOBAL const qn_i64 *from = canonical + offset;
    for (qn_u64 n = qn_group(0); n < blocks; n += qn_groups(0))
        qn_transpose_in(to, from, (qn_u32)(n / across) * 16u, (qn_u32)(n % across) * 16u, in, out);
    for (qn_u64 row = qn_group(0); row < biases; row += qn_groups(0))
        for (qn_u32 o = 0u; o < qn_ld(out); ++o)
            to[(in + row) * qn_ld(out) + o] = o < out ? from[(in + row) * out + o] : 0;
}
