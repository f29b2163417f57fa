#include "model/recipe/schedule.h"

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

/* The same for many steps: the product of those gamma^(2^k) that the bits of `times` name. */
static float power_by_bits(float gamma, uint64_t times) {
    float f = 1.0f;
    for (; times > 0; times >>= 1, gamma *= gamma)
        if (times & 1)
            f *= gamma;
    return f;
}

/* The factor of the schedule after the warm-up; step >= warmup. */
static float factor_at(const qn__stage *s, uint64_t step, uint64_t steps_per_epoch) {
    switch (s->schedule) {
    case QN__SCHEDULE_CONSTANT:
        return 1.0f;
    case QN__SCHEDULE_STEP:
        return power_of(s->lr_gamma, step / steps_per_epoch / s->lr_step);
    case QN__SCHEDULE_COSINE: {
        const uint64_t all = s->epochs * steps_per_epoch;
        const float t = (float)(step - s->warmup) / (float)(all - s->warmup);
        return 0.5f * (1.0f + qn__cospi(t));
    }
    case QN__SCHEDULE_EXPONENTIAL:
        return power_by_bits(s->lr_gamma, step - s->warmup);
    }
    return 1.0f;
}

static float rate_of(const qn__stage *s, uint64_t step, uint64_t steps_per_epoch) {
    if (step < s->warmup)
        return s->learning_rate * ((float)(step + 1) / (float)s->warmup);
    const float factor = factor_at(s, step, steps_per_epoch);
    return s->lr_min > 0.0f ? s->lr_min + (s->learning_rate - s->lr_min) * factor
                            : s->learning_rate * factor;
}

float qn__learning_rate_in(const qn__stages *stages, uint64_t step, uint64_t steps_per_epoch) {
    uint64_t first;
    const uint32_t stage = qn__stages_at(stages, step / steps_per_epoch, &first);
    return rate_of(&stages->stage[stage], step - first * steps_per_epoch, steps_per_epoch);
}

int qn__rate_looks_ahead(const qn__recipe *recipe) {
    return recipe->schedule == QN__SCHEDULE_COSINE || recipe->stages;
}
