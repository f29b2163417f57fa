/* The OpenCL backend: GPUs, processors and accelerators of every platform that the OpenCL library
 * of this machine knows. The library is opened at run time. */
#ifndef QN_DEVICE_OPENCL_OPENCL_TABLE_H
#define QN_DEVICE_OPENCL_OPENCL_TABLE_H

#include "device/gpu/gpu.h"

extern const qn__device_table qn__opencl_device;

/* The driver below it, for tests that look at kernels. */
extern const qn__gpu_driver qn__opencl_driver;

#endif
