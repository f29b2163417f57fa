#include "team/chooser.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A larger set must be better than a smaller one by this factor. */
#define CLEARLY_BETTER 0.98
/* A set whose predicted time exceeds the best by this factor is not tried. A worker alone may be
 * far faster than its shared grains suggest, because it sends no sums. */
#define WORTH_TRYING 1.3
#define WORTH_TRYING_ALONE 3.0
/* A trial may cost this part of the remaining time of the job, and is abandoned when it is too
 * slow. */
#define TRIAL_PART 0.05
#define HOPELESS 1.5
/* The chosen set counts as changed when the median of its steps changes by this factor. */
#define CHANGED 1.25
/* Trials are repeated after so many times their cost: periodically, and after a change. */
#define ROUND_EVERY 200.0
#define ROUND_SOON 100.0
#define ROUND_SECONDS 15.0
/* Without waiting at the end of a step, only blocks of several steps can be timed. */
enum { BLOCK_LEAST = 4, BLOCK_MOST = 32, LOOKS = 4, SHORT_JOB = 12 };
#define BLOCK_SECONDS 0.003

#define BIT(worker) (UINT64_C(1) << (worker))

static int many(uint64_t set) { return (set & (set - 1)) != 0; }

static const qn__speed *speed_of(const qn__chooser *c, uint32_t worker) {
    return &c->queue->of[worker].speed;
}

/* Whether a step of the set may return before it is complete. */
static int is_late(const qn__chooser *c, uint64_t set) { return !many(set) && (set & c->late); }

static void begin_block(qn__chooser *c) {
    c->in_block = 0;
    c->block_seconds = 0;
}

static void use_set(qn__chooser *c, uint64_t set) {
    c->set = set;
    c->warm = 0;
    c->block = is_late(c, set) ? BLOCK_LEAST : 1;
    begin_block(c);
}

static void begin_round(qn__chooser *c, uint32_t looks) {
    c->stage = QN__CHOOSE_LOOK;
    c->looks = looks;
    c->trials = c->trial_steps = 0;
    c->trial_seconds = 0;
    c->overhead = INFINITY;
    ++c->rounds;
    /* Speeds of workers that took no part in shared steps are outdated. */
    for (uint32_t w = 0; w < c->queue->workers; ++w)
        if (!many(c->set) || !(c->set & BIT(w)))
            qn__speed_reset(&c->queue->of[w].speed);
    use_set(c, c->alive);
}

static void stay(qn__chooser *c, uint64_t set) {
    c->stage = QN__CHOOSE_STAY;
    c->watches = 0;
    c->reference = 0;
    use_set(c, set);
}

static void begin_anew(qn__chooser *c) {
    if (many(c->alive))
        begin_round(c, c->steps_left < SHORT_JOB ? 1 : LOOKS);
    else
        stay(c, c->alive);
}

void qn__chooser_begin(qn__chooser *c, qn__queue *queue, uint64_t alive, uint64_t late,
                       uint32_t grains) {
    memset(c, 0, sizeof *c);
    c->queue = queue;
    c->alive = alive;
    c->late = late;
    c->grains = grains;
    c->steps_left = UINT64_MAX;
    begin_anew(c);
}

void qn__chooser_expect(qn__chooser *c, uint64_t steps) {
    c->steps_left = steps;
    if (c->stage == QN__CHOOSE_LOOK && steps < SHORT_JOB && c->looks > 1)
        c->looks = 1;
}

void qn__chooser_alive(qn__chooser *c, uint64_t alive) {
    if (alive == c->alive)
        return;
    c->alive = alive;
    if ((c->set & alive) == c->set && many(alive) && c->stage == QN__CHOOSE_STAY)
        return; /* a worker that was left out anyway */
    begin_anew(c);
}

uint64_t qn__chooser_set(const qn__chooser *c) { return c->set; }

int qn__chooser_waits(const qn__chooser *c) {
    return c->stage == QN__CHOOSE_TRY && is_late(c, c->set) && c->in_block + 1 == c->block;
}

/* ---------------------------------------------------------------------------------- predictions */

