/* GRADIENT for CPU devices. A group computes QN_GROUP_INPUTS inputs k by QN_GROUP_OUTPUTS outputs
 * o. For each grain it packs its columns of the errors into private memory, QN_PANEL_ITEMS items at
 * a time. Tiles of 4 inputs by QN_TILE_WIDTH vectors of outputs read this panel. Partials are
 * rounded in registers and added to integers in private memory, which are written to the sums once.
 * With a single grain they are written to the sums directly. */
#define QN_GROUP_INPUTS 48u
#define QN_TILE_WIDTH 4u
#define QN_GROUP_OUTPUTS (16u * QN_TILE_WIDTH)
#define QN_PANEL_ITEMS 64u
#define QN_TILE_INPUTS 4u

/* What a tile does with its accumulators at the end of a panel. */
#define QN_END_CARRY 0u /* keep them: the grain continues */
#define QN_END_FIRST 1u /* write them to `total` */
#define QN_END_ADD 2u
#define QN_END_OUT 3u     /* write them to the sums */
#define QN_END_OUT_ADD 4u /* add them to the sums */

/* The part of the product that a group computes. */
typedef struct qn_group_place {
    qn_u32 row, rows, inputs; /* first input, those with padding, those without */
    qn_u32 column, width;     /* first output, vectors of outputs */
    qn_u32 lda, ld;           /* of inputs and outputs */
    qn_u32 stride;            /* of the sums */
    qn_u32 begin, end;        /* grains */
    qn_u32 items, grain;
    float limit;
} qn_group_place;

/* What the tiles of a panel have in common. */
typedef struct qn_panel {
    QN_GLOBAL const float *a; /* [items][lda] */
    QN_GLOBAL qn_i64 *sums;   /* [inputs][stride] */
    qn_u32 lda, ld, stride, items, begins, end;
    float limit;
    /* Arrays to prefetch: [inputs][ld] each. */
    QN_GLOBAL const float *ahead[3];
    qn_u32 arrays;
} qn_panel;

/* The links of a panel for 4 inputs by 16 * width outputs. Returns 1 when a partial was out of
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
        QN_GLOBAL long16 *sums =
            (QN_GLOBAL long16 *)(panel->sums + (qn_u64)(k + r) * panel->stride);
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j) {
            outside |= ~(fabs(acc[r][j]) < v_set(panel->limit));
            const long16 units = convert_long16(qn_intgemm_lanes(acc[r][j]));
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

/* Packs the errors of 16 * width columns and runs their tiles. */
QN_INLINE qn_u32 qn_gradient_columns(const qn_u32 width, const qn_panel *panel, qn_u32 rows,
                                     qn_u32 inputs, QN_GLOBAL const float *e, vf *errors, vf *carry,
                                     long16 *total) {
    qn_u32 bad = 0u;
    for (qn_u32 i = 0u; i < panel->items; ++i) {
        QN_FULL
        for (qn_u32 j = 0u; j < width; ++j)
            errors[i * width + j] = qn_read_lanes(e + (qn_u64)i * panel->ld + 16u * j);
    }
    for (qn_u32 k = 0u; k < rows; k += QN_TILE_INPUTS) {
        for (qn_u32 n = 0u; n < panel->arrays; ++n)
            for (qn_u32 r = k; r < k + QN_TILE_INPUTS && r < inputs; ++r)
                for (qn_u32 j = 0u; j < width; ++j)
                    qn_prefetch(panel->ahead[n] + (qn_u64)r * panel->ld + 16u * j);
        bad |= qn_gradient_tile(width, panel, k, inputs, errors, carry + k * QN_TILE_WIDTH,
                                total + k * QN_TILE_WIDTH);
    }
    return bad;
}

QN_INLINE qn_group_place qn_place_of(QN_GLOBAL const qn_step *step, qn_u32 in, qn_u32 out,
                                     qn_u32 stride, qn_u32 k_blocks, float limit) {
    qn_group_place p;
    p.items = step->items;
    p.grain = step->grain;
    p.lda = qn_ld(in);
    p.ld = qn_ld(out);
    p.stride = stride;
    p.limit = limit;
    p.row = qn_group(1) * QN_GROUP_INPUTS;
    p.column = qn_group(0) * QN_GROUP_OUTPUTS;
    p.rows = p.lda - p.row < QN_GROUP_INPUTS ? p.lda - p.row : QN_GROUP_INPUTS;
    p.inputs = in - p.row < p.rows ? in - p.row : p.rows;
    p.width = p.ld - p.column < QN_GROUP_OUTPUTS ? (p.ld - p.column) / 16u : QN_TILE_WIDTH;
    const qn_u32 grains = (p.items + p.grain - 1u) / p.grain;
    p.begin = qn_block_begin(grains, qn_group(2), k_blocks);
    p.end = qn_block_begin(grains, qn_group(2) + 1u, k_blocks);
    return p;
}

