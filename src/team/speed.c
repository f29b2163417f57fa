#include "team/speed.h"

#include <math.h>
#include <string.h>

/* Calls must differ in size by this factor before `start` and `each` can be separated. */
#define SIZES_DIFFER 1.5
/* Three calls that deviate from the fit by this part, all on one side, are a new speed. */
#define NEW_SPEED 0.25
enum { IN_A_ROW = 3 };

double qn__median(double *values, uint32_t count) {
    for (uint32_t i = 1; i < count; ++i) {
        const double value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; --at)
            values[at] = values[at - 1];
        values[at] = value;
    }
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

void qn__speed_reset(qn__speed *s) { memset(s, 0, sizeof *s); }

double qn__speed_of(const qn__speed *s, double grains) { return s->start + grains * s->each; }

static void forget_oldest(qn__speed *s, uint32_t count) {
    s->held -= count;
    memmove(s->grains, s->grains + count, s->held * sizeof *s->grains);
    memmove(s->seconds, s->seconds + count, s->held * sizeof *s->seconds);
}

/* 1 if the last few calls all took clearly longer, or all clearly less, than the fit. */
static int is_new(const qn__speed *s) {
    int slower = 0, faster = 0;
    if (s->held <= IN_A_ROW || s->each <= 0)
        return 0;
    for (uint32_t i = s->held - IN_A_ROW; i < s->held; ++i) {
        const double expected = qn__speed_of(s, s->grains[i]);
        slower += s->seconds[i] > expected * (1 + NEW_SPEED);
        faster += s->seconds[i] < expected / (1 + NEW_SPEED);
    }
    return slower == IN_A_ROW || faster == IN_A_ROW;
}

void qn__speed_add(qn__speed *s, uint32_t grains, double seconds) {
    if (grains == 0 || !(seconds > 0))
        return;
    if (s->calls == 1 || s->held == QN__SPEED_CALLS)
        forget_oldest(s, 1);
    s->grains[s->held] = grains;
    s->seconds[s->held] = seconds;
    ++s->held;
    ++s->calls;
    s->stale = 1;
    if (is_new(s)) {
        forget_oldest(s, s->held - IN_A_ROW);
        qn__speed_fit(s);
    }
}

/* Median slope over all pairs of calls whose sizes differ (Theil 1950, Sen 1968); 0: there are
 * none. */
static double slope(const qn__speed *s) {
    double slopes[QN__SPEED_CALLS * (QN__SPEED_CALLS - 1) / 2];
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->held; ++i)
        for (uint32_t j = 0; j < i; ++j) {
            const double a = s->grains[i], b = s->grains[j];
            if (a >= b * SIZES_DIFFER || b >= a * SIZES_DIFFER)
                slopes[count++] = (s->seconds[i] - s->seconds[j]) / (a - b);
        }
    return count ? qn__median(slopes, count) : 0;
}

void qn__speed_fit(qn__speed *s) {
    double value[QN__SPEED_CALLS];
    if (!s->stale || s->held == 0)
        return;
    s->stale = 0;
    for (uint32_t i = 0; i < s->held; ++i)
        value[i] = s->seconds[i] / s->grains[i];
    const double plain = qn__median(value, s->held);
    double each = slope(s);
    if (each <= 0 && s->each > 0 && s->start > 0) /* sizes are alike: keep the ratio of the two */
        each = plain * s->each / (s->each + s->start / s->grains[s->held - 1]);
    /* A grain costs something even if the start hides it. */
    each = each <= 0 || each > plain ? plain : fmax(each, 0.01 * plain);
    for (uint32_t i = 0; i < s->held; ++i)
        value[i] = s->seconds[i] - s->grains[i] * each;
    s->each = each;
    s->start = fmax(0, qn__median(value, s->held));
    for (uint32_t i = 0; i < s->held; ++i) {
        const double expected = qn__speed_of(s, s->grains[i]);
        value[i] = fabs(s->seconds[i] - expected) / expected;
    }
    s->spread = s->held < 3 ? 0.25 : fmax(0.01, 1.5 * qn__median(value, s->held));
}

uint32_t qn__speed_wants(const qn__speed *s) {
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < s->held; ++i) {
        least = s->grains[i] < least ? s->grains[i] : least;
        most = s->grains[i] > most ? s->grains[i] : most;
    }
    return s->held > 0 && most < SIZES_DIFFER * least ? 2 * least : 0;
}