/* Predicted seconds for the grains of a full step shared by the set, all starting together. */
static double shared_seconds(const qn__chooser *c, uint64_t set) {
    double low = 0, high = INFINITY;
    for (uint32_t w = 0; w < c->queue->workers; ++w)
        if (set & BIT(w))
            high = fmin(high, qn__speed_of(speed_of(c, w), c->grains));
    for (int i = 0; i < 30; ++i) {
        const double middle = 0.5 * (low + high);
        double grains = 0;
        for (uint32_t w = 0; w < c->queue->workers; ++w) {
            const qn__speed *s = speed_of(c, w);
            if ((set & BIT(w)) && middle > s->start)
                grains += floor((middle - s->start) / s->each + 1e-6);
        }
        if (grains >= c->grains)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Predicted seconds of a worker alone. A step without waiting hides most of the start of a call. */
static double alone_seconds(const qn__chooser *c, uint32_t worker) {
    const qn__speed *s = speed_of(c, worker);
    const double start = c->late & BIT(worker) ? 0.1 * s->start : s->start;
    return s->each > 0 ? start + c->grains * s->each : 0;
}

static double expected(const qn__chooser *c, uint64_t set) {
    return shared_seconds(c, set) + (isfinite(c->overhead) ? c->overhead : 0);
}

/* The best finished trial: seconds, or infinity. */
static double best_seconds(const qn__chooser *c, uint64_t *set) {
    double best = INFINITY;
    *set = 0;
    for (uint32_t i = 0; i < c->trials; ++i) {
        const qn__trial *t = &c->trial[i];
        if (!(t->seconds > 0))
            continue;
        /* Trials usually go from small sets to large ones. */
        const int larger = __builtin_popcountll(t->set) > __builtin_popcountll(*set);
        if (!*set || t->seconds < best * (larger ? CLEARLY_BETTER : 1.0)) {
            best = t->seconds;
            *set = t->set;
        }
    }
    return best;
}

/* The better trial, if there were two. */
static const qn__trial *trial_of(const qn__chooser *c, uint64_t set) {
    const qn__trial *best = NULL;
    for (uint32_t i = 0; i < c->trials; ++i)
        if (c->trial[i].set == set && c->trial[i].seconds > 0 &&
            (!best || c->trial[i].seconds < best->seconds))
            best = &c->trial[i];
    return best;
}

/* Whether the job is long enough for a trial with a predicted step of `seconds`. */
static int affordable(const qn__chooser *c, double seconds, double best) {
    if (!isfinite(best) || seconds <= best || c->steps_left == UINT64_MAX)
        return 1;
    return (seconds - best) * 3.0 < TRIAL_PART * best * (double)c->steps_left;
}

/* ----------------------------------------------------------------------------------- candidates */

/* Workers of known speed, ordered by the speed of their grains, fastest first. */
static uint32_t in_order(const qn__chooser *c, uint32_t order[QN__MAX_WORKERS]) {
    uint32_t count = 0;
    for (uint32_t w = 0; w < c->queue->workers; ++w) {
        if (!(c->alive & BIT(w)) || !(speed_of(c, w)->each > 0))
            continue;
        uint32_t at = count++;
        for (; at > 0 && speed_of(c, order[at - 1])->each > speed_of(c, w)->each; --at)
            order[at] = order[at - 1];
        order[at] = w;
    }
    return count;
}

/* Among the sets of the fastest two, three, ... workers the one with the best prediction. */
static uint64_t best_expected(const qn__chooser *c) {
    uint32_t order[QN__MAX_WORKERS];
    const uint32_t count = in_order(c, order);
    uint64_t set = 0, best = 0;
    double least = INFINITY;
    for (uint32_t i = 0; i < count; ++i) {
        set |= BIT(order[i]);
        const double seconds = i > 0 ? shared_seconds(c, set) : INFINITY;
        if (seconds < least) {
            least = seconds;
            best = set;
        }
    }
    return best;
}

/* The worker not yet tried alone that is predicted to be the fastest alone, as a set; 0: none is
 * worth a trial. */
static uint64_t next_alone(const qn__chooser *c) {
    uint64_t best_set, set = 0;
    const uint64_t shared = best_expected(c);
    const double best = best_seconds(c, &best_set);
    double least = INFINITY, hoped = shared ? expected(c, shared) : INFINITY;
    for (uint32_t w = 0; w < c->queue->workers; ++w) {
        const double seconds = alone_seconds(c, w);
        if (!(c->alive & BIT(w)))
            continue;
        hoped = seconds > 0 ? fmin(hoped, seconds) : hoped;
        if (!trial_of(c, BIT(w)) && seconds < least) {
            least = seconds;
            set = BIT(w);
        }
    }
    if (least > WORTH_TRYING_ALONE * fmin(best, hoped) || !affordable(c, least, best))
        return 0;
    return set;
}

static int worth(const qn__chooser *c, uint64_t set, double best) {
    if (!many(set) || trial_of(c, set))
        return 0;
    const double seconds = expected(c, set);
    return seconds < WORTH_TRYING * best && affordable(c, seconds, best);
}

/* `set` with one worker more (the fastest) or one less (the slowest). */
static uint64_t neighbour(const qn__chooser *c, uint64_t set, double best) {
    uint32_t order[QN__MAX_WORKERS];
    const uint32_t count = in_order(c, order);
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t more = set | BIT(order[i]);
        /* A worker whose single grain lasts longer than the step would get none. */
        if (more != set && shared_seconds(c, more) < shared_seconds(c, set) && worth(c, more, best))
            return more;
    }
    for (uint32_t i = count; many(set) && i-- > 0;)
        if (set & BIT(order[i]))
            return worth(c, set & ~BIT(order[i]), best) ? set & ~BIT(order[i]) : 0;
    return 0;
}

static uint32_t times_tried(const qn__chooser *c, uint64_t set) {
    uint32_t times = 0;
    for (uint32_t i = 0; i < c->trials; ++i)
        times += c->trial[i].set == set;
    return times;
}

/* A set that lost once. A trial lasts some milliseconds, and another program may have used the
 * cores then. A disturbance only makes steps longer, so the better of two trials counts. */
static uint64_t second_chance(const qn__chooser *c, uint64_t best_set, double best) {
    for (uint32_t i = 0; i < c->trials; ++i) {
        const qn__trial *t = &c->trial[i];
        if (t->set != best_set && t->seconds < WORTH_TRYING_ALONE * best &&
            times_tried(c, t->set) < 2 && affordable(c, t->seconds, best))
            return t->set;
    }
    return 0;
}

static uint64_t next_trial(const qn__chooser *c) {
    uint64_t best_set;
    if (c->trials == QN__TRIALS)
        return 0;
    uint64_t set = next_alone(c);
    if (set)
        return set;
    const double best = best_seconds(c, &best_set);
    set = best_expected(c);
    if (set && worth(c, set, best))
        return set;
    if (!best_set)
        return c->alive;
    set = neighbour(c, best_set, best);
    return set ? set : second_chance(c, best_set, best);
}

/* ------------------------------------------------------------------------------------- decision */

/* The overhead of a shared step beside its grains. */
static void learn_overhead(qn__chooser *c, double seconds) {
    if (many(c->set))
        c->overhead = fmin(c->overhead, fmax(0, seconds - shared_seconds(c, c->set)));
}

static void decide(qn__chooser *c, double now) {
    uint64_t set;
    c->seconds = best_seconds(c, &set);
    c->round_seconds = fmax(0, c->trial_seconds - c->trial_steps * c->seconds);
    c->cost += c->round_seconds;
    c->round_seconds = fmax(0, c->round_seconds - c->first_seconds); /* one-time costs */
    c->first_seconds = 0;
    c->next_round = now + fmax(ROUND_SECONDS, ROUND_EVERY * c->round_seconds);
    stay(c, set);
}

static void try_next(qn__chooser *c, double now) {
    const uint64_t set = next_trial(c);
    if (!set) {
        decide(c, now);
        return;
    }
    c->stage = QN__CHOOSE_TRY;
    c->trial[c->trials++] = (qn__trial){.set = set};
    use_set(c, set);
}

static int all_known(const qn__chooser *c) {
    for (uint32_t w = 0; w < c->queue->workers; ++w)
        if ((c->alive & BIT(w)) && speed_of(c, w)->calls < 4)
            return 0;
    return 1;
}

/* Adds a sample to the current trial. */
static void add_sample(qn__chooser *c, double seconds, double now) {
    qn__trial *t = &c->trial[c->trials - 1];
    double sorted[QN__TRIAL_SAMPLES];
    uint64_t best_set;
    t->sample[t->samples++] = seconds;
    learn_overhead(c, seconds);
    memcpy(sorted, t->sample, sizeof sorted);
    const double median = qn__median(sorted, t->samples);
    if (t->samples < QN__TRIAL_SAMPLES &&
        !(t->samples > 1 && median > HOPELESS * best_seconds(c, &best_set)) &&
        !(c->steps_left < SHORT_JOB * 4))
        return;
    t->seconds = median;
    try_next(c, now);
}

/* Starts another round of trials, when one is due. */
static int watch(qn__chooser *c, double seconds, double now) {
    c->watched[c->watches++ % QN__WATCHED] = seconds;
    int changed = 0;
    if (c->watches >= QN__WATCHED) {
        double sorted[QN__WATCHED];
        memcpy(sorted, c->watched, sizeof sorted);
        const double median = qn__median(sorted, QN__WATCHED);
        if (c->reference <= 0)
            c->reference = median;
        changed = median > c->reference * CHANGED || median < c->reference / CHANGED;
    }
    const double since =
        now - (c->next_round - fmax(ROUND_SECONDS, ROUND_EVERY * c->round_seconds));
    if (!(changed && since > ROUND_SOON * c->round_seconds) && now < c->next_round)
        return 0;
    if ((double)c->steps_left * c->seconds < ROUND_SOON * c->round_seconds)
        return 0;
    begin_round(c, LOOKS);
    return 1;
}

/* A sample from a block of steps, when it is complete; otherwise 0. */
static double sample(qn__chooser *c, double seconds, int full) {
    if (!full) {
        begin_block(c);
        return 0;
    }
    c->block_seconds += seconds;
    if (++c->in_block < c->block)
        return 0;
    const double mean = c->block_seconds / c->block;
    begin_block(c);
    if (c->warm)
        return mean;
    c->warm = 1;
    if (is_late(c, c->set) && mean > 0)
        c->block = (uint32_t)fmin(BLOCK_MOST, fmax(BLOCK_LEAST, BLOCK_SECONDS / mean));
    return 0;
}

int qn__chooser_step(qn__chooser *c, double seconds, double extra, int full, double now) {
    const uint64_t before = c->set;
    const qn__choosing stage = c->stage;
    c->steps_left -= c->steps_left > 0 && c->steps_left != UINT64_MAX;
    if (stage != QN__CHOOSE_STAY) {
        c->first_seconds += c->rounds == 1 && c->trial_steps == 0 ? seconds + extra : 0;
        ++c->trial_steps;
        c->trial_seconds += seconds + extra;
    } else if (!many(c->alive)) {
        return 0;
    }
    if (stage == QN__CHOOSE_LOOK) {
        if (c->looks > 0)
            --c->looks;
        if (c->trial_steps > 1)
            learn_overhead(c, seconds);
        if (c->looks == 0 || (c->trial_steps > 1 && all_known(c)))
            try_next(c, now);
    } else {
        const double one = sample(c, seconds, full);
        if (one > 0 && stage == QN__CHOOSE_TRY)
            add_sample(c, one, now);
        else if (one > 0)
            watch(c, one, now);
    }
    return before != c->set || stage != c->stage;
}

void qn__chooser_reason(const qn__chooser *c, uint32_t worker, char *text, uint32_t capacity) {
    const qn__trial *with = NULL;
    text[0] = 0;
    if (c->stage != QN__CHOOSE_STAY || (c->set & BIT(worker)) || !(c->alive & BIT(worker)))
        return;
    for (uint32_t i = 0; i < c->trials; ++i)
        if (many(c->trial[i].set) && (c->trial[i].set & BIT(worker)) && c->trial[i].seconds > 0 &&
            (!with || c->trial[i].seconds < with->seconds))
            with = &c->trial[i];
    const qn__trial *alone = trial_of(c, BIT(worker));
    const qn__speed *s = speed_of(c, worker);
    if (with && alone)
        snprintf(text, capacity,
                 "not used: a step takes %.3g ms without it, %.3g ms with it, %.3g ms on it alone",
                 1e3 * c->seconds, 1e3 * with->seconds, 1e3 * alone->seconds);
    else if (with)
        snprintf(text, capacity, "not used: a step takes %.3g ms without it, %.3g ms with it",
                 1e3 * c->seconds, 1e3 * with->seconds);
    else if (alone)
        snprintf(text, capacity, "not used: a step takes %.3g ms without it, %.3g ms on it alone",
                 1e3 * c->seconds, 1e3 * alone->seconds);
    else if (s->each > 0)
        snprintf(
            text, capacity,
            "not used: a step takes %.3g ms without it, a call for one grain takes %.3g ms on it",
            1e3 * c->seconds, 1e3 * qn__speed_of(s, 1));
}