/* The sums of the group's grains, in `total`. If `direct` is QN_END_OUT or QN_END_OUT_ADD, they go
 * to `sums` instead. Returns 1 when a partial was out of range. */
QN_INLINE qn_u32 qn_group_sums(const qn_group_place *p, QN_GLOBAL const float *A,
                               QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums, qn_u32 direct,
                               long16 *total, QN_GLOBAL const float *const *ahead, qn_u32 arrays) {
    vf errors[QN_PANEL_ITEMS * QN_TILE_WIDTH], carry[QN_GROUP_INPUTS * QN_TILE_WIDTH];
    qn_u32 bad = 0u;
    qn_panel panel;
    panel.lda = p->lda;
    panel.ld = p->ld;
    panel.stride = p->stride;
    panel.limit = p->limit;
    for (qn_u32 g = p->begin; g < p->end; ++g) {
        const qn_u32 first = g * p->grain;
        const qn_u32 last = p->items - first < p->grain ? p->items : first + p->grain;
        const qn_u32 end = direct != 0u ? direct : g == p->begin ? QN_END_FIRST : QN_END_ADD;
        for (qn_u32 item = first; item < last; item += QN_PANEL_ITEMS) {
            panel.items = last - item < QN_PANEL_ITEMS ? last - item : QN_PANEL_ITEMS;
            panel.begins = item == first ? 1u : 0u;
            panel.end = item + panel.items == last ? end : QN_END_CARRY;
            panel.a = A + (qn_u64)item * p->lda + p->row;
            for (qn_u32 c = 0u; c < p->width;) {
                QN_GLOBAL const float *e = E + (qn_u64)item * p->ld + p->column + 16u * c;
                panel.arrays = g == p->begin && item == first ? arrays : 0u;
                for (qn_u32 n = 0u; n < panel.arrays; ++n)
                    panel.ahead[n] = ahead[n] + (qn_u64)p->row * p->ld + p->column + 16u * c;
                panel.sums = sums + (qn_u64)p->row * p->stride + p->column + 16u * c;
                if (p->width - c >= 4u) {
                    bad |= qn_gradient_columns(4u, &panel, p->rows, p->inputs, e, errors, carry + c,
                                               total + c);
                    c += 4u;
                } else if (p->width - c >= 2u) {
                    bad |= qn_gradient_columns(2u, &panel, p->rows, p->inputs, e, errors, carry + c,
                                               total + c);
                    c += 2u;
                } else {
                    bad |= qn_gradient_columns(1u, &panel, p->rows, p->inputs, e, errors, carry + c,
                                               total + c);
                    c += 1u;
                }
            }
        }
    }
    return bad;
}

