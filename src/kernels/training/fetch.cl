/* Collects the items of a batch. A group processes an item at a time: its first lane computes the
 * number of the item, all lanes scale the inputs. Bytes moved: each feature is read once, its float
 * is written once. */

/* 5.1: what a scaling reads beside the value. */
typedef struct qn_scaling {
    qn_u32 type; /* QN_VALUES_ */
    QN_GLOBAL const float *unit, *mean, *inverse;
} qn_scaling;

/* A row of QN_SCALES (step.h) has a function scale_NAME of the value v in column k. */
QN_FN float qn_scale_none(const qn_scaling *scaling, float v, qn_u32 k) {
    (void)scaling;
    (void)k;
    return v;
}

QN_FN float qn_scale_unit(const qn_scaling *scaling, float v, qn_u32 k) {
    (void)k;
    return scaling->type == QN_VALUES_BYTES ? scaling->unit[(qn_u32)v] : qn_div(v, 255.0f);
}

QN_FN float qn_scale_standard(const qn_scaling *scaling, float v, qn_u32 k) {
    return (v - scaling->mean[k]) * scaling->inverse[k];
}

QN_FN float qn_scale_fraction(const qn_scaling *scaling, float v, qn_u32 k) {
    (void)scaling;
    (void)k;
    return v * 0x1p-8f;
}

/* A number that is in no row gives a NaN, which ends the run. */
QN_FN float qn_scaled(const qn_scaling *scaling, qn_u32 scale, float v, qn_u32 k) {
#define QN_KIND(NAME, name)                                                                        \
    if (scale == QN_SCALE_##NAME)                                                                  \
        return qn_scale_##name(scaling, v, k);
    QN_SCALES(QN_KIND)
#undef QN_KIND
    return qn_as_float(0x7fc00000);
}

/* Value `at` as a float. */
QN_FN float qn_value(QN_GLOBAL const void *values, qn_u32 type, qn_u64 at) {
    if (type == QN_VALUES_BYTES)
        return (float)((QN_GLOBAL const qn_u8 *)values)[at];
    if (type == QN_VALUES_TOKENS16)
        return (float)((QN_GLOBAL const unsigned short *)values)[at];
    if (type == QN_VALUES_TOKENS32)
        return (float)((QN_GLOBAL const qn_u32 *)values)[at];
    return ((QN_GLOBAL const float *)values)[at];
}

QN_KERNEL(128)
qn_fetch(QN_GLOBAL const qn_step *step, QN_GLOBAL const void *values, QN_GLOBAL const qn_u64 *rows,
         QN_GLOBAL const qn_i32 *labels, QN_GLOBAL const float *weights,
         QN_GLOBAL const float *unit, QN_GLOBAL const float *mean, QN_GLOBAL const float *inverse,
         QN_GLOBAL float *QN_RESTRICT X, QN_GLOBAL qn_u64 *QN_RESTRICT numbers,
         QN_GLOBAL qn_i32 *QN_RESTRICT targets, QN_GLOBAL float *QN_RESTRICT weight,
         qn_u32 features, qn_u32 type, qn_u32 scale, qn_u32 flags) {
    QN_LOCAL qn_u64 row[1];
    const qn_u32 ld = qn_ld(features);
    const qn_scaling scaling = {type, unit, mean, inverse};
    for (qn_u32 place = qn_group(0); place < step->items; place += qn_groups(0)) {
        if (qn_lane() == 0u) {
            const qn_u64 number = qn_item_at(step, step->first + place);
            numbers[place] = number;
            if ((flags & QN_FETCH_LABELS) != 0u)
                targets[place] = labels[number];
            weight[place] = (flags & QN_FETCH_WEIGHTS) != 0u ? weights[number] : 1.0f;
            if ((flags & QN_FETCH_GATHERED) != 0u)
                row[0] = place;
            else
                row[0] = (flags & QN_FETCH_ROWS) != 0u ? rows[number] : number;
        }
        qn_barrier();
        const qn_u64 from = row[0] * features;
        QN_GLOBAL float *x = X + (qn_u64)place * ld;
        for (qn_u32 k = qn_lane(); k < ld; k += 128u) {
            float v = 0.0f;
            if (k < features)
                v = qn_scaled(&scaling, scale, qn_value(values, type, from + k), k);
            x[k] = v;
        }
        /* The first lane overwrites row[0] for the next item only after all lanes have read it. */
        qn_barrier();
    }
}
