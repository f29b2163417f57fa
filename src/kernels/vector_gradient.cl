/* GRADIENT for devices that are CPUs. A group has QN_GROUP_INPUTS inputs k by QN_GROUP_OUTPUTS
 * outputs o. Of a grain it packs its columns of the errors into private memory, at most
 * QN_PANEL_ITEMS items at a time, and lets tiles of 4 inputs by QN_TILE_WIDTH vectors of outputs
 * pass over them. Partials are rounded from the registers and added to integers in private memory,
 * which leave it once; where there is a single grain they go out at once. */
#define QN_GROUP_INPUTS 48u
#define QN_TILE_WIDTH 4u
#define QN_GROUP_OUTPUTS (16u * QN_TILE_WIDTH)
#define QN_PANEL_ITEMS 64u
#define QN_TILE_INPUTS 4u

/* What a tile does with its accumulators at the end of a panel. */
#define QN_END_CARRY 0u /* the grain goes on */
#define QN_END_FIRST 1u /* to `total`, which has nothing yet */
#define QN_END_ADD 2u
#define QN_END_OUT 3u     /* to the sums, which are overwritten */
#define QN_END_OUT_ADD 4u /* to the sums */

/* What is common to the tiles of a panel. */
typedef struct qn_panel {
    QN_GLOBAL const float *a; /* [items][lda] */
    QN_GLOBAL qn_i64 *sums;   /* [inputs][ld] */
    qn_u32 lda, ld, items, begins, end;
    float limit;
} qn_panel;

/* Links of the chains of 4 inputs from input r on by 16 * width outputs. 1 when a partial left its
 * range. */
QN_INLINE qn_u32 qn_gradient_tile(const qn_u32 width, const qn_panel *panel, qn_u32 k,
                                  qn_u32 inputs, const vf *errors, vf *carry, long16 *total) {
    vf acc[QN_TILE_INPUTS][QN_TILE_WIDTH];
    QN_FULL
    for (qn_u32 r = 0u; r < QN_TILE_INPUTS; ++r) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            acc[r][j] = v_set(0.0f);
            if (panel->begins == 0u)
                acc[r][j] = carry[r * QN_TILE_WIDTH + j];
        }
    }
    QN_GLOBAL const float *a = panel->a + k;
    const qn_u32 items = panel->items, lda = panel->lda;
    QN_ROLLED
    for (qn_u32 i = 0u; i < items; ++i, a += lda) {
        vf e[QN_TILE_WIDTH];
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j)
            e[j] = errors[i * width + j];
        QN_FULL
        for (qn_u32 r = 0u; r < QN_TILE_INPUTS; ++r) {
            const vf x = v_set(a[r]);
            QN_FULL
            for (qn_u32 j = 0u; j < width; ++j)
                acc[r][j] = v_fma(x, e[j], acc[r][j]);
        }
    }
    const qn_u32 end = panel->end;
    if (end == QN_END_CARRY) {
        QN_FULL
        for (qn_u32 r = 0u; r < QN_TILE_INPUTS; ++r) {
            QN_FULL
            for (qn_u32 j = 0u; j < width; ++j)
                carry[r * QN_TILE_WIDTH + j] = acc[r][j];
        }
        return 0u;
    }
    vi outside = vi_set(0);
    QN_FULL
    for (qn_u32 r = 0u; r < QN_TILE_INPUTS; ++r) {
        QN_GLOBAL long16 *sums = (QN_GLOBAL long16 *)(panel->sums + (qn_u64)(k + r) * panel->ld);
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            outside |= ~(fabs(acc[r][j]) < v_set(panel->limit));
            const long16 units = convert_long16(qn_whole_lanes(acc[r][j]));
            if (end == QN_END_FIRST)
                total[r * QN_TILE_WIDTH + j] = units;
            else if (end == QN_END_ADD)
                total[r * QN_TILE_WIDTH + j] += units;
            else if (k + r < inputs && end == QN_END_OUT)
                sums[j] = units;
            else if (k + r < inputs)
                sums[j] += units;
        }
    }
    return any(outside) ? 1u : 0u;
}

