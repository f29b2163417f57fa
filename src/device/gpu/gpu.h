/* The worker of the GPU backends: the order of the kernels, and the contents of the device's
 * memory. It is written once over a small table of operations that both OpenCL and CUDA have. A
 * backend is that table, a list of devices, and the functions below in its device table.
 *
 * Items are uploaded once and kept. Parameters are uploaded when another worker changed them. Sums
 * are downloaded as integers, once a step. */
#ifndef QN_DEVICE_GPU_GPU_H
#define QN_DEVICE_GPU_GPU_H

#include "device/device.h"
#include "kernels/kernels.h"
#include "kernels/step.h"

/* An opened device: its queue and its built, self-tested program. Defined by each backend. */
typedef struct qn__gpu qn__gpu;

/* Memory of the device. */
typedef struct qn__gpu_memory {
    void *handle; /* OpenCL's cl_mem; CUDA's device pointer */
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

/* Properties of the device on which the worker's choices depend. */
typedef struct qn__gpu_facts {
    char name[160];         /* "opencl:0 (NVIDIA A100)", for messages */
    int vectors;            /* 1: the device is a CPU, for which the vector kernels are faster */
    uint32_t compute_units; /* groups that run at the same time, about */
    uint64_t memory;        /* bytes in total */
    uint64_t largest;       /* bytes of the largest single buffer */
    uint64_t chunk;         /* bytes of pixels that are unfolded together; 0: the default */
    int doubles;            /* 1: it computes in binary64 */
    int atomics;            /* 1: 64-bit integers can be added atomically (k-blocks of GRADIENT) */
    int matrix;             /* 1: the program has integer products by matrix instructions */
    int simulated;          /* 1: a simulator, which takes long for everything */
    /* The instructions of integer products, as in qn_device_rates; NULL: the program has none. */
    const char *integers;
} qn__gpu_facts;

/* The instructions of integer products, from the fastest to those that every device has. */
typedef enum qn__gpu_isa {
    QN__GPU_MATRIX, /* matrix instructions */
    QN__GPU_DOTS,   /* products of four bytes */
    QN__GPU_PLAIN,
    QN__GPU_ISAS
} qn__gpu_isa;

/* The best that qn_compute.gpu_isa allows; QN__GPU_ISAS: the name is unknown. `compute` may be
 * NULL. */
qn__gpu_isa qn__gpu_best_isa(const qn_compute *compute);

/* For the device table: check, instructions. */
qn_status qn__gpu_check(const qn_compute *compute, qn_error *err);
qn__device_word qn__gpu_isa_word(uint32_t index);

/* A program of another text than the device's own, with one kernel: qn__kernel_options, and those
 * of the device, are its options. */
typedef struct qn__gpu_text {
    const char *text;
    const char *kernel; /* its name */
    uint32_t lanes;     /* of a group */
    int doubles;        /* 1: it computes in binary64; QN_DOUBLE is then defined */
} qn__gpu_text;
typedef struct qn__gpu_program qn__gpu_program; /* defined by each backend */

/* Several devices of a backend that add up integers themselves. Defined by each backend. */
typedef struct qn__gpu_joint qn__gpu_joint;

enum { QN__GPU_SLOTS = 8 }; /* status words copied to the host at the same time */

/* Queues of a device, which run at the same time: for its work, and for copies in both directions.
 */
typedef enum qn__gpu_lane { QN__GPU_WORK, QN__GPU_UP, QN__GPU_DOWN, QN__GPU_LANES } qn__gpu_lane;

/* The largest number of copies to the host in progress at the same time, and of bytes of one. */
enum { QN__GPU_ASKED = 2, QN__GPU_PIECE = 2 << 20 };

/* The operations of a backend. Calls on one qn__gpu come from one thread at a time; enqueued
 * operations are executed in order, except those of different lanes. Every failure is QN_DEVICE
 * with a message that names the device, unless stated otherwise. After a failure the device can
 * only be closed. */
typedef struct qn__gpu_driver {
    qn__language language; /* of its programs */
    /* Opens device `index`: program with `products` (QN_WITH_...) built or taken from the cache,
     * self-test passed. QN_UNSUPPORTED when that fails. With products 0 it has no such program. */
    qn_status (*open)(uint32_t index, uint32_t products, const qn_compute *compute, qn__gpu **out,
                      qn_error *err);
    /* Never waits longer than the device's time limit; a device that hangs is abandoned. */
    void (*close)(qn__gpu *gpu);
    const qn__gpu_facts *(*facts)(const qn__gpu *gpu);

    /* Device memory, with undefined contents. release accepts memory of 0 bytes, memory that
     * enqueued launches still use, and may be called after a failure. If allocate fails because
     * memory is short, nothing changes: the worker may continue. */
    qn_status (*allocate)(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err);
    void (*release)(qn__gpu *gpu, qn__gpu_memory *memory);

    /* Enqueues a copy from the host; `from` may be changed as soon as the call returns. */
    qn_status (*write)(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, const void *from,
                       size_t bytes, qn_error *err);
    /* Enqueues a fill with zeros. */
    qn_status (*clear)(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                       qn_error *err);
    /* Enqueues a copy of at most 256 bytes into a slot of pinned memory; `fetch` waits for it and
     * returns it, valid until the slot's next post. */
    qn_status (*post)(qn__gpu *gpu, const qn__gpu_memory *from, size_t bytes, uint32_t slot,
                      qn_error *err);
    qn_status (*fetch)(qn__gpu *gpu, uint32_t slot, const void **words, qn_error *err);

    /* Chooses the lane of all that is enqueued from now on, until another is chosen; it is
     * QN__GPU_WORK at first. */
    qn_status (*lane)(qn__gpu *gpu, qn__gpu_lane lane, qn_error *err);
    /* What is enqueued on the chosen lane from now on begins when all that was enqueued on the
     * other one so far is complete. */
    qn_status (*follow)(qn__gpu *gpu, qn__gpu_lane other, qn_error *err);
    /* Enqueues a copy of at most QN__GPU_PIECE bytes to pinned memory; at most QN__GPU_ASKED copies
     * may be enqueued and not yet taken by `get`. `get` waits for the oldest one, whose bytes are
     * valid until the next `ask`. */
    qn_status (*ask)(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, size_t bytes,
                     qn_error *err);
    qn_status (*get)(qn__gpu *gpu, const void **data, size_t *bytes, qn_error *err);

    /* Enqueues a kernel over groups[0] x groups[1] x groups[2], with the `count` arguments of its
     * shape. */
    qn_status (*launch)(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                        const qn__gpu_argument *arguments, uint32_t count, qn_error *err);
    /* Builds a program of another text, or takes it from the cache. QN_UNSUPPORTED when the device
     * has no binary64 or the compiler refuses the text. It is dropped before close; drop accepts
     * NULL. */
    qn_status (*build)(qn__gpu *gpu, const qn__gpu_text *text, qn__gpu_program **out,
                       qn_error *err);
    void (*drop)(qn__gpu *gpu, qn__gpu_program *program);
    /* Enqueues its kernel over so many groups. */
    qn_status (*start)(qn__gpu *gpu, const qn__gpu_program *program, uint32_t groups,
                       const qn__gpu_argument *arguments, uint32_t count, qn_error *err);
    /* Submits the enqueued operations to the device without waiting. */
    qn_status (*flush)(qn__gpu *gpu, qn_error *err);

    /* Optional, all or none. Operations between record and recorded (launch and clear only) are
     * recorded instead of executed, and can be repeated in one call. A recording refers to the
     * memories of its launches. It is dropped by number, and all are with close. Numbers are 0 ..
     * 15. */
    qn_status (*record)(qn__gpu *gpu, uint32_t number, qn_error *err);
    qn_status (*recorded)(qn__gpu *gpu, uint32_t number, qn_error *err);
    qn_status (*replay)(qn__gpu *gpu, uint32_t number, qn_error *err);

    /* Optional, all or none. joint_open fails with QN_UNSUPPORTED where the devices cannot add up
     * integers themselves, and with QN_DEVICE where that fails. joint_add adds up `words` 64-bit
     * integers of a memory of each device, of which nothing is enqueued on another lane than
     * QN__GPU_WORK, and waits; each then has the total. After a failure the contents are undefined,
     * nothing but joint_close may follow, and the devices can be used unless they failed
     * themselves. joint_close accepts NULL, and comes before the devices are closed. */
    qn_status (*joint_open)(qn__gpu *const *gpus, uint32_t count, qn__gpu_joint **out,
                            qn_error *err);
    qn_status (*joint_add)(qn__gpu_joint *joint, const qn__gpu_memory *const *memory,
                           uint64_t words, qn_error *err);
    void (*joint_close)(qn__gpu_joint *joint);

    void (*traffic)(const qn__gpu *gpu, qn__traffic *traffic);
    /* Seconds of work of the device since open, by the device's own clock if it has one. */
    double (*busy)(const qn__gpu *gpu);
} qn__gpu_driver;

/* Waits for all earlier operations of the lane, then copies any number of bytes to the host. No
 * `ask` may be left that was not taken. */
qn_status qn__gpu_read(const qn__gpu_driver *driver, qn__gpu *gpu, const qn__gpu_memory *from,
                       size_t offset, void *to, size_t bytes, qn_error *err);

/* Functions for the device table of a backend: open and measure take the backend's driver, the
 * others are entries of the table as they are. */
#define QN__GPU_ENTRIES                                                                            \
    .version = QN__DEVICE_VERSION, .check = qn__gpu_check, .instructions = qn__gpu_isa_word,       \
    .jobs = QN__GPU_JOBS, .supports = qn__gpu_supports, .close = qn__gpu_close,                    \
    .prepare = qn__gpu_prepare, .load = qn__gpu_load, .save = qn__gpu_save, .run = qn__gpu_run,    \
    .collect = qn__gpu_collect, .update = qn__gpu_update, .train_step = qn__gpu_train_step,        \
    .flush = qn__gpu_flush, .busy = qn__gpu_busy, .traffic = qn__gpu_traffic,                      \
    .extend = qn__gpu_extend
enum { QN__GPU_JOBS = 1 << QN__JOB_TRAIN | 1 << QN__JOB_APPLY | QN__JOB_KERNEL };
int qn__gpu_supports(const qn__program *program);
qn_status qn__gpu_open(const qn__gpu_driver *driver, uint32_t index, const qn_compute *compute,
                       const qn__program *program, qn__worker **out, qn_error *err);
qn_status qn__gpu_prepare(qn__worker *worker, const qn__kernel_job *kernel, qn_error *err);
void qn__gpu_close(qn__worker *worker);
qn_status qn__gpu_load(qn__worker *worker, const qn__state *state, qn_error *err);
qn_status qn__gpu_save(qn__worker *worker, qn__state *state, qn_error *err);
/* Jobs of the network, and host jobs that have a kernel: QN__GPU_JOBS. */
qn_status qn__gpu_run(qn__worker *worker, const qn__job *job, uint32_t first, uint32_t count,
                      const qn__outlet *sums, qn_error *err);
qn_status qn__gpu_collect(qn__worker *worker, int64_t *sums, qn__tally *tally, qn_error *err);
qn_status qn__gpu_update(qn__worker *worker, const qn__update *update, const int64_t *sums,
                         qn_error *err);
qn_status qn__gpu_train_step(qn__worker *worker, const qn__batch *batch, const qn__batch *next,
                             const qn__update *update, qn__tally *tally, qn_error *err);
qn_status qn__gpu_flush(qn__worker *worker, qn__tally *tally, qn_error *err);
qn_status qn__gpu_extend(qn__worker *worker, const qn__extension *extension, uint32_t *bad,
                         qn_error *err);
int qn__gpu_busy(const qn__worker *worker, double *seconds, int capacity);
void qn__gpu_traffic(const qn__worker *worker, qn__traffic *traffic);
/* For backends whose driver has joint_open. `always` 1: even where the host is not slower. */
qn_status qn__gpu_joint_open(qn__worker *const *workers, uint32_t count, int always,
                             qn__joint **out, qn_error *err);
qn_status qn__gpu_joint_add(qn__joint *joint, qn__tally *tally, qn_error *err);
void qn__gpu_joint_close(qn__joint *joint);
qn_status qn__gpu_measure(const qn__gpu_driver *driver, uint32_t index, const qn_compute *compute,
                          qn_device_rates *rates, qn_error *err);

/* The self-test, which every driver runs after its program is built. It compares the device's
 * arithmetic (kernel TRIAL) and the elementary functions (kernel MAP) with the scalar reference,
 * bit for bit, on chosen and random arguments. QN_UNSUPPORTED names what is wrong: "flushes
 * subnormal numbers to zero", "has no fma of its own or a wrong one". */
qn_status qn__gpu_selftest(const qn__gpu_driver *driver, qn__gpu *gpu, qn_error *err);

/* The same for the integer products of a CUDA program with `products`: each of their kernels, on
 * words of the largest digits and of random ones, with rows, columns, sums and grains that are not
 * multiples of a tile. A failure has the kernel in err->where. */
qn_status qn__gpu_selftest_products(const qn__gpu_driver *driver, qn__gpu *gpu, uint32_t products,
                                    qn_error *err);

/* The same for user kernels: all operations of kernels/runtime/operations.inc, those in binary64
 * with `doubles`. Every driver's device passes it before it computes a kernel. */
qn_status qn__gpu_kernel_selftest(const qn__gpu_driver *driver, qn__gpu *gpu, int doubles,
                                  qn_error *err);

/* Cache of built programs: a folder of files named by the SHA-256 of `key`. The key must contain
 * everything that the program depends on (text's digest, options, device, driver). Each file has
 * its own digest and key. An invalid file, or one of another user, is ignored, reported in `note`
 * (space for 256), and replaced. Folder: $QUERN_CACHE, else $XDG_CACHE_HOME/quern, else
 * ~/.cache/quern. Without a usable folder there is no cache, which is not a failure. load: *bytes
 * is 0 when there is no entry; free the program with qn__free. */
void qn__gpu_cache_load(const char *key, void **program, size_t *bytes, char *note);
void qn__gpu_cache_store(const char *key, const void *program, size_t bytes, char *note);

/* The same for programs of other texts, of which the last 200 are kept. `digest` is for such a
 * program's key: the SHA-256 of its text (64 characters and a NUL). */
void qn__gpu_text_digest(const qn__gpu_text *text, char digest[65]);
void qn__gpu_text_load(const char *key, void **program, size_t *bytes, char *note);
void qn__gpu_text_store(const char *key, const void *program, size_t bytes, char *note);

#endif
