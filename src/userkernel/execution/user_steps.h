/* Several iterations of a user kernel over a range of items, computed from the state before the
 * first of them.
 *
 * A thread first computes a wider range of rows, of the first dimension, and then narrower ones:
 * each iteration needs the rows that its neighbours reach. The rows at both ends are computed by
 * the threads of the neighbouring ranges, too. So the threads of all ranks need nothing of each
 * other until the last iteration is done, and a range can stay in the cache meanwhile. */
#ifndef QN_USERKERNEL_EXECUTION_USER_STEPS_H
#define QN_USERKERNEL_EXECUTION_USER_STEPS_H

#include "userkernel/execution/user_grains.h"
#include <pthread.h>

/* Iterations of a run at most. */
enum { QN__USER_STEPS_MAX = 64 };

/* Places for the outputs of a thread, between two iterations. */
typedef struct qn__user_place {
    void *at;
    size_t bytes;
} qn__user_place;

typedef struct qn__user_stepper {
    qn__user_thread *thread;
    qn__user_place near[2][QN__USER_PARTS]; /* of the rows of a range, twice */
    qn__user_place wide[2][QN__USER_PARTS]; /* of all rows: for ranges beyond an end that wraps */
    struct qn__user_kept *kept;             /* to which it goes back */
    struct qn__user_stepper *next;
} qn__user_stepper;

/* Steppers that are kept for the next call, so that not every call allocates one. */
typedef struct qn__user_kept {
    pthread_mutex_t lock;
    qn__user_stepper *first;
} qn__user_kept;

/* One of job->kept, or a new one. NULL: QN_MEMORY. */
qn__user_stepper *qn__user_stepper_open(const qn__user_job *job, qn_error *err);
/* Gives it back, or frees it if the job keeps none. Accepts NULL. */
void qn__user_stepper_close(void *stepper);
void qn__user_kept_release(qn__user_kept *kept);

/* How far the arrays that change between iterations are read beyond an item, in rows; and whether
 * one is read everywhere, so that only one iteration at a time is possible. */
int64_t qn__user_reach(const qn__user_source *source, int *everywhere);

/* 1: one of them is read beyond the ends. A thread then has places for all rows, of which it uses
 * few. */
int qn__user_wraps(const qn__user_source *source);

/* Computes job->steps iterations of `count` items from `first` on, as qn__user_items. If there are
 * several, *faulty becomes 0 where anything is wrong, which is not the number of an item. */
void qn__user_steps(const qn__user_job *job, qn__user_stepper *stepper, int64_t first,
                    int64_t count, atomic_int_fast64_t *faulty);

#endif
