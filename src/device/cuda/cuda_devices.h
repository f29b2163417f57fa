/* The CUDA devices of this machine: found once for the process. */
#ifndef QN_DEVICE_CUDA_CUDA_DEVICES_H
#define QN_DEVICE_CUDA_CUDA_DEVICES_H

#include "device/cuda/cuda_api.h"
#include "device/gpu/gpu.h"
#include "kernels/step.h"
#include <pthread.h>

enum { QN__CUDA_DEVICES = 64, QN__CUDA_PROGRAMS = 256 };

/* A program that is kept between openings, and whether the device has passed its self-test with
 * it. */
typedef struct qn__cuda_image {
    void *code;
    size_t bytes;
    int tested;
} qn__cuda_image;

typedef struct qn__cuda_device_entry {
    qn__cu_device device;
    char name[128];
    char pci[32];   /* "0000:1b:00.0", "" where unknown */
    int capability; /* 90: 9.0 */
    int multiprocessors;
    int forbidden; /* 1: its compute mode admits no process */
    uint64_t memory, cache;
    pthread_mutex_t lock;
    qn__cuda_image image[QN__CUDA_PROGRAMS]; /* by their products; protected by the lock, as the
                                                following members */
    qn__gpu_isa isa; /* the best instructions that were not refused and have not failed */
} qn__cuda_device_entry;

/* NULL: no such device. */
qn__cuda_device_entry *qn__cuda_device_get(uint32_t index);

uint32_t qn__cuda_count(void);
const char *qn__cuda_absence(void);
qn_status qn__cuda_describe(uint32_t index, qn_device_info *info, qn_error *err);
int qn__cuda_energy(uint32_t index, double *joules);

/* NVML's energy counter of the device with that PCI address; 0 when there is none. */
int qn__cuda_nvml_energy(const char *pci, double *joules);
/* The driver's own version, such as "580.82.07"; 0 when NVML does not report it. */
int qn__cuda_nvml_version(char *text, unsigned capacity);

#endif
