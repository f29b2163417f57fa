/* UPDATE (section 9): one parameter a lane, with the stride of the grid. It is bound by memory: 16
 * bytes a parameter for sgd, 24 for momentum, 32 for adam. */
QN_KERNEL(256)
qn_update(QN_GLOBAL const qn_step *step, QN_GLOBAL float *QN_RESTRICT parameters,
          QN_GLOBAL float *slot0, QN_GLOBAL float *slot1, QN_GLOBAL const qn_i64 *QN_RESTRICT sums,
          qn_u64 begin, qn_u64 count, qn_u32 optimizer, float momentum, float beta1, float beta2,
          float one_minus_beta1, float one_minus_beta2, float epsilon, float decay, float factor) {
    const qn_update_rule rule =
        qn_update_rule_of(step, optimizer, momentum, beta1, beta2, one_minus_beta1, one_minus_beta2,
                          epsilon, decay, factor);
    const qn_u64 lanes = (qn_u64)qn_groups(0) * 256u;
    for (qn_u64 n = (qn_u64)qn_group(0) * 256u + qn_lane(); n < count; n += lanes) {
        const qn_u64 i = begin + n;
        const float g = qn_float_of(sums[i]) * rule.gradient;
        parameters[i] = qn_updated(&rule, parameters[i], g, slot0 + i, slot1 + i);
    }
}

/* AVERAGE (24.63). */
QN_KERNEL(256)
qn_average(QN_GLOBAL const qn_step *step, QN_GLOBAL const float *QN_RESTRICT parameters,
           QN_GLOBAL float *QN_RESTRICT averages, qn_u64 begin, qn_u64 count) {
    const qn_u64 lanes = (qn_u64)qn_groups(0) * 256u;
    for (qn_u64 n = (qn_u64)qn_group(0) * 256u + qn_lane(); n < count; n += lanes) {
        const float own = averages[begin + n];
        averages[begin + n] = qn_fma(step->average, parameters[begin + n] - own, own);
    }
}
