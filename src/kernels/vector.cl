/* The products for devices that are CPUs: one lane to a group. */
#ifdef QN_VECTORS
#define QN_VECTOR_ROWS 16u
#define QN_VECTOR_COLUMNS 64u

QN_KERNEL(1)
qn_forward_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                  QN_GLOBAL const float *parameters, qn_u64 weights, qn_u64 biases,
                  QN_GLOBAL float *Y, QN_GLOBAL float *D, QN_GLOBAL const qn_u64 *numbers,
                  qn_u32 in, qn_u32 out, qn_u32 layer, qn_u32 activation, qn_u32 threshold,
                  float keep, qn_u64 seed) {
    const qn_u32 row = qn_group(1) * QN_VECTOR_ROWS, column = qn_group(0) * QN_VECTOR_COLUMNS;
    const qn_u32 ld = qn_ld(out);
    for (qn_u32 r = row; r < row + QN_VECTOR_ROWS && r < step->items; ++r) {
        for (qn_u32 o = column; o < column + QN_VECTOR_COLUMNS && o < out; ++o) {
            float acc = parameters[biases + o];
            for (qn_u32 k = 0u; k < in; ++k)
                acc = qn_fma(A[(qn_u64)r * qn_ld(in) + k],
                             parameters[weights + (qn_u64)k * ld + o], acc);
            acc = qn_activate(activation, acc);
            Y[(qn_u64)r * ld + o] = acc;
            if (threshold == 0u)
                continue;
            const qn_four w = qn_dropout_words(seed, layer, step->epoch, numbers[r], o / 4u);
            const qn_u32 words[4] = {w.x, w.y, w.z, w.w};
            D[(qn_u64)r * ld + o] = qn_dropped(words[o % 4u], threshold, keep, acc);
        }
    }
}

QN_KERNEL(1)
qn_errors_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *E,
                 QN_GLOBAL const float *parameters, qn_u64 weights, QN_GLOBAL const float *Y,
                 QN_GLOBAL float *B, QN_GLOBAL const qn_u64 *numbers, qn_u32 in, qn_u32 out,
                 qn_u32 layer, qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    const qn_u32 row = qn_group(1) * QN_VECTOR_ROWS, column = qn_group(0) * QN_VECTOR_COLUMNS;
    const qn_u32 ld = qn_ld(in);
    for (qn_u32 r = row; r < row + QN_VECTOR_ROWS && r < step->items; ++r) {
        for (qn_u32 k = column; k < column + QN_VECTOR_COLUMNS && k < in; ++k) {
            float e = 0.0f;
            for (qn_u32 o = 0u; o < out; ++o)
                e = qn_fma(E[(qn_u64)r * qn_ld(out) + o],
                           parameters[weights + (qn_u64)k * qn_ld(out) + o], e);
            if (threshold != 0u) {
                const qn_four w = qn_dropout_words(seed, layer, step->epoch, numbers[r], k / 4u);
                const qn_u32 words[4] = {w.x, w.y, w.z, w.w};
                e = qn_dropped(words[k % 4u], threshold, keep, e);
            }
            B[(qn_u64)r * ld + k] = qn_derive(activation, Y[(qn_u64)r * ld + k], e);
        }
    }
}

QN_KERNEL(1)
qn_gradient_vector(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *A,
                   QN_GLOBAL const float *E, QN_GLOBAL qn_i64 *sums,
                   QN_GLOBAL qn_status_words *status, qn_u64 weights, qn_u32 in, qn_u32 out,
                   qn_u32 layer, float limit, qn_u32 slices, qn_u32 flags) {
    const qn_u32 row = qn_group(1) * QN_VECTOR_ROWS, column = qn_group(0) * QN_VECTOR_COLUMNS;
    const qn_u32 items = step->items, grain = step->grain, ld = qn_ld(out);
    const qn_u32 grains = (items + grain - 1u) / grain;
    const qn_u32 begin = (qn_u32)((qn_u64)grains * qn_group(2) / slices);
    const qn_u32 end = (qn_u32)((qn_u64)grains * (qn_group(2) + 1u) / slices);
    for (qn_u32 k = row; k < row + QN_VECTOR_ROWS && k < in; ++k) {
        for (qn_u32 o = column; o < column + QN_VECTOR_COLUMNS && o < out; ++o) {
            QN_GLOBAL qn_i64 *to = sums + weights + (qn_u64)k * ld + o;
            qn_i64 total = 0;
            for (qn_u32 g = begin; g < end; ++g) {
                float acc = 0.0f;
                for (qn_u32 i = g * grain; i < items && i - g * grain < grain; ++i)
                    acc = qn_fma(E[(qn_u64)i * ld + o], A[(qn_u64)i * qn_ld(in) + k], acc);
                if (qn_leaves(acc, limit) != 0u)
                    qn_atomic_max(&status->bad_layer, layer + 1u);
                total += qn_i64_of(acc);
            }
            if (slices > 1u)
                qn_atomic_add64(to, total);
            else if ((flags & QN_GRADIENT_ADD) != 0u)
                *to += total;
            else
                *to = total;
        }
    }
}
#endif
