/* An opened OpenCL device, shared by the files that drive it. */
#ifndef QN_DEVICE_OPENCL_OPENCL_GPU_H
#define QN_DEVICE_OPENCL_OPENCL_GPU_H

#include "device/gpu/gpu.h"
#include "device/opencl/opencl_list.h"

enum {
    QN__CL_ARGUMENTS = 24, /* the most arguments of a kernel of the device's own program */
    QN__CL_OPTIONS = 256,
    QN__CL_KEY = 1024,
    QN__CL_SLOT = 256, /* bytes of a post */
    QN__CL_UP_PIECES = 4,
    QN__CL_UP_BYTES = 1 << 20,
    QN__CL_DOWN_PIECES = QN__GPU_ASKED,
    QN__CL_DOWN_BYTES = QN__GPU_PIECE
};

/* Host memory for copies to and from the device; pinned if the driver supports it. */
typedef struct qn__cl_staging {
    qn__cl_memory memory;
    void *host;
} qn__cl_staging;

/* A part of it, with the event of a copy that is not complete. */
typedef struct qn__cl_piece {
    char *host;
    size_t used;         /* to the device: bytes in use */
    qn__cl_event event;  /* NULL: free */
    int timed;           /* 1: the event is that of a copy, whose time is counted */
    size_t bytes;        /* to the host */
    qn__cl_event window; /* a slot: the first launch before it, whose start counts for `busy` */
} qn__cl_piece;

typedef enum qn__cl_health {
    QN__CL_WELL,
    QN__CL_FAILED, /* a call or a command failed; nothing more is enqueued */
    QN__CL_HANGS   /* a command timed out; the device is not used again */
} qn__cl_health;

struct qn__gpu {
    const qn__cl_api *cl;
    const qn__cl_entry *entry;
    qn__gpu_facts facts;
    double timeout;
    qn__cl_health health;
    int32_t failure;   /* of a device that failed: the code */
    uint32_t products; /* of its program, QN_WITH_... */
    int dots;          /* 1: the program uses the device's products of packed bytes */
    qn_error dotless;  /* why the program does not use them although the device has them; status
                          QN_OK: it uses them, or has none */

    qn__cl_context context;
    qn__cl_queue queue;               /* of the chosen lane */
    qn__cl_queue lane[QN__GPU_LANES]; /* NULL: not used yet */
    qn__cl_program program;
    qn__cl_kernel kernel[QN__KERNELS]; /* NULL: not part of this device's program */
    /* The last value of each argument. Cleared when memory is released, since new memory may get
     * the same handle. */
    struct {
        uint64_t value;
        int is_set;
    } set[QN__KERNELS][QN__CL_ARGUMENTS];

    qn__cl_staging up_memory, down_memory;
    qn__cl_piece up[QN__CL_UP_PIECES], down[QN__CL_DOWN_PIECES], slot[QN__GPU_SLOTS];
    uint32_t up_now;       /* the piece for small writes */
    qn__cl_queue up_queue; /* of the copies from it */
    uint32_t asked, taken; /* copies to the host that were enqueued, and that `get` returned */

    qn__cl_event window; /* the first launch since the last post, or NULL */
    qn__traffic traffic;
    double busy;
    struct qn__gpu *next_abandoned;
};

/* Fails with the device's label, an OpenCL code and the current operation; marks the device failed.
 * Returns QN_DEVICE. */
qn_status qn__cl_fail(qn__gpu *gpu, int32_t code, const char *doing, qn_error *err);
/* QN_OK, or the failure of an earlier call. */
qn_status qn__cl_usable(qn__gpu *gpu, qn_error *err);
/* Waits for an event, not longer than the time limit. */
qn_status qn__cl_wait(qn__gpu *gpu, qn__cl_event event, const char *doing, qn_error *err);
/* Seconds from the start of one command to the end of another by the device's clock; 0 when it is
 * not known. */
double qn__cl_seconds(const qn__gpu *gpu, qn__cl_event from, qn__cl_event to);
/* Submits what is enqueued on all lanes: an event of one may be waited for by another. */
int32_t qn__cl_flush_all(const qn__gpu *gpu);
/* Releases an event that may be NULL, and clears it. */
void qn__cl_drop(const qn__gpu *gpu, qn__cl_event *event);

/* The products of a device's program when `products` are required. All of them, if kernels are
 * compiled one by one at their first launch: then one program is enough. */
uint32_t qn__cl_products(const qn__cl_entry *entry, uint32_t products);

/* Builds the program, or loads it from the cache, and creates its kernels. QN_UNSUPPORTED, with the
 * first lines of the compiler's log, when it cannot be built. */
qn_status qn__cl_build(qn__gpu *gpu, qn_error *err);

/* Releases the program, so that another can be built. */
void qn__cl_drop_program(qn__gpu *gpu);

/* Parts of building, for programs of other texts too. Options of the compiler; everything that a
 * built program depends on; a program of the cache, or NULL; whether the driver keeps programs
 * itself; storing one; and why one cannot be built, with the first lines of the compiler's log. */
void qn__cl_options_of(const qn__gpu *gpu, const char *more, char options[QN__CL_OPTIONS]);
void qn__cl_key_of(const qn__cl_entry *entry, const char *digest, const char *options,
                   char key[QN__CL_KEY]);
qn__cl_program qn__cl_program_from(const qn__gpu *gpu, const void *binary, size_t bytes);
int qn__cl_keeps_its_own(const qn__cl_entry *entry);
int qn__cl_is_simulated(const qn__cl_entry *entry);
void qn__cl_keep(const qn__gpu *gpu, qn__cl_program program, const char *key,
                 void (*store)(const char *key, const void *program, size_t bytes, char *note));
qn_status qn__cl_fail_build(const qn__gpu *gpu, qn__cl_program program, int32_t code,
                            const char *doing, qn_error *err);

/* Programs of other texts: entries of the driver. */
qn_status qn__cl_text_build(qn__gpu *gpu, const qn__gpu_text *text, qn__gpu_program **out,
                            qn_error *err);
void qn__cl_text_drop(qn__gpu *gpu, qn__gpu_program *program);
qn_status qn__cl_text_start(qn__gpu *gpu, const qn__gpu_program *program, uint32_t groups,
                            const qn__gpu_argument *arguments, uint32_t count, qn_error *err);

/* The staging memory, and its pieces. */
qn_status qn__cl_stage(qn__gpu *gpu, qn_error *err);

/* Entries of the driver (device/gpu/gpu.h). */
qn_status qn__cl_allocate(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err);
void qn__cl_release(qn__gpu *gpu, qn__gpu_memory *memory);
qn_status qn__cl_write(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, const void *from,
                       size_t bytes, qn_error *err);
qn_status qn__cl_clear(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                       qn_error *err);
qn_status qn__cl_lane_choose(qn__gpu *gpu, qn__gpu_lane lane, qn_error *err);
qn_status qn__cl_follow(qn__gpu *gpu, qn__gpu_lane other, qn_error *err);
qn_status qn__cl_ask(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, size_t bytes,
                     qn_error *err);
qn_status qn__cl_get(qn__gpu *gpu, const void **data, size_t *bytes, qn_error *err);
qn_status qn__cl_post(qn__gpu *gpu, const qn__gpu_memory *from, size_t bytes, uint32_t slot,
                      qn_error *err);
qn_status qn__cl_fetch(qn__gpu *gpu, uint32_t slot, const void **words, qn_error *err);

#endif
