/* GRADIENT for devices that are CPUs. A group has QN_GROUP_INPUTS inputs k by QN_GROUP_OUTPUTS
 * outputs o. Of a grain it packs its columns of the errors into private memory, at most
 * QN_PANEL_ITEMS items at a time, and lets tiles of 4 inputs by 4 vectors of outputs pass over
 * them: 16 accumulators. Partials of grains are rounded from the registers and added to integers in
 * private memory, which leave it once. */
#define QN_GROUP_INPUTS 48u
#define QN_GROUP_OUTPUTS 64u
#define QN_PANEL_ITEMS 64u

/* Links of the chains of 4 inputs by 16 * width outputs over `items` rows of a and packed errors.
 */
QN_INLINE qn_u32 qn_gradient_tile(const qn_u32 width, qn_u32 items, QN_GLOBAL const float *a,
                                  qn_u32 lda, const vf *errors, vf *carry, qn_u32 begins,
                                  qn_u32 ends, float limit, long16 *total) {
    vf acc[4][4];
    QN_FULL
    for (qn_u32 r = 0u; r < 4u; ++r) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            acc[r][j] = v_set(0.0f);
            if (begins == 0u)
                acc[r][j] = carry[r * 4u + j];
        }
    }
    QN_ROLLED
    for (qn_u32 i = 0u; i < items; ++i, a += lda) {
        vf e[4];
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j)
            e[j] = errors[i * width + j];
        QN_FULL
        for (qn_u32 r = 0u; r < 4u; ++r) {
            const vf x = v_set(a[r]);
            QN_FULL
            for (qn_u32 j = 0u; j < width; ++j)
                acc[r][j] = v_fma(x, e[j], acc[r][j]);
        }
    }
    if (ends == 0u) {
        QN_FULL
        for (qn_u32 r = 0u; r < 4u; ++r) {
            QN_FULL
            for (qn_u32 j = 0u; j < width; ++j)
                carry[r * 4u + j] = acc[r][j];
        }
        return 0u;
    }
    vi outside = vi_set(0);
    QN_FULL
    for (qn_u32 r = 0u; r < 4u; ++r) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            outside |= ~(fabs(acc[r][j]) < v_set(limit));
            total[r * 4u + j] += convert_long16(qn_whole_lanes(acc[r][j]));
        }
    }
    return any(outside) ? 1u : 0u;
}

QN_KERNEL(1)
qn_gradient_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                   QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums,
                   QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 in, qn_u32 out,
                   qn_u32 layer, float limit, qn_u32 slices, qn_u32 flags) {
    vf errors[QN_PANEL_ITEMS * QN_GROUP_OUTPUTS / 16u],
        carry[QN_GROUP_INPUTS * QN_GROUP_OUTPUTS / 16u];
    long16 total[QN_GROUP_INPUTS * QN_GROUP_OUTPUTS / 16u];
    const qn_u32 row = qn_group(1) * QN_GROUP_INPUTS, column = qn_group(0) * QN_GROUP_OUTPUTS;
    const qn_u32 items = step->items, grain = step->grain, ld = qn_ld(out), lda = qn_ld(in);
    if (row >= in || column >= ld)
        return;
    const qn_u32 grains = (items + grain - 1u) / grain;
    const qn_u32 begin = (qn_u32)((qn_u64)grains * qn_group(2) / slices);
    const qn_u32 end = (qn_u32)((qn_u64)grains * (qn_group(2) + 1u) / slices);
    const qn_u32 rows = lda - row < QN_GROUP_INPUTS ? lda - row : QN_GROUP_INPUTS;
    const qn_u32 width = ld - column < QN_GROUP_OUTPUTS ? (ld - column) / 16u : 4u;
    qn_u32 bad = 0u;
    for (qn_u32 n = 0u; n < rows; ++n)
        for (qn_u32 j = 0u; j < 4u; ++j)
            total[n * 4u + j] = (long16)(0);
    for (qn_u32 g = begin; g < end; ++g) {
        const qn_u32 last = items - g * grain < grain ? items : (g + 1u) * grain;
        for (qn_u32 item = g * grain; item < last; item += QN_PANEL_ITEMS) {
            const qn_u32 count = last - item < QN_PANEL_ITEMS ? last - item : QN_PANEL_ITEMS;
            const qn_u32 begins = item == g * grain ? 1u : 0u,
                         ends = item + count == last ? 1u : 0u;
            QN_GLOBAL const float *a = A + (qn_u64)item * lda + row;
            QN_GLOBAL const float *e = E + (qn_u64)item * ld + column;
            for (qn_u32 c = 0u; c < width;) {
                const qn_u32 w = width - c >= 4u ? 4u : width - c >= 2u ? 2u : 1u;
                for (qn_u32 i = 0u; i < count; ++i)
                    for (qn_u32 j = 0u; j < w; ++j)
                        errors[i * w + j] = qn_read(e + (qn_u64)i * ld + 16u * (c + j));
                for (qn_u32 r = 0u; r < rows; r += 4u) {
                    vf *kept = carry + r * 4u + c;
                    long16 *to = total + r * 4u + c;
                    if (w == 4u)
                        bad |= qn_gradient_tile(4u, count, a + r, lda, errors, kept, begins, ends,
                                                limit, to);
                    else if (w == 2u)
                        bad |= qn_gradient_tile(2u, count, a + r, lda, errors, kept, begins, ends,
                                                limit, to);
                    else
                        bad |= qn_gradient_tile(1u, count, a + r, lda, errors, kept, begins, ends,
                                                limit, to);
                }
                c += w;
            }
        }
    }
    for (qn_u32 r = 0u; r < rows && row + r < in; ++r) {
        for (qn_u32 j = 0u; j < width; ++j) {
            QN_GLOBAL long16 *to =
                (QN_GLOBAL long16 *)(sums + weights + (qn_u64)(row + r) * ld + column + 16u * j);
            if (slices > 1u) {
                const qn_i64 *from = (const qn_i64 *)(total + r * 4u + j);
                for (qn_u32 i = 0u; i < 16u; ++i)
                    qn_atomic_add64((QN_GLOBAL qn_i64 *)to + i, from[i]);
            } else if ((flags & QN_GRADIENT_ADD) != 0u)
                *to += total[r * 4u + j];
            else
                *to = total[r * 4u + j];
        }
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
#endif
