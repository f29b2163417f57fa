/* An opened CUDA device, internal to the files of this folder. */
#ifndef QN_DEVICE_CUDA_CUDA_GPU_H
#define QN_DEVICE_CUDA_CUDA_GPU_H

#include "device/cuda/cuda_devices.h"
#include "device/gpu/gpu.h"

enum {
    QN__CUDA_STAGE = QN__GPU_PIECE, /* bytes of one half of a staging buffer */
    QN__CUDA_WORDS = 256,           /* of a slot */
    QN__CUDA_RECORDINGS = 16,
    QN__CUDA_ARGUMENTS = 64 /* of a kernel, at most */
};

/* A position in a stream that the host can wait for. */
typedef struct qn__cuda_mark {
    qn__cu_event *event;
    uint64_t enqueued[QN__GPU_LANES]; /* the last operation of each lane that is before it */
} qn__cuda_mark;

/* A stream. Operations of all lanes are numbered together. */
typedef struct qn__cuda_lane {
    qn__cu_stream *stream;
    uint64_t last;                   /* the number of its last operation */
    uint64_t follows[QN__GPU_LANES]; /* the last operation of another one that it waits for */
    uint64_t complete;               /* the last operation that is known to be complete */
} qn__cuda_lane;

/* Pinned memory in two halves: while the device copies one, the host fills or reads the other. */
typedef struct qn__cuda_stage {
    uint8_t *half[2];
    qn__cuda_mark mark[2];
    int marked[2];
    int current;       /* to the device: the half that is being filled, */
    size_t used;       /* its bytes in use, */
    qn__gpu_lane lane; /* and where their copies are enqueued */
    /* To the host: the copies' beginnings, their bytes, and the numbers of those that were asked
     * for and that were taken. */
    qn__cu_event *begun[2];
    size_t bytes[2];
    uint32_t asked, taken;
} qn__cuda_stage;

struct qn__gpu {
    const qn__cuda_driver *cu;
    qn__cuda_device_entry *device;
    qn__gpu_facts facts;
    double limit;      /* timeout of a wait, in seconds */
    uint32_t products; /* of its program */

    qn__cu_context *context;
    int own;               /* 1: a context of this opening alone, not the device's primary one */
    qn__cu_stream *stream; /* of the chosen lane */
    qn__cuda_lane lane[QN__GPU_LANES];
    qn__gpu_lane chosen;
    qn__cu_event *passed; /* for one lane that waits for another */
    qn__cu_module *module;
    qn__cu_function *kernel[QN__KERNELS];
    qn__cu_graph_exec *recording[QN__CUDA_RECORDINGS];
    int capturing; /* the recording in progress; -1: none */

    qn__cuda_stage up, down;
    uint8_t *slots; /* pinned, QN__CUDA_WORDS bytes each */
    qn__cuda_mark slot[QN__GPU_SLOTS];

    /* The first failure, which every later call returns. */
    int failed,
        silent;  /* silent: a wait timed out, so that nothing may wait for the device again */
    int faulted; /* 1: a kernel failed; the context can no longer be used */
    qn_error error;

    uint64_t enqueued;     /* operations enqueued */
    qn__cu_event *begun;   /* the start of its work */
    uint64_t begun_at;     /* `enqueued` when `begun` was set */
    int working;           /* 1: `begun` is set and the work after it may not be complete */
    double busy, busy_now; /* seconds of completed work, and of the work since `begun` */
    qn__traffic traffic;
    qn__gpu *next; /* in the list of abandoned devices */
};

/* Makes the device's context current on this thread and returns the first failure, if there was
 * one. Every function calls it first. */
qn_status qn__cuda_enter(qn__gpu *gpu, qn_error *err);

/* QN_DEVICE from a result: "cuda:0 (NAME) failed at DOING: RESULT". Keeps it as the first
 * failure. */
qn_status qn__cuda_fail(qn__gpu *gpu, qn__cu_result result, qn_error *err, const char *doing);

