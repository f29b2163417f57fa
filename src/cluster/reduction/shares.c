#include "cluster/reduction/shares.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Reported costs are clamped to these bounds, in seconds, so that no sum overflows. */
#define LEAST_EACH 1e-15
#define MOST_SECONDS 1e12
/* Bisection between the bounds needs at most 180 steps to find a time exactly; one step in four is
 * a bisection. */
enum { MOST_LOOKS = 800 };

typedef struct shares {
    const qn__cost *cost;
    const unsigned char *has;
    uint32_t ranks, chunks;
    int all;        /* 1: the ranks that are out take part, because the others are gone */
    qn__cost usual; /* for ranks whose cost is unknown */
} shares;

/* A time, with: the chunks that all ranks together finish by then, the next time at which one more
 * is finished, and chunks per second of the ranks that have begun. */
typedef struct moment {
    double at, next, rate;
    uint64_t done;
} moment;

static int is_known(const qn__cost *c) {
    return c->each > 0 && c->each <= DBL_MAX && c->start >= 0 && c->start <= DBL_MAX;
}

static int is_out(const qn__cost *c) { return is_known(c) && c->each >= QN__COST_OUT.each; }

static int takes_part(const shares *s, uint32_t rank) {
    return (!s->has || s->has[rank]) && (s->all || !is_out(&s->cost[rank]));
}

static qn__cost cost_of(const shares *s, uint32_t rank) {
    if (!is_known(&s->cost[rank]))
        return s->usual;
    return (qn__cost){.start = fmin(s->cost[rank].start, MOST_SECONDS),
                      .each = fmin(fmax(s->cost[rank].each, LEAST_EACH), MOST_SECONDS)};
}

static double seconds_of(const qn__cost *c, uint32_t chunks) { return c->start + chunks * c->each; }

/* Whether a chunk costs less on rank a than on rank b; ties by rank. */
static int is_cheaper(const shares *s, uint32_t a, uint32_t b) {
    const double first = s->cost[a].each, second = s->cost[b].each;
    return first < second || (first <= second && a < b);
}

/* The median of the known costs, found by counting, which needs no memory. Used only while a rank's
 * cost is unknown, which is not for long. */
static qn__cost usual_cost(const shares *s) {
    uint32_t members = 0, known = 0;
    for (uint32_t r = 0; r < s->ranks; ++r) {
        members += (uint32_t)takes_part(s, r);
        known += takes_part(s, r) && is_known(&s->cost[r]);
    }
    for (uint32_t r = 0; r < s->ranks && known < members; ++r) {
        uint32_t cheaper = 0;
        if (!takes_part(s, r) || !is_known(&s->cost[r]))
            continue;
        for (uint32_t o = 0; o < s->ranks; ++o)
            cheaper += takes_part(s, o) && is_known(&s->cost[o]) && is_cheaper(s, o, r);
        if (cheaper == (known - 1) / 2)
            return cost_of(s, r);
    }
    return (qn__cost){.each = 1};
}

/* Chunks that are finished within `seconds`, at most all: the largest n with seconds_of(n) <=
 * seconds, as doubles are rounded. */
static uint32_t chunks_until(const qn__cost *c, double seconds, uint32_t chunks) {
    if (seconds_of(c, 1) > seconds)
        return 0;
    const double guess = (seconds - c->start) / c->each;
    uint32_t low = guess < chunks ? (uint32_t)guess : chunks;
    /* The quotient is off by one at most, unless `start` is so large that `each` is lost to
     * rounding. */
    for (int i = 0; i < 2 && low > 0 && seconds_of(c, low) > seconds; ++i)
        --low;
    for (int i = 0; i < 2 && low < chunks && seconds_of(c, low + 1) <= seconds; ++i)
        ++low;
    if (seconds_of(c, low) <= seconds && (low == chunks || seconds_of(c, low + 1) > seconds))
        return low;
    uint32_t high = chunks;
    for (low = 0; low < high;) {
        const uint32_t middle = high - (high - low) / 2;
        if (seconds_of(c, middle) <= seconds)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static moment look_at(const shares *s, double seconds) {
    moment m = {.at = seconds, .next = INFINITY};
    for (uint32_t r = 0; r < s->ranks; ++r) {
        if (!takes_part(s, r))
            continue;
        const qn__cost c = cost_of(s, r);
        const uint32_t done = chunks_until(&c, seconds, s->chunks);
        m.done += done;
        m.rate += c.start <= seconds ? 1 / c.each : 0;
        if (done < s->chunks)
            m.next = fmin(m.next, seconds_of(&c, done + 1));
    }
    return m;
}

/* The next time to try. Ranks that have begun by `low` keep their rate. So the rest takes about
 * left / rate, and at most one chunk of each rank longer: two steps that leave a short interval.
 * The next steps alternate: linear interpolation, bisection, and the next event, which finds the
 * end where many chunks finish at once. */
static double next_look(const moment *low, const moment *high, const shares *s, int turn) {
    const double left = (double)(s->chunks - low->done);
    const double middle = low->at + 0.5 * (high->at - low->at);
    double at = middle;
    if (turn < 2)
        at = low->at + (turn ? left + s->ranks : left) / low->rate;
    else if (turn % 4 == 2)
        at = low->next;
    else if (turn % 2)
        at = low->at + left / (double)(high->done - low->done) * (high->at - low->at);
    return at > low->at && at < high->at ? at : middle;
}

/* The last time before which some chunks are unfinished: the next event after it is the
 * makespan. */
static moment just_before_the_end(const shares *s) {
    double end = INFINITY; /* of the rank that would be the first to finish all chunks alone */
    for (uint32_t r = 0; r < s->ranks; ++r)
        if (takes_part(s, r)) {
            const qn__cost c = cost_of(s, r);
            end = fmin(end, seconds_of(&c, s->chunks));
        }
    moment low = look_at(s, 0), high = look_at(s, end);
    for (int turn = 0; turn < MOST_LOOKS && low.next < high.at; ++turn) {
        const moment m = look_at(s, next_look(&low, &high, s, turn));
        if (m.done >= s->chunks)
            high = m;
        else
            low = m;
    }
    return low;
}

static int any(const shares *s) {
    for (uint32_t r = 0; r < s->ranks; ++r)
        if (takes_part(s, r))
            return 1;
    return 0;
}

void qn__shares(const qn__cost *cost, const unsigned char *has, uint32_t ranks, uint32_t chunks,
                uint32_t *count) {
    shares s = {.cost = cost, .has = has, .ranks = ranks, .chunks = chunks, .usual = {.each = 1}};
    memset(count, 0, ranks * sizeof *count);
    s.all = !any(&s);
    if (!any(&s) || chunks == 0)
        return;
    s.usual = usual_cost(&s);
    const moment m = just_before_the_end(&s);
    /* Ranks that finish another chunk exactly at the end get what is left, lowest ranks first. */
    uint64_t left = chunks - m.done;
    for (uint32_t r = 0; r < ranks; ++r) {
        if (!takes_part(&s, r))
            continue;
        const qn__cost c = cost_of(&s, r);
        const uint32_t sure = chunks_until(&c, m.at, chunks);
        const uint32_t most = left > 0 ? chunks_until(&c, m.next, chunks) : sure;
        const uint32_t more = most - sure < left ? most - sure : (uint32_t)left;
        count[r] = sure + more;
        left -= more;
    }
}
