/* What the files of the fake CUDA driver share: devices, streams and the plan of what goes wrong.
 *
 * The fake is a libcuda.so.1 that computes with the emulated kernels. What it is told stands in the
 * environment variable QN_FAKE_CUDA when a process starts, and can be changed with
 * qn_fake_cuda_plan: words `name=number`, separated by commas.
 *
 *   devices=2      how many there are (1)            driver=12040   version it claims (13000)
 *   capability=75  of all devices (90)               memory=64      MiB of each (1024)
 *   late=1         work is done when somebody asks for it, as a real device would, not at once; of
 *                  other streams only what it waits for
 *   order=7        with late: other streams run ahead by chance, with this seed
 *   prohibited=1   compute mode of all devices       init=803       result of cuInit
 *   send=90        sending a KiB takes 90 microseconds more, on all devices
 *   retain=2       result of taking a context        image=200      result of loading a module
 *
 * What follows happens on the device `on` (0) only, and counts since the last plan. With on=-1 it
 * is the first device that comes to its `launch`:
 *
 *   alloc=5        the fifth piece of memory is refused
 *   launch=9       at the ninth kernel the device fails with `code` (700) and stays so
 *   hang=9         at the ninth kernel the device never answers again
 *   wrong=9        the ninth kernel's first memory gets a wrong bit (tests that tests can fail)
 *                  The variable QN_FAKE_WRONG_KERNEL=qn_update spoils each launch of that one
 *   flush=1        the device has no subnormal numbers: its self-test must find it
 *   matrix=1       on all devices: its matrix instructions give a wrong bit, as its self-test must
 * find
 *   matrix_image=218   on all devices: result of loading a module that has matrix instructions
 *   matrix_kernel=500  on all devices: result of finding a kernel that has them
 *   matrix_fault=700   on all devices: kernels with matrix instructions fail so, and with them all
 *                      that follows in their context
 *   dots_fault=700     the same of other kernels of integer products in a program with dp4a
 *   plain_fault=700    and in one without
 *   stuck=1            what failed in the primary context stays failed when all have released it
 */
#ifndef QN_TESTS_FAKE_CUDA_H
#define QN_TESTS_FAKE_CUDA_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifdef QN_WITH_CUDA_H
#include <cuda.h> /* the vendor's own declarations, to be compared with the fake's */
#else
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef int CUdevice_attribute;
typedef int CUstreamCaptureMode;
typedef int CUjit_option;
#endif

#include "emulated_gpu.h"

enum {
    DONE = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY = 209,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    CAPTURE_UNSUPPORTED = 900
};

enum { MOST_DEVICES = 8, MOST_ARGUMENTS = 64 };

typedef struct plan {
    int devices, driver, capability, memory, late, prohibited, init, retain, image, on;
    int alloc, launch, hang, wrong, flush, code, matrix, matrix_image, matrix_kernel, send, order;
    int matrix_fault, dots_fault, plain_fault, stuck;
} plan;
extern plan the_plan;

typedef enum op_kind { OP_LAUNCH, OP_UP, OP_DOWN, OP_CLEAR, OP_EVENT, OP_WAIT } op_kind;

typedef struct op {
    op_kind kind;
    struct op *next;
    /* launch: addresses of the device already turned into those of the host */
    const qn_emulated_kernel *kernel;
    unsigned long products; /* of its program; 0: not known */
    uint32_t groups[3], lanes;
    uint64_t value[MOST_ARGUMENTS];
    /* copies */
    void *to;
    const void *from;
    size_t bytes;
    unsigned char byte;
    struct CUevent_st *event;
} op;

/* A piece of the device's memory, or of pinned memory. */
typedef struct piece {
    struct piece *next;
    char *data;
    size_t bytes;
} piece;

/* A context: the primary one of each device, which counts for the device, or one of its user's own.
 */
typedef struct CUctx_st {
    int ordinal, retained;
    CUresult sticky;
    int hung;
    piece *memory, *pinned;
    size_t used;
    int allocs, launches;
    struct CUstream_st *streams;
} device_state;

struct CUstream_st {
    device_state *device;
    struct CUstream_st *next;
    op *first, **last;
    struct CUgraph_st *capture;
    int asked; /* queries since the last piece of work was done */
};

struct CUevent_st {
    device_state *device;
    int recorded, reached;
    uint64_t serial; /* of the last record; older ones in the queue are stale */
    uint64_t reached_serial;
    CUstream stream;
    double when;
};

struct CUgraph_st {
    op *first, **last;
};

struct CUgraphExec_st {
    op *first;
};

extern device_state devices[MOST_DEVICES];

/* The device of the calling thread's context, or NULL. */
device_state *current(void);

/* Addresses of the device are those of the host and this, so that a host that reads them dies. */
#define FAR ((CUdeviceptr)1 << 60)
/* The host's address of `bytes` bytes of the device, or NULL when they are not all its own. */
void *host_of(device_state *device, CUdeviceptr address, size_t bytes);

/* Work. enqueue copies the op; it is done at once unless the plan says late. */
CUresult enqueue(CUstream stream, const op *work);
/* Does all that is queued, and what it waits for; 0 when the device hangs on the way. */
int drain(CUstream stream);
CUresult query(CUstream stream, CUevent event);
void drop_ops(op *first);
double seconds_now(void);

/* One call at a time: devices of the fake do not compute side by side. */
extern pthread_mutex_t lock;

/* Every entry but the first ones: one at a time, with a context, on a device that works. */
#define BEGIN                                                                                      \
    device_state *const d = current();                                                             \
    CUresult result = DONE;                                                                        \
    pthread_mutex_lock(&lock);                                                                     \
    if (!d || d->retained < 1)                                                                     \
        result = INVALID_CONTEXT;                                                                  \
    else if (d->sticky)                                                                            \
        result = d->sticky;                                                                        \
    if (result == DONE) {
#define END                                                                                        \
    }                                                                                              \
    pthread_mutex_unlock(&lock);                                                                   \
    return result;

#define EXPORT __attribute__((visibility("default")))
#define UNUSED __attribute__((unused))

#endif
