#include "job/targets.h"

#include "base/memory.h"
#include "model/model.h"
#include <math.h>

qn_status qn__targets_scale(const qn_data *set, float mean, float deviation, float **out,
                            qn_error *err) {
    const float inverse = qn__scale_inverse(deviation);
    float *scaled = *out = qn__alloc(set->items, sizeof *scaled, err);
    for (uint64_t i = 0; scaled && i < set->items; ++i) {
        scaled[i] = (set->targets[i] - mean) * inverse;
        if (isfinite(scaled[i]))
            continue;
        qn__free(scaled);
        *out = NULL;
        qn__fail(err, QN_INPUT, "the label of item %llu is too far from the others",
                 (unsigned long long)i);
        return qn__remedy(err, QN_INPUT, "correct the label, or leave the item out");
    }
    return scaled ? QN_OK : QN_MEMORY;
}

qn_status qn__targets_predict(float *outputs, uint64_t items, float mean, float deviation,
                              qn_error *err) {
    for (uint64_t i = 0; i < items; ++i) {
        outputs[i] = fmaf(outputs[i], deviation, mean);
        if (!isfinite(outputs[i]))
            return qn__fail(err, QN_NUMERIC, "the network gives no finite prediction for item %llu",
                            (unsigned long long)i);
    }
    return QN_OK;
}

qn__target_errors qn__targets_compare(const float *targets, const float *predictions,
                                      uint64_t items) {
    double sum = 0, absolute = 0, squares = 0, spread = 0;
    for (uint64_t i = 0; i < items; ++i)
        sum += (double)targets[i];
    const double mean = sum / (double)items;
    for (uint64_t i = 0; i < items; ++i) {
        const double e = (double)predictions[i] - (double)targets[i];
        const double from_mean = (double)targets[i] - mean;
        absolute += fabs(e);
        squares += e * e;
        spread += from_mean * from_mean;
    }
    return (qn__target_errors){.mae = absolute / (double)items,
                               .rmse = sqrt(squares / (double)items),
                               .r2 = spread > 0 ? 1 - squares / spread : (double)NAN};
}
