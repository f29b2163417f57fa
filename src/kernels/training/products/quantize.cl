/* The kernels that compute absolute maxima and quantize batch arrays and weights to words
 * (intgemm_words.cl). */

/* An error times the factor of its output's weights: the c of 15.5. */
QN_FN float qn_weighed(float v, qn_u32 flags, qn_u32 bits, QN_GLOBAL const qn_u32 *absmax,
                       qn_u32 column) {
    if ((flags & QN_QUANTIZE_WEIGHED) == 0u)
        return v;
    return v * qn_block_factor(qn_block_exponent(bits, absmax[column]));
}

#define QN_QUANTIZE_LANES 128u

/* The absmax of an item, and of its grain, from those of the lanes of a group: each array ends with
 * that of all lanes at 0. */
QN_FN void qn_note_item(QN_LOCAL_POINTER qn_u32 *plain, QN_LOCAL_POINTER qn_u32 *weighed,
                        QN_GLOBAL qn_u32 *item, QN_GLOBAL qn_u32 *grain,
                        QN_GLOBAL qn_status_words *status, qn_u32 layer, qn_u32 flags) {
    const qn_u32 lane = qn_lane();
    qn_barrier();
    for (qn_u32 other = QN_QUANTIZE_LANES / 2u; other > 0u; other /= 2u) {
        if (lane < other) {
            plain[lane] = qn_larger(plain[lane], plain[lane + other]);
            weighed[lane] = qn_larger(weighed[lane], weighed[lane + other]);
        }
        qn_barrier();
    }
    if (lane != 0u)
        return;
    item[0] = weighed[0];
    if ((flags & QN_QUANTIZE_INPUTS) != 0u && plain[0] >= 0x7f800000u)
        qn_atomic_max(&status->bad_input, 0xffffffffu - layer);
    if ((flags & QN_QUANTIZE_GRAINS) != 0u)
        qn_atomic_max(grain, plain[0]);
}

/* QUANTIZE_ITEMS: a group processes an item at a time. */
QN_KERNEL(128)
qn_quantize_items(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *from,
                  QN_GLOBAL const qn_u32 *outputs, QN_GLOBAL qn_u32 *items,
                  QN_GLOBAL qn_u32 *grains, QN_GLOBAL qn_u32 *to, QN_GLOBAL qn_status_words *status,
                  qn_u32 columns, qn_u32 bits, qn_u32 output, qn_u32 grain, qn_u32 layer,
                  qn_u32 flags) {
    QN_LOCAL qn_u32 plain[QN_QUANTIZE_LANES], weighed[QN_QUANTIZE_LANES];
    const qn_u32 lane = qn_lane(), ld = qn_ld(columns), digits = bits / 7u;
    const qn_u32 width = qn_width(columns);
    QN_GLOBAL const qn_u32 *times = outputs + output;
    for (qn_u32 item = qn_group(0); item < step->items; item += qn_groups(0)) {
        QN_GLOBAL const float *x = from + (qn_u64)item * ld;
        qn_u32 most = 0u, most_weighed = 0u;
        for (qn_u32 c = lane; c < columns; c += QN_QUANTIZE_LANES) {
            most = qn_larger(most, qn_magnitude(x[c]));
            most_weighed =
                qn_larger(most_weighed, qn_magnitude(qn_weighed(x[c], flags, bits, times, c)));
        }
        plain[lane] = most;
        weighed[lane] = most_weighed;
        qn_note_item(plain, weighed, items + item, grains + grain + item / step->grain, status,
                     layer, flags);
        const float inverse = qn_block_inverse(qn_block_exponent(bits, weighed[0]));
        QN_GLOBAL qn_u32 *words = to + (qn_u64)item * digits * width;
        for (qn_u32 w = lane; w < width && (flags & QN_QUANTIZE_WORDS) != 0u;
             w += QN_QUANTIZE_LANES) {
            qn_i32 q[4];
            for (qn_u32 e = 0u; e < 4u; ++e) {
                const qn_u32 c = 4u * w + e;
                q[e] =
                    c < columns ? qn_quantize(qn_weighed(x[c], flags, bits, times, c), inverse) : 0;
            }
            qn_write_words(words + w, digits, width, q[0], q[1], q[2], q[3]);
        }
        qn_barrier();
    }
}

/* QUANTIZE_GRAINS: a group transposes 32 items of a grain by 32 columns at a time. Rows of 33 in
 * local memory avoid bank conflicts when columns are read. */