/* The tiles of 16 * width columns. */
QN_INLINE qn_u32 qn_gradient_columns(const qn_u32 width, const qn_panel *panel, qn_u32 rows,
                                     qn_u32 inputs, QN_GLOBAL const float *e, vf *errors, vf *carry,
                                     long16 *total) {
    qn_u32 bad = 0u;
    for (qn_u32 i = 0u; i < panel->items; ++i) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j)
            errors[i * width + j] = qn_read(e + (qn_u64)i * panel->ld + 16u * j);
    }
    for (qn_u32 k = 0u; k < rows; k += QN_TILE_INPUTS)
        bad |= qn_gradient_tile(width, panel, k, inputs, errors, carry + k * QN_TILE_WIDTH,
                                total + k * QN_TILE_WIDTH);
    return bad;
}

QN_KERNEL(1)
qn_gradient_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                   QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums,
                   QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 in, qn_u32 out,
                   qn_u32 layer, float limit, qn_u32 slices, qn_u32 flags) {
    vf errors[QN_PANEL_ITEMS * QN_TILE_WIDTH], carry[QN_GROUP_INPUTS * QN_TILE_WIDTH];
    long16 total[QN_GROUP_INPUTS * QN_TILE_WIDTH];
    const qn_u32 row = qn_group(1) * QN_GROUP_INPUTS, column = qn_group(0) * QN_GROUP_OUTPUTS;
    const qn_u32 items = step->items, grain = step->grain, ld = qn_ld(out), lda = qn_ld(in);
    if (row >= in || column >= ld)
        return;
    const qn_u32 grains = (items + grain - 1u) / grain;
    const qn_u32 begin = (qn_u32)((qn_u64)grains * qn_group(2) / slices);
    const qn_u32 end = (qn_u32)((qn_u64)grains * (qn_group(2) + 1u) / slices);
    const qn_u32 rows = lda - row < QN_GROUP_INPUTS ? lda - row : QN_GROUP_INPUTS;
    const qn_u32 width = ld - column < QN_GROUP_OUTPUTS ? (ld - column) / 16u : QN_TILE_WIDTH;
    const qn_u32 add = (flags & QN_GRADIENT_ADD) != 0u ? 1u : 0u;
    const qn_u32 direct = slices == 1u && end - begin == 1u ? 1u : 0u;
    qn_u32 bad = 0u;
    qn_panel panel;
    panel.lda = lda;
    panel.ld = ld;
    panel.limit = limit;
    for (qn_u32 g = begin; g < end; ++g) {
        const qn_u32 last = items - g * grain < grain ? items : (g + 1u) * grain;
        const qn_u32 way = direct != 0u ? (add != 0u ? QN_END_OUT_ADD : QN_END_OUT)
                           : g == begin ? QN_END_FIRST
                                        : QN_END_ADD;
        for (qn_u32 item = g * grain; item < last; item += QN_PANEL_ITEMS) {
            panel.items = last - item < QN_PANEL_ITEMS ? last - item : QN_PANEL_ITEMS;
            panel.begins = item == g * grain ? 1u : 0u;
            panel.end = item + panel.items == last ? way : QN_END_CARRY;
            panel.a = A + (qn_u64)item * lda + row;
            for (qn_u32 c = 0u; c < width;) {
                QN_GLOBAL const float *e = E + (qn_u64)item * ld + column + 16u * c;
                panel.sums = sums + weights + (qn_u64)row * ld + column + 16u * c;
                if (width - c >= 4u) {
                    bad |= qn_gradient_columns(4u, &panel, rows, in - row, e, errors, carry + c,
                                               total + c);
                    c += 4u;
                } else if (width - c >= 2u) {
                    bad |= qn_gradient_columns(2u, &panel, rows, in - row, e, errors, carry + c,
                                               total + c);
                    c += 2u;
                } else {
                    bad |= qn_gradient_columns(1u, &panel, rows, in - row, e, errors, carry + c,
                                               total + c);
                    c += 1u;
                }
            }
        }
    }
    for (qn_u32 r = 0u; direct == 0u && end > begin && r < rows && row + r < in; ++r) {
        for (qn_u32 j = 0u; j < width; ++j) {
            QN_GLOBAL long16 *to =
                (QN_GLOBAL long16 *)(sums + weights + (qn_u64)(row + r) * ld + column + 16u * j);
            const long16 units = total[r * QN_TILE_WIDTH + j];
            if (slices > 1u) {
                const qn_i64 *from = (const qn_i64 *)(total + r * QN_TILE_WIDTH + j);
                for (qn_u32 i = 0u; i < 16u; ++i)
                    qn_atomic_add64((QN_GLOBAL qn_i64 *)to + i, from[i]);
            } else if (add != 0u)
                *to += units;
            else
                *to = units;
        }
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
