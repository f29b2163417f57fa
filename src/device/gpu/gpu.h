/* The worker of the GPU backends: which kernels run in which order, and what lies in the device's
 * memory. It is written once over a small table of what OpenCL and CUDA both can; a backend is that
 * table, a list of devices, and the functions below in its device table.
 *
 * Items are uploaded once, as they are, and stay; parameters go up when another worker changed
 * them; sums come down as integers, once a step. */
#ifndef QN_DEVICE_GPU_GPU_H
#define QN_DEVICE_GPU_GPU_H

#include "device/device.h"
#include "kernels/kernels.h"
#include "kernels/step.h"

/* An opened device: its queue and its built, self-tested program. Defined by each backend. */
typedef struct qn__gpu qn__gpu;

/* Memory of the device. */
typedef struct qn__gpu_memory {
    void *handle; /* OpenCL's cl_mem; CUDA's address */
    size_t bytes; /* 0: none */
} qn__gpu_memory;

typedef struct qn__gpu_argument {
    char kind; /* 'M', 'u', 'U', 'f' as in kernels/kernels.h */
    union {
        const qn__gpu_memory *memory;
        uint32_t u;
        uint64_t U;
        float f;
    } value;
} qn__gpu_argument;

/* What the worker's choices depend on. */
typedef struct qn__gpu_facts {
    char name[160];         /* "opencl:0 (NVIDIA A100)", for messages */
    int vectors;            /* 1: the device is a CPU, the vector kernels are the fast ones */
    uint32_t compute_units; /* groups that run at the same time, about */
    uint64_t memory;        /* bytes in all */
    uint64_t largest;       /* bytes of the largest single piece */
    int atomics;            /* 1: 64-bit integers can be added atomically (k-blocks of GRADIENT) */
    int matrix;             /* 1: the program has integer products by matrix instructions */
    /* What they are multiplied by, as qn_device_rates says; NULL: the program has none. */
    const char *integers;
} qn__gpu_facts;

/* What multiplies integers, from the fastest to the one that every device has. */
typedef enum qn__gpu_isa {
    QN__GPU_MATRIX, /* matrix instructions */
    QN__GPU_DOTS,   /* products of four bytes */
    QN__GPU_PLAIN,
    QN__GPU_ISAS
} qn__gpu_isa;

/* The best that qn_compute.gpu_isa allows; QN__GPU_ISAS: the name is unknown. `compute` may be
 * NULL. */
qn__gpu_isa qn__gpu_best_isa(const qn_compute *compute);

enum { QN__GPU_SLOTS = 8 }; /* words on their way down at the same time */

/* What a backend offers. Calls on one qn__gpu come from one thread at a time; what they enqueue
 * happens in order. Every failure is QN_DEVICE with a message that names the device, except where
 * it says otherwise; after one the device is only closed. */
typedef struct qn__gpu_driver {
    /* Opens device `index`: program with `products` (QN_WITH_...) built or taken from the cache,
     * self-test passed. QN_UNSUPPORTED when that fails. */
    qn_status (*open)(uint32_t index, uint32_t products, const qn_compute *compute, qn__gpu **out,
                      qn_error *err);
    /* Never waits longer than the device's time limit; a device that hangs is abandoned. */
    void (*close)(qn__gpu *gpu);
    const qn__gpu_facts *(*facts)(const qn__gpu *gpu);

    /* Memory; its content is undefined. release accepts a memory without bytes, and memory that
     * launches under way still use, and may be called after a failure too. An allocate that fails
     * for want of memory leaves everything as it was: the worker may go on without. */
    qn_status (*allocate)(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err);
    void (*release)(qn__gpu *gpu, qn__gpu_memory *memory);

    /* Enqueues a copy from the host; `from` may be changed as soon as the call is back. */
    qn_status (*write)(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, const void *from,
                       size_t bytes, qn_error *err);
    /* Enqueues zeros. */
    qn_status (*clear)(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                       qn_error *err);
    /* Waits for all before it, and copies to the host. */
    qn_status (*read)(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, void *to,
                      size_t bytes, qn_error *err);
    /* Enqueues a copy of at most 256 bytes into a slot of pinned memory; `fetch` waits for it and
     * returns it, valid until the slot's next post. */
    qn_status (*post)(qn__gpu *gpu, const qn__gpu_memory *from, size_t bytes, uint32_t slot,
                      qn_error *err);
    qn_status (*fetch)(qn__gpu *gpu, uint32_t slot, const void **words, qn_error *err);

    /* Enqueues a kernel over groups[0] x groups[1] x groups[2]; `count` arguments as its shape
     * says. */
    qn_status (*launch)(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                        const qn__gpu_argument *arguments, uint32_t count, qn_error *err);
    /* Hands what was enqueued to the device without waiting. */
    qn_status (*flush)(qn__gpu *gpu, qn_error *err);

    /* Optional, all or none: what is enqueued between record and recorded is kept instead of done
     * (launch, clear and nothing else) and can be repeated in one call. A recording refers to the
     * memories of its launches; it is dropped by number, and all with close. 0 .. 15. */
    qn_status (*record)(qn__gpu *gpu, uint32_t number, qn_error *err);
    qn_status (*recorded)(qn__gpu *gpu, uint32_t number, qn_error *err);
    qn_status (*replay)(qn__gpu *gpu, uint32_t number, qn_error *err);

    void (*traffic)(const qn__gpu *gpu, qn__traffic *traffic);
    /* Seconds that the device computed since open, by its own clock where it has one. */
    double (*busy)(const qn__gpu *gpu);
} qn__gpu_driver;

