/* The queue of a step's grains, from which workers of different speeds take chunks.
 *
 * For a request the queue computes when all workers together could finish the remaining grains. The
 * requesting worker gets most of what it can do until then: all of it if starting a call is
 * expensive compared with the uncertainty of its time, half of it if its speed is uncertain. So
 * chunks shrink towards the end, and all workers finish nearly together. A worker that could not
 * finish a grain until then gets none, but is tried again periodically. Grains of a lost worker
 * return to the queue.
 *
 * The caller reports times to the queue, so that it also works with a simulated clock. No result
 * depends on who gets which grains. */
#ifndef QN_TEAM_QUEUE_H
#define QN_TEAM_QUEUE_H

#include "team/speed.h"
#include <pthread.h>
#include <stdint.h>

enum { QN__MAX_WORKERS = 64 };

typedef struct qn__chunk {
    uint32_t first, count; /* grains */
} qn__chunk;

/* The policy of sharing grains. All but the first are for experiments and comparison. */
typedef enum qn__sharing {
    QN__SHARE_MEASURED,
    QN__SHARE_FIXED, /* by `weight`, one range each; grains of lost workers by measured speed */
    QN__SHARE_CHUNKS /* `chunk` grains per request */
} qn__sharing;

typedef struct qn__queue_worker {
    qn__speed speed;
    qn__chunk *taken; /* in this step */
    uint32_t takings, capacity;
    qn__chunk planned; /* QN__SHARE_FIXED; count 0: none, or taken */
    double until;      /* expected time of its next request */
    uint32_t skipped;  /* steps in which it took part since it had a grain */
    int here;          /* takes part in this step, and was not told the end yet */
    int busy;          /* it is computing a chunk */
    int lost;
    double weight; /* QN__SHARE_FIXED */
} qn__queue_worker;

typedef struct qn__queue {
    pthread_mutex_t lock;
    pthread_cond_t
        changed; /* signalled when a chunk was finished or returned, or a worker may check again */
    uint32_t workers;
    qn__queue_worker of[QN__MAX_WORKERS];
    qn__chunk *free; /* `ranges` ranges that are not taken */
    uint32_t ranges, capacity;
    uint32_t left; /* grains not yet taken */
    qn__sharing sharing;
    uint32_t chunk; /* QN__SHARE_CHUNKS */
    int keeps;      /* 1: finished chunks of a worker stay finished when it is lost */
} qn__queue;

/* 0, or -1 if out of memory. */
int qn__queue_begin(qn__queue *queue, uint32_t workers);
void qn__queue_end(qn__queue *queue);

/* Starts a step of `grains` grains for the workers in the bit set `set`. 0, or -1 if out of
 * memory. */
int qn__queue_fill(qn__queue *queue, uint32_t grains, uint64_t set);
/* The same for a part of a step. */
int qn__queue_fill_range(qn__queue *queue, qn__chunk range, uint64_t set);

/* The workers in `set` continue with grains that returned after they had been told the end. */
void qn__queue_again(qn__queue *queue, uint64_t set);

/* The worker's next chunk, at time `now`. 1: *chunk is set. 0: no more chunks for it. -1: none now,
 * because the others should finish sooner; call again after a change or a while. */
int qn__queue_try(qn__queue *queue, uint32_t worker, double now, qn__chunk *chunk);

/* The same by qn__now, waiting while there is none: 1 or 0. */
int qn__queue_take(qn__queue *queue, uint32_t worker, qn__chunk *chunk);

/* The worker computed the chunk in `seconds`, which updates its speed. */
void qn__queue_done(qn__queue *queue, uint32_t worker, qn__chunk chunk, double seconds);

/* The worker is lost: others must compute all that it took in this step. */
void qn__queue_lose(qn__queue *queue, uint32_t worker);

/* The number of grains that are not taken. */
uint32_t qn__queue_left(qn__queue *queue);

/* Drops the remaining grains. */
void qn__queue_stop(qn__queue *queue);

#endif
