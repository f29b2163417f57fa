/* The device table of CUDA. */
#ifndef QN_DEVICE_CUDA_CUDA_TABLE_H
#define QN_DEVICE_CUDA_CUDA_TABLE_H

#include "device/device.h"

extern const qn__device_table qn__cuda_device;

#endif
