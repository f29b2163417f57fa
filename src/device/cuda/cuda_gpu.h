/* An opened CUDA device, as the files of this folder see it. */
#ifndef QN_DEVICE_CUDA_CUDA_GPU_H
#define QN_DEVICE_CUDA_CUDA_GPU_H

#include "device/cuda/cuda_devices.h"
#include "device/gpu/gpu.h"

enum {
    QN__CUDA_STAGE = 2 << 20, /* bytes of one half of a staging buffer */
    QN__CUDA_WORDS = 256,     /* of a slot */
    QN__CUDA_RECORDINGS = 16
};

/* A point of the stream that the host waits for. */
typedef struct qn__cuda_mark {
    qn__cu_event *event;
    uint64_t enqueued; /* gpu->enqueued when it was set */
} qn__cuda_mark;

/* Pinned memory in two halves: while the device copies one, the host fills or empties the other. */
typedef struct qn__cuda_stage {
    uint8_t *half[2];
    qn__cuda_mark mark[2];
    int marked[2];
    int current; /* on the way up: the half that is being filled, */
    size_t used; /* and how far */
} qn__cuda_stage;

struct qn__gpu {
    const qn__cuda_driver *cu;
    qn__cuda_device_entry *device;
    qn__gpu_facts facts;
    double limit;      /* seconds that the device may be silent */
    uint32_t products; /* of its program */

    qn__cu_context *context;
    int own; /* 1: the context is not the device's primary one, but of this opening alone */
    qn__cu_stream *stream;
    qn__cu_module *module;
    qn__cu_function *kernel[QN__KERNELS];
    qn__cu_graph_exec *recording[QN__CUDA_RECORDINGS];
    int capturing; /* the recording under way; -1: none */

    qn__cuda_stage up, down;
    uint8_t *slots; /* pinned, QN__CUDA_WORDS bytes each */
    qn__cuda_mark slot[QN__GPU_SLOTS];

    /* The first failure: it is what every later call gives. */
    int failed, silent; /* silent: a wait ran over the limit, so nothing may wait for it again */
    int faulted;        /* 1: it was a kernel that failed, and its context is of no use any more */
    qn_error error;

    uint64_t enqueued;             /* things handed to the stream */
    qn__cu_event *begun, *copying; /* since when it has work; the begin of a copy down */
    uint64_t begun_at;             /* `enqueued` when `begun` was set */
    int working;                   /* 1: `begun` is set and the work behind it may go on */
    double busy, busy_now;         /* seconds of work over, and of the work since `begun` */
    qn__traffic traffic;
    qn__gpu *next; /* in the list of those given up */
};

/* Makes the device's context the thread's own and gives the first failure again, if there was
 * one. The begin of every call. */
qn_status qn__cuda_enter(qn__gpu *gpu, qn_error *err);

/* QN_DEVICE from a result: "cuda:0 (NAME) failed at DOING: RESULT". Keeps it as the first failure.
 */
qn_status qn__cuda_fail(qn__gpu *gpu, qn__cu_result result, qn_error *err, const char *doing);

/* Before something is handed to the stream: notes that the device has work. */
qn_status qn__cuda_begin(qn__gpu *gpu, qn_error *err);

/* Sets a mark behind all that was enqueued, and waits for one, no longer than the limit. */
qn_status qn__cuda_set(qn__gpu *gpu, qn__cuda_mark *mark, qn_error *err);
qn_status qn__cuda_wait(qn__gpu *gpu, const qn__cuda_mark *mark, qn_error *err);
/* Waits for the stream alone; 0 when it fell silent or failed. For close. */
int qn__cuda_drain(qn__gpu *gpu);

/* Memory: the driver's entries. */
qn_status qn__cuda_allocate(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err);
void qn__cuda_release(qn__gpu *gpu, qn__gpu_memory *memory);
qn_status qn__cuda_write(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, const void *from,
                         size_t bytes, qn_error *err);
qn_status qn__cuda_clear(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                         qn_error *err);
qn_status qn__cuda_read(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, void *to,
                        size_t bytes, qn_error *err);
qn_status qn__cuda_post(qn__gpu *gpu, const qn__gpu_memory *from, size_t bytes, uint32_t slot,
                        qn_error *err);
qn_status qn__cuda_fetch(qn__gpu *gpu, uint32_t slot, const void **words, qn_error *err);

/* Work: the driver's entries. */
qn_status qn__cuda_launch(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                          const qn__gpu_argument *arguments, uint32_t count, qn_error *err);
qn_status qn__cuda_flush(qn__gpu *gpu, qn_error *err);
qn_status qn__cuda_record(qn__gpu *gpu, uint32_t number, qn_error *err);
qn_status qn__cuda_recorded(qn__gpu *gpu, uint32_t number, qn_error *err);
qn_status qn__cuda_replay(qn__gpu *gpu, uint32_t number, qn_error *err);

/* Loads the program with gpu->products, found in the cache or compiled, and, once for each device
 * and program, runs its self-test. *refused: 1 when it is this program that the device cannot use:
 * its compiler or its driver does not take it, or it computes wrongly. The device's lock is held.
 */
qn_status qn__cuda_make_program(const qn__gpu_driver *driver, qn__gpu *gpu, int *refused,
                                qn_error *err);
/* Gives the program back, so that another can be made. */
void qn__cuda_drop_program(qn__gpu *gpu);

/* Opening. */
qn_status qn__cuda_open(uint32_t index, uint32_t products, const qn_compute *compute, qn__gpu **out,
                        qn_error *err);
void qn__cuda_close(qn__gpu *gpu);

extern const qn__gpu_driver qn__cuda_gpu_driver;

#endif
