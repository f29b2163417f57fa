/* Predictions of which each core computes whole items by itself, or one core a small batch. */
#ifndef QN_DEVICE_CPU_WORKER_CPU_ALONE_H
#define QN_DEVICE_CPU_WORKER_CPU_ALONE_H

#include "device/cpu/worker/cpu_table.h"
#include "device/cpu/worker/cpu_worker.h"

/* Computes the results of some of the items of a job from `from` on, as whole items on all cores or
 * on the calling thread; those after them are left to the caller. Returns how many: 0 where this is
 * not faster, or where an item fails, so that the caller finds the first one that does. The bits
 * are those of qn__cpu_run. */
uint32_t qn__cpu_apply_alone(qn__worker *worker, const qn__job *job, uint32_t from, uint32_t items);

/* Frees what qn__cpu_apply_alone has opened. */
void qn__cpu_alone_free(qn__worker *worker);

#endif
