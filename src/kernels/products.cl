/* FORWARD and ERRORS over the tiles of tile.cl. */

/* Stores a lane's numbers as they are, +0 in columns from `columns` on up to the next row. */
QN_FN void QN_TILE(qn_store)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS], QN_GLOBAL float *to,
                             qn_u32 row, qn_u32 rows, qn_u32 column, qn_u32 columns) {
    const qn_u32 ld = qn_ld(columns);
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        const qn_u32 r = row + QN_TILE(qn_row_run)(i / 4u) + i % 4u;
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS / 4u; ++j) {
            const qn_u32 c = column + QN_TILE(qn_column_run)(j);
            qn_float4 v;
            v.x = c < columns ? acc[i][4u * j] : 0.0f;
            v.y = c + 1u < columns ? acc[i][4u * j + 1u] : 0.0f;
            v.z = c + 2u < columns ? acc[i][4u * j + 2u] : 0.0f;
            v.w = c + 3u < columns ? acc[i][4u * j + 3u] : 0.0f;
            if (r < rows && c < ld)
                *(QN_GLOBAL qn_float4 *)(to + (qn_u64)r * ld + c) = v;
        }
    }
}

QN_KERNEL(QN_TILE_LANES)
QN_TILE(qn_forward)(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                    QN_GLOBAL const float *parameters, qn_u64 weights, qn_u64 biases,
                    QN_GLOBAL float *Y, QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers,
                    qn_u32 in, qn_u32 out, qn_u32 layer, qn_u32 activation, qn_u32 threshold,
                    float keep, qn_u64 seed) {
    QN_LOCAL qn_float4 a_slice[QN_SLICE * QN_TILE_ROWS / 4u];
    QN_LOCAL qn_float4 b_slice[QN_SLICE * QN_TILE_COLUMNS / 4u];
    QN_LOCAL_POINTER float *a = (QN_LOCAL_POINTER float *)a_slice;
    QN_LOCAL_POINTER float *b = (QN_LOCAL_POINTER float *)b_slice;
    const qn_u32 items = step->items, ld = qn_ld(out);
    const qn_u32 row = qn_group(1) * QN_TILE_ROWS, column = qn_group(0) * QN_TILE_COLUMNS;
    if (row >= items)
        return;

    float acc[QN_LANE_ROWS][QN_LANE_COLUMNS];
    QN_UNROLL
    for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j) {
        const qn_u32 c = column + QN_TILE(qn_column_run)(j / 4u) + j % 4u;
        const float bias = c < out ? parameters[biases + c] : 0.0f;
        QN_UNROLL
        for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i)
            acc[i][j] = bias;
    }
    for (qn_u32 k = 0u; k < in; k += QN_SLICE) {
        QN_TILE(qn_load_turned)(a, QN_TILE_ROWS, A, qn_ld(in), row, items, k);
        QN_TILE(qn_load_straight)(b, QN_TILE_COLUMNS, parameters + weights, ld, column, in, k);
        qn_barrier();
        QN_TILE(qn_links)(acc, a, b, in - k, 1u, 0u);
        qn_barrier();
    }

    QN_TILE(qn_store)(acc, Y, row, items, column, out);
    const qn_u32 shaped = activation != QN_ACT_NONE && activation != QN_ACT_SOFTMAX ? 1u : 0u;
    if (shaped == 0u && threshold == 0u)
        return;
    /* Each lane goes once more over what it wrote itself: a loop instead of so many copies of the
     * functions as a lane has numbers. */
    QN_ROLLED
    for (qn_u32 n = 0u; n < QN_LANE_ROWS * QN_LANE_COLUMNS / 4u; ++n) {
        const qn_u32 i = n / (QN_LANE_COLUMNS / 4u), j = n % (QN_LANE_COLUMNS / 4u);
        const qn_u32 r = row + QN_TILE(qn_row_run)(i / 4u) + i % 4u;
        const qn_u32 c = column + QN_TILE(qn_column_run)(j);
        if (r >= items || c >= ld)
            continue;
        QN_GLOBAL float *y = Y + (qn_u64)r * ld + c;
        QN_GLOBAL float *d = D + (qn_u64)r * ld + c;
        const qn_u64 number = threshold != 0u ? numbers[r] : 0u;
        const qn_four word = qn_dropout_words(seed, layer, step->epoch, number, c / 4u);
        const qn_u32 words[4] = {word.x, word.y, word.z, word.w};
        QN_ROLLED
        for (qn_u32 e = 0u; e < 4u; ++e) {
            const float v = c + e < out ? qn_activate(activation, y[e]) : 0.0f;
            y[e] = v;
            if (threshold != 0u)
                d[e] = c + e < out ? qn_dropped(words[e], threshold, keep, v) : 0.0f;
        }
    }
}

QN_KERNEL(QN_TILE_LANES)
QN_TILE(qn_errors)(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *E,
                   QN_GLOBAL const float *parameters, qn_u64 weights, QN_GLOBAL const float *Y,
                   QN_GLOBAL float *B, QN_GLOBAL const qn_u64 *numbers, qn_u32 in, qn_u32 out,
                   qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    QN_LOCAL qn_float4 a_slice[QN_SLICE * QN_TILE_ROWS / 4u];
    QN_LOCAL qn_float4 b_slice[QN_SLICE * QN_TILE_COLUMNS / 4u];
    QN_LOCAL_POINTER float *a = (QN_LOCAL_POINTER float *)a_slice;
    QN_LOCAL_POINTER float *b = (QN_LOCAL_POINTER float *)b_slice;
    const qn_u32 items = step->items, ld = qn_ld(in);
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
    for (qn_u32 o = 0u; o < out; o += QN_SLICE) {
        QN_TILE(qn_load_turned)(a, QN_TILE_ROWS, E, qn_ld(out), row, items, o);
        QN_TILE(qn_load_turned)
        (b, QN_TILE_COLUMNS, parameters + weights, qn_ld(out), column, in, o);
        qn_barrier();
        QN_TILE(qn_links)(acc, a, b, out - o, 1u, 1u);
        qn_barrier();
    }

    QN_TILE(qn_store)(acc, B, row, items, column, in);
    if (activation == QN_ACT_NONE && threshold == 0u)
        return;
    QN_ROLLED
    for (qn_u32 n = 0u; n < QN_LANE_ROWS * QN_LANE_COLUMNS / 4u; ++n) {
        const qn_u32 i = n / (QN_LANE_COLUMNS / 4u), j = n % (QN_LANE_COLUMNS / 4u);
        const qn_u32 r = row + QN_TILE(qn_row_run)(i / 4u) + i % 4u;
        const qn_u32 c = column + QN_TILE(qn_column_run)(j);
        if (r >= items || c >= in)
            continue;
        QN_GLOBAL const float *y = Y + (qn_u64)r * ld + c;
        QN_GLOBAL float *e = B + (qn_u64)r * ld + c;
        const qn_u64 number = threshold != 0u ? numbers[r] : 0u;
        const qn_four word = qn_dropout_words(seed, layer, step->epoch, number, c / 4u);
        const qn_u32 words[4] = {word.x, word.y, word.z, word.w};
        QN_ROLLED
        for (qn_u32 l = 0u; l < 4u && c + l < in; ++l) {
            const float v =
                threshold != 0u ? qn_dropped(words[l], threshold, keep, e[l]) : e[l];
            e[l] = qn_derive(activation, y[l], v);
        }
    }
}
