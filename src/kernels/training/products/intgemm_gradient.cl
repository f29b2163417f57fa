/* GRADIENT of integers over the tiles of intgemm.cl (15.6): rows are inputs, columns are outputs,
 * and the sum runs over the items of a grain. Consecutive grains with the same exponents share the
 * sums, if nothing is rounded and no partial can leave its range. */

/* Converts the lane's exact integers to units of the gradient, adds them to `total` and clears
 * them. Returns 1 when one was out of range. */
QN_FN qn_u32 QN_INTGEMM(qn_end_grains)(qn_i32 acc[QN_SUMS][QN_RUN][QN_RUN],
                                       qn_i64 exact[QN_RUN][QN_RUN], qn_i64 total[QN_RUN][QN_RUN],
                                       qn_i32 s, qn_u32 settled, float limit) {
    qn_u32 bad = 0u;
    QN_INTGEMM(qn_gather)(acc, exact);
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_RUN; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_RUN; ++j) {
            const qn_i64 n = exact[i][j];
            exact[i][j] = 0;
            if (settled != 0u) {
                total[i][j] = qn_plus(total[i][j], (qn_i64)((qn_u64)n << s));
            } else {
                bad |= qn_units_leave(n, s, limit);
                total[i][j] = qn_plus(total[i][j], qn_units_of(n, s));
            }
        }
    }
    return bad;
}

QN_KERNEL(QN_INTGEMM_LANES)
QN_INTGEMM(qn_intgemm_gradient)(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_i32 *A,
                                QN_GLOBAL const qn_i32 *E, QN_GLOBAL const qn_u32 *absmax,
                                QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_status_words *status,
                                qn_u64 weights, qn_u32 in, qn_u32 out, qn_u32 stride, qn_u32 layer,
                                qn_u32 inputs, qn_u32 errors, float limit, qn_u32 k_blocks,
                                qn_u32 flags) {
    QN_LOCAL qn_int4 buffer[2u * QN_SLAB / 4u];
    QN_LOCAL_POINTER qn_i32 *slabs = (QN_LOCAL_POINTER qn_i32 *)buffer;
    const qn_u32 grain = step->grain, ld = qn_ld(out), words = qn_grain_words(grain);
    const qn_u32 grains = (step->items + grain - 1u) / grain, width = grains * words;
    const qn_u32 across = (out + QN_COLUMNS - 1u) / QN_COLUMNS;
    const qn_u32 row = qn_group(0) / across * QN_ROWS, column = qn_group(0) % across * QN_COLUMNS;
    const qn_u32 begin = qn_block_begin(grains, qn_group(2), k_blocks);
    const qn_u32 end = qn_block_begin(grains, qn_group(2) + 1u, k_blocks);

    qn_i32 acc[QN_SUMS][QN_RUN][QN_RUN];
    qn_i32 a[QN_LOADS_OF(QN_ROWS) * QN_DIGITS], b[QN_LOADS_OF(QN_COLUMNS) * QN_DIGITS];
    qn_i64 exact[QN_RUN][QN_RUN], total[QN_RUN][QN_RUN];
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_RUN; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_RUN; ++j) {
            exact[i][j] = total[i][j] = 0;
            QN_UNROLL
            for (qn_u32 s = 0u; s < QN_SUMS; ++s)
                acc[s][i][j] = 0;
        }
    }
    /* The loop multiplies words at .. at+7 of grain g, fewer at the end of the grain, while it
     * loads the slab that follows. */
    qn_u32 at = 0u, side = 0u, since = 0u, bad = 0u;
    QN_INTGEMM(qn_load_slab)(a, A, QN_ROWS, row, in, width, begin * words, words);
    QN_INTGEMM(qn_load_slab)(b, E, QN_COLUMNS, column, out, width, begin * words, words);
    QN_INTGEMM(qn_store_slab)(a, slabs, QN_ROWS);
    QN_INTGEMM(qn_store_slab)(b, slabs + 8u * QN_DIGITS * QN_ROWS, QN_COLUMNS);
    qn_barrier();
    qn_scale now =
        qn_scale_of(7u * QN_DIGITS, absmax[inputs + begin], absmax[errors + begin], grain, limit);
    QN_ROLLED
    for (qn_u32 g = begin; g < end;) {
        const qn_u32 left = words - at, last = left <= 8u ? 1u : 0u;
        const qn_u32 next = last != 0u ? g + 1u : g, next_at = last != 0u ? 0u : at + 8u;
        const qn_u32 more = next < end ? words - next_at : 0u;
        QN_INTGEMM(qn_load_slab)(a, A, QN_ROWS, row, in, width, next * words + next_at, more);
        QN_INTGEMM(qn_load_slab)(b, E, QN_COLUMNS, column, out, width, next * words + next_at,
                                 more);
        QN_INTGEMM(qn_multiply)(acc, slabs + side, last != 0u ? left : 8u);
        side = QN_SLAB - side;
        QN_INTGEMM(qn_store_slab)(a, slabs + side, QN_ROWS);
        QN_INTGEMM(qn_store_slab)(b, slabs + side + 8u * QN_DIGITS * QN_ROWS, QN_COLUMNS);
        qn_barrier();
        if (++since == QN_FLUSH) {
            QN_INTGEMM(qn_gather)(acc, exact);
            since = 0u;
        }
        if (last != 0u) {
            qn_scale then = now;
            if (next < end)
                then = qn_scale_of(7u * QN_DIGITS, absmax[inputs + next], absmax[errors + next],
                                   grain, limit);
            bad |= 1u - now.finite;
            if (next == end || now.settled == 0u || then.s != now.s) {
                bad |= QN_INTGEMM(qn_end_grains)(acc, exact, total, now.s, now.settled, limit);
                since = 0u;
            }
            now = then;
        }
        g = next;
        at = next_at;
    }

    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_RUN; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_RUN; ++j) {
            const qn_u32 k = row + QN_INTGEMM(qn_lane_row)() + i;
            const qn_u32 o = column + QN_INTGEMM(qn_lane_column)() + j;
            QN_GLOBAL qn_i64 *to = sums + weights + (qn_u64)k * stride + o;
            if (k >= in || o >= ld)
                continue;
            qn_put_units(to, total[i][j], k_blocks, flags);
        }
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
