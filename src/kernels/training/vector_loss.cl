/* LOSS for CPU devices. A group has sixteen items, one in each lane of a vector. Blocks of 16
 * outputs are transposed, so that each lane adds the outputs of its item in the order of the
 * contract. */
typedef struct qn_items {
    qn_u32 first, rows; /* items; lanes from `rows` on repeat the last and are not written */
    qn_u32 ld, out;
} qn_items;

/* Outputs j .. j+15 of the items, transposed: x[i] holds output j + i of each. */
QN_INLINE void qn_transposed_in(const qn_items *items, QN_GLOBAL const float *y, qn_u32 j,
                                vf x[16]) {
    QN_FULL
    for (qn_u32 r = 0u; r < 16u; ++r) {
        const qn_u32 row = items->first + (r < items->rows ? r : items->rows - 1u);
        x[r] = qn_read_lanes(y + (qn_u64)row * items->ld + j);
    }
    qn_transpose(x);
}

/* Transposes back and stores, with +0 after the last output. */
QN_INLINE void qn_transposed_out(const qn_items *items, QN_GLOBAL float *y, qn_u32 j, vf x[16]) {
    QN_FULL
    for (qn_u32 i = 0u; i < 16u; ++i)
        x[i] = j + i < items->out ? x[i] : v_set(0.0f);
    qn_transpose(x);
    QN_FULL
    for (qn_u32 r = 0u; r < 16u; ++r)
        if (r < items->rows)
            qn_write_lanes(y + (qn_u64)(items->first + r) * items->ld + j, x[r]);
}

/* The class (6.6), the largest output, and -1 in lanes with an output that is not finite. */
typedef struct qn_seen {
    vf absmax, label; /* output of the label, +0 without one */
    vi class, wrong;
} qn_seen;

QN_INLINE qn_seen qn_look(const qn_items *items, QN_GLOBAL const float *y, vi label) {
    qn_seen s;
    s.absmax = s.label = v_set(0.0f);
    s.class = s.wrong = vi_set(0);
    for (qn_u32 j = 0u; j < items->out; j += 16u) {
        vf x[16];
        qn_transposed_in(items, y, j, x);
        QN_FULL
        for (qn_u32 i = 0u; i < 16u; ++i) {
            if (j + i >= items->out)
                continue;
            const vi greater = j + i == 0u ? vi_set(-1) : x[i] > s.absmax;
            s.absmax = select(s.absmax, x[i], greater);
            s.class = select(s.class, vi_set((qn_i32)(j + i)), greater);
            s.label = select(s.label, x[i], label == vi_set((qn_i32)(j + i)));
            s.wrong |= ~(fabs(x[i]) < v_set(INFINITY));
        }
    }
    return s;
}

/* Softmax in place (6.4); returns s. */
QN_INLINE vf qn_softmax_lanes(const qn_items *items, QN_GLOBAL float *y, vf m) {
    vf sum = v_set(0.0f);
    for (qn_u32 j = 0u; j < items->out; j += 16u) {
        vf x[16];
        qn_transposed_in(items, y, j, x);
        QN_FULL
        for (qn_u32 i = 0u; i < 16u; ++i) {
            x[i] = qn_exp_lanes(x[i] - m);
            if (j + i < items->out)
                sum = j + i == 0u ? x[i] : sum + x[i];
        }
        qn_transposed_out(items, y, j, x);
    }
    for (qn_u32 j = 0u; j < items->out; j += 16u) {
        vf x[16];
        qn_transposed_in(items, y, j, x);
        QN_FULL
        for (qn_u32 i = 0u; i < 16u; ++i)
            x[i] = qn_div_lanes(x[i], sum);
        qn_transposed_out(items, y, j, x);
    }
    return sum;
}

/* What a loss is, beside its outputs. */
typedef struct qn_loss_lanes_of {
    qn_u32 kind, real;    /* QN_LOSS_*; 1: labels are the bits of targets */
    float delta, on, off; /* targets of the label's output and of others */
    vf factor;
    vi label;
    qn_u32 mixed; /* 1: items are mixed; labels of their partners, and shares of both */
    vi other;
    vf share, rest;
} qn_loss_lanes_of;

