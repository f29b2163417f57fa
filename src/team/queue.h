/* The queue of a step's grains, pulled by workers of unequal speed.
 *
 * A worker asks for a chunk and gets one in proportion to its measured speed: a share of half of
 * what is left (adaptive weighted factoring), so chunks shrink towards the end and all finish
 * nearly together. A worker that would still be at a single grain when the others could have
 * finished all that is left gets none, but is tried again now and then. Grains that a lost worker
 * had taken in this step come back.
 *
 * Nothing in a result depends on who gets what. */
#ifndef QN_TEAM_QUEUE_H
#define QN_TEAM_QUEUE_H

#include <pthread.h>
#include <stdint.h>

enum { QN__MAX_WORKERS = 64 };

typedef struct qn__chunk {
    uint32_t first, count; /* grains */
} qn__chunk;

typedef struct qn__queue {
    pthread_mutex_t lock;
    uint32_t workers;
    double rate[QN__MAX_WORKERS]; /* grains a second, measured; 0: not yet known */
    int lost[QN__MAX_WORKERS];
    int busy[QN__MAX_WORKERS];         /* a chunk is out with this worker */
    double until[QN__MAX_WORKERS];     /* moment (qn__now) at which it should be back */
    uint32_t skipped[QN__MAX_WORKERS]; /* steps since this worker had a grain */
    qn__chunk *free;                   /* ranges that nobody has taken; `ranges` of them */
    uint32_t ranges, room;
    qn__chunk *taken[QN__MAX_WORKERS]; /* what each worker took in this step */
    uint32_t takings[QN__MAX_WORKERS], taking_room[QN__MAX_WORKERS];
    uint32_t left;          /* grains not yet taken */
    pthread_cond_t changed; /* a chunk was finished or came back */
} qn__queue;

/* 0 on success, else memory was short. */
int qn__queue_begin(qn__queue *queue, uint32_t workers);
void qn__queue_end(qn__queue *queue);

/* A new step of `grains` grains. */
int qn__queue_fill(qn__queue *queue, uint32_t grains);

/* The worker's next chunk; 0 when there is none for it and the step is complete or left to the
 * others. Waits while grains that are out with others might still come back. */
int qn__queue_take(qn__queue *queue, uint32_t worker, qn__chunk *chunk);

/* The chunk was computed in `seconds`: the worker's speed follows. */
void qn__queue_done(qn__queue *queue, uint32_t worker, qn__chunk chunk, double seconds);

/* The worker is lost: all that it took in this step must be computed by others. */
void qn__queue_lose(qn__queue *queue, uint32_t worker);

/* Grains that nobody computed: more than 0 after a step when every worker is lost. */
uint32_t qn__queue_left(qn__queue *queue);

#endif
