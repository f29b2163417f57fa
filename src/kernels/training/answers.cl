/* ANSWERS, ANSWERS_AGAIN, ANSWER_LINES, ANSWER_ITEMS (docs/exactness.md 24.70 to 24.73): what LOSS
 * does, for networks that give several answers to an item. A lane has a pixel, then a line of
 * pixels, then an item. A state has the number of right answers, and QN_ANSWER_BAD where an output
 * is not finite. That of a pixel with one class has QN_ANSWER_ONE, QN_ANSWER_RIGHT where it is
 * right, and the class in the bits below. */
#define QN_ANSWER_BAD 0x80000000u
#define QN_ANSWER_ONE 0x40000000u
#define QN_ANSWER_RIGHT 0x01000000u
#define QN_ANSWER_IGNORED 0xffffffffu

QN_FN qn_u32 qn_answer_byte(qn_u32 target) { return target == 255u ? QN_ANSWER_IGNORED : target; }

/* The loss of a pixel, and how its errors are made. */
typedef struct qn_answer {
    qn_u32 binary, out, marks;
    float on, off, factor; /* targets of cross-entropy; the share in units */
} qn_answer;

QN_FN qn_u32 qn_answer_bad(float y) {
    return (qn_as_u32(y) & 0x7fffffffu) < 0x7f800000u ? 0u : QN_ANSWER_BAD;
}

/* softmax, 7.2; y[0..out-1] are replaced. */
QN_FN float qn_answer_class(qn_answer a, QN_GLOBAL float *y, qn_u32 target, QN_GLOBAL float *marks,
                            qn_u32 *state) {
    const float z = target < a.out ? y[target] : 0.0f;
    float m = y[0], s = 0.0f;
    qn_u32 best = 0u, bad = 0u;
    for (qn_u32 j = 1u; j < a.out; ++j)
        m = y[j] > m ? y[j] : m;
    for (qn_u32 j = 0u; j < a.out; ++j) {
        y[j] = qn_exp(y[j] - m);
        s = j == 0u ? y[j] : s + y[j];
    }
    if (a.marks != 0u) {
        marks[0] = m;
        marks[1] = s;
    }
    for (qn_u32 j = 0u; j < a.out; ++j) {
        y[j] = qn_div(y[j], s);
        bad |= qn_answer_bad(y[j]);
        best = y[j] > y[best] ? j : best;
    }
    *state = bad | QN_ANSWER_ONE | (best == target ? QN_ANSWER_RIGHT : 0u) | best;
    return qn_loss_own_cross_entropy(m, z, s, 0.0f);
}

/* sigmoid, 7.6 */
QN_FN float qn_answer_binary(qn_answer a, QN_GLOBAL float *y, QN_GLOBAL const qn_u8 *targets,
                             qn_u32 labels, qn_u32 *state) {
    float loss = 0.0f;
    qn_u32 bad = 0u, right = 0u;
    for (qn_u32 j = 0u; j < a.out; ++j) {
        const float z = y[j], output = qn_sigmoid(z);
        const qn_u32 target = labels != 0u ? qn_answer_byte(targets[j]) : QN_ANSWER_IGNORED;
        y[j] = output;
        bad |= qn_answer_bad(output);
        if (target != QN_ANSWER_IGNORED) {
            loss = loss + qn_loss_binary(z, target != 0u ? 1.0f : 0.0f);
            right += (output > 0.5f ? 1u : 0u) == target ? 1u : 0u;
        }
    }
    *state = bad | right;
    return loss;
}

/* 24.73 */
QN_FN float qn_answer_error(qn_answer a, float y, qn_u32 target, qn_u32 j) {
    const float wanted = a.binary != 0u ? (float)target : j == target ? a.on : a.off;
    return target == QN_ANSWER_IGNORED ? 0.0f : (y - wanted) * a.factor;
}

/* 25.14: the token that a value is, where it is one. */
QN_FN qn_u32 qn_next_token(float value, qn_u32 tokens) {
    return value >= 0.0f && value < (float)tokens ? (qn_u32)value : QN_ANSWER_IGNORED;
}

QN_FN qn_answer qn_answer_of(qn_u32 kind, qn_u32 out, float delta) {
    qn_answer a;
    a.binary = kind == QN_LOSS_BINARY ? 1u : 0u;
    a.out = out;
    a.marks = 0u;
    a.off = qn_div(delta, (float)out);
    a.on = (1.0f - delta) + a.off;
    a.factor = 0.0f;
    return a;
}

