#include "team/queue.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include <math.h>
#include <string.h>

/* A worker without grains is tried again after so many steps, because its speed may have
 * changed. */
enum { TRY_AGAIN = 32 };
/* The first calls of a worker that shares double in size, which soon separates the cost of a call
 * from that of its grains. */
enum { LEARNING = 6 };
/* Maximum and minimum wait of a worker between two checks, in seconds. */
#define LONGEST_LOOK 0.01
#define SHORTEST_LOOK 0.00005

int qn__queue_begin(qn__queue *q, uint32_t workers) {
    pthread_condattr_t monotonic;
    memset(q, 0, sizeof *q);
    q->workers = workers;
    if (pthread_mutex_init(&q->lock, NULL) != 0)
        return -1;
    int failed = pthread_condattr_init(&monotonic);
    if (!failed) {
        failed = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) ||
                 pthread_cond_init(&q->changed, &monotonic);
        pthread_condattr_destroy(&monotonic);
    }
    if (failed)
        pthread_mutex_destroy(&q->lock);
    return failed ? -1 : 0;
}

void qn__queue_end(qn__queue *q) {
    for (uint32_t w = 0; w < q->workers; ++w)
        qn__free(q->of[w].taken);
    qn__free(q->free);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
}

/* Appends to a growing list of chunks. */
static int push(qn__chunk **list, uint32_t *count, uint32_t *buffer, qn__chunk chunk) {
    if (*count == *buffer) {
        const uint32_t more = *buffer ? *buffer * 2 : 16;
        qn__chunk *bigger = qn__alloc(more, sizeof *bigger, NULL);
        if (!bigger)
            return -1;
        if (*count)
            memcpy(bigger, *list, *count * sizeof *bigger);
        qn__free(*list);
        *list = bigger;
        *buffer = more;
    }
    (*list)[(*count)++] = chunk;
    return 0;
}

static int takes_part(const qn__queue *q, uint32_t worker, uint64_t set) {
    return (set >> worker & 1) && !q->of[worker].lost;
}

/* Divides the step by the workers' weights. */
static void plan(qn__queue *q, qn__chunk range, uint64_t set) {
    double all = 0, before = 0;
    uint32_t from = 0;
    for (uint32_t w = 0; w < q->workers; ++w)
        all += takes_part(q, w, set) ? q->of[w].weight : 0;
    for (uint32_t w = 0; w < q->workers && all > 0; ++w) {
        if (!takes_part(q, w, set))
            continue;
        before += q->of[w].weight;
        uint32_t to = (uint32_t)floor(range.count * (before / all) + 0.5);
        to = to > range.count ? range.count : to;
        q->of[w].planned = (qn__chunk){range.first + from, to - from};
        from = to;
    }
    if (from < range.count)
        push(&q->free, &q->ranges, &q->capacity,
             (qn__chunk){range.first + from, range.count - from});
}

int qn__queue_fill(qn__queue *q, uint32_t grains, uint64_t set) {
    return qn__queue_fill_range(q, (qn__chunk){0, grains}, set);
}

int qn__queue_fill_range(qn__queue *q, qn__chunk range, uint64_t set) {
    int failed = 0;
    pthread_mutex_lock(&q->lock);
    q->ranges = 0;
    q->left = range.count;
    for (uint32_t w = 0; w < q->workers; ++w) {
        qn__queue_worker *t = &q->of[w];
        t->here = takes_part(q, w, set);
        t->skipped += t->here && t->takings == 0;
        t->takings = 0;
        t->busy = 0;
        t->planned.count = 0;
        qn__speed_fit(&t->speed);
    }
    if (q->sharing == QN__SHARE_FIXED)
        plan(q, range, set);
    else if (range.count > 0)
        failed = push(&q->free, &q->ranges, &q->capacity, range);
    pthread_mutex_unlock(&q->lock);
    return failed;
}

void qn__queue_again(qn__queue *q, uint64_t set) {
    pthread_mutex_lock(&q->lock);
    for (uint32_t w = 0; w < q->workers; ++w)
        q->of[w].here = takes_part(q, w, set);
    pthread_mutex_unlock(&q->lock);
}

