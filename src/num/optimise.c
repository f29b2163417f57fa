#include "num/optimise.h"

#include "num/norm.h"
#include "num/sums.h"
#include <math.h>

uint32_t qn__optimizer_slots(qn__optimizer optimizer) {
    switch (optimizer) {
    case QN__OPT_SGD:
    case QN__OPT_LBFGS:
        return 0;
    case QN__OPT_MOMENTUM:
    case QN__OPT_NESTEROV:
        return 1;
    case QN__OPT_ADAM:
    case QN__OPT_ADAMW:
        return 2;
    }
    return 0;
}

void qn__update_begin(const qn__program *program, float rate, uint64_t items,
                      qn__adam_powers *powers, qn__update *update) {
    powers->p1 = powers->p1 * program->beta1;
    powers->p2 = powers->p2 * program->beta2;
    update->rate = rate;
    update->gradient = ldexpf(1.0f / (float)items, -(int)program->gradient_scale);
    update->running = 1.0f / (float)items / QN__RUNNING_UNIT;
    update->adam_a = rate / (1.0f - powers->p1);
    update->adam_r = 1.0f / (1.0f - powers->p2);
}

static void adam(const qn__program *p, const qn__update *u, float g, float *w, float *m, float *v) {
    *m = fmaf(p->beta1, *m, (1.0f - p->beta1) * g);
    *v = fmaf(p->beta2, *v, ((1.0f - p->beta2) * g) * g);
    const float d = sqrtf(*v * u->adam_r) + p->epsilon;
    *w = *w - (u->adam_a * *m) / d;
}

void qn__update_one(const qn__program *p, const qn__update *u, int decays, int64_t sum, float *w,
                    float *s0, float *s1) {
    decays = decays && p->weight_decay != 0.0f;
    float g = qn__from_units(sum) * u->gradient;
    if (decays && p->optimizer != QN__OPT_ADAMW)
        g = fmaf(p->weight_decay, *w, g);
    switch (p->optimizer) {
    case QN__OPT_LBFGS: /* never a worker's */
    case QN__OPT_SGD:
        *w = fmaf(-u->rate, g, *w);
        break;
    case QN__OPT_MOMENTUM:
        *s0 = fmaf(p->momentum, *s0, g);
        *w = fmaf(-u->rate, *s0, *w);
        break;
    case QN__OPT_NESTEROV:
        *s0 = fmaf(p->momentum, *s0, g);
        *w = fmaf(-u->rate, fmaf(p->momentum, *s0, g), *w);
        break;
    case QN__OPT_ADAMW:
        if (decays)
            *w = fmaf(-(u->rate * p->weight_decay), *w, *w);
        adam(p, u, g, w, s0, s1);
        break;
    case QN__OPT_ADAM:
        adam(p, u, g, w, s0, s1);
        break;
    }
}

void qn__update_running(const qn__update *u, float rate, int64_t sum, float *average) {
    const float mean = qn__from_units(sum) * u->running;
    *average = fmaf(rate, mean - *average, *average);
}

void qn__update_average(const qn__update *u, float parameter, float *average) {
    *average = fmaf(u->average, parameter - *average, *average);
}

float qn__average_share(float ema, uint64_t steps) {
    const float early = (1.0f + (float)steps) / (10.0f + (float)steps);
    return 1.0f - (early < ema ? early : ema);
}
