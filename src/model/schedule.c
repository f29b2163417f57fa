#include "model/schedule.h"

#include "num/elementary.h"

/* gamma^times by repeated multiplication, with one rounding each. When a product is its own fixed
 * point (0, 1, or the smallest subnormal number) all further ones are equal. */
static float power_of(float gamma, uint64_t times) {
    float f = 1.0f;
    for (uint64_t i = 0; i < times; ++i) {
        const float next = f * gamma;
        if (next == f)
            break;
        f = next;
    }
    return f;
}

/* The factor of the schedule after the warm-up; step >= warmup. */
static float factor_at(const qn__recipe *r, uint64_t step, uint64_t steps_per_epoch) {
    switch (r->schedule) {
    case QN__SCHEDULE_CONSTANT:
        return 1.0f;
    case QN__SCHEDULE_STEP:
        return power_of(r->lr_gamma, step / steps_per_epoch / r->lr_step);
    case QN__SCHEDULE_COSINE: {
        const uint64_t all = r->epochs * steps_per_epoch;
        const float t = (float)(step - r->warmup) / (float)(all - r->warmup);
        return 0.5f * (1.0f + qn__cospi(t));
    }
    }
    return 1.0f;
}

float qn__learning_rate_at(const qn__recipe *recipe, uint64_t step, uint64_t steps_per_epoch) {
    if (step < recipe->warmup)
        return recipe->learning_rate * ((float)(step + 1) / (float)recipe->warmup);
    return recipe->learning_rate * factor_at(recipe, step, steps_per_epoch);
}

int qn__rate_looks_ahead(const qn__recipe *recipe) {
    return recipe->schedule == QN__SCHEDULE_COSINE;
}
