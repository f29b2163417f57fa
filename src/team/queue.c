#include "team/queue.h"

#include "base/clock.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

/* A new measurement counts this much against the past. */
#define RATE_WEIGHT 0.3
/* A worker leaves a grain to others only when they end this much sooner; the fastest one that is
 * free therefore never does. */
#define CLEARLY_SOONER 0.9
/* Steps without a grain after which a worker is tried again, since its speed may have changed. */
enum { TRY_AGAIN = 32 };

int qn__queue_begin(qn__queue *q, uint32_t workers) {
    memset(q, 0, sizeof *q);
    q->workers = workers;
    if (pthread_mutex_init(&q->lock, NULL) != 0)
        return -1;
    if (pthread_cond_init(&q->changed, NULL) != 0) {
        pthread_mutex_destroy(&q->lock);
        return -1;
    }
    return 0;
}

void qn__queue_end(qn__queue *q) {
    for (uint32_t w = 0; w < q->workers; ++w)
        qn__free(q->taken[w]);
    qn__free(q->free);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
}

/* Appends to a growing list of chunks. */
static int push(qn__chunk **list, uint32_t *count, uint32_t *room, qn__chunk chunk) {
    if (*count == *room) {
        const uint32_t more = *room ? *room * 2 : 16;
        qn__chunk *bigger = qn__alloc(more, sizeof *bigger, NULL);
        if (!bigger)
            return -1;
        if (*count)
            memcpy(bigger, *list, *count * sizeof *bigger);
        qn__free(*list);
        *list = bigger;
        *room = more;
    }
    (*list)[(*count)++] = chunk;
    return 0;
}

int qn__queue_fill(qn__queue *q, uint32_t grains) {
    pthread_mutex_lock(&q->lock);
    q->ranges = 0;
    for (uint32_t w = 0; w < q->workers; ++w)
        q->skipped[w] += q->takings[w] == 0;
    memset(q->takings, 0, sizeof q->takings);
    memset(q->busy, 0, sizeof q->busy);
    q->left = grains;
    const int failed = push(&q->free, &q->ranges, &q->room, (qn__chunk){0, grains});
    pthread_mutex_unlock(&q->lock);
    return failed;
}

/* Rates of all that work; a worker not yet measured counts as the mean of the others. */
static double rate_of(const qn__queue *q, uint32_t worker) {
    double sum = 0;
    uint32_t known = 0;
    if (q->rate[worker] > 0)
        return q->rate[worker];
    for (uint32_t w = 0; w < q->workers; ++w)
        if (!q->lost[w] && q->rate[w] > 0) {
            sum += q->rate[w];
            ++known;
        }
    return known ? sum / known : 1.0;
}

static double all_rates(const qn__queue *q) {
    double sum = 0;
    for (uint32_t w = 0; w < q->workers; ++w)
        if (!q->lost[w])
            sum += rate_of(q, w);
    return sum;
}

/* 1 when the other workers, from when they are free, could finish all that is left clearly before
 * this one could finish a single grain. Then it would only be waited for. */
static int others_sooner(const qn__queue *q, uint32_t worker) {
    const double within = CLEARLY_SOONER / q->rate[worker], now = qn__now();
    double grains = 0;
    for (uint32_t w = 0; w < q->workers; ++w) {
        const double wait = q->busy[w] && q->until[w] > now ? q->until[w] - now : 0;
        if (w != worker && !q->lost[w] && q->rate[w] > 0 && within > wait)
            grains += floor((within - wait) * q->rate[w]);
    }
    return grains >= q->left;
}

/* How many grains the worker should get now; 0 when they are better left to the others. */
static uint32_t size_for(const qn__queue *q, uint32_t worker) {
    const double own = rate_of(q, worker), all = all_rates(q), others = all - own;
    if (q->rate[worker] > 0 && q->skipped[worker] < TRY_AGAIN && others_sooner(q, worker))
        return 0;
    if (q->skipped[worker] >= TRY_AGAIN)
        return 1;
    const double share = q->left * own / all / (others > 0 ? 2.0 : 1.0);
    const uint32_t size = share < 1.0 ? 1 : (uint32_t)share;
    return size < q->left ? size : q->left;
}

static int anyone_busy(const qn__queue *q) {
    for (uint32_t w = 0; w < q->workers; ++w)
        if (q->busy[w] && !q->lost[w])
            return 1;
    return 0;
}

int qn__queue_take(qn__queue *q, uint32_t worker, qn__chunk *chunk) {
    uint32_t size = 0;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        if (q->lost[worker])
            break;
        /* Grains may be left without a range when memory was short for bringing them back. */
        size = q->ranges ? size_for(q, worker) : 0;
        /* Whoever is left out waits: those who are faster come for the rest, or are lost and say
         * so. */
        if (size || (!q->ranges && !anyone_busy(q)))
            break;
        pthread_cond_wait(&q->changed, &q->lock);
    }
    if (size) {
        qn__chunk *range = &q->free[q->ranges - 1];
        *chunk = (qn__chunk){range->first, size < range->count ? size : range->count};
        if (push(&q->taken[worker], &q->takings[worker], &q->taking_room[worker], *chunk) != 0) {
            /* Memory is short. What this worker took before counts, but nobody may wait for it. */
            q->lost[worker] = 1;
            size = 0;
        } else {
            range->first += chunk->count;
            range->count -= chunk->count;
            q->ranges -= range->count == 0;
            q->left -= chunk->count;
            q->busy[worker] = 1;
            q->until[worker] = qn__now() + chunk->count / rate_of(q, worker);
            q->skipped[worker] = 0;
        }
    }
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    return size > 0;
}

void qn__queue_done(qn__queue *q, uint32_t worker, qn__chunk chunk, double seconds) {
    pthread_mutex_lock(&q->lock);
    q->busy[worker] = 0;
    if (seconds > 0) {
        const double rate = chunk.count / seconds;
        q->rate[worker] =
            q->rate[worker] > 0 ? q->rate[worker] * (1 - RATE_WEIGHT) + rate * RATE_WEIGHT : rate;
    }
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

void qn__queue_lose(qn__queue *q, uint32_t worker) {
    pthread_mutex_lock(&q->lock);
    q->lost[worker] = 1;
    q->busy[worker] = 0;
    for (uint32_t i = 0; i < q->takings[worker]; ++i) {
        /* Where memory is short the grains stay uncomputed, and qn__queue_left tells. */
        push(&q->free, &q->ranges, &q->room, q->taken[worker][i]);
        q->left += q->taken[worker][i].count;
    }
    q->takings[worker] = 0;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

uint32_t qn__queue_left(qn__queue *q) {
    pthread_mutex_lock(&q->lock);
    const uint32_t left = q->left;
    pthread_mutex_unlock(&q->lock);
    return left;
}
