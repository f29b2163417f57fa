/* FORWARD, ERRORS and GRADIENT for CPU devices: one lane a group, tiles in vector registers, no
 * barriers, no local memory.
 *
 * FORWARD and ERRORS have the same structure. A group computes QN_GROUP_ITEMS rows (items) by 32
 * columns. For each k-block of QN_PANEL_LINKS links it packs its columns of the right operand into
 * private memory, one row after another. This panel stays in the L1 cache while the tiles, of at
 * most 12 rows by two vectors, read it. Between k-blocks the accumulators are stored in the result,
 * so that the order of each chain is kept. 24 accumulators, two vectors and one broadcast fit 32
 * registers. */
#define QN_GROUP_ITEMS 96u
#define QN_GROUP_COLUMNS 32u
#define QN_PANEL_LINKS 256u
#define QN_TILE_HEIGHT 12u

#define QN_BEGIN_ZERO 0
#define QN_BEGIN_BIAS 1
#define QN_BEGIN_CARRY 2

/* Row r of a tile. A tile of 4 rows may have fewer; it then repeats its last row. */
QN_INLINE qn_u64 qn_row(const qn_u32 height, qn_u32 rows, const qn_u32 r) {
    return height > 4u || r < rows ? r : rows - 1u;
}

/* Operands and result of a k-block: c += a * panel. While the tiles compute, the next panel is
 * prefetched, one line a link: `ahead`, and every `stride` floats from there. */
typedef struct qn_block {
    QN_GLOBAL const float *a, *bias, *ahead;
    QN_GLOBAL float *c;
    const vf *panel; /* [links][width] */
    qn_u32 lda, ldc, links, stride;
    qn_i32 begin;
} qn_block;

/* c[rows][16 * width] = chains of a * panel over `links`. height and width are constants after
 * inlining. Rows from `rows` on repeat the last row and are not written. */
QN_INLINE void qn_block_tile(const qn_u32 height, const qn_u32 width, qn_u32 rows,
                             const qn_block *block) {
    const qn_u32 lda = block->lda, ldc = block->ldc, links = block->links;
    const qn_u32 stride = block->stride;
    QN_GLOBAL const float *a = block->a, *ahead = block->ahead;
    QN_GLOBAL float *c = block->c;
    const vf *panel = block->panel;
    vf acc[QN_TILE_HEIGHT][2];
    QN_FULL
    for (qn_u32 r = 0u; r < height; ++r) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            acc[r][j] = v_set(0.0f);
            if (block->begin == QN_BEGIN_BIAS)
                acc[r][j] = qn_read_lanes(block->bias + 16u * j);
            if (block->begin == QN_BEGIN_CARRY)
                acc[r][j] = qn_read_lanes(c + qn_row(height, rows, r) * ldc + 16u * j);
        }
    }
    QN_ROLLED
    for (qn_u32 k = 0u; k < links; ++k, ahead += stride) {
        qn_prefetch(ahead);
        vf b[2];
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j)
            b[j] = panel[k * width + j];
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
                qn_write_lanes(c + (qn_u64)r * ldc + 16u * j, acc[r][j]);
    }
}

QN_INLINE void qn_block_on(qn_block *block, qn_u32 rows) {
    block->a += (qn_u64)rows * block->lda;
    block->c += (qn_u64)rows * block->ldc;
    block->ahead += block->stride != 0u ? 16u : 0u;
}

/* All rows of the group, in tiles of 12, 8 and 4 rows. */
QN_INLINE void qn_block_rows(const qn_u32 width, qn_u32 rows, qn_block block) {
    for (; rows >= 12u; rows -= 12u) {
        qn_block_tile(12u, width, 12u, &block);
        qn_block_on(&block, 12u);
    }
    if (rows >= 8u) {
        qn_block_tile(8u, width, 8u, &block);
        qn_block_on(&block, 8u);
        rows -= 8u;
    }
    while (rows > 0u) {
        const qn_u32 n = rows < 4u ? rows : 4u;
        qn_block_tile(4u, width, n, &block);
        qn_block_on(&block, 4u);
        rows -= n;
    }
}

/* Rows of a group: all groups have nearly the same height, so that they end at the same time. */
QN_INLINE qn_u32 qn_group_rows(qn_u32 items) {
    const qn_u32 groups = (items + QN_GROUP_ITEMS - 1u) / QN_GROUP_ITEMS;
    return groups == 0u ? QN_GROUP_ITEMS : ((items + groups - 1u) / groups + 3u) / 4u * 4u;
}

/* The dropout words of sixteen columns of a row; zeros, at no cost, without dropout. */
QN_INLINE uint16 qn_item_words(qn_u64 seed, qn_u32 layer, qn_u32 epoch,
                               QN_GLOBAL const qn_u64 *numbers, qn_u32 row, qn_u32 column,
                               qn_u32 threshold) {
    if (threshold == 0u)
        return (uint16)(0u);
    return qn_dropout_lanes(seed, layer, epoch, numbers[row], column / 4u);
}

