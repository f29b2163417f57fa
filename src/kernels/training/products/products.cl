/* FORWARD and ERRORS over the tiles of tile.cl. */

/* Stores a lane's numbers. Columns from `columns` to the end of the padded row become +0. */
QN_FN void QN_TILE(qn_store)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS], QN_GLOBAL float *to,
                             qn_u32 row, qn_u32 rows, qn_u32 column, qn_u32 columns) {
    const qn_u32 ld = qn_ld(columns);
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        const qn_u32 r = row + QN_TILE(qn_row_run)(i / QN_ROW_RUN) + i % QN_ROW_RUN;
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; j += 2u) {
            const qn_u32 c = column + QN_TILE(qn_column_run)(j / QN_COLUMN_RUN) + j % QN_COLUMN_RUN;
            qn_float2 v;
            v.x = c < columns ? acc[i][j] : 0.0f;
            v.y = c + 1u < columns ? acc[i][j + 1u] : 0.0f;
            if (r < rows && c < ld)
                *(QN_GLOBAL qn_float2 *)(to + (qn_u64)r * ld + c) = v;
        }
    }
}

QN_KERNEL_OF(QN_TILE_LANES, QN_TILE_GROUPS)
QN_TILE(qn_forward)(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                    QN_GLOBAL const float *parameters, qn_u64 weights, qn_u64 biases,
                    QN_GLOBAL float *Y, QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers,
                    qn_u32 in, qn_u32 out, qn_u32 stride, qn_u32 layer, qn_u32 activation,
                    qn_u32 threshold, float keep, qn_u64 seed) {
    QN_LOCAL qn_float4 buffer[2u * QN_SIDE / 4u];
    QN_LOCAL_POINTER float *tile = (QN_LOCAL_POINTER float *)buffer;
    const qn_u32 items = step->items;
    const qn_u32 row = qn_group(1) * QN_TILE_ROWS, column = qn_group(0) * QN_TILE_COLUMNS;
    if (row >= items)
        return;

    float acc[QN_LANE_ROWS][QN_LANE_COLUMNS];
    QN_UNROLL
    for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j) {
        const qn_u32 c = column + QN_TILE(qn_column_run)(j / QN_COLUMN_RUN) + j % QN_COLUMN_RUN;
        const float bias = c < out ? parameters[biases + c] : 0.0f;
        QN_UNROLL
        for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i)
            acc[i][j] = bias;
    }
    QN_TILE(qn_loader) a =
        QN_TILE(qn_loader_transposed)(tile, QN_TILE_ROWS, A, qn_ld(in), row, items);
    QN_TILE(qn_loader)
    w = QN_TILE(qn_loader_plain)(tile + QN_K_BLOCK * QN_TILE_ROWS, QN_TILE_COLUMNS,
                                 parameters + weights, stride, column);
    QN_TILE(qn_chains)(acc, tile, &a, &w, in, 1u, 0u);

    QN_TILE(qn_store)(acc, Y, row, items, column, out);
    if (qn_finishes_forward(activation, threshold) == 0u)
        return;
    QN_ROLLED
    for (qn_u32 n = 0u; n < QN_LANE_ROWS * QN_LANE_COLUMNS / QN_COLUMN_RUN; ++n) {
        const qn_u32 across = QN_LANE_COLUMNS / QN_COLUMN_RUN, i = n / across, j = n % across;
        const qn_u32 r = row + QN_TILE(qn_row_run)(i / QN_ROW_RUN) + i % QN_ROW_RUN;
        const qn_u32 c = column + QN_TILE(qn_column_run)(j);
        qn_finish_forward_run(step, items, Y, D, numbers, r, c, QN_COLUMN_RUN, out, layer,
                              activation, threshold, keep, seed);
    }
}

QN_KERNEL_OF(QN_TILE_LANES, QN_TILE_GROUPS)
QN_TILE(qn_errors)(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *E,
                   QN_GLOBAL const float *parameters, qn_u64 weights, QN_GLOBAL const float *Y,
                   QN_GLOBAL float *B, QN_GLOBAL const qn_u64 *numbers, qn_u32 in, qn_u32 out,
                   qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_LOCAL qn_float4 buffer[2u * QN_SIDE / 4u];
    QN_LOCAL_POINTER float *tile = (QN_LOCAL_POINTER float *)buffer;
    const qn_u32 items = step->items;
    const qn_u32 row = qn_group(1) * QN_TILE_ROWS, column = qn_group(0) * QN_TILE_COLUMNS;
    if (row >= items)
        return;

    float acc[QN_LANE_ROWS][QN_LANE_COLUMNS];
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j)
            acc[i][j] = 0.0f;
    }
    QN_TILE(qn_loader) e =
        QN_TILE(qn_loader_transposed)(tile, QN_TILE_ROWS, E, qn_ld(out), row, items);
    QN_TILE(qn_loader)
    w = QN_TILE(qn_loader_transposed)(tile + QN_K_BLOCK * QN_TILE_ROWS, QN_TILE_COLUMNS,
                                      parameters + weights, qn_ld(out), column, in);
    QN_TILE(qn_chains)(acc, tile, &e, &w, out, 1u, 1u);

    QN_TILE(qn_store)(acc, B, row, items, column, in);
    if (qn_finishes_errors(activation, threshold) == 0u)
        return;
    QN_ROLLED
    for (qn_u32 n = 0u; n < QN_LANE_ROWS * QN_LANE_COLUMNS / QN_COLUMN_RUN; ++n) {
        const qn_u32 across = QN_LANE_COLUMNS / QN_COLUMN_RUN, i = n / across, j = n % across;
        const qn_u32 r = row + QN_TILE(qn_row_run)(i / QN_ROW_RUN) + i % QN_ROW_RUN;
        const qn_u32 c = column + QN_TILE(qn_column_run)(j);
        qn_finish_errors_run(step, items, B, Y, numbers, r, c, QN_COLUMN_RUN, in, layer, activation,
                             threshold, keep, seed);
    }
}