/* 7.1; 17.3 in errors of cross-entropy */
QN_INLINE vf qn_target_lanes(const qn_loss_lanes_of *loss, qn_u32 j) {
    if (loss->real != 0u)
        return v_float(loss->label);
    if (loss->kind == QN_LOSS_BINARY)
        return select(v_set(0.0f), v_set(1.0f), loss->label != vi_set(0));
    const vf on = v_set(loss->on), off = v_set(loss->off);
    const vf own = select(off, on, loss->label == vi_set((qn_i32)j));
    if (loss->mixed == 0u)
        return own;
    return loss->share * own + loss->rest * select(off, on, loss->other == vi_set((qn_i32)j));
}

/* The partners' labels of mixed items, and the shares of both labels. */
QN_INLINE void qn_partners(const qn_items *items, QN_GLOBAL const qn_i32 *targets, qn_u32 all,
                           qn_loss_lanes_of *loss) {
    qn_i32 other[16];
    float share[16];
    for (qn_u32 r = 0u; r < 16u; ++r) {
        const qn_u32 at = items->first + r;
        other[r] = loss->mixed != 0u && r < items->rows ? targets[all + at] : -1;
        share[r] =
            loss->mixed != 0u && r < items->rows ? qn_as_float(targets[2u * all + at]) : 1.0f;
    }
    loss->other = vload16(0, other);
    loss->share = vload16(0, share);
    loss->rest = v_set(1.0f) - loss->share;
}

/* 8.2, and the g of 8.3 */
QN_INLINE vf qn_first_error_lanes(const qn_loss_lanes_of *loss, vf y, qn_u32 j) {
    const vf d = y - qn_target_lanes(loss, j);
    const vf g = qn_loss_own_error_lanes(loss->kind) != 0u
                     ? d
                     : qn_loss_slope_lanes(loss->kind, d, loss->delta);
    return g * loss->factor;
}

/* The chains of losses that are sums: the loss itself (7.3), or c of 8.3. */
QN_INLINE vf qn_sum_lanes(const qn_items *items, QN_GLOBAL const float *y,
                          const qn_loss_lanes_of *loss, const qn_u32 errors) {
    vf acc = v_set(0.0f);
    for (qn_u32 j = 0u; j < items->out; j += 16u) {
        vf x[16];
        qn_transposed_in(items, y, j, x);
        QN_FULL
        for (qn_u32 i = 0u; i < 16u; ++i) {
            if (j + i >= items->out)
                continue;
            if (errors != 0u)
                acc = v_fma(qn_first_error_lanes(loss, x[i], j + i), x[i], acc);
            else
                acc = qn_loss_chain_lanes(loss->kind, x[i] - qn_target_lanes(loss, j + i),
                                          loss->delta, acc);
        }
    }
    return acc;
}

/* Sigmoid in place, of the one output that binary has. */
QN_INLINE void qn_sigmoid_in_place(const qn_items *items, QN_GLOBAL float *y) {
    for (qn_u32 r = 0u; r < items->rows; ++r) {
        QN_GLOBAL float *at = y + (qn_u64)(items->first + r) * items->ld;
        *at = qn_sigmoid(*at);
    }
}

/* 8.2, 8.3 */
QN_INLINE void qn_errors_lanes(const qn_items *items, QN_GLOBAL const float *y, QN_GLOBAL float *e,
                               const qn_loss_lanes_of *loss, qn_u32 activation) {
    const qn_u32 own = qn_loss_own_error_lanes(loss->kind);
    const qn_u32 inner = own == 0u && activation == QN_ACT_SOFTMAX ? 1u : 0u;
    const vf c = inner != 0u ? qn_sum_lanes(items, y, loss, 1u) : v_set(0.0f);
    for (qn_u32 j = 0u; j < items->out; j += 16u) {
        vf x[16];
        qn_transposed_in(items, y, j, x);
        QN_FULL
        for (qn_u32 i = 0u; i < 16u; ++i) {
            const vf g = qn_first_error_lanes(loss, x[i], j + i);
            if (inner != 0u)
                x[i] = x[i] * (g - c);
            else
                x[i] = own == 0u ? qn_derive_lanes(activation, x[i], g) : g;
        }
        qn_transposed_out(items, e, j, x);
    }
}

