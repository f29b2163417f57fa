/* UPDATE (section 9): one parameter a lane, with the stride of the grid. It is bound by memory: 16
 * bytes a parameter for sgd, 24 for momentum, 32 for adam. */
QN_KERNEL(256)
qn_update(QN_GLOBAL const qn_step *step, QN_GLOBAL float *QN_RESTRICT parameters,
          QN_GLOBAL float *slot0, QN_GLOBAL float *slot1, QN_GLOBAL const qn_i64 *QN_RESTRICT sums,
          qn_u64 begin, qn_u64 count, qn_u32 optimizer, float momentum, float beta1, float beta2,
          float one_minus_beta1, float one_minus_beta2, float epsilon, float decay) {
    const float rate = step->rate, gradient = step->gradient;
    const float adam_a = step->adam_a, adam_r = step->adam_r;
    const float shrink = -(rate * decay);
    const qn_u64 lanes = (qn_u64)qn_groups(0) * 256u;
    for (qn_u64 n = (qn_u64)qn_group(0) * 256u + qn_lane(); n < count; n += lanes) {
        const qn_u64 i = begin + n;
        float w = parameters[i];
        float g = qn_float_of(sums[i]) * gradient;
        if (decay != 0.0f && optimizer != QN_OPT_ADAMW)
            g = qn_fma(decay, w, g);
        if (optimizer == QN_OPT_SGD) {
            w = qn_fma(-rate, g, w);
        } else if (optimizer == QN_OPT_MOMENTUM) {
            const float v = qn_fma(momentum, slot0[i], g);
            slot0[i] = v;
            w = qn_fma(-rate, v, w);
        } else {
            if (decay != 0.0f && optimizer == QN_OPT_ADAMW)
                w = qn_fma(shrink, w, w);
            const float m = qn_fma(beta1, slot0[i], one_minus_beta1 * g);
            const float v = qn_fma(beta2, slot1[i], (one_minus_beta2 * g) * g);
            slot0[i] = m;
            slot1[i] = v;
            const float d = qn_sqrt(v * adam_r) + epsilon;
            w = w - qn_div(adam_a * m, d);
        }
        parameters[i] = w;
    }
}