/* Call before enqueuing an operation: records that the device has work. */
qn_status qn__cuda_begin(qn__gpu *gpu, qn_error *err);

/* Records a mark after all enqueued operations of the chosen lane; waits for one, no longer than
 * the limit. */
qn_status qn__cuda_set(qn__gpu *gpu, qn__cuda_mark *mark, qn_error *err);
qn_status qn__cuda_wait(qn__gpu *gpu, const qn__cuda_mark *mark, qn_error *err);
/* Waits for the streams only; 0 when they hang or failed. For close. */
int qn__cuda_drain(qn__gpu *gpu);

/* Memory: the driver's entries. */
qn_status qn__cuda_allocate(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err);
void qn__cuda_release(qn__gpu *gpu, qn__gpu_memory *memory);
qn_status qn__cuda_write(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, const void *from,
                         size_t bytes, qn_error *err);
qn_status qn__cuda_clear(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                         qn_error *err);
qn_status qn__cuda_post(qn__gpu *gpu, const qn__gpu_memory *from, size_t bytes, uint32_t slot,
                        qn_error *err);
qn_status qn__cuda_fetch(qn__gpu *gpu, uint32_t slot, const void **words, qn_error *err);

qn_status qn__cuda_ask(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, size_t bytes,
                       qn_error *err);
qn_status qn__cuda_get(qn__gpu *gpu, const void **data, size_t *bytes, qn_error *err);

/* Work: the driver's entries. */
qn_status qn__cuda_lane_choose(qn__gpu *gpu, qn__gpu_lane lane, qn_error *err);
qn_status qn__cuda_follow(qn__gpu *gpu, qn__gpu_lane other, qn_error *err);
qn_status qn__cuda_launch(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                          const qn__gpu_argument *arguments, uint32_t count, qn_error *err);
/* Enqueues a kernel, of the device's program or another; `doing` is for the message. */
qn_status qn__cuda_start(qn__gpu *gpu, qn__cu_function *kernel, const uint32_t groups[3],
                         const uint32_t lanes[2], const qn__gpu_argument *arguments, uint32_t count,
                         const char *doing, qn_error *err);
qn_status qn__cuda_flush(qn__gpu *gpu, qn_error *err);
qn_status qn__cuda_record(qn__gpu *gpu, uint32_t number, qn_error *err);
qn_status qn__cuda_recorded(qn__gpu *gpu, uint32_t number, qn_error *err);
qn_status qn__cuda_replay(qn__gpu *gpu, uint32_t number, qn_error *err);

/* Loads the program with gpu->products, from the cache or compiled, and runs its self-test, once
 * for each device and program. *refused: 1 when the device cannot use this program: the compiler or
 * the driver refuses it, or its results are wrong. The caller holds the device's lock. */
qn_status qn__cuda_make_program(const qn__gpu_driver *driver, qn__gpu *gpu, int *refused,
                                qn_error *err);
/* Releases the program, so that another can be made. */
void qn__cuda_drop_program(qn__gpu *gpu);

/* Whether a driver refuses an image that another driver may accept; and the failure, after which
 * the device may load another program. */
int qn__cuda_refuses_image(qn__cu_result result);
qn_status qn__cuda_refuse_image(const qn__gpu *gpu, qn__cu_result result, const char *doing,
                                qn_error *err);

/* Programs of other texts: the driver's entries. */
qn_status qn__cuda_text_build(qn__gpu *gpu, const qn__gpu_text *text, qn__gpu_program **out,
                              qn_error *err);
void qn__cuda_text_drop(qn__gpu *gpu, qn__gpu_program *program);
qn_status qn__cuda_text_start(qn__gpu *gpu, const qn__gpu_program *program, uint32_t groups,
                              const qn__gpu_argument *arguments, uint32_t count, qn_error *err);

/* Opening. */
qn_status qn__cuda_open(uint32_t index, uint32_t products, const qn_compute *compute, qn__gpu **out,
                        qn_error *err);
void qn__cuda_close(qn__gpu *gpu);

extern const qn__gpu_driver qn__cuda_gpu_driver;

#endif
