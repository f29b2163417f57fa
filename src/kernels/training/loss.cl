/* LOSS: a group processes an item at a time. Sums whose order the contract defines (softmax, a loss
 * that is a sum over outputs) are computed by one lane; all lanes do the rest. */
#define QN_LOSS_LANES 64u

/* The largest of y[0..n-1] and its index: the first among equals (6.6); y[0] when that is a NaN.
 * qn_max_own writes the largest of each lane to local memory. After a barrier, the first lane calls
 * qn_max_all, which writes the result to element 0. */
QN_FN void qn_max_own(QN_GLOBAL const float *y, qn_u32 n, QN_LOCAL_POINTER float *value,
                      QN_LOCAL_POINTER qn_u32 *place) {
    float best = y[0];
    qn_u32 where = 0u;
    for (qn_u32 j = qn_lane(); j < n; j += QN_LOSS_LANES) {
        if (y[j] > best) {
            best = y[j];
            where = j;
        }
    }
    value[qn_lane()] = best;
    place[qn_lane()] = where;
}

QN_FN void qn_max_all(qn_u32 n, QN_LOCAL_POINTER float *value, QN_LOCAL_POINTER qn_u32 *place) {
    float best = value[0];
    qn_u32 where = place[0];
    for (qn_u32 l = 1u; l < QN_LOSS_LANES && l < n; ++l) {
        if (value[l] > best || (value[l] == best && place[l] < where)) {
            best = value[l];
            where = place[l];
        }
    }
    value[0] = best;
    place[0] = where;
}

/* The loss of an item, except its outputs. */
typedef struct qn_loss_of {
    qn_u32 kind, real; /* QN_LOSS_*; 1: the label is the bits of the target */
    float delta, factor;
    float on, off; /* targets of the label's output and of others */
    qn_u32 label;
    qn_u32 mixed, other; /* 1: the item is mixed; its partner's label */
    float share, rest;   /* of both labels */
} qn_loss_of;

/* 7.1; 17.3 in errors of cross-entropy */
QN_FN float qn_target(qn_loss_of loss, qn_u32 j) {
    if (loss.real != 0u)
        return qn_as_float((qn_i32)loss.label);
    if (loss.kind == QN_LOSS_BINARY)
        return loss.label != 0u ? 1.0f : 0.0f;
    const float own = j == loss.label ? loss.on : loss.off;
    if (loss.mixed == 0u)
        return own;
    return loss.share * own + loss.rest * (j == loss.other ? loss.on : loss.off);
}

/* 8.2, and the g of 8.3 */
QN_FN float qn_first_error(qn_loss_of loss, float y, qn_u32 j) {
    const float d = y - qn_target(loss, j);
    if (qn_loss_own_error(loss.kind) != 0u)
        return d * loss.factor;
    return qn_loss_slope(loss.kind, d, loss.delta) * loss.factor;
}

/* Sums in a fixed order, computed by one lane: s of softmax (6.4), a loss that is a sum (7.3), c of
 * 8.3. */
QN_FN float qn_softmax_sum(QN_GLOBAL const float *q, qn_u32 n) {
    float s = q[0];
    for (qn_u32 j = 1u; j < n; ++j)
        s = s + q[j];
    return s;
}

QN_FN float qn_sum_loss(QN_GLOBAL const float *y, qn_u32 n, qn_loss_of loss) {
    float acc = 0.0f;
    for (qn_u32 j = 0u; j < n; ++j)
        acc = qn_loss_chain(loss.kind, y[j] - qn_target(loss, j), loss.delta, acc);
    return acc;
}

QN_FN float qn_sum_inner(QN_GLOBAL const float *y, qn_u32 n, qn_loss_of loss) {
    float acc = 0.0f;
    for (qn_u32 j = 0u; j < n; ++j)
        acc = qn_fma(qn_first_error(loss, y[j], j), y[j], acc);
    return acc;
}

