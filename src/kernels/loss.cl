/* LOSS: a group takes an item at a time. What the contract wants as a chain (the sum of softmax,
 * the loss of mse) is run by the first lane over pieces that all lanes prepare in local memory;
 * the rest is done by all. */
#define QN_PIECE 256u
#define QN_LOSS_LANES 64u

/* The greatest of y[0..n-1], the first among equals (6.6), and where it is; y[0] when that is a
 * NaN. All lanes get it. */
QN_FN float qn_greatest(QN_GLOBAL const float *y, qn_u32 n, QN_LOCAL_POINTER float *value,
                        QN_LOCAL_POINTER qn_u32 *place) {
    const qn_u32 lane = qn_lane();
    float best = y[0];
    qn_u32 where = 0u;
    for (qn_u32 j = lane; j < n; j += QN_LOSS_LANES) {
        if (y[j] > best) {
            best = y[j];
            where = j;
        }
    }
    value[lane] = best;
    place[lane] = where;
    qn_barrier();
    for (qn_u32 other = QN_LOSS_LANES / 2u; other > 0u; other /= 2u) {
        if (lane < other) {
            const float v = value[lane + other];
            const qn_u32 w = place[lane + other];
            if (v > value[lane] || (v == value[lane] && w < place[lane])) {
                value[lane] = v;
                place[lane] = w;
            }
        }
        qn_barrier();
    }
    return value[0];
}

/* Softmax of z in place (6.4); returns s. */
QN_FN float qn_softmax(QN_GLOBAL float *z, qn_u32 n, float m, QN_LOCAL_POINTER float *piece,
                       QN_LOCAL_POINTER float *result) {
    float s = 0.0f;
    for (qn_u32 base = 0u; base < n; base += QN_PIECE) {
        for (qn_u32 j = base + qn_lane(); j < n && j < base + QN_PIECE; j += QN_LOSS_LANES) {
            const float q = qn_exp(z[j] - m);
            z[j] = q;
            piece[j - base] = q;
        }
        qn_barrier();
        if (qn_lane() == 0u) {
            const qn_u32 count = n - base < QN_PIECE ? n - base : QN_PIECE;
            qn_u32 j = 0u;
            if (base == 0u)
                s = piece[j++];
            for (; j < count; ++j)
                s = s + piece[j];
            result[0] = s;
        }
        qn_barrier();
    }
    s = result[0];
    for (qn_u32 j = qn_lane(); j < n; j += QN_LOSS_LANES)
        z[j] = qn_div(z[j], s);
    return s;
}

/* 7.1 */
QN_FN float qn_target(qn_u32 j, qn_u32 label) { return j == label ? 1.0f : 0.0f; }

/* 8.2, and the g of 8.3 */
QN_FN float qn_first_error(qn_u32 kind, float y, float target, float factor) {
    const float d = y - target;
    return kind == QN_LOSS_CROSS_ENTROPY ? d * factor : (2.0f * d) * factor;
}

/* The chains of mse: its loss (7.3), or c of 8.3. */
QN_FN float qn_mse_chain(QN_GLOBAL const float *y, qn_u32 n, qn_u32 label, const qn_u32 errors,
                         float factor, QN_LOCAL_POINTER float *piece,
                         QN_LOCAL_POINTER float *result) {
    float acc = 0.0f;
    for (qn_u32 base = 0u; base < n; base += QN_PIECE) {
        for (qn_u32 j = base + qn_lane(); j < n && j < base + QN_PIECE; j += QN_LOSS_LANES) {
            const float d = y[j] - qn_target(j, label);
            piece[j - base] = errors != 0u ? (2.0f * d) * factor : d;
        }
        qn_barrier();
        if (qn_lane() == 0u) {
            const qn_u32 count = n - base < QN_PIECE ? n - base : QN_PIECE;
            for (qn_u32 j = 0u; j < count; ++j)
                acc = qn_fma(piece[j], errors != 0u ? y[base + j] : piece[j], acc);
            result[0] = acc;
        }
        qn_barrier();
    }
    return result[0];
}

