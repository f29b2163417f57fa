/* The devices of all platforms, found once for the process. */
#ifndef QN_DEVICE_OPENCL_OPENCL_LIST_H
#define QN_DEVICE_OPENCL_OPENCL_LIST_H

#include "device/opencl/opencl_api.h"
#include <quern/device.h>

typedef struct qn__cl_entry {
    qn__cl_platform platform;
    qn__cl_device device;
    qn_device_info info;
    char label[160];        /* "opencl:0 (NVIDIA A100)", for messages */
    char version[128];      /* "OpenCL 3.0 ..." */
    char base_version[128]; /* the platform's */
    uint64_t largest;       /* bytes of the largest single buffer */
    uint32_t pci[4];        /* domain, bus, device, function */
    int has_pci;
    int is_cpu, correct_divide, atomics;
    int doubles; /* 1: binary64 */
    int dots;    /* 1: it reports products of packed bytes */
} qn__cl_entry;

/* Device `index`, or NULL; *api, when not NULL, receives the library. */
const qn__cl_entry *qn__cl_entry_at(uint32_t index, const qn__cl_api **api);
uint32_t qn__cl_entries(void);

/* Why there are none, with a remedy; "" when there are some. */
const char *qn__cl_absence(void);

#endif