QN_KERNEL(1)
qn_loss_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL float *Y, QN_GLOBAL const qn_i32 *targets,
               QN_GLOBAL const float *weight, QN_GLOBAL float *loss, QN_GLOBAL qn_i32 *classes,
               QN_GLOBAL float *scores, QN_GLOBAL qn_u32 *finite, QN_GLOBAL float *E, qn_u32 out,
               qn_u32 activation, qn_u32 kind, float delta, float factor, qn_u32 flags) {
    qn_items items;
    items.first = qn_group(0) * 16u;
    if (items.first >= step->items)
        return;
    items.rows = step->items - items.first < 16u ? step->items - items.first : 16u;
    items.ld = qn_ld(out);
    items.out = out;
    qn_i32 numbers[16];
    float weights[16];
    for (qn_u32 r = 0u; r < 16u; ++r) {
        numbers[r] =
            (flags & QN_LOSS_LABELS) != 0u && r < items.rows ? targets[items.first + r] : -1;
        weights[r] = r < items.rows ? weight[items.first + r] : 1.0f;
    }
    const vi label = vload16(0, numbers);
    const vf weighed = vload16(0, weights);
    qn_loss_lanes_of of;
    of.kind = kind;
    of.real = flags & QN_LOSS_REAL;
    of.delta = delta;
    of.off = kind == QN_LOSS_CROSS_ENTROPY ? qn_div(delta, (float)out) : 0.0f;
    of.on = kind == QN_LOSS_CROSS_ENTROPY ? (1.0f - delta) + of.off : 1.0f;
    of.factor = weighed * v_set(factor);
    of.label = label;
    of.mixed = (flags & QN_LOSS_MIXED) != 0u ? 1u : 0u;
    qn_partners(&items, targets, step->items, &of);

    const vf partner = of.mixed != 0u ? qn_look(&items, Y, of.other).label : v_set(0.0f);
    qn_seen before = qn_look(&items, Y, label), seen = before;
    vf sum = v_set(0.0f);
    if (activation == QN_ACT_SOFTMAX) {
        sum = qn_softmax_lanes(&items, Y, before.absmax);
        seen = qn_look(&items, Y, label);
    }
    if (kind == QN_LOSS_BINARY) {
        qn_sigmoid_in_place(&items, Y);
        seen = qn_look(&items, Y, label);
        seen.class = convert_int16(qn_loss_class_lanes(seen.absmax));
        seen.absmax = qn_loss_score_lanes(seen.absmax);
    }
    vf lost = v_set(0.0f);
    if ((flags & QN_LOSS_LABELS) != 0u && qn_loss_own_error_lanes(kind) != 0u)
        lost = qn_loss_own_lanes(kind, before.absmax, before.label, sum, qn_target_lanes(&of, 0u));
    if (of.mixed != 0u)
        lost = of.share * lost +
               of.rest * qn_loss_own_lanes(kind, before.absmax, partner, sum, v_set(0.0f));
    if ((flags & QN_LOSS_LABELS) != 0u && qn_loss_own_error_lanes(kind) == 0u)
        lost = qn_sum_lanes(&items, Y, &of, 0u);
    qn_i32 class[16], wrong[16];
    float absmax[16], losses[16];
    vstore16(seen.class, 0, class);
    vstore16(seen.wrong, 0, wrong);
    vstore16(seen.absmax, 0, absmax);
    vstore16(lost * weighed, 0, losses);
    for (qn_u32 r = 0u; r < items.rows; ++r) {
        classes[items.first + r] = class[r];
        scores[items.first + r] = absmax[r];
        finite[items.first + r] = wrong[r] == 0 ? 1u : 0u;
        if ((flags & QN_LOSS_LABELS) != 0u)
            loss[items.first + r] = losses[r];
    }
    if ((flags & QN_LOSS_TRAIN) != 0u)
        qn_errors_lanes(&items, Y, E, &of, activation);
}
#endif
