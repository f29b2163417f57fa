/* LISTS_*: a dense layer whose items are lists of their inputs that are not 0 (docs/exactness.md
 * 25.60): what a link with an input of 0 changes is the sign of a result that is 0. */

/* 5.1: number `at` of an array of pairs of a place and a value; `input` has the value. */
QN_FN float qn_listed(const qn_scaling *scaling, qn_u32 scale, QN_GLOBAL const qn_u32 *pairs,
                      qn_u32 at, qn_u32 input) {
    return qn_scaled(scaling, scale, qn_as_float(pairs[2u * (qn_u64)at + 1u]), input);
}

QN_KERNEL(128)
qn_lists_forward(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_u32 *lists,
                 QN_GLOBAL const float *parameters, QN_GLOBAL const float *unit,
                 QN_GLOBAL const float *mean, QN_GLOBAL const float *inverse, QN_GLOBAL float *Y,
                 QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers, qn_u64 weights, qn_u64 biases,
                 qn_u32 in, qn_u32 out, qn_u32 scale, qn_u32 layer, qn_u32 activation,
                 qn_u32 threshold, float keep, qn_u64 seed) {
    const qn_u32 ld = qn_ld(out), o = qn_sixteen_of(ld).column, item = qn_sixteen_of(ld).row;
    if (item >= step->items)
        return;
    const qn_scaling scaling = {QN_VALUES_FLOATS, unit, mean, inverse};
    const qn_u64 at = (qn_u64)item * ld + o;
    QN_GLOBAL const qn_u32 *pairs = lists + step->items + 1u;
    QN_GLOBAL const float *w = parameters + weights + o;
    const qn_u32 first = lists[item], end = lists[item + 1u];
    qn_u32 word = 0u;
    float z = 0.0f;
    if (o < out) {
        z = parameters[biases + o];
        QN_ROLLED
        for (qn_u32 i = first; i < end; ++i) {
            const qn_u32 k = pairs[2u * (qn_u64)i];
            z = qn_fma(qn_listed(&scaling, scale, pairs, i, k), w[(qn_u64)k * ld], z);
        }
        if (qn_as_u32(z) == 0x80000000u) {
            qn_u32 i = first;
            z = parameters[biases + o];
            QN_ROLLED
            for (qn_u32 k = 0u; k < in; ++k) {
                float x = 0.0f;
                if (i < end && pairs[2u * (qn_u64)i] == k)
                    x = qn_listed(&scaling, scale, pairs, i++, k);
                z = qn_fma(x, w[(qn_u64)k * ld], z);
            }
        }
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, qn_pixel_of(step, 1u, 1u, item), 1u, out, o, layer,
                                 seed);
    }
    Y[at] = z;
    qn_finish_forward(Y + at, D + at, o, out, activation, threshold, keep, word);
}

/* A lane has an output of an input. It goes through the items that have the input, in their order.
 */
QN_KERNEL(128)
qn_lists_gradient(QN_GLOBAL const qn_step *step, QN_GLOBAL const qn_u32 *columns,
                  QN_GLOBAL const float *E, QN_GLOBAL const float *unit,
                  QN_GLOBAL const float *mean, QN_GLOBAL const float *inverse,
                  QN_GLOBAL qn_i64 *sums, QN_GLOBAL qn_status_words *status, qn_u64 weights,
                  qn_u32 count, qn_u32 out, qn_u32 scale, qn_u32 layer, float limit) {
    const qn_u32 ld = qn_ld(out), o = qn_sixteen_of(ld).column, c = qn_sixteen_of(ld).row;
    if (c >= count || o >= out)
        return;
    const qn_scaling scaling = {QN_VALUES_FLOATS, unit, mean, inverse};
    QN_GLOBAL const qn_u32 *pairs = columns + 2u * (qn_u64)count;
    const qn_u32 input = columns[2u * c], end = columns[2u * c + 1u];
    qn_u32 i = 0u, bad = 0u;
    qn_i64 total = 0;
    if (c > 0u)
        i = columns[2u * c - 1u];
    QN_ROLLED
    while (i < end) {
        const qn_u32 grain = pairs[2u * (qn_u64)i] / step->grain;
        float partial = 0.0f;
        QN_ROLLED
        for (; i < end && pairs[2u * (qn_u64)i] / step->grain == grain; ++i)
            partial = qn_fma(E[(qn_u64)pairs[2u * (qn_u64)i] * ld + o],
                             qn_listed(&scaling, scale, pairs, i, input), partial);
        bad |= qn_leaves(partial, limit);
        total = qn_plus(total, qn_i64_of(partial));
    }
    qn_put_units(sums + weights + (qn_u64)input * ld + o, total, 1u, QN_GRADIENT_ADD);
    if (bad != 0u)
        qn_atomic_max(&status->bad_layer, layer + 1u);
}