/* Seconds per grain for a worker of unknown speed: the mean of the others. */
static double usual_each(const qn__queue *q) {
    double rates = 0;
    uint32_t known = 0;
    for (uint32_t w = 0; w < q->workers; ++w)
        if (q->of[w].here && q->of[w].speed.each > 0) {
            rates += 1 / q->of[w].speed.each;
            ++known;
        }
    return known ? known / rates : 1.0;
}

/* For each worker: the seconds until it could begin another grain, and the seconds per grain.
 * Relative to now, because absolute times are large and grains may take nanoseconds. */
typedef struct outlook {
    uint32_t count, own; /* own: index of the worker that requests grains */
    double begin[QN__MAX_WORKERS], each[QN__MAX_WORKERS];
} outlook;

static void look_ahead(const qn__queue *q, uint32_t worker, double now, outlook *o) {
    const double usual = usual_each(q);
    o->count = o->own = 0;
    for (uint32_t w = 0; w < q->workers; ++w) {
        const qn__queue_worker *t = &q->of[w];
        if (!t->here)
            continue;
        if (w == worker)
            o->own = o->count;
        /* A worker that is late is expected to be late as long again. */
        o->begin[o->count] = (t->busy ? fabs(t->until - now) : 0) + t->speed.start;
        o->each[o->count++] = t->speed.each > 0 ? t->speed.each : usual;
    }
}

/* Whole grains that can be computed between two times. */
static double grains_until(double begin, double each, double end) {
    return end > begin ? floor((end - begin) / each + 1e-6) : 0;
}

static double all_until(const outlook *o, double end) {
    double grains = 0;
    for (uint32_t i = 0; i < o->count; ++i)
        grains += grains_until(o->begin[i], o->each[i], end);
    return grains;
}

