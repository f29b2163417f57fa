/* GRADIENT over the tiles of tile.cl: rows are inputs k, columns are outputs o, and the sum runs
 * over the items of a grain. A chain begins at +0 with each grain. At the end of the grain it is
 * rounded to an integer, which the lane adds to its own 64-bit sum. Only these sums are written to
 * memory.
 *
 * K-blocks are loaded ahead across the ends of grains. Whole pairs of k-blocks use the two sides of
 * local memory in turn, as in tile.cl. The rest of a grain uses the first side only, and its last
 * k-block may be shorter. */

/* Rounds the chains of a grain, adds them to `total` and clears them. Returns 1 when one was out of
 * range. */
QN_FN qn_u32 QN_TILE(qn_end_grain)(float acc[QN_LANE_ROWS][QN_LANE_COLUMNS],
                                   qn_i64 total[QN_LANE_ROWS][QN_LANE_COLUMNS], float limit) {
    qn_i32 inside = 1;
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j) {
            inside = inside & (qn_abs(acc[i][j]) < limit ? 1 : 0);
            total[i][j] = qn_plus(total[i][j], qn_i64_of(acc[i][j]));
            acc[i][j] = 0.0f;
        }
    }
    return inside != 0 ? 0u : 1u;
}

QN_KERNEL_OF(QN_TILE_LANES, QN_TILE_GROUPS)
QN_TILE(qn)(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A, QN_GLOBAL const float *E,
            QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 in,
            qn_u32 out, qn_u32 stride, qn_u32 layer, float limit, qn_u32 k_blocks, qn_u32 flags) {
    QN_LOCAL qn_float4 buffer[2u * QN_SIDE / 4u];
    QN_LOCAL_POINTER float *tile = (QN_LOCAL_POINTER float *)buffer;
    const qn_u32 grain = step->grain, ld_a = qn_ld(in), ld = qn_ld(out);
    const qn_u32 row = qn_group(1) * QN_TILE_ROWS, column = qn_group(0) * QN_TILE_COLUMNS;
    const qn_u32 grains = (step->items + grain - 1u) / grain;
    const qn_u32 begin = qn_block_begin(grains, qn_group(2), k_blocks) * grain;
    const qn_u32 last = qn_block_begin(grains, qn_group(2) + 1u, k_blocks);
    const qn_u32 end = last == grains ? step->items : last * grain;

    qn_i64 total[QN_LANE_ROWS][QN_LANE_COLUMNS];
    float acc[QN_LANE_ROWS][QN_LANE_COLUMNS];
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j) {
            total[i][j] = 0;
            acc[i][j] = 0.0f;
        }
    }
    QN_TILE(qn_loader)
    a = QN_TILE(qn_loader_plain)(tile, QN_TILE_ROWS, A + (qn_u64)begin * ld_a, ld_a, row);
    QN_TILE(qn_loader)
    e = QN_TILE(qn_loader_plain)(tile + QN_K_BLOCK * QN_TILE_ROWS, QN_TILE_COLUMNS,
                                 E + (qn_u64)begin * ld, ld, column);
    qn_u32 rest = end - begin, bad = 0u; /* rest: items not yet processed */
    QN_TILE(qn_load_block)(&a, QN_TILE_ROWS, 0u, rest);
    QN_TILE(qn_load_block)(&e, QN_TILE_COLUMNS, 0u, rest);
    QN_TILE(qn_store_block)(&a, QN_TILE_ROWS, 0u, 0u);
    QN_TILE(qn_store_block)(&e, QN_TILE_COLUMNS, 0u, 0u);
    qn_barrier();
    QN_ROLLED
    while (rest > 0u) {
        qn_u32 left = rest < grain ? rest : grain; /* of the grain */
        QN_ROLLED
        for (; left >= 2u * QN_K_BLOCK; left -= 2u * QN_K_BLOCK) {
            rest -= 2u * QN_K_BLOCK;
            QN_TILE(qn_k_block)(acc, tile, &a, &e, rest + QN_K_BLOCK, 0u, 0u, 0u, QN_SIDE);
            QN_TILE(qn_k_block)(acc, tile, &a, &e, rest, 0u, 0u, QN_SIDE, 0u);
        }
        QN_ROLLED
        while (left > 0u) {
            const qn_u32 links = left < QN_K_BLOCK ? left : QN_K_BLOCK;
            rest -= links;
            left -= links;
            QN_TILE(qn_advance)(&a, links, 0u);
            QN_TILE(qn_advance)(&e, links, 0u);
            QN_TILE(qn_load_block)(&a, QN_TILE_ROWS, 0u, rest);
            QN_TILE(qn_load_block)(&e, QN_TILE_COLUMNS, 0u, rest);
            QN_TILE(qn_links)(acc, tile, tile + QN_K_BLOCK * QN_TILE_ROWS, links, 0u, 0u, 1u);
            /* With one side only, a barrier is needed before it is overwritten and another one
             * after. */
            qn_barrier();
            QN_TILE(qn_store_block)(&a, QN_TILE_ROWS, 0u, 0u);
            QN_TILE(qn_store_block)(&e, QN_TILE_COLUMNS, 0u, 0u);
            qn_barrier();
        }
        bad |= QN_TILE(qn_end_grain)(acc, total, limit);
    }

    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_LANE_ROWS; ++i) {
        const qn_u32 k = row + QN_TILE(qn_row_run)(i / QN_ROW_RUN) + i % QN_ROW_RUN;
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_LANE_COLUMNS; ++j) {
            const qn_u32 o = column + QN_TILE(qn_column_run)(j / QN_COLUMN_RUN) + j % QN_COLUMN_RUN;
            QN_GLOBAL qn_i64 *to = sums + weights + (qn_u64)k * stride + o;
            if (k >= in || o >= ld)
                continue;
            qn_put_units(to, total[i][j], k_blocks, flags);
        }
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