/* No barrier is inside a condition: some OpenCL compilers for CPUs miscompile such barriers. */
QN_KERNEL(64)
qn_loss(QN_GLOBAL const qn_step *step, QN_GLOBAL float *Y, QN_GLOBAL const qn_i32 *targets,
        QN_GLOBAL const float *weight, QN_GLOBAL float *loss, QN_GLOBAL qn_i32 *classes,
        QN_GLOBAL float *scores, QN_GLOBAL qn_u32 *finite, QN_GLOBAL float *E, qn_u32 out,
        qn_u32 activation, qn_u32 kind, float delta, float factor, qn_u32 flags) {
    QN_LOCAL float value[QN_LOSS_LANES];
    QN_LOCAL qn_u32 place[QN_LOSS_LANES];
    QN_LOCAL qn_u32 wrong[QN_LOSS_LANES];
    QN_LOCAL float result[4]; /* s, z of the label, c, z of the partner's label */
    const qn_u32 ld = qn_ld(out), lane = qn_lane();
    const qn_u32 softmax = activation == QN_ACT_SOFTMAX ? 1u : 0u;
    const qn_u32 labels = flags & QN_LOSS_LABELS, train = flags & QN_LOSS_TRAIN;
    const qn_u32 binary = kind == QN_LOSS_BINARY ? 1u : 0u;
    /* Before the loop: within it ptxas spills for sm_90. */
    const qn_u32 own = qn_loss_own_error(kind);
    qn_loss_of of;
    of.kind = kind;
    of.real = flags & QN_LOSS_REAL;
    of.delta = delta;
    of.off = kind == QN_LOSS_CROSS_ENTROPY ? qn_div(delta, (float)out) : 0.0f;
    of.on = kind == QN_LOSS_CROSS_ENTROPY ? (1.0f - delta) + of.off : 1.0f;
    of.mixed = (flags & QN_LOSS_MIXED) != 0u ? 1u : 0u;
    of.other = 0xffffffffu;
    of.share = 1.0f;
    of.rest = 0.0f;
    for (qn_u32 item = qn_group(0); item < step->items; item += qn_groups(0)) {
        QN_GLOBAL float *y = Y + (qn_u64)item * ld;
        QN_GLOBAL float *e = E + (qn_u64)item * ld;
        const qn_u32 label = labels != 0u ? (qn_u32)targets[item] : 0xffffffffu;
        of.label = label;
        of.factor = weight[item] * factor;
        if (of.mixed != 0u) {
            of.other = (qn_u32)targets[step->items + item];
            of.share = qn_as_float(targets[2u * step->items + item]);
            of.rest = 1.0f - of.share;
        }

        qn_max_own(y, out, value, place);
        qn_barrier_global();
        if (lane == 0u) {
            qn_max_all(out, value, place);
            result[1] = label < out ? y[label] : 0.0f;
            result[3] = of.other < out ? y[of.other] : 0.0f;
        }
        qn_barrier_global();
        const float m = value[0];
        for (qn_u32 j = lane; j < out && softmax != 0u; j += QN_LOSS_LANES)
            y[j] = qn_exp(y[j] - m);
        qn_barrier_global();
        if (lane == 0u)
            result[0] = softmax != 0u ? qn_softmax_sum(y, out) : 1.0f;
        qn_barrier_global();
        const float s = result[0];
        qn_u32 out_of_range = 0u;
        for (qn_u32 j = lane; j < out; j += QN_LOSS_LANES) {
            float output = softmax != 0u ? qn_div(y[j], s) : y[j];
            if (binary != 0u)
                output = qn_sigmoid(output);
            out_of_range |= (qn_as_u32(output) & 0x7fffffffu) < 0x7f800000u ? 0u : 1u;
            if (softmax != 0u || binary != 0u)
                y[j] = output;
        }
        wrong[lane] = out_of_range;
        qn_barrier_global();
        qn_max_own(y, out, value, place);
        qn_barrier_global();
        if (lane == 0u) {
            qn_max_all(out, value, place);
            for (qn_u32 l = 1u; l < QN_LOSS_LANES; ++l)
                out_of_range |= wrong[l];
            finite[item] = out_of_range == 0u ? 1u : 0u;
            classes[item] = binary != 0u ? (qn_i32)qn_loss_class(value[0]) : (qn_i32)place[0];
            scores[item] = binary != 0u ? qn_loss_score(value[0]) : value[0];
            if (labels != 0u) {
                float lost = own != 0u
                                 ? qn_loss_own(kind, m, result[1], result[0], qn_target(of, 0u))
                                 : qn_sum_loss(y, out, of);
                if (of.mixed != 0u)
                    lost = of.share * lost +
                           of.rest * qn_loss_own(kind, m, result[3], result[0], 0.0f);
                loss[item] = lost * weight[item];
            }
        }
        const qn_u32 inner = train != 0u && own == 0u && softmax != 0u ? 1u : 0u;
        /* A lane of another warp, so that this sum runs at the same time as the loss in lane 0. */
        if (lane == QN_LOSS_LANES / 2u)
            result[2] = inner != 0u ? qn_sum_inner(y, out, of) : 0.0f;
        qn_barrier_global();
        const float c = result[2];
        for (qn_u32 j = lane; j < ld && train != 0u; j += QN_LOSS_LANES) {
            const float output = j < out ? y[j] : 0.0f;
            float error = qn_first_error(of, output, j);
            if (inner != 0u)
                error = output * (error - c);
            else if (own == 0u)
                error = qn_derive(activation, output, error);
            e[j] = j < out ? error : 0.0f;
        }
        qn_barrier_global();
    }
}