/* The seconds, within one part in a thousand, after which all together could finish `grains`. */
static double common_end(const outlook *o, double grains) {
    double low = 0, high = INFINITY;
    for (uint32_t i = 0; i < o->count; ++i)
        high = fmin(high, o->begin[i] + grains * o->each[i]);
    for (int i = 0; i < 20 && high - low > 1e-3 * high; ++i) {
        const double middle = 0.5 * (low + high);
        if (all_until(o, middle) >= grains)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* Grains for the requesting worker if all are to finish together. */
static double due_now(const outlook *o, double left) {
    const double due = grains_until(o->begin[o->own], o->each[o->own], common_end(o, left));
    if (due >= 1)
        return due;
    /* The worker that would finish a single grain first takes it, despite any rounding. */
    for (uint32_t i = 0; i < o->count; ++i)
        if (o->begin[i] + o->each[i] < o->begin[o->own] + o->each[o->own])
            return 0;
    return 1;
}

/* The number of grains that the worker should get now; 0 if the others finish them sooner. */
static uint32_t size_for(const qn__queue *q, uint32_t worker, double now) {
    const qn__queue_worker *t = &q->of[worker];
    if (q->sharing == QN__SHARE_CHUNKS)
        return q->chunk < q->left ? q->chunk : q->left;
    outlook o;
    look_ahead(q, worker, now, &o);
    if (o.count < 2)
        return q->left;
    if (t->speed.each <= 0 || t->skipped >= TRY_AGAIN)
        return 1;
    const double due = due_now(&o, q->left);
    if (due < 1)
        return 0;
    const double doubt = t->speed.spread * due * t->speed.each;
    const double part = t->speed.start > doubt ? 1.0 : fmax(0.5, 1.0 - 2.0 * t->speed.spread);
    uint32_t size = (uint32_t)ceil(due * part);
    if (t->speed.calls < LEARNING) {
        const uint32_t wanted = qn__speed_wants(&t->speed);
        const uint32_t most = 2 * t->speed.grains[t->speed.held - 1];
        size = size > most ? most : size;
        size = size > wanted ? size : wanted;
    }
    return size < q->left ? size : q->left;
}

/* Gives `size` grains of the last free range to the worker. 0: out of memory. */
static int hand_out(qn__queue *q, qn__queue_worker *t, uint32_t size, double now,
                    qn__chunk *chunk) {
    if (t->planned.count) {
        *chunk = t->planned;
    } else {
        const qn__chunk *range = &q->free[q->ranges - 1];
        *chunk = (qn__chunk){range->first, size < range->count ? size : range->count};
    }
    if (push(&t->taken, &t->takings, &t->capacity, *chunk) != 0)
        return 0;
    if (t->planned.count) {
        t->planned.count = 0;
    } else {
        qn__chunk *range = &q->free[q->ranges - 1];
        range->first += chunk->count;
        range->count -= chunk->count;
        q->ranges -= range->count == 0;
    }
    q->left -= chunk->count;
    t->busy = 1;
    t->until =
        now + t->speed.start + chunk->count * (t->speed.each > 0 ? t->speed.each : usual_each(q));
    t->skipped = 0;
    return 1;
}

static int look(qn__queue *q, uint32_t worker, double now, qn__chunk *chunk) {
    qn__queue_worker *t = &q->of[worker];
    if (!t->here || t->lost)
        return 0;
    if (!t->planned.count && !q->ranges) {
        t->here = 0;
        return 0;
    }
    const uint32_t size = t->planned.count ? t->planned.count : size_for(q, worker, now);
    if (size == 0)
        return -1;
    if (hand_out(q, t, size, now, chunk))
        return 1;
    /* Out of memory. Earlier chunks of this worker count, but nobody may wait for this one. */
    t->lost = 1;
    t->here = 0;
    return 0;
}

int qn__queue_try(qn__queue *q, uint32_t worker, double now, qn__chunk *chunk) {
    pthread_mutex_lock(&q->lock);
    const int found = look(q, worker, now, chunk);
    pthread_mutex_unlock(&q->lock);
    return found;
}

/* Sleeps until something changes, or until the worker may be needed after all. */
static void wait_a_while(qn__queue *q, const qn__queue_worker *t) {
    const double a_while = fmin(LONGEST_LOOK, fmax(SHORTEST_LOOK, 0.25 * t->speed.each));
    const struct timespec end = qn__after(a_while);
    pthread_cond_timedwait(&q->changed, &q->lock, &end);
}

int qn__queue_take(qn__queue *q, uint32_t worker, qn__chunk *chunk) {
    pthread_mutex_lock(&q->lock);
    int found = look(q, worker, qn__now(), chunk);
    if (found < 0)
        pthread_cond_broadcast(&q->changed); /* the workers that get its grains may be waiting */
    for (; found < 0; found = look(q, worker, qn__now(), chunk))
        wait_a_while(q, &q->of[worker]);
    if (!found || !q->ranges)
        pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return found;
}

void qn__queue_done(qn__queue *q, uint32_t worker, qn__chunk chunk, double seconds) {
    pthread_mutex_lock(&q->lock);
    qn__queue_worker *t = &q->of[worker];
    t->busy = 0;
    qn__speed_add(&t->speed, chunk.count, seconds);
    if (t->speed.calls <= 3)
        qn__speed_fit(&t->speed); /* the rest is computed once per step */
    if (q->keeps && t->takings > 0)
        --t->takings;
    if (q->ranges)
        pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void qn__queue_lose(qn__queue *q, uint32_t worker) {
    pthread_mutex_lock(&q->lock);
    qn__queue_worker *t = &q->of[worker];
    t->lost = 1;
    t->busy = t->here = 0;
    if (t->planned.count) {
        push(&q->free, &q->ranges, &q->capacity, t->planned);
        t->planned.count = 0;
    }
    for (uint32_t i = 0; i < t->takings; ++i) {
        /* Out of memory: the grains stay uncomputed, which qn__queue_left shows. */
        push(&q->free, &q->ranges, &q->capacity, t->taken[i]);
        q->left += t->taken[i].count;
    }
    t->takings = 0;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

uint32_t qn__queue_left(qn__queue *q) {
    pthread_mutex_lock(&q->lock);
    const uint32_t left = q->left;
    pthread_mutex_unlock(&q->lock);
    return left;
}

void qn__queue_stop(qn__queue *q) {
    pthread_mutex_lock(&q->lock);
    q->ranges = 0;
    for (uint32_t w = 0; w < q->workers; ++w)
        q->of[w].planned.count = 0;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}