QN_KERNEL(64)
qn_loss(QN_GLOBAL const qn_step *step, QN_GLOBAL float *Y, QN_GLOBAL const qn_i32 *targets,
        QN_GLOBAL float *loss, QN_GLOBAL qn_i32 *classes, QN_GLOBAL float *scores,
        QN_GLOBAL qn_u32 *finite, QN_GLOBAL float *E, qn_u32 out, qn_u32 activation, qn_u32 kind,
        float factor, qn_u32 flags) {
    QN_LOCAL float piece[QN_PIECE];
    QN_LOCAL float value[QN_LOSS_LANES];
    QN_LOCAL qn_u32 place[QN_LOSS_LANES];
    QN_LOCAL float result[1];
    const qn_u32 ld = qn_ld(out), lane = qn_lane();
    for (qn_u32 item = qn_group(0); item < step->items; item += qn_groups(0)) {
        QN_GLOBAL float *y = Y + (qn_u64)item * ld;
        const qn_u32 label = (flags & QN_LOSS_LABELS) != 0u ? (qn_u32)targets[item] : 0xffffffffu;
        float m = 0.0f, s = 0.0f, z_label = 0.0f;
        if (activation == QN_ACT_SOFTMAX) {
            m = qn_greatest(y, out, value, place);
            z_label = label < out ? y[label] : 0.0f;
            qn_barrier();
            s = qn_softmax(y, out, m, piece, result);
            qn_barrier();
        }
        const float score = qn_greatest(y, out, value, place);
        const qn_u32 best = place[0];
        qn_barrier();
        qn_u32 wrong = 0u;
        for (qn_u32 j = lane; j < out; j += QN_LOSS_LANES)
            wrong |= (qn_as_u32(y[j]) & 0x7fffffffu) < 0x7f800000u ? 0u : 1u;
        place[lane] = wrong;
        qn_barrier();
        if (lane == 0u) {
            for (qn_u32 l = 1u; l < QN_LOSS_LANES; ++l)
                wrong |= place[l];
            finite[item] = wrong == 0u ? 1u : 0u;
            classes[item] = (qn_i32)best;
            scores[item] = score;
        }
        if ((flags & QN_LOSS_LABELS) != 0u) {
            float l = qn_log(s) - (z_label - m);
            if (kind == QN_LOSS_MSE)
                l = qn_mse_chain(y, out, label, 0u, factor, piece, result);
            if (lane == 0u)
                loss[item] = l;
        }
        qn_barrier();
        if ((flags & QN_LOSS_TRAIN) != 0u) {
            QN_GLOBAL float *e = E + (qn_u64)item * ld;
            const qn_u32 inner = kind == QN_LOSS_MSE && activation == QN_ACT_SOFTMAX ? 1u : 0u;
            float c = 0.0f;
            if (inner != 0u)
                c = qn_mse_chain(y, out, label, 1u, factor, piece, result);
            for (qn_u32 j = lane; j < ld; j += QN_LOSS_LANES) {
                const float output = j < out ? y[j] : 0.0f;
                float delta = qn_first_error(kind, output, qn_target(j, label), factor);
                if (inner != 0u)
                    delta = output * (delta - c);
                else if (kind == QN_LOSS_MSE)
                    delta = qn_derive(activation, output, delta);
                e[j] = j < out ? delta : 0.0f;
            }
        }
        qn_barrier();
    }
}

/* TALLY: one group; a lane takes grains at the distance of the lanes. */
#define QN_TALLY_LANES 256u
QN_KERNEL(256)
qn_tally(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *loss,
         QN_GLOBAL const qn_i32 *classes, QN_GLOBAL const qn_i32 *targets,
         QN_GLOBAL const qn_u32 *finite, QN_GLOBAL qn_status_words *status, qn_u32 flags) {
    QN_LOCAL qn_i64 high[QN_TALLY_LANES];
    QN_LOCAL qn_u64 low[QN_TALLY_LANES];
    QN_LOCAL qn_u32 correct[QN_TALLY_LANES], bad_item[QN_TALLY_LANES], bad_loss[QN_TALLY_LANES];
    const qn_u32 lane = qn_lane(), items = step->items, grain = step->grain;
    high[lane] = 0;
    low[lane] = 0u;
    correct[lane] = bad_item[lane] = bad_loss[lane] = 0u;
    for (qn_u32 item = lane; item < items; item += QN_TALLY_LANES) {
        if (finite[item] == 0u && bad_item[lane] == 0u)
            bad_item[lane] = 0xffffffffu - item;
        if ((flags & QN_LOSS_LABELS) != 0u && classes[item] == targets[item])
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