/* TALLY: one group. Lane l processes grains l, l + QN_TALLY_LANES and so on. */
#define QN_TALLY_LANES 256u
QN_KERNEL(256)
qn_tally(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *loss,
         QN_GLOBAL const qn_i32 *classes, QN_GLOBAL const qn_i32 *targets,
         QN_GLOBAL const qn_u32 *finite, QN_GLOBAL qn_status_words *status, qn_u32 flags) {
    QN_LOCAL qn_i64 high[QN_TALLY_LANES];
    QN_LOCAL qn_u64 low[QN_TALLY_LANES];
    QN_LOCAL qn_u64 correct[QN_TALLY_LANES];
    QN_LOCAL qn_u32 bad_item[QN_TALLY_LANES], bad_loss[QN_TALLY_LANES];
    const qn_u32 lane = qn_lane(), items = step->items, grain = step->grain;
    high[lane] = 0;
    low[lane] = 0u;
    correct[lane] = 0u;
    bad_item[lane] = bad_loss[lane] = 0u;
    for (qn_u32 item = lane; item < items; item += QN_TALLY_LANES) {
        if (finite[item] == 0u && bad_item[lane] == 0u)
            bad_item[lane] = 0xffffffffu - item;
        if ((flags & QN_LOSS_LABELS) == 0u || (flags & QN_LOSS_REAL) != 0u)
            continue;
        if ((flags & QN_LOSS_ANSWERS) != 0u)
            correct[lane] += (qn_u64)(qn_u32)classes[item];
        else if (classes[item] == targets[item])
            ++correct[lane];
    }
    const qn_u32 grains = (flags & QN_LOSS_LABELS) != 0u ? (items + grain - 1u) / grain : 0u;
    for (qn_u32 g = lane; g < grains; g += QN_TALLY_LANES) {
        const qn_u32 end = items - g * grain < grain ? items : (g + 1u) * grain;
        float acc = 0.0f;
        for (qn_u32 item = g * grain; item < end; ++item)
            acc = acc + loss[item];
        if (qn_leaves(acc, 0x1p29f) != 0u) {
            bad_loss[lane] |= acc != acc ? 1u : 2u;
        } else {
            const qn_i64 units = qn_i64_of(acc * 0x1p32f);
            high[lane] += units >> 32;
            low[lane] += (qn_u64)units & 0xffffffffu;
        }
    }
    qn_barrier();
    for (qn_u32 other = QN_TALLY_LANES / 2u; other > 0u; other /= 2u) {
        if (lane < other) {
            high[lane] += high[lane + other];
            low[lane] += low[lane + other];
            correct[lane] += correct[lane + other];
            bad_loss[lane] |= bad_loss[lane + other];
            if (bad_item[lane + other] > bad_item[lane])
                bad_item[lane] = bad_item[lane + other];
        }
        qn_barrier();
    }
    if (lane == 0u) {
        status->loss_high += high[0];
        status->loss_low += low[0];
        status->correct += correct[0];
        status->items += (flags & QN_LOSS_LABELS) != 0u ? items : 0u;
        status->bad_loss |= bad_loss[0];
        if (bad_item[0] > status->bad_item)
            status->bad_item = bad_item[0];
    }
}
