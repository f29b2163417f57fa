/* FORWARD, ERRORS and GRADIENT for devices that are CPUs: one lane to a group, tiles in vector
 * registers, no barriers, no local memory.
 *
 * FORWARD and ERRORS share their core. A group has QN_GROUP_ITEMS rows (items) and 32 columns. For
 * a block of QN_PANEL_LINKS links of the chains it packs its columns of the right operand into
 * private memory, row under row, where they stay in the first-level cache while the tiles, at most
 * 12 rows of two vectors, pass over them. Between blocks the accumulators wait in the result, so
 * that each chain is unbroken. 24 accumulators, two vectors and one broadcast fit 32 registers. */
#define QN_GROUP_ITEMS 96u
#define QN_GROUP_COLUMNS 32u
#define QN_PANEL_LINKS 256u
#define QN_TILE_HEIGHT 12u

#define QN_BEGIN_ZERO 0
#define QN_BEGIN_BIAS 1
#define QN_BEGIN_CARRY 2

/* Row r of a tile; only a tile of 4 may lack some, and has its last row instead. */
QN_INLINE qn_u64 qn_row(const qn_u32 height, qn_u32 rows, const qn_u32 r) {
    return height > 4u || r < rows ? r : rows - 1u;
}

/* c[rows][16 * width] = chains of a * panel over `links`. height and width are constants where this
 * is inlined. Rows from `rows` on repeat the last and are not written. */
QN_INLINE void qn_block_tile(const qn_u32 height, const qn_u32 width, const qn_i32 begin,
                             qn_u32 rows, qn_u32 links, QN_GLOBAL const float *a, qn_u32 lda,
                             const float *panel, QN_GLOBAL float *c, qn_u32 ldc,
                             QN_GLOBAL const float *bias) {
    vf acc[QN_TILE_HEIGHT][2];
    QN_FULL
    for (qn_u32 r = 0u; r < height; ++r) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            acc[r][j] = v_set(0.0f);
            if (begin == QN_BEGIN_BIAS)
                acc[r][j] = qn_read(bias + 16u * j);
            if (begin == QN_BEGIN_CARRY)
                acc[r][j] = qn_read(c + qn_row(height, rows, r) * ldc + 16u * j);
        }
    }
    QN_ROLLED
    for (qn_u32 k = 0u; k < links; ++k) {
        vf b[2];
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j)
            b[j] = *(const vf *)(panel + (k * width + j) * 16u);
        QN_FULL
        for (qn_u32 r = 0u; r < height; ++r) {
            const vf x = v_set(a[qn_row(height, rows, r) * lda + k]);
            QN_FULL
            for (qn_u32 j = 0u; j < width; ++j)
                acc[r][j] = v_fma(x, b[j], acc[r][j]);
        }
    }
    QN_FULL
    for (qn_u32 r = 0u; r < height; ++r) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j)
            if (height > 4u || r < rows)
                qn_write(c + (qn_u64)r * ldc + 16u * j, acc[r][j]);
    }
}

/* All rows of the group, in tiles of 12, 8 and 4 rows. */
QN_INLINE void qn_block_rows(const qn_u32 width, const qn_i32 begin, qn_u32 rows, qn_u32 links,
                             QN_GLOBAL const float *a, qn_u32 lda, const float *panel,
                             QN_GLOBAL float *c, qn_u32 ldc, QN_GLOBAL const float *bias) {
    while (rows >= 12u) {
        qn_block_tile(12u, width, begin, 12u, links, a, lda, panel, c, ldc, bias);
        a += 12u * (qn_u64)lda;
        c += 12u * (qn_u64)ldc;
        rows -= 12u;
    }
    if (rows >= 8u) {
        qn_block_tile(8u, width, begin, 8u, links, a, lda, panel, c, ldc, bias);
        a += 8u * (qn_u64)lda;
        c += 8u * (qn_u64)ldc;
        rows -= 8u;
    }
    while (rows > 0u) {
        const qn_u32 n = rows < 4u ? rows : 4u;
        qn_block_tile(4u, width, begin, n, links, a, lda, panel, c, ldc, bias);
        a += 4u * (qn_u64)lda;
        c += 4u * (qn_u64)ldc;
        rows -= n;
    }
}

/* Rows of a group: groups of nearly equal height, so that none keeps the others waiting. */
QN_INLINE qn_u32 qn_group_rows(qn_u32 items) {
    const qn_u32 groups = (items + QN_GROUP_ITEMS - 1u) / QN_GROUP_ITEMS;
    return groups == 0u ? QN_GROUP_ITEMS : ((items + groups - 1u) / groups + 3u) / 4u * 4u;
}