QN_KERNEL(1)
qn_gradient_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                   QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums,
                   QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 in, qn_u32 out,
                   qn_u32 stride, qn_u32 layer, float limit, qn_u32 k_blocks, qn_u32 flags) {
    long16 total[QN_GROUP_INPUTS * QN_TILE_WIDTH];
    const qn_group_place p = qn_place_of(step, in, out, stride, k_blocks, limit);
    const qn_u32 add = (flags & QN_GRADIENT_ADD) != 0u ? 1u : 0u;
    const qn_u32 direct = k_blocks > 1u || p.end - p.begin != 1u ? 0u
                          : add != 0u                            ? QN_END_OUT_ADD
                                                                 : QN_END_OUT;
    if (qn_group_sums(&p, A, E, sums + weights, direct, total, 0, 0u) != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
    if (direct != 0u || p.end == p.begin)
        return;
    for (qn_u32 r = 0u; r < p.inputs; ++r) {
        for (qn_u32 j = 0u; j < p.width; ++j) {
            QN_GLOBAL qn_i64 *to =
                sums + weights + (qn_u64)(p.row + r) * p.stride + p.column + 16u * j;
            const long16 units = total[r * QN_TILE_WIDTH + j];
            if (k_blocks > 1u) {
                const qn_i64 *from = (const qn_i64 *)(total + r * QN_TILE_WIDTH + j);
                for (qn_u32 i = 0u; i < 16u; ++i)
                    qn_atomic_add64(to + i, from[i]);
            } else if (add != 0u)
                *(QN_GLOBAL long16 *)to += units;
            else
                *(QN_GLOBAL long16 *)to = units;
        }
    }
}

/* Sums of the errors of 16 columns (8.6, 8.7). Lanes that were out of range are set in
 * `outside`. */
QN_INLINE long16 qn_bias_lanes(QN_GLOBAL const float *e, qn_u32 ld, qn_u32 items, qn_u32 grain,
                               float limit, vi *outside) {
    long16 total = (long16)(0);
    for (qn_u32 item = 0u; item < items;) {
        const qn_u32 end = items - item < grain ? items : item + grain;
        vf acc = v_set(0.0f);
        for (; item < end; ++item)
            acc = acc + qn_read_lanes(e + (qn_u64)item * ld);
        *outside |= ~(fabs(acc) < v_set(limit));
        total += convert_long16(qn_intgemm_lanes(acc));
    }
    return total;
}

/* Sixteen parameters from i on, from their sums. */
QN_INLINE void qn_update_lanes(const qn_update_rule *rule, QN_GLOBAL float *parameters,
                               QN_GLOBAL float *slot0, QN_GLOBAL float *slot1, qn_u64 i,
                               long16 sum) {
    const vf g = convert_float16(sum) * v_set(rule->gradient);
    qn_write_lanes(parameters + i,
                   qn_updated_lanes(rule, qn_read_lanes(parameters + i), g, slot0 + i, slot1 + i));
}

/* LEARN: GRADIENT, BIAS and UPDATE of a layer in one pass, for a step with one device: the sums
 * stay in private memory. The groups of the first inputs also update the biases. */
QN_KERNEL(1)
qn_learn_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A, QN_GLOBAL const float *E,
                QN_GLOBAL float *parameters, QN_GLOBAL float *slot0, QN_GLOBAL float *slot1,
                QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 in, qn_u32 out,
                qn_u32 layer, float limit, qn_u32 optimizer, float momentum, float beta1,
                float beta2, float one_minus_beta1, float one_minus_beta2, float epsilon,
                float decay, float factor) {
    long16 total[QN_GROUP_INPUTS * QN_TILE_WIDTH];
    const qn_group_place p = qn_place_of(step, in, out, qn_ld(out), 1u, limit);
    qn_update_rule rule =
        qn_update_rule_of(step, optimizer, momentum, beta1, beta2, one_minus_beta1, one_minus_beta2,
                          epsilon, decay, factor);
    QN_GLOBAL const float *const ahead[3] = {parameters + weights, slot0 + weights,
                                             slot1 + weights};
    qn_u32 arrays = 1u;
#define QN_KIND(NAME, name, slots) arrays += optimizer == QN_OPT_##NAME ? slots : 0u;
    QN_OPTIMIZERS(QN_KIND)
#undef QN_KIND
    qn_u32 bad = qn_group_sums(&p, A, E, (QN_GLOBAL qn_i64 *)0, 0u, total, ahead, arrays);
    for (qn_u32 r = 0u; r < p.inputs; ++r)
        for (qn_u32 j = 0u; j < p.width; ++j)
            qn_update_lanes(&rule, parameters, slot0, slot1,
                            weights + (qn_u64)(p.row + r) * p.ld + p.column + 16u * j,
                            total[r * QN_TILE_WIDTH + j]);
    if (p.row == 0u) {
        vi outside = vi_set(0);
        rule.decay = 0.0f;
        for (qn_u32 j = 0u; j < p.width; ++j) {
            const qn_u32 column = p.column + 16u * j;
            const long16 sum = qn_bias_lanes(E + column, p.ld, p.items, p.grain, limit, &outside);
            qn_update_lanes(&rule, parameters, slot0, slot1, weights + (qn_u64)in * p.ld + column,
                            sum);
        }
        bad |= any(outside) ? 1u : 0u;
    }
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
