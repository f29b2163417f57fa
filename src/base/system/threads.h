/* A pool of threads, one for each core, that exists for the whole run; and a barrier for them.
 *
 * Thread 0 of a pool is the caller of qn__pool_run, so a pool of one starts no thread. */
#ifndef QN_BASE_SYSTEM_THREADS_H
#define QN_BASE_SYSTEM_THREADS_H

#include "base/error.h"
#include <pthread.h>
#include <stdint.h>

typedef struct qn__pool qn__pool;

/* Cores that the caller may use: its affinity mask, limited by a cgroup's CPU quota (rounded up).
 * At least 1. Do not call it inside a body, where the mask may be a single core. */
int qn__cores(void);

/* Starts a thread that gets no signals from outside, such as Ctrl-C: they are always delivered to a
 * thread of the program. Signals that the thread itself raises, such as SIGBUS for a mapped file
 * that became shorter, stay: a blocked one would end the program without its handler. `attributes`
 * may be NULL. Returns an errno. */
int qn__thread_start(pthread_t *handle, const pthread_attr_t *attributes, void *(*body)(void *),
                     void *context);

/* `threads` from 1 to 4096 (QN_USAGE otherwise). When pin is 1 and there are at least as many cores
 * in the affinity mask as threads, each thread is bound to one of them; the caller only while it
 * is in qn__pool_run. */
qn_status qn__pool_create(int threads, int pin, qn__pool **out, qn_error *err);
/* Accepts NULL. Not during a run. */
void qn__pool_destroy(qn__pool *pool);
int qn__pool_threads(const qn__pool *pool);

/* Runs body(context, thread) on every thread, thread = 0 .. threads-1, and returns when all have
 * returned; the caller then sees all their writes. Waiting threads spin for a bounded time, then
 * sleep. One run at a time: calls do not nest and do not come from two threads at once. */
void qn__pool_run(qn__pool *pool, void (*body)(void *context, int thread), void *context);

/* Inside a body: waits until every thread of the pool has called it. All threads then see
 * everything that any of them wrote before. Returns the seconds that this thread waited (0 when too
 * short to measure). */
double qn__pool_barrier(qn__pool *pool, int thread);

#endif