QN_KERNEL(256)
qn_quantize_grains(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *from,
                   QN_GLOBAL const qn_u32 *absmax, QN_GLOBAL qn_u32 *to, qn_u32 columns,
                   qn_u32 bits, qn_u32 first) {
    QN_LOCAL qn_i32 block[32 * 33];
    const qn_u32 lane = qn_lane(), ld = qn_ld(columns), digits = bits / 7u;
    const qn_u32 items = step->items, grain = step->grain, words = qn_grain_words(grain);
    const qn_u32 grains = (items + grain - 1u) / grain, width = grains * words;
    const qn_u32 across = (columns + 31u) / 32u, parts = (grain + 31u) / 32u;
    const qn_u64 blocks = (qn_u64)grains * parts * across;
    for (qn_u64 n = qn_group(0); n < blocks; n += qn_groups(0)) {
        const qn_u32 column = (qn_u32)(n % across) * 32u, part = (qn_u32)(n / across % parts);
        const qn_u32 g = (qn_u32)(n / across / parts), begin = g * grain + part * 32u;
        const qn_u32 end = items - g * grain < grain ? items : (g + 1u) * grain;
        const float inverse = qn_block_inverse(qn_block_exponent(bits, absmax[first + g]));
        const qn_u32 c = lane % 32u;
        for (qn_u32 r = lane / 32u; r < 32u; r += 8u) {
            const qn_u32 inside = begin + r < end && column + c < columns ? 1u : 0u;
            block[r * 33u + c] =
                inside != 0u ? qn_quantize(from[(qn_u64)(begin + r) * ld + column + c], inverse)
                             : 0;
        }
        qn_barrier();
        const qn_u32 row = lane / 8u, w = lane % 8u;
        if (column + row < columns && part * 8u + w < words) {
            QN_LOCAL_POINTER const qn_i32 *q = block + w * 4u * 33u + row;
            qn_write_words(to + (qn_u64)(column + row) * digits * width + g * words + part * 8u + w,
                           digits, width, q[0], q[33], q[66], q[99]);
        }
        qn_barrier();
    }
}

/* ABSMAX: a group processes 64 inputs by 16 outputs at a time. */
QN_KERNEL(256)
qn_absmax(QN_GLOBAL const float *parameters, QN_GLOBAL qn_u32 *outputs, qn_u64 weights, qn_u32 in,
          qn_u32 out, qn_u32 output) {
    QN_LOCAL qn_u32 part[256];
    const qn_u32 lane = qn_lane(), ld = qn_ld(out), across = ld / 16u, down = (in + 63u) / 64u;
    const qn_u64 blocks = (qn_u64)across * down;
    for (qn_u64 n = qn_group(0); n < blocks; n += qn_groups(0)) {
        const qn_u32 o = (qn_u32)(n % across) * 16u + lane % 16u;
        const qn_u32 begin = (qn_u32)(n / across) * 64u, end = in - begin < 64u ? in : begin + 64u;
        qn_u32 most = 0u;
        for (qn_u32 k = begin + lane / 16u; k < end; k += 16u)
            most = qn_larger(most, qn_magnitude(parameters[weights + (qn_u64)k * ld + o]));
        part[lane] = most;
        qn_barrier();
        if (lane < 16u) {
            for (qn_u32 t = 1u; t < 16u; ++t)
                most = qn_larger(most, part[t * 16u + lane]);
            qn_atomic_max(&outputs[output + o], most);
        }
        qn_barrier();
    }
}

/* QUANTIZE_WEIGHTS: a group processes 32 inputs by 32 outputs at a time, and writes them in both
 * orders. Rows of 33 avoid bank conflicts. */
QN_KERNEL(256)
qn_quantize_weights(QN_GLOBAL const float *parameters, QN_GLOBAL const qn_u32 *outputs,
                    QN_GLOBAL qn_u32 *by_output, QN_GLOBAL qn_u32 *by_input, qn_u64 weights,
                    qn_u32 in, qn_u32 out, qn_u32 output, qn_u32 bits, qn_u32 flags) {
    QN_LOCAL qn_i32 block[32 * 33];
    const qn_u32 lane = qn_lane(), ld = qn_ld(out), digits = bits / 7u;
    const qn_u32 across = (out + 31u) / 32u, down = (in + 31u) / 32u;
    const qn_u64 blocks = (qn_u64)across * down;
    for (qn_u64 n = qn_group(0); n < blocks; n += qn_groups(0)) {
        const qn_u32 o = (qn_u32)(n % across) * 32u, k = (qn_u32)(n / across) * 32u;
        const qn_u32 c = lane % 32u, row = lane / 8u, w = lane % 8u;
        const float inverse =
            o + c < out ? qn_block_inverse(qn_block_exponent(bits, outputs[output + o + c])) : 0.0f;
        for (qn_u32 r = lane / 32u; r < 32u; r += 8u)
            block[r * 33u + c] =
                k + r < in && o + c < out
                    ? qn_quantize(parameters[weights + (qn_u64)(k + r) * ld + o + c], inverse)
                    : 0;
        qn_barrier();
        if (o + row < out) {
            QN_LOCAL_POINTER const qn_i32 *q = block + w * 4u * 33u + row;
            const qn_u32 width = qn_width(in);
            qn_write_words(by_output + (qn_u64)(o + row) * digits * width + k / 4u + w, digits,
                           width, q[0], q[33], q[66], q[99]);
        }
        if (k + row < in && (flags & QN_QUANTIZE_BY_INPUT) != 0u) {
            QN_LOCAL_POINTER const qn_i32 *q = block + row * 33u + w * 4u;
            const qn_u32 width = qn_width(out);
            qn_write_words(by_input + (qn_u64)(k + row) * digits * width + o / 4u + w, digits,
                           width, q[0], q[1], q[2], q[3]);
        }
        qn_barrier();
    }
}
