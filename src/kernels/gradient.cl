/* GRADIENT over the tiles of tile.cl: rows are inputs k, columns outputs o, links the items of a
 * grain. A chain begins at +0 with each grain and ends as an integer, which is added to the lane's
 * own sums; only these leave the group. */
QN_KERNEL(QN_TILE_LANES)
QN_TILE(qn)(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A, QN_GLOBAL const float *E,
            QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 in,
            qn_u32 out, qn_u32 layer, float limit, qn_u32 slices, qn_u32 flags) {
    QN_LOCAL qn_float4 a_slice[QN_SLICE * QN_TILE_ROWS / 4u];
    QN_LOCAL qn_float4 b_slice[QN_SLICE * QN_TILE_COLUMNS / 4u];
    QN_LOCAL_POINTER float *a = (QN_LOCAL_POINTER float *)a_slice;
    QN_LOCAL_POINTER float *b = (QN_LOCAL_POINTER float *)b_slice;
    const qn_u32 items = step->items, grain = step->grain, ld = qn_ld(out);
    const qn_u32 row = qn_group(1) * QN_TILE_ROWS, column = qn_group(0) * QN_TILE_COLUMNS;
    const qn_u32 grains = (items + grain - 1u) / grain;
    const qn_u32 begin = (qn_u32)((qn_u64)grains * qn_group(2) / slices);
    const qn_u32 end = (qn_u32)((qn_u64)grains * (qn_group(2) + 1u) / slices);

    qn_i64 total[QN_LANE_ROWS][QN_LANE_COLUMNS];
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j)
            total[i][j] = 0;
    }
    qn_u32 bad = 0u;
    for (qn_u32 g = begin; g < end; ++g) {
        const qn_u32 last = items - g * grain < grain ? items : (g + 1u) * grain;
        float acc[QN_LANE_ROWS][QN_LANE_COLUMNS];
        QN_UNROLL
        for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
            QN_UNROLL
            for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j)
                acc[i][j] = 0.0f;
        }
        for (qn_u32 item = g * grain; item < last; item += QN_SLICE) {
            QN_TILE(qn_load_straight)(a, QN_TILE_ROWS, A, qn_ld(in), row, last, item);
            QN_TILE(qn_load_straight)(b, QN_TILE_COLUMNS, E, ld, column, last, item);
            qn_barrier();
            QN_TILE(qn_links)(acc, a, b, last - item, 0u, 0u);
            qn_barrier();
        }
        QN_UNROLL
        for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
            QN_UNROLL
            for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j) {
                bad |= qn_leaves(acc[i][j], limit);
                total[i][j] = qn_plus(total[i][j], qn_i64_of(acc[i][j]));
            }
        }
    }

    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        const qn_u32 k = row + QN_TILE(qn_row_run)(i / 4u) + i % 4u;
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j) {
            const qn_u32 o = column + QN_TILE(qn_column_run)(j / 4u) + j % 4u;
            QN_GLOBAL qn_i64 *to = sums + weights + (qn_u64)k * ld + o;
            if (k >= in || o >= ld)
                continue;
            if (slices > 1u)
                qn_atomic_add64(to, total[i][j]);
            else if ((flags & QN_GRADIENT_ADD) != 0u)
                *to = qn_plus(*to, total[i][j]);
            else
                *to = total[i][j];
        }
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
