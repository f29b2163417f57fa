/* The devices of this machine and how a run uses them. Nothing here influences a result. */
#ifndef QUERN_DEVICE_H
#define QUERN_DEVICE_H

#include <quern/cluster.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a run computes, whatever it computes. Members that are zero mean the defaults. The struct
 * lies in others, so its size stays: new members will take their place from `reserved`. */
typedef struct qn_compute {
    size_t size;     /* sizeof(qn_compute) */
    int threads;     /* cores to use; 0: every core the process may use */
    const char *isa; /* "auto" (or NULL), "scalar", "avx2", "avx512", "vnni", "amx", "neon",
                        "dotprod" */
    /* The most that GPUs may multiply integers with: "auto" (or NULL), whatever they have; "dp4a",
     * no matrix instructions, only products of four bytes (CUDA's __dp4a, OpenCL's
     * cl_khr_integer_dot_product); "plain", none of these. A GPU that has less takes what it has.
     * For comparing, and for a GPU or driver whose instructions fail. */
    const char *gpu_isa;
    /* Which devices may take part: "auto" (or NULL), or a list such as "cpu,cuda:0,opencl:all".
     *   auto        the CPU, every CUDA device, and every OpenCL device that is neither of these
     *   cpu, cpu:N  the CPU, all its cores or N of them (N counts before `threads`)
     *   KIND:I      one device, as qn_device_info.id names it: opencl:0, cuda:1
     *   KIND:all    all devices of a kind; KIND alone is the same
     *   none        nothing: refused by every call that has to compute
     * A device that only slows the job down is left out of its steps, whatever the list says. */
    const char *devices;
    /* NULL: work is shared by measured speed. "3,1": each step's grains go to the devices of the
     * list in these fixed proportions, all of them taking part; for experiments. */
    const char *shares;
    double device_timeout; /* seconds after which a silent device counts as lost; 0: 60 */
    qn_cluster *cluster;   /* the other ranks that share the work; NULL: this process is alone */
    void *reserved[4];     /* NULL */
} qn_compute;

typedef struct qn_device_info {
    size_t size;        /* sizeof(qn_device_info) */
    char id[32];        /* "cpu", "opencl:0", "cuda:1": what `devices` above takes */
    char kind[16];      /* "cpu", "opencl", "cuda" */
    char type[16];      /* "CPU", "GPU", "accelerator" */
    char name[128];     /* the device's own name */
    char platform[128]; /* OpenCL: the platform; CUDA: "compute capability 9.0"; else empty */
    char driver[128];   /* version of the driver; empty for the CPU */
    char isa[16];       /* CPU: the instruction set that "auto" takes; else empty */
    char isas[64];      /* CPU: all that can be used here, separated by spaces */
    int cores;          /* CPU cores that the process may use; compute units of other devices */
    uint64_t memory;    /* bytes of memory that the device can use */
    uint64_t cache[3];  /* bytes of the first, second and third level, 0 where unknown */
    int automatic;      /* 1: among those that "auto" tries */
    char reason[256];   /* why it is not among them, or why it cannot be used at all */
    int refused;        /* 1: it cannot be used; `reason` says why */
} qn_device_info;

/* What a device reached in short measurements, 0 where it was not measured. */
typedef struct qn_device_rates {
    size_t size;   /* sizeof(qn_device_rates) */
    double matmul; /* operations a second of the exact float32 product, two for each fma */
    double tanh;   /* elements a second */
    double memory; /* bytes read and written a second in a copy too large for the caches */
    /* Operations a second of the product of integers of 7, 14 and 21 bits, packed, two for each
     * multiplication; 0 where the device has none, too. */
    double integers[3];
    /* What multiplies them: of the CPU an instruction set ("amx"), of CUDA "mma.sync" or "dp4a", of
     * OpenCL "cl_khr_integer_dot_product"; "plain" where nothing of the kind does. */
    char integers_by[32];
} qn_device_rates;

/* Number of devices of this machine that Quern sees: at least 1, the CPU, which is the first. The
 * libraries of other devices are looked for at the first call, once for the process. */
QN_API uint32_t qn_device_count(void);
QN_API qn_status qn_device_get(uint32_t index, qn_device_info *info, qn_error *err);

/* Tests the device and measures it, for a second or so. `compute` may be NULL. QN_UNSUPPORTED when
 * the device fails its self-test, QN_DEVICE when it fails otherwise. */
QN_API qn_status qn_device_measure(uint32_t index, const qn_compute *compute,
                                   qn_device_rates *rates, qn_error *err);

/* Why the devices of a kind ("opencl", "cuda") are not there, as a sentence with a remedy: no
 * library, a library without devices, a driver too old. Empty when some are there. For NULL and an
 * unknown kind: that there is no such kind. */
QN_API const char *qn_device_absence(const char *kind);

/* Something that opening or measuring a device found worth telling a person though nothing failed,
 * such as a broken cache of programs: the oldest that nobody asked for yet, in at most `room`
 * bytes. Returns 0 when there is none, and when `text` is NULL or `room` 0. Each text is reported
 * once in a process. */
QN_API int qn_device_note(char *text, size_t room);

/* Checks a qn_compute: QN_UNSUPPORTED when this machine lacks the instruction set or a device of
 * the list (the message says which it has), QN_USAGE for an unknown name, of `gpu_isa` too, a list
 * that is none, or a thread count out of 0..4096. */
QN_API qn_status qn_compute_check(const qn_compute *compute, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
