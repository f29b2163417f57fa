/* A user's kernel on a device: what its files share.
 *
 *     gpu_kernel.c    the program, and the arrays that stay on the device during a call
 *     gpu_parts.c     cuts a call into launches, of which two run at a time
 *     gpu_exchange.c  copies to and from the device in turn
 *     gpu_totals.c    totals that the device makes itself */
#ifndef QN_DEVICE_GPU_GPU_KERNEL_H
#define QN_DEVICE_GPU_GPU_KERNEL_H

#include "device/gpu/gpu_totals.h"
#include "device/gpu/gpu_worker.h"

enum { QN__GPU_FAULT_WORDS = 3, QN__GPU_PARTS = 2 };

typedef struct qn__gpu_array {
    qn__gpu_memory memory; /* of an array that is on the device as a whole */
    const void *data;      /* of one that is kept: what the memory holds */
    uint64_t version;
    int newer;  /* 1: a run has written it, and the host may not have it */
    void *host; /* of VALUES without totals: a place for those of a launch */
} qn__gpu_array;

/* Memory for the items of a launch. There are two. While the device computes in one, the results of
 * the last launch are copied from the other, and then the inputs of the next launch to it. */
typedef struct qn__gpu_space {
    qn__gpu_memory faults, items[QN__KERNEL_ARRAYS];
} qn__gpu_space;

struct qn__gpu_kernel {
    const char *text;
    qn__gpu_program *program;
    qn__gpu_memory numbers;
    qn__gpu_totals totals;
    qn__gpu_array at[QN__KERNEL_ARRAYS];
    qn__gpu_space buffer[QN__GPU_PARTS];
    uint32_t arrays;
    int resident;    /* 1: all arrays but VALUES are kept on the device as a whole */
    int asked;       /* qn__kernel_job.resident of the last run */
    uint64_t most;   /* items of a launch at most */
    uint64_t launch; /* items of the next launch, as the time of the last ones suggests */
};

/* Whether the device holds only the elements of one launch of this array. */
static inline int qn__gpu_is_of_items(const qn__kernel_array *a, int resident) {
    return a->use == QN__KERNEL_VALUES || (a->use != QN__KERNEL_WHOLE && !resident);
}

/* Whether the elements of this array are copied to the host. */
static inline int qn__gpu_is_fetched(const qn__gpu_kernel *k, const qn__kernel_array *a) {
    return a->use == QN__KERNEL_VALUES && !(a->summed && k->totals.count > 0);
}

static inline const qn__gpu_memory *qn__gpu_array_memory(const qn__gpu_kernel *k, uint32_t capacity,
                                                         uint32_t array) {
    return k->buffer[capacity].items[array].bytes > 0 ? &k->buffer[capacity].items[array]
                                                      : &k->at[array].memory;
}

/* Computes grains of a host job for whose kernel all is prepared (device.h, qn__device_table.run);
 * `scratch` is that of qn__host_job.open. */
qn_status qn__gpu_compute_spans(qn__worker *w, const qn__host_job *host, void *scratch,
                                uint32_t first, uint32_t count, int64_t *words, qn_error *err);

/* Copies to and from the device at the same time. `to` of one, `from` of the other is the device's.
 */
typedef struct qn__gpu_copy {
    const qn__gpu_memory *memory;
    size_t offset, bytes;
    const void *from; /* up */
    void *to;         /* down */
} qn__gpu_copy;

/* Enqueues copies to the device on the lane UP and waits for copies from it on the lane DOWN. */
qn_status qn__gpu_exchange(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__gpu_copy *up,
                           uint32_t ups, const qn__gpu_copy *down, uint32_t downs, qn_error *err);

#endif
