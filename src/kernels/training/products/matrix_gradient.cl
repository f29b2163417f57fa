/* GRADIENT of integers over the tiles of matrix.cl (15.6), with the arguments and the grid of
 * intgemm_gradient.cl. The words of a grain must be a multiple of four (qn_grain_words). A slab
 * belongs to one grain. Consecutive grains with the same exponents share the sums, as there. */

/* Converts the lane's sums to units of the gradient, adds them to `total` and clears them. Returns
 * 1 when one was out of range. */
QN_FN qn_u32 QN_INTGEMM(qn_end_grains)(qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4],
                                       qn_i64 total[QN_HIGH][QN_BROAD][4], qn_i32 s, qn_u32 settled,
                                       float limit) {
    qn_u32 bad = 0u;
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_HIGH; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_BROAD; ++j) {
            QN_UNROLL
            for (qn_u32 n = 0u; n < 4u; ++n) {
                const qn_i64 exact = QN_INTGEMM(qn_gathered)(acc, i, j, n);
                if (settled != 0u) {
                    total[i][j][n] = qn_plus(total[i][j][n], (qn_i64)((qn_u64)exact << s));
                } else {
                    bad |= qn_units_leave(exact, s, limit);
                    total[i][j][n] = qn_plus(total[i][j][n], qn_units_of(exact, s));
                }
            }
        }
    }
    QN_INTGEMM(qn_begin_sums)(acc);
    return bad;
}

QN_KERNEL(QN_INTGEMM_LANES)
QN_INTGEMM(qn_intgemm_gradient)(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_i32 *A,
                                QN_GLOBAL const qn_i32 *E, QN_GLOBAL const qn_u32 *absmax,
                                QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_status_words *status,
                                qn_u64 weights, qn_u32 in, qn_u32 out, qn_u32 stride, qn_u32 layer,
                                qn_u32 inputs, qn_u32 errors, float limit, qn_u32 k_blocks,
                                qn_u32 flags) {
    QN_LOCAL qn_int4 buffer[QN_STAGES * QN_SLAB / 4u];
    QN_LOCAL_POINTER qn_i32 *slabs = (QN_LOCAL_POINTER qn_i32 *)buffer;
    const qn_u32 grain = step->grain, ld = qn_ld(out), words = qn_grain_words(grain);
    const qn_u32 grains = (step->items + grain - 1u) / grain, width = grains * words;
    const qn_u32 across = (out + QN_COLUMNS - 1u) / QN_COLUMNS;
    const qn_u32 row = qn_group(0) / across * QN_ROWS, column = qn_group(0) % across * QN_COLUMNS;
    const qn_u32 begin = qn_block_begin(grains, qn_group(2), k_blocks);
    const qn_u32 end = qn_block_begin(grains, qn_group(2) + 1u, k_blocks);
    qn_i32 acc[QN_SUMS][QN_HIGH][QN_BROAD][4];
    qn_i64 total[QN_HIGH][QN_BROAD][4];
    QN_INTGEMM(qn_begin_sums)(acc);
    QN_UNROLL
    for (qn_u32 i = 0u; i < QN_HIGH; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < QN_BROAD; ++j) {
            QN_UNROLL
            for (qn_u32 n = 0u; n < 4u; ++n)
                total[i][j][n] = 0;
        }
    }
    /* The loop multiplies words at .. at+7 of grain g, fewer at its end. The next copy starts at
     * word sent_at of grain `sent`. The first QN_STAGES - 1 iterations, counted by `ahead`, only
     * start copies. */
    qn_u32 sent = begin, sent_at = 0u, to = 0u, from = 0u, at = 0u, since = 0u, bad = 0u;
    qn_u32 ahead = 0u;
    qn_scale now =
        qn_scale_of(7u * QN_DIGITS, absmax[inputs + begin], absmax[errors + begin], grain, limit);
    QN_ROLLED
    for (qn_u32 g = begin; g < end;) {
        if (ahead == QN_STAGES - 1u) {
            qn_copies_wait(QN_STAGES - 2u);
            qn_barrier();
        }
        QN_INTGEMM(qn_copy_slabs)
        (slabs + to, A, row, in, E, column, out, width, sent * words + sent_at,
         sent < end ? words - sent_at : 0u);
        to = QN_INTGEMM(qn_next_slab)(to);
        sent_at += 8u;
        if (sent_at >= words) {
            sent_at = 0u;
            ++sent;
        }
        if (ahead < QN_STAGES - 1u) {
            ++ahead;
            continue;
        }
        const qn_u32 last = words - at <= 8u ? 1u : 0u, next = last != 0u ? g + 1u : g;
        const qn_u32 known = next < end ? next : g;
        /* Read before the products, which hide the latency. */
        const qn_u32 next_input = absmax[inputs + known], next_error = absmax[errors + known];
        QN_INTGEMM(qn_multiply)(acc, slabs + from);
        from = QN_INTGEMM(qn_next_slab)(from);
        ++since;
        at = last != 0u ? 0u : at + 8u;
        g = next;
        if (last == 0u)
            continue;
        const qn_scale then = qn_scale_of(7u * QN_DIGITS, next_input, next_error, grain, limit);
        bad |= 1u - now.finite;
        if (next == end || now.settled == 0u || then.s != now.s ||
            since + (words + 7u) / 8u > QN_MATRIX_DEPTH / 32u) {
            bad |= QN_INTGEMM(qn_end_grains)(acc, total, now.s, now.settled, limit);
            since = 0u;
        }
        now = then;
    }

    const qn_u32 k0 = row + QN_INTGEMM(qn_lane_row)(), o0 = column + QN_INTGEMM(qn_lane_column)();
    QN_UNROLL
    for (qn_u32 i = 0u; i < 2u * QN_HIGH; ++i) {
        QN_UNROLL
        for (qn_u32 j = 0u; j < 2u * QN_BROAD; ++j) {
            const qn_u32 k = k0 + i * 8u, o = o0 + j / 2u * 8u + j % 2u;
            const qn_i64 units = total[i / 2u][j / 2u][i % 2u * 2u + j % 2u];
            QN_GLOBAL qn_i64 *place = sums + weights + (qn_u64)k * stride + o;
            if (k >= in || o >= ld)
                continue;
            qn_put_units(place, units, k_blocks, flags);
        }
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
