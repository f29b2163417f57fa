/* Totals of a user kernel's values, which the device makes itself (device.h, qn__kernel_job). They
 * stay on the device from one launch to the next. */
#ifndef QN_DEVICE_GPU_GPU_TOTALS_H
#define QN_DEVICE_GPU_GPU_TOTALS_H

#include "device/gpu/gpu.h"

typedef struct qn__gpu_totals {
    qn__gpu_program *program[QN__KERNEL_ARRAYS]; /* NULL: as an earlier total with the same text */
    uint32_t same[QN__KERNEL_ARRAYS];            /* the total whose program it is */
    uint32_t count;
    qn__gpu_memory words;
    int64_t *host;
    uint64_t items; /* in the words; 0: these are undefined */
} qn__gpu_totals;

/* Bytes of device memory that they need; 0: the job has no totals, or the device cannot make them
 * because it does not add words of 64 bits atomically. */
uint64_t qn__gpu_totals_bytes(const qn__gpu_facts *facts, const qn__kernel_job *job);

/* Builds the programs and takes memory; qn__gpu_totals_release also after a failure, and of zeros.
 * Fails as driver->build and allocate, or with QN_MEMORY. */
qn_status qn__gpu_totals_make(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_job *job,
                              qn__gpu_totals *out, qn_error *err);
void qn__gpu_totals_release(const qn__gpu_driver *driver, qn__gpu *gpu, qn__gpu_totals *totals);

/* Compares totals of chosen values with those of this processor. QN_UNSUPPORTED if one differs. */
qn_status qn__gpu_totals_selftest(const qn__gpu_driver *driver, qn__gpu *gpu,
                                  const qn__kernel_job *job, qn__gpu_totals *totals, qn_error *err);

/* Enqueues the addition of `count` items from item `first` on. `array[i]` is the memory of the
 * job's i-th array, from the first of these items on. */
qn_status qn__gpu_totals_add(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_job *job,
                             qn__gpu_totals *totals, const qn__gpu_memory *const *array,
                             uint64_t first, uint64_t count, qn_error *err);

/* Waits, and gives the words to job->sum, if there are items in them. */
qn_status qn__gpu_totals_take(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__kernel_job *job,
                              qn__gpu_totals *totals, void *context, void *scratch, qn_error *err);
/* 1: the words have to be taken before so many more items are added. */
int qn__gpu_totals_full(const qn__gpu_totals *totals, uint64_t count);

#endif
