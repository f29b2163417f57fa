/* GATE: the activations whose derivative is a function of the sum, not of the output (17.2,
 * 24.10, 25.80).
 * FORWARD wrote the sums of such a layer to its outputs; ERRORS finds the slopes in place of the
 * outputs. A kernel of its own keeps the registers of these functions out of the products. */
QN_FN float qn_gated(qn_u32 activation, float z) {
    if (activation == QN_ACT_HARDSWISH)
        return qn_hardswish(z);
    if (activation == QN_ACT_GELU_TANH)
        return qn_gelu_tanh(z);
    return activation == QN_ACT_GELU ? qn_gelu(z) : qn_silu(z);
}

QN_FN float qn_gated_slope(qn_u32 activation, float z) {
    if (activation == QN_ACT_HARDSWISH)
        return qn_hardswish_slope(z);
    if (activation == QN_ACT_GELU_TANH)
        return qn_gelu_tanh_slope(z);
    return activation == QN_ACT_GELU ? qn_gelu_slope(z) : qn_silu_slope(z);
}

QN_KERNEL(256)
qn_gate(QN_GLOBAL const qn_step *step, QN_GLOBAL float *Y, QN_GLOBAL float *S, QN_GLOBAL float *D,
        QN_GLOBAL const qn_u64 *numbers, qn_u32 height, qn_u32 width, qn_u32 out, qn_u32 layer,
        qn_u32 activation, qn_u32 threshold, float keep, qn_u64 seed) {
    const qn_u32 ld = qn_ld(out);
    const qn_u64 count = (qn_u64)step->items * height * width * ld,
                 lanes = (qn_u64)qn_groups(0) * 256u;
    for (qn_u64 i = (qn_u64)qn_group(0) * 256u + qn_lane(); i < count; i += lanes) {
        const qn_u32 row = (qn_u32)(i / ld), c = (qn_u32)(i % ld);
        const float z = Y[i];
        qn_u32 word = 0u;
        if (threshold != 0u)
            word = qn_pixel_word(step, numbers, qn_pixel_of(step, height, width, row), width, out,
                                 c, layer, seed);
        S[i] = qn_within(qn_gated_slope(activation, z), c, out);
        Y[i] = qn_gated(activation, z);
        qn_finish_forward(Y + i, D + i, c, out, QN_ACT_NONE, threshold, keep, word);
    }
}