QN_KERNEL(1)
qn_forward_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                  QN_GLOBAL const float *parameters, qn_u64 weights, qn_u64 biases,
                  QN_GLOBAL float *Y, QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers,
                  qn_u32 in, qn_u32 out, qn_u32 stride, qn_u32 layer, qn_u32 activation,
                  qn_u32 threshold, float keep, qn_u64 seed) {
    vf panel[QN_PANEL_LINKS * 2u];
    const qn_u32 ld = qn_ld(out), lda = qn_ld(in), items = step->items;
    const qn_u32 share = qn_group_rows(items);
    const qn_u32 row = qn_group(1) * share, column = qn_group(0) * QN_GROUP_COLUMNS;
    if (row >= items || column >= ld)
        return;
    const qn_u32 rows = items - row < share ? items - row : share;
    const qn_u32 width = ld - column >= 32u ? 2u : 1u;
    QN_GLOBAL const float *w = parameters + weights + column;
    QN_GLOBAL float *y = Y + (qn_u64)row * ld + column;
    qn_block block;
    block.bias = parameters + biases + column;
    block.c = y;
    block.panel = panel;
    block.lda = lda;
    block.ldc = ld;
    for (qn_u32 k = 0u; k < in; k += QN_PANEL_LINKS) {
        block.links = in - k < QN_PANEL_LINKS ? in - k : QN_PANEL_LINKS;
        block.begin = k == 0u ? QN_BEGIN_BIAS : QN_BEGIN_CARRY;
        block.a = A + (qn_u64)row * lda + k;
        /* What to prefetch: the following links, or the first links of the next columns. */
        const qn_u32 next = k + block.links < in ? k + block.links : 0u;
        block.ahead = w + (qn_u64)next * stride + (next != 0u || column + 32u >= ld ? 0u : 32u);
        block.stride = (next != 0u ? in - next : in) >= block.links ? stride : 0u;
        if (width == 2u) {
            for (qn_u32 l = 0u; l < block.links; ++l) {
                panel[2u * l] = qn_read_lanes(w + (qn_u64)(k + l) * stride);
                panel[2u * l + 1u] = qn_read_lanes(w + (qn_u64)(k + l) * stride + 16u);
            }
            qn_block_rows(2u, rows, block);
        } else {
            for (qn_u32 l = 0u; l < block.links; ++l)
                panel[l] = qn_read_lanes(w + (qn_u64)(k + l) * stride);
            qn_block_rows(1u, rows, block);
        }
    }
    if (qn_finishes_forward(activation, threshold) == 0u && out - column >= 32u)
        return;
    for (qn_u32 r = 0u; r < rows; ++r) {
        for (qn_u32 j = 0u; j < width; ++j) {
            QN_GLOBAL float *to = y + (qn_u64)r * ld + 16u * j;
            const uint16 words = qn_item_words(seed, layer, step->epoch, numbers, row + r,
                                               column + 16u * j, threshold);
            qn_finish_forward_lanes(to, D + (to - Y), column + 16u * j, out, activation, threshold,
                                    keep, words);
        }
    }
}

/* Packs weights transposed: 16 * width columns (inputs) by `links` outputs. */
QN_INLINE void qn_pack_transposed(const qn_u32 width, QN_GLOBAL const float *w, qn_u32 ld,
                                  qn_u32 columns, qn_u32 links, vf *panel) {
    for (qn_u32 o = 0u; o < links; o += 16u) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            vf x[16];
            QN_FULL
            for (qn_u32 i = 0u; i < 16u; ++i) {
                const qn_u32 k = 16u * j + i;
                x[i] = qn_read_lanes(w + (qn_u64)(k < columns ? k : columns - 1u) * ld + o);
            }
            qn_transpose(x);
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
    QN_GLOBAL const float *w = parameters + weights + (qn_u64)column * lde;
    QN_GLOBAL float *b = B + (qn_u64)row * ld + column;
    qn_block block;
    block.bias = b;
    block.c = b;
    block.panel = panel;
    block.lda = lde;
    block.ldc = ld;
    block.ahead = w;
    block.stride = 0u;
    for (qn_u32 o = 0u; o < out; o += QN_PANEL_LINKS) {
        block.links = out - o < QN_PANEL_LINKS ? out - o : QN_PANEL_LINKS;
        block.begin = o == 0u ? QN_BEGIN_ZERO : QN_BEGIN_CARRY;
        block.a = E + (qn_u64)row * lde + o;
        if (width == 2u) {
            qn_pack_transposed(2u, w + o, lde, in - column, block.links, panel);
            qn_block_rows(2u, rows, block);
        } else {
            qn_pack_transposed(1u, w + o, lde, in - column, block.links, panel);
            qn_block_rows(1u, rows, block);
        }
    }
    for (qn_u32 r = 0u; r < rows; ++r) {
        for (qn_u32 j = 0u; j < width; ++j) {
            QN_GLOBAL float *to = b + (qn_u64)r * ld + 16u * j;
            const uint16 words = qn_item_words(seed, layer, step->epoch, numbers, row + r,
                                               column + 16u * j, threshold);
            qn_finish_errors_lanes(to, Y + (to - B), column + 16u * j, in, activation, threshold,
                                   keep, words);
        }
    }
}
