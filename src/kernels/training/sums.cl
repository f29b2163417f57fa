/* The gradients of biases, and the conversion of sums between the layout of kernels.h and the
 * canonical order. */

/* BIAS: a group has sixteen columns and sixteen lanes for each column, which process the grains in
 * turn. Their integers are added in local memory. Every error is read once. */
QN_KERNEL(256)
qn_bias(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums,
        QN_GLOBAL qn_status_words *status, qn_u64 biases, qn_u32 out, qn_u32 layer, float limit,
        qn_u32 flags) {
    QN_LOCAL qn_i64 part[256];
    const qn_u32 items = step->items, grain = step->grain, ld = qn_ld(out);
    const qn_u32 grains = (items + grain - 1u) / grain, transpose = qn_lane() / 16u;
    qn_u32 bad = 0u;
    for (qn_u32 column = qn_group(0) * 16u; column < out; column += qn_groups(0) * 16u) {
        const qn_u32 o = column + qn_lane() % 16u;
        qn_i64 total = 0;
        for (qn_u32 g = transpose; g < grains; g += 16u) {
            const qn_u32 end = items - g * grain < grain ? items : (g + 1u) * grain;
            float acc = 0.0f;
            for (qn_u32 item = g * grain; item < end; ++item)
                acc = acc + E[(qn_u64)item * ld + o];
            bad |= qn_leaves(acc, limit);
            total = qn_plus(total, qn_i64_of(acc));
        }
        part[qn_lane()] = total;
        qn_barrier();
        if (transpose == 0u) {
            for (qn_u32 t = 1u; t < 16u; ++t)
                total = qn_plus(total, part[t * 16u + qn_lane()]);
            if ((flags & QN_GRADIENT_ADD) != 0u)
                total = qn_plus(total, sums[biases + o]);
            sums[biases + o] = total;
        }
        qn_barrier();
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}

/* SUMS_OUT, SUMS_IN: blocks of 16 x 16 integers are transposed in local memory, so that both
 * layouts are accessed in runs of 16 integers. Groups process blocks with the stride of the
 * grid. Blocks have 2 KiB, so 32 bits number those of 8 TiB; the division of 64 bits is a call, for
 * which ptxas spills a register on some architectures. */
QN_FN void qn_move_sums(QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_i64 *canonical, qn_u32 in, qn_u32 out,
                        qn_u32 biases, const qn_u32 inwards, QN_LOCAL_POINTER qn_i64 *block) {
    const qn_u32 ld = qn_ld(out), x = qn_lane() % 16u, y = qn_lane() / 16u;
    const qn_u32 across = ld / 16u, down = (in + 15u) / 16u;
    const qn_u32 blocks = across * down;
    for (qn_u32 n = qn_group(0); n < blocks; n += qn_groups(0)) {
        const qn_u32 k = n / across * 16u, o = n % across * 16u;
        QN_GLOBAL qn_i64 *mine = sums + (qn_u64)(k + y) * ld + o + x;
        QN_GLOBAL qn_i64 *theirs = canonical + (qn_u64)(o + y) * in + k + x;
        if (inwards == 0u && k + y < in)
            block[y * 17u + x] = *mine;
        if (inwards != 0u)
            block[y * 17u + x] = o + y < out && k + x < in ? *theirs : 0;
        qn_barrier();
        if (inwards == 0u && o + y < out && k + x < in)
            *theirs = block[x * 17u + y];
        if (inwards != 0u && k + y < in)
            *mine = block[x * 17u + y];
        qn_barrier();
    }
    QN_GLOBAL qn_i64 *mine = sums + (qn_u64)in * ld, *theirs = canonical + (qn_u64)in * out;
    const qn_u64 pieces = (qn_u64)across * biases; /* of sixteen: a group has as many at a time */
    for (qn_u64 i = (qn_u64)qn_group(0) * 16u + y; i < pieces; i += (qn_u64)qn_groups(0) * 16u) {
        const qn_u32 row = (qn_u32)(i / across), o = (qn_u32)(i - (qn_u64)row * across) * 16u + x;
        const qn_u64 own = (qn_u64)row * ld + o, other = (qn_u64)row * out + o;
        if (inwards != 0u)
            mine[own] = o < out ? theirs[other] : 0;
        else if (o < out)
            theirs[other] = mine[own];
    }
}

QN_KERNEL(256)
qn_sums_out(QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_i64 *canonical, qn_u64 weights, qn_u32 in,
            qn_u32 out, qn_u64 offset, qn_u32 biases) {
    QN_LOCAL qn_i64 block[16 * 17];
    qn_move_sums(sums + weights, canonical + offset, in, out, biases, 0u, block);
}

QN_KERNEL(256)
qn_sums_in(QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_i64 *canonical, qn_u64 weights, qn_u32 in,
           qn_u32 out, qn_u64 offset, qn_u32 biases) {
    QN_LOCAL qn_i64 block[16 * 17];
    qn_move_sums(sums + weights, canonical + offset, in, out, biases, 1u, block);
}