/* For the device table of a backend: open takes the backend's driver, the others are entries as
 * they are. */
int qn__gpu_supports(const qn__program *program);
qn_status qn__gpu_open(const qn__gpu_driver *driver, uint32_t index, const qn_compute *compute,
                       const qn__program *program, qn__worker **out, qn_error *err);
void qn__gpu_close(qn__worker *worker);
qn_status qn__gpu_load(qn__worker *worker, const qn__state *state, qn_error *err);
qn_status qn__gpu_save(qn__worker *worker, qn__state *state, qn_error *err);
qn_status qn__gpu_train_grains(qn__worker *worker, const qn__batch *batch, uint32_t first,
                               uint32_t count, qn_error *err);
qn_status qn__gpu_collect(qn__worker *worker, int64_t *sums, qn__tally *tally, qn_error *err);
qn_status qn__gpu_update(qn__worker *worker, const qn__update *update, const int64_t *sums,
                         qn_error *err);
qn_status qn__gpu_train_step(qn__worker *worker, const qn__batch *batch, const qn__batch *next,
                             const qn__update *update, qn__tally *tally, qn_error *err);
qn_status qn__gpu_flush(qn__worker *worker, qn__tally *tally, qn_error *err);
qn_status qn__gpu_apply(qn__worker *worker, const qn__batch *batch, qn__applied *applied,
                        qn__tally *tally, qn_error *err);
int qn__gpu_busy(const qn__worker *worker, double *seconds, int room);
void qn__gpu_traffic(const qn__worker *worker, qn__traffic *traffic);
qn_status qn__gpu_measure(const qn__gpu_driver *driver, uint32_t index, const qn_compute *compute,
                          qn_device_rates *rates, qn_error *err);

/* The self-test that every driver runs once its program is built: the device's arithmetic (kernel
 * TRIAL) and the elementary functions (kernel MAP) on chosen and random arguments against the
 * scalar reference, bit for bit. QN_UNSUPPORTED names what the device gets wrong: "flushes
 * subnormal numbers to zero", "has no fma of its own or a wrong one". */
qn_status qn__gpu_selftest(const qn__gpu_driver *driver, qn__gpu *gpu, qn_error *err);

/* The same for the integer products of a program of CUDA with `products`: each of their
 * kernels, on words of the greatest digits and of random ones, with rows, columns, sums and grains
 * that fill no tile. A failure has the kernel in err->where. */
qn_status qn__gpu_selftest_products(const qn__gpu_driver *driver, qn__gpu *gpu, uint32_t products,
                                    qn_error *err);

/* Cache of built programs: a folder of files named by the SHA-256 of `key`, which must name
 * everything that the program depends on (text's digest, options, device, driver). Files carry
 * their own digest and key; one that is broken or not ours is ignored, told in `note` (room for
 * 256), and replaced. Folder: $QUERN_CACHE, else $XDG_CACHE_HOME/quern, else ~/.cache/quern; none
 * of them usable: no cache, which is no failure. load: *bytes 0 when there is none; free with
 * qn__free. */
void qn__gpu_cache_load(const char *key, void **program, size_t *bytes, char *note);
void qn__gpu_cache_store(const char *key, const void *program, size_t bytes, char *note);

#endif
