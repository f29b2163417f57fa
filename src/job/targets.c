#include "job/targets.h"

#include "base/memory.h"
#include "model/formats/model.h"
#include "num/ratio.h"
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

/* Sums over the items that have a prediction. A product of two floats is an exact double. */
typedef struct comparison {
    qn__exact_sum absolute, errors, labels, squares;
    uint64_t count;
} comparison;

static void add_item(comparison *c, float target, float prediction, uint64_t count) {
    const double t = (double)target, p = (double)prediction, sign = p < t ? -1 : 1;
    c->count += count;
    qn__ratio_add_times(&c->absolute, sign * p, count);
    qn__ratio_add_times(&c->absolute, -sign * t, count);
    qn__ratio_add_times(&c->errors, p * p, count);
    qn__ratio_add_times(&c->errors, -2 * p * t, count);
    qn__ratio_add_times(&c->errors, t * t, count);
    qn__ratio_add_times(&c->labels, t, count);
    qn__ratio_add_times(&c->squares, t * t, count);
}

qn__target_errors qn__targets_compare(const float *targets, const float *predictions,
                                      const uint64_t *counts, uint64_t items) {
    comparison c = {.count = 0};
    for (uint64_t i = 0; i < items; ++i)
        if (!isnan(predictions[i]))
            add_item(&c, targets[i], predictions[i], counts ? counts[i] : 1);
    if (c.count == 0)
        return (qn__target_errors){(double)NAN, (double)NAN, (double)NAN};
    return (qn__target_errors){.mae = qn__ratio_of_sum(&c.absolute, c.count),
                               .rmse = qn__ratio_root(&c.errors, c.count),
                               .r2 =
                                   qn__ratio_explained(&c.errors, &c.labels, &c.squares, c.count)};
}
