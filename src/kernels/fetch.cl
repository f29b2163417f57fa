/* Collects the items of a batch. A group processes an item at a time: its first lane computes the
 * number of the item, all lanes scale the inputs. Bytes moved: each feature is read once, its float
 * is written once. */
QN_KERNEL(128)
qn_fetch(QN_GLOBAL const qn_step *step, QN_GLOBAL const void *values, QN_GLOBAL const qn_u64 *rows,
         QN_GLOBAL const qn_i32 *labels, QN_GLOBAL const float *weights,
         QN_GLOBAL const float *unit, QN_GLOBAL const float *mean, QN_GLOBAL const float *inverse,
         QN_GLOBAL float *QN_RESTRICT X, QN_GLOBAL qn_u64 *QN_RESTRICT numbers,
         QN_GLOBAL qn_i32 *QN_RESTRICT targets, QN_GLOBAL float *QN_RESTRICT weight,
         qn_u32 features, qn_u32 bytes, qn_u32 scale, qn_u32 flags) {
    QN_LOCAL qn_u64 row[1];
    const qn_u32 ld = qn_ld(features);
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
        QN_GLOBAL const qn_u8 *small = (QN_GLOBAL const qn_u8 *)values + from;
        QN_GLOBAL const float *wide = (QN_GLOBAL const float *)values + (bytes != 0u ? 0u : from);
        QN_GLOBAL float *x = X + (qn_u64)place * ld;
        for (qn_u32 k = qn_lane(); k < ld; k += 128u) {
            float v = 0.0f;
            if (k < features) {
                v = bytes != 0u ? (float)small[k] : wide[k];
                if (scale == QN_SCALE_UNIT)
                    v = bytes != 0u ? unit[small[k]] : qn_div(v, 255.0f);
                if (scale == QN_SCALE_STANDARD)
                    v = (v - mean[k]) * inverse[k];
                if (scale == QN_SCALE_FRACTION)
                    v *= 0x1p-8f;
            }
            x[k] = v;
        }
        /* The first lane overwrites row[0] for the next item only after all lanes have read it. */
        qn_barrier();
    }
}