/* Errors take the places of the outputs. */
QN_KERNEL(64)
qn_answers(QN_GLOBAL const qn_step *step, QN_GLOBAL float *Y, QN_GLOBAL const qn_u8 *targets,
           QN_GLOBAL const float *X, QN_GLOBAL const float *weight, QN_GLOBAL float *loss,
           QN_GLOBAL qn_u32 *state, QN_GLOBAL float *marks, qn_u32 height, qn_u32 width, qn_u32 out,
           qn_u32 kind, qn_u32 inputs, qn_u32 first, qn_u32 count, float delta, float factor,
           qn_u32 flags) {
    const qn_u32 ld = qn_ld(out), pixels = height * width;
    const qn_u32 labels = flags & QN_LOSS_LABELS, train = flags & QN_LOSS_TRAIN;
    qn_answer a = qn_answer_of(kind, out, delta);
    a.marks = flags & QN_LOSS_MARKS;
    for (qn_u32 r = qn_group(0) * 64u + qn_lane(); r < count; r += qn_groups(0) * 64u) {
        const qn_pixel p = qn_pixel_of(step, height, width, first + r);
        const qn_u32 item = p.begin + p.item, at = item * pixels + p.y * width + p.x;
        QN_GLOBAL const qn_u8 *own = targets + (qn_u64)at * (a.binary != 0u ? out : 1u);
        QN_GLOBAL float *y = Y + (qn_u64)r * ld;
        qn_u32 found = 0u, target = QN_ANSWER_IGNORED;
        if (labels != 0u && inputs != 0u)
            target = qn_next_token(X[(qn_u64)item * qn_ld(inputs) + p.x + 1u], out);
        else if (labels != 0u && a.binary == 0u)
            target = qn_answer_byte(own[0]);
        float lost = a.binary != 0u
                         ? qn_answer_binary(a, y, own, labels, &found)
                         : qn_answer_class(a, y, target, marks + 2u * (qn_u64)(first + r), &found);
        if (a.binary == 0u && target == QN_ANSWER_IGNORED)
            lost = 0.0f;
        a.factor = weight[item] * factor;
        loss[at] = lost;
        state[at] = found;
        for (qn_u32 j = 0u; j < ld && train != 0u; ++j)
            y[j] = j < out ? qn_answer_error(a, y[j],
                                             a.binary != 0u ? qn_answer_byte(own[j]) : target, j)
                           : 0.0f;
    }
}

/* The errors of some answers once more, from the logits in Y[count][ld(columns)], which they
 * replace. A lane has one. */
QN_KERNEL(128)
qn_answers_again(QN_GLOBAL const qn_step *step, QN_GLOBAL float *Y, QN_GLOBAL const qn_u8 *targets,
                 QN_GLOBAL const float *X, QN_GLOBAL const float *weight,
                 QN_GLOBAL const float *marks, qn_u32 height, qn_u32 width, qn_u32 out, qn_u32 kind,
                 qn_u32 inputs, qn_u32 first, qn_u32 count, qn_u32 begin, qn_u32 columns,
                 float delta, float factor) {
    const qn_u32 ld = qn_ld(columns), pixels = height * width;
    const qn_u64 n = (qn_u64)qn_group(0) * 128u + qn_lane();
    const qn_u32 r = (qn_u32)(n / ld), c = (qn_u32)(n % ld), j = begin + c;
    qn_answer a = qn_answer_of(kind, out, delta);
    if (r >= count)
        return;
    const qn_pixel p = qn_pixel_of(step, height, width, first + r);
    const qn_u32 item = p.begin + p.item, at = item * pixels + p.y * width + p.x;
    QN_GLOBAL const qn_u8 *own = targets + (qn_u64)at * (a.binary != 0u ? out : 1u);
    QN_GLOBAL const float *mark = marks + 2u * (qn_u64)(first + r);
    QN_GLOBAL float *y = Y + (qn_u64)r * ld + c;
    float e = 0.0f;
    a.factor = weight[item] * factor;
    if (c < columns && a.binary != 0u)
        e = qn_answer_error(a, qn_sigmoid(y[0]), qn_answer_byte(own[j]), j);
    else if (c < columns)
        e = qn_answer_error(a, qn_div(qn_exp(y[0] - mark[0]), mark[1]),
                            inputs != 0u
                                ? qn_next_token(X[(qn_u64)item * qn_ld(inputs) + p.x + 1u], out)
                                : qn_answer_byte(own[0]),
                            j);
    y[0] = e;
}

QN_FN qn_u32 qn_answer_right(qn_u32 state) {
    return (state & QN_ANSWER_ONE) == 0u     ? state & ~QN_ANSWER_BAD
           : (state & QN_ANSWER_RIGHT) != 0u ? 1u
                                             : 0u;
}

/* The sum of `count` losses and states from `from` on. */
QN_FN float qn_answer_sum(QN_GLOBAL const float *loss, QN_GLOBAL const qn_u32 *state, qn_u32 from,
                          qn_u32 count, qn_u32 *found) {
    qn_u32 right = 0u, bad = 0u;
    float acc = 0.0f;
    for (qn_u32 i = from; i < from + count; ++i) {
        acc = acc + loss[i];
        right += qn_answer_right(state[i]);
        bad |= state[i] & QN_ANSWER_BAD;
    }
    *found = bad | right;
    return acc;
}

QN_KERNEL(64)
qn_answer_lines(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *loss,
                QN_GLOBAL const qn_u32 *state, QN_GLOBAL float *line_loss,
                QN_GLOBAL qn_u32 *line_state, qn_u32 height, qn_u32 width) {
    const qn_u32 lines = step->items * height;
    for (qn_u32 i = qn_group(0) * 64u + qn_lane(); i < lines; i += qn_groups(0) * 64u) {
        qn_u32 found = 0u;
        line_loss[i] = qn_answer_sum(loss, state, i * width, width, &found);
        line_state[i] = found;
    }
}

QN_KERNEL(64)
qn_answer_items(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *line_loss,
                QN_GLOBAL const qn_u32 *line_state, QN_GLOBAL const float *weight,
                QN_GLOBAL float *loss, QN_GLOBAL qn_i32 *classes, QN_GLOBAL float *scores,
                QN_GLOBAL qn_u32 *finite, qn_u32 height) {
    const qn_u32 items = step->items;
    for (qn_u32 i = qn_group(0) * 64u + qn_lane(); i < items; i += qn_groups(0) * 64u) {
        qn_u32 found = 0u;
        loss[i] = qn_answer_sum(line_loss, line_state, i * height, height, &found) * weight[i];
        classes[i] = (qn_i32)(found & ~QN_ANSWER_BAD);
        scores[i] = 0.0f;
        finite[i] = (found & QN_ANSWER_BAD) != 0u ? 0u : 1u;
    }
}
