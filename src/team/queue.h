/* The queue of a step's grains, pulled by workers of unequal speed.
 *
 * For whoever asks, the queue works out when all workers could be done together with what is left,
 * each finishing what it has, and gives the worker most of what it can do until then: all of it
 * where a call's start is dear beside the doubt about its time, half of it where its speed is in
 * doubt. So chunks shrink towards the end, and all finish nearly together. A worker that could do
 * no grain until then gets none, but is tried again now and then. Grains that a lost worker had
 * taken come back.
 *
 * Time is reported to the queue, so that it also runs against a clock that someone made up. Nothing
 * in a result depends on who gets what. */
#ifndef QN_TEAM_QUEUE_H
#define QN_TEAM_QUEUE_H

#include "team/speed.h"
#include <pthread.h>
#include <stdint.h>

enum { QN__MAX_WORKERS = 64 };

typedef struct qn__chunk {
    uint32_t first, count; /* grains */
} qn__chunk;

/* How grains are shared out. All but the first are for experiments and comparison. */
typedef enum qn__sharing {
    QN__SHARE_MEASURED,
    QN__SHARE_FIXED, /* by `weight`, one range each; what lost workers leave, by measured speed */
    QN__SHARE_CHUNKS /* `chunk` grains to whoever asks */
} qn__sharing;

typedef struct qn__turn {
    qn__speed speed;
    qn__chunk *taken; /* in this step */
    uint32_t takings, room;
    qn__chunk planned; /* QN__SHARE_FIXED; count 0: none, or taken */
    double until;      /* moment at which it should be back with its chunk */
    uint32_t skipped;  /* steps of its own since it had a grain */
    int here;          /* takes part in this step, and has not been told that it is over */
    int busy;          /* a chunk is out with it */
    int lost;
    double weight; /* QN__SHARE_FIXED */
} qn__turn;

typedef struct qn__queue {
    pthread_mutex_t lock;
    pthread_cond_t
        changed; /* a chunk was finished or came back, or someone may want another look */
    uint32_t workers;
    qn__turn turn[QN__MAX_WORKERS];
    qn__chunk *free; /* ranges that nobody has taken; `ranges` of them */
    uint32_t ranges, room;
    uint32_t left; /* grains not yet taken */
    qn__sharing sharing;
    uint32_t chunk; /* QN__SHARE_CHUNKS */
    int keeps;      /* 1: what a worker finished stays finished when it is lost */
} qn__queue;

/* 0 on success, else memory was short. */
int qn__queue_begin(qn__queue *queue, uint32_t workers);
void qn__queue_end(qn__queue *queue);

/* A new step of `grains` grains for the workers in `set`, a bit each. Returns 0, or -1 when memory
 * was short. */
int qn__queue_fill(qn__queue *queue, uint32_t grains, uint64_t set);
/* The same for a part of a step. */
int qn__queue_fill_range(qn__queue *queue, qn__chunk range, uint64_t set);

/* The workers in `set` continue with grains that came back after they were told that there are no
 * more. */
void qn__queue_again(qn__queue *queue, uint64_t set);

/* The worker's next chunk, at the moment `now`. 1: here it is; 0: there is none for it any more;
 * -1: not now, the others should be sooner; ask again when something changed, or a while later. */
int qn__queue_try(qn__queue *queue, uint32_t worker, double now, qn__chunk *chunk);

/* The same by qn__now, and waiting where there is none now: 1 or 0. */
int qn__queue_take(qn__queue *queue, uint32_t worker, qn__chunk *chunk);

/* The chunk was computed in `seconds`: the worker's speed follows. */
void qn__queue_done(qn__queue *queue, uint32_t worker, qn__chunk chunk, double seconds);

/* The worker is lost: all that it took in this step must be computed by others. */
void qn__queue_lose(qn__queue *queue, uint32_t worker);

/* Grains that nobody took. */
uint32_t qn__queue_left(qn__queue *queue);

/* Grains left are given up: nobody gets any of them. */
void qn__queue_stop(qn__queue *queue);

#endif
