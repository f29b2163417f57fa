/* The threads that read files. */
#ifndef QN_SERVE_WATCH_READERS_H
#define QN_SERVE_WATCH_READERS_H

#include "serve/watch/watch_names.h"
#include <pthread.h>
#include <stdint.h>

/* A file that is to be read. */
typedef struct qn__watch_task {
    struct qn__watch_task *next;
    int64_t last;  /* the last of its items that is stored; -1: none is */
    int is_final;  /* 1: it is what it is, and not read again later */
    char *version; /* of an object in a store, or NULL */
    char name[];
} qn__watch_task;

/* Reads a file, on any of the threads. */
typedef void qn__watch_read(void *user, const qn__watch_task *task);

enum { QN__WATCH_READERS = 8 };

typedef struct qn__watch_readers {
    qn__watch_read *read;
    void *user;
    pthread_mutex_t lock;
    pthread_cond_t more;
    qn__watch_task *first, **last;
    int reading; /* tasks that threads have */
    int ending;
    pthread_t thread[QN__WATCH_READERS];
    int threads;
} qn__watch_readers;

/* Starts up to `most` threads. Fails with QN_MEMORY; end and release it after a failure, too. */
qn_status qn__watch_readers_start(qn__watch_readers *r, int most, qn__watch_read *read, void *user,
                                  qn_error *err);
qn_status qn__watch_readers_add(qn__watch_readers *r, const qn__watch_name *name, int64_t last,
                                int is_final, qn_error *err);
/* Whether a file is read, or waits for it. */
int qn__watch_readers_are_busy(qn__watch_readers *r);
/* What waits is not read any more. */
void qn__watch_readers_end(qn__watch_readers *r);
/* Waits for the threads. */
void qn__watch_readers_release(qn__watch_readers *r);

#endif
