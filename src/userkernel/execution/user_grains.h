/* A thread's part of a user kernel: it computes ranges of items, and adds up their totals. */
#ifndef QN_USERKERNEL_EXECUTION_USER_GRAINS_H
#define QN_USERKERNEL_EXECUTION_USER_GRAINS_H

#include "userkernel/execution/user_job.h"
#include "userkernel/execution/user_sums.h"
#include <stdatomic.h>

/* The memory of one thread. */
typedef struct qn__user_thread {
    /* Those of the job, places for outputs (see qn__user_items), and own ones for other results. */
    void *array[2 * QN__USER_PARTS];
    qn__user_total total[QN__USER_PARTS];
    double seconds;
    double item_seconds; /* of an item in the last call; 0: none yet */
    int64_t iteration;   /* that it computes */
    int adds;            /* 1: to the totals */
    void *memory;
} qn__user_thread;

/* NULL: QN_MEMORY. */
qn__user_thread *qn__user_thread_open(const qn__user_job *job, qn_error *err);
void qn__user_thread_close(void *thread);
/* For another run: no totals, the arrays of the job. */
void qn__user_thread_begin(const qn__user_job *job, qn__user_thread *thread);

/* Computes items, and adds to thread->total. thread->array[part] is where item 0 of an output would
 * be written. If an item has a fault, *faulty becomes its number, unless that of an earlier item is
 * there. The totals are then undefined. */
void qn__user_items(const qn__user_job *job, qn__user_thread *thread, int64_t first, int64_t count,
                    atomic_int_fast64_t *faulty);

/* Adds the results of a device to thread->total, unless the job wants no totals: the values of
 * `count` items from `first` on, array[part], and array[part + QN__USER_PARTS], as a qn__user_call
 * has them. NULL: of a part whose total the device made. No value is infinite. */
void qn__user_take_values(const qn__user_job *job, qn__user_thread *thread,
                          const void *const *array, int64_t first, int64_t count);

/* One item alone: what is wrong with it (userkernel/execution/user_fault.h), or 0. */
uint64_t qn__user_item_fault(const qn__user_job *job, qn__user_thread *thread, int64_t item);

#endif
