#include "job/targets.h"

#include "base/memory.h"
#include "model/model.h"
#include <math.h>
#include <string.h>

qn_status qn__targets_scale(const qn_data *set, float mean, float deviation, int32_t **out,
                            qn_error *err) {
    const float inverse = qn__scale_inverse(deviation);
    int32_t *bits = *out = qn__alloc(set->items, sizeof *bits, err);
    for (uint64_t i = 0; bits && i < set->items; ++i) {
        const float scaled = (set->targets[i] - mean) * inverse;
        memcpy(&bits[i], &scaled, sizeof scaled);
        if (isfinite(scaled))
            continue;
        qn__free(bits);
        *out = NULL;
        qn__fail(err, QN_INPUT, "the label of item %llu is too far from the others",
                 (unsigned long long)i);
        return qn__remedy(err, QN_INPUT, "correct the label, or leave the item out");
    }
    return bits ? QN_OK : QN_MEMORY;
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
    uint64_t predicted = 0;
    for (uint64_t i = 0; i < items; ++i) {
        sum += isnan(predictions[i]) ? 0 : (double)targets[i];
        predicted += isnan(predictions[i]) ? 0 : 1;
    }
    const double count = (double)predicted, mean = sum / count;
    for (uint64_t i = 0; i < items; ++i) {
        if (isnan(predictions[i]))
            continue;
        const double e = (double)predictions[i] - (double)targets[i];
        const double from_mean = (double)targets[i] - mean;
        absolute += fabs(e);
        squares += e * e;
        spread += from_mean * from_mean;
    }
    return (qn__target_errors){.mae = absolute / count,
                               .rmse = sqrt(squares / count),
                               .r2 = spread > 0 ? 1 - squares / spread : (double)NAN};
}
