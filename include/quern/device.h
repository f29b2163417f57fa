/* The devices of this machine and how a run uses them. Nothing here influences a result. */
#ifndef QUERN_DEVICE_H
#define QUERN_DEVICE_H

#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a run computes, whatever it computes. Zeroed members mean the defaults. */
typedef struct qn_compute {
    int threads;     /* cores to use; 0: every core the process may use */
    const char *isa; /* "auto" (or NULL), "scalar", "avx2", "avx512", "neon" */
} qn_compute;

typedef struct qn_device_info {
    char kind[16];     /* "cpu" */
    char name[128];    /* the processor's own name */
    char isa[16];      /* the instruction set that "auto" takes */
    char isas[64];     /* all that can be used here, separated by spaces */
    int cores;         /* cores that the process may use */
    uint64_t memory;   /* bytes of memory that the device can use */
    uint64_t cache[3]; /* bytes of the first, second and third level, 0 where unknown */
} qn_device_info;

/* Number of devices of this machine that Quern can use: at least 1, the CPU. */
uint32_t qn_device_count(void);
qn_status qn_device_get(uint32_t index, qn_device_info *info, qn_error *err);

/* Checks a qn_compute: QN_UNSUPPORTED when this machine lacks the instruction set (the message says
 * which it has), QN_USAGE for an unknown name or a thread count out of 0..4096. */
qn_status qn_compute_check(const qn_compute *compute, qn_error *err);

#ifdef __cplusplus
}
#endif
#endif
