/* The search for the devices that compute fastest. It tries all together, then the fastest GPU
 * alone, then the processor alone, a few runs each. Then the best one stays. The runs are
 * iterations of the job, so none is wasted. */
#include "userkernel/run/user_choice.h"

#include <string.h>

/* Runs of a trial: the first one compiles, or sends whole arrays. A long one is a trial by itself,
 * but for the first. */
enum { TRIAL = 3 };
static const double LONG_RUN = 0.2; /* seconds */
/* Seconds of work that must be left: below it a change gains less than it costs. */
static const double WORTH = 0.5;
/* The processor is out of the question where it is so much slower at first: several iterations at
 * once are not so much faster. And the part of the work that its search may cost. */
static const double HOPELESS = 8, SEARCH = 0.1;

void qn__user_choice_begin(qn__user_choice *t, uint64_t cpu, uint64_t gpus, uint64_t fastest) {
    memset(t, 0, sizeof *t);
    t->set[QN__WHO_ALL] = cpu | gpus;
    t->set[QN__WHO_GPU] = fastest;
    t->set[QN__WHO_CPU] = cpu;
    t->settled = (t->set[QN__WHO_ALL] & (t->set[QN__WHO_ALL] - 1)) == 0 || fastest == 0;
}

static qn__user_who best_of(const qn__user_choice *t) {
    qn__user_who best = QN__WHO_ALL;
    for (int i = 1; i < QN__WHO_KINDS; i++)
        if (t->each[i] > 0 && (t->each[best] <= 0 || t->each[i] < t->each[best]))
            best = (qn__user_who)i;
    return best;
}

/* Whether the current choice is measured well enough. */
static int is_measured(const qn__user_choice *t, uint64_t left, int tuned) {
    const double each = t->each[t->now];
    if (each <= 0)
        return 0;
    const int some = t->runs >= TRIAL || (t->runs > 1 && t->spent > LONG_RUN);
    if (t->now != QN__WHO_CPU)
        return some;
    const double best = t->each[best_of(t)];
    return some && (tuned || each > HOPELESS * best || t->spent > SEARCH * best * (double)left);
}

static void go_on(qn__user_choice *t, uint64_t left) {
    const qn__user_who best = best_of(t);
    int next = (int)t->now + 1;
    while (next < QN__WHO_KINDS && t->set[next] == 0)
        next++;
    t->settled = next == QN__WHO_KINDS || t->each[best] * (double)left < WORTH;
    t->now = t->settled ? best : (qn__user_who)next;
    t->runs = 0;
    t->spent = 0;
}

void qn__user_choice_done(qn__user_choice *t, double seconds, uint64_t steps, uint64_t left,
                          int tuned) {
    const double each = seconds / (double)steps;
    if (t->settled)
        return;
    t->spent += seconds;
    if (t->runs++ == 0 && t->now != QN__WHO_CPU)
        return;
    if (t->each[t->now] <= 0 || each < t->each[t->now])
        t->each[t->now] = each;
    if (is_measured(t, left, tuned))
        go_on(t, left);
}

void qn__user_choice_lost(qn__user_choice *t) {
    t->settled = 1;
    t->now = QN__WHO_ALL;
    t->set[QN__WHO_ALL] = 0; /* all that live */
}
