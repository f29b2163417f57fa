/* The OpenCL backend: GPUs, processors and accelerators of every platform of this machine's OpenCL
 * library. The library is opened at run time. */
#ifndef QN_DEVICE_OPENCL_OPENCL_TABLE_H
#define QN_DEVICE_OPENCL_OPENCL_TABLE_H

#include "device/gpu/gpu.h"

extern const qn__device_table qn__opencl_device;

/* The driver of this backend, for tests of kernels. */
extern const qn__gpu_driver qn__opencl_driver;

#endif