QN_KERNEL(1)
qn_forward_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                  QN_GLOBAL const float *parameters, qn_u64 weights, qn_u64 biases,
                  QN_GLOBAL float *Y, QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers,
                  qn_u32 in, qn_u32 out, qn_u32 layer, qn_u32 activation, qn_u32 threshold,
                  float keep, qn_u64 seed) {
    vf panel[QN_PANEL_LINKS * 2u];
    const qn_u32 ld = qn_ld(out), lda = qn_ld(in), items = step->items;
    const qn_u32 share = qn_group_rows(items);
    const qn_u32 row = qn_group(1) * share, column = qn_group(0) * QN_GROUP_COLUMNS;
    if (row >= items || column >= ld)
        return;
    const qn_u32 rows = items - row < share ? items - row : share;
    const qn_u32 width = ld - column >= 32u ? 2u : 1u;
    QN_GLOBAL const float *a = A + (qn_u64)row * lda, *w = parameters + weights + column;
    QN_GLOBAL const float *bias = parameters + biases + column;
    QN_GLOBAL float *y = Y + (qn_u64)row * ld + column;
    for (qn_u32 k = 0u; k < in; k += QN_PANEL_LINKS) {
        const qn_u32 links = in - k < QN_PANEL_LINKS ? in - k : QN_PANEL_LINKS;
        const qn_i32 begin = k == 0u ? QN_BEGIN_BIAS : QN_BEGIN_CARRY;
        if (width == 2u) {
            for (qn_u32 l = 0u; l < links; ++l) {
                panel[2u * l] = qn_read(w + (qn_u64)(k + l) * ld);
                panel[2u * l + 1u] = qn_read(w + (qn_u64)(k + l) * ld + 16u);
            }
            qn_block_rows(2u, begin, rows, links, a + k, lda, (const float *)panel, y, ld, bias);
        } else {
            for (qn_u32 l = 0u; l < links; ++l)
                panel[l] = qn_read(w + (qn_u64)(k + l) * ld);
            qn_block_rows(1u, begin, rows, links, a + k, lda, (const float *)panel, y, ld, bias);
        }
    }
    const qn_u32 shaped = activation != QN_ACT_NONE && activation != QN_ACT_SOFTMAX ? 1u : 0u;
    if (shaped == 0u && threshold == 0u && out - column >= 32u)
        return;
    for (qn_u32 r = 0u; r < rows; ++r) {
        for (qn_u32 j = 0u; j < width; ++j) {
            QN_GLOBAL float *to = y + (qn_u64)r * ld + 16u * j;
            const vf v =
                qn_within(qn_activate_lanes(activation, qn_read(to)), column + 16u * j, out);
            qn_write(to, v);
            if (threshold == 0u)
                continue;
            const uint16 words =
                qn_dropout_lanes(seed, layer, step->epoch, numbers[row + r], column / 4u + 4u * j);
            qn_write(D + (to - Y),
                     qn_within(qn_dropped_lanes(words, threshold, keep, v), column + 16u * j, out));
        }
    }
}

/* Weights as FORWARD wants them, by output: 16 * width columns (inputs) by `links` outputs. */
QN_INLINE void qn_pack_turned(const qn_u32 width, QN_GLOBAL const float *w, qn_u32 ld,
                              qn_u32 columns, qn_u32 links, vf *panel) {
    for (qn_u32 o = 0u; o < links; o += 16u) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            vf x[16];
            QN_FULL
            for (qn_u32 i = 0u; i < 16u; ++i) {
                const qn_u32 k = 16u * j + i;
                x[i] = qn_read(w + (qn_u64)(k < columns ? k : columns - 1u) * ld + o);
            }
            qn_turn(x);
            QN_FULL
            for (qn_u32 i = 0u; i < 16u; ++i)
                panel[(o + i) * width + j] = x[i];
        }
    }
}

QN_KERNEL(1)
qn_errors_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *E,
                 QN_GLOBAL const float *parameters, qn_u64 weights, QN_GLOBAL const float *Y,
                 QN_GLOBAL float *B, QN_GLOBAL const qn_u64 *numbers, qn_u32 in, qn_u32 out,
                 qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    vf panel[QN_PANEL_LINKS * 2u];
    const qn_u32 ld = qn_ld(in), lde = qn_ld(out), items = step->items;
    const qn_u32 share = qn_group_rows(items);
    const qn_u32 row = qn_group(1) * share, column = qn_group(0) * QN_GROUP_COLUMNS;
    if (row >= items || column >= ld)
        return;
    const qn_u32 rows = items - row < share ? items - row : share;
    const qn_u32 width = ld - column >= 32u ? 2u : 1u;
    QN_GLOBAL const float *a = E + (qn_u64)row * lde;
    QN_GLOBAL const float *w = parameters + weights + (qn_u64)column * lde;
    QN_GLOBAL float *b = B + (qn_u64)row * ld + column;
    for (qn_u32 o = 0u; o < out; o += QN_PANEL_LINKS) {
        const qn_u32 links = out - o < QN_PANEL_LINKS ? out - o : QN_PANEL_LINKS;
        const qn_i32 begin = o == 0u ? QN_BEGIN_ZERO : QN_BEGIN_CARRY;
        if (width == 2u) {
            qn_pack_turned(2u, w + o, lde, in - column, links, panel);
            qn_block_rows(2u, begin, rows, links, a + o, lde, (const float *)panel, b, ld, b);
        } else {
            qn_pack_turned(1u, w + o, lde, in - column, links, panel);
            qn_block_rows(1u, begin, rows, links, a + o, lde, (const float *)panel, b, ld, b);
        }
    }
    for (qn_u32 r = 0u; r < rows; ++r) {
        for (qn_u32 j = 0u; j < width; ++j) {
            QN_GLOBAL float *to = b + (qn_u64)r * ld + 16u * j;
            vf e = qn_read(to);
            if (threshold != 0u) {
                const uint16 words = qn_dropout_lanes(seed, layer, step->epoch, numbers[row + r],
                                                      column / 4u + 4u * j);
                e = qn_dropped_lanes(words, threshold, keep, e);
            }
            e = qn_derive_lanes(activation, qn_read(Y + (to - B)), e);
            qn_write(to, qn_within(e, column + 16u * j, in));
        }
    }
}
