/* The devices of this machine and how a run uses them. Nothing here changes a result. */
#ifndef QUERN_DEVICE_H
#define QUERN_DEVICE_H

#include <quern/cluster.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a run computes. Members that are zero mean the defaults. The struct is a member of others, so
 * its size does not change: new members will take their place from `reserved`. Texts are read
 * during the call only, and the cluster must outlive what was made with it. */
typedef struct qn_compute {
    size_t size;     /* sizeof(qn_compute) */
    int threads;     /* number of cores to use, 0..4096; 0: every core the process may use */
    const char *isa; /* instruction set of the CPU: "auto" (or NULL), "scalar", "avx2", "avx512",
                        "vnni", "amx", "neon", "dotprod" */
    /* The best integer instructions that GPUs may use; a GPU that has less uses what it has.
     *   "auto", NULL  all that they have
     *   "dp4a"        no matrix instructions, only products of four bytes (CUDA's __dp4a, OpenCL's
     *                 cl_khr_integer_dot_product)
     *   "plain"       none of these
     * For comparisons, and for a GPU or driver whose instructions fail. */
    const char *gpu_isa;
    /* The devices that may take part: "auto" (or NULL), or a list such as "cpu,cuda:0,opencl:all".
     *   auto        the CPU, every CUDA device, and every OpenCL device that is neither of these
     *   cpu, cpu:N  the CPU, all its cores or N of them (N takes precedence over `threads`)
     *   KIND:I      one device, as qn_device_info.id names it: opencl:0, cuda:1
     *   KIND:all    all devices of a kind; KIND alone is the same
     *   none        no device: every call that computes fails with QN_USAGE
     * A device that only makes a step slower is left out of the steps, even if the list names it.
     */
    const char *devices;
    /* NULL: work is divided by measured speed. "3,1": for experiments; one number above 0 for each
     * device of the list. All of these devices take part, and each step's grains are divided in
     * these proportions. */
    const char *shares;
    double device_timeout; /* seconds without an answer after which a device counts as lost,
                              0.001..86400; 0: 60 */
    qn_cluster *cluster;   /* the other ranks that share the work; NULL: this process is alone */
    /* Training: the grains of a step in so many parts, at most 4096, which a device computes one
     * after the other, so that memory holds the items of one part. Each part has whole grains. 1:
     * the whole step; 0: that, or as many parts as the memory asks for. */
    int parts;
    /* Training: 1: outputs inside blocks are not kept for the backward pass but
     * computed once more there. It takes less memory and more time. */
    int recompute;
    /* Training with `freeze`: 1: the outputs of the layers that do not train are computed once for
     * each item, and kept in memory, or in a file of the cache folder where memory does not hold
     * them. The model is the same. Not with `augment`, `mixup` and `cutmix`. */
    int cache_features;
    void *reserved[2]; /* NULL */
} qn_compute;

/* One device. Texts that do not apply are empty; numbers that are unknown are 0. */
typedef struct qn_device_info {
    size_t size;        /* sizeof(qn_device_info) */
    char id[32];        /* "cpu", "opencl:0", "cuda:1": a word for qn_compute.devices */
    char kind[16];      /* "cpu", "opencl", "cuda" */
    char type[16];      /* "CPU", "GPU", "accelerator" */
    char name[128];     /* the device's own name */
    char platform[128]; /* OpenCL: the platform; CUDA: "compute capability 9.0" */
    char driver[128];   /* version of the driver; empty for the CPU */
    char isa[16];       /* CPU: the instruction set that "auto" takes */
    char isas[64];      /* CPU: all instruction sets that can be used here, separated by spaces */
    int cores;          /* CPU: cores that the process may use; other devices: compute units */
    uint64_t memory;    /* bytes of memory of the device; CPU: of the machine */
    uint64_t cache[3];  /* bytes of the first, second and third level */
    int automatic;      /* 1: "auto" includes it */
    char reason[256];   /* why "auto" does not include it, or why it cannot be used at all */
    int refused;        /* 1: it cannot be used; `reason` says why */
} qn_device_info;

/* The speed of a device in short measurements; 0: not measured. */
typedef struct qn_device_rates {
    size_t size;   /* sizeof(qn_device_rates) */
    double matmul; /* exact float32 matrix product, operations per second; an fma counts as two */
    double tanh;   /* elements per second */
    double memory; /* copy that is larger than the caches, bytes read and written per second */
    /* Matrix products of integers of 7, 14 and 21 bits, packed: operations per second, two for each
     * multiplication. Also 0 where the device has none. */
    double integers[3];
    /* What multiplies the integers. CPU: an instruction set ("amx"); CUDA: "mma.sync" or "dp4a";
     * OpenCL: "cl_khr_integer_dot_product"; "plain": ordinary instructions. */
    char integers_by[32];
} qn_device_rates;

/* Number of devices of this machine that Quern finds: at least 1. Device 0 is the CPU. The first
 * call looks for the libraries of other devices, once in the process. */
QN_API uint32_t qn_device_count(void);

/* Describes device `index`, below qn_device_count. Fails with QN_USAGE (no such device, an invalid
 * size); *info is then as before. */
QN_API qn_status qn_device_get(uint32_t index, qn_device_info *info, qn_error *err);

/* Tests device `index` and measures its speed, which takes about a second. `compute` may be NULL:
 * the defaults; of it `threads`, `isa`, `gpu_isa` and `device_timeout` count. Fails with QN_USAGE,
 * QN_UNSUPPORTED (the device cannot be used, fails its self-test or cannot be measured), QN_DEVICE
 * or QN_MEMORY; *rates is then as before. */
QN_API qn_status qn_device_measure(uint32_t index, const qn_compute *compute,
                                   qn_device_rates *rates, qn_error *err);

/* Why there are no devices of a kind ("opencl", "cuda"), as a sentence with a remedy: no library, a
 * library without devices, a driver that is too old. "" when there are some. For NULL and an
 * unknown kind: that there is no such kind. The text is owned by the library. */
QN_API const char *qn_device_absence(const char *kind);

/* Takes the oldest message about a device that no call has returned, for a person: something that
 * opening or measuring it found although nothing failed, such as a damaged cache of kernels. Writes
 * at most `capacity` bytes with the NUL; a longer text is cut. Returns 1, or 0 when there is none,
 * when `text` is NULL or `capacity` 0. The library keeps the first 16 messages of a process, each
 * once. */
QN_API int qn_device_note(char *text, size_t capacity);

/* Checks a qn_compute without opening a device. Fails with QN_UNSUPPORTED (this machine lacks the
 * instruction set or a device of the list; the message says what it has) or QN_USAGE (an unknown
 * name, an invalid list, a number out of its range, `reserved` that is not NULL). */
QN_API qn_status qn_compute_check(const qn_compute *compute, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
