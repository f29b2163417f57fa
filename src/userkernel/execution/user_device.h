/* A user kernel for a device: its program in OpenCL C and CUDA C++, one item for each lane, and its
 * arrays as the device takes them. */
#ifndef QN_USERKERNEL_EXECUTION_USER_DEVICE_H
#define QN_USERKERNEL_EXECUTION_USER_DEVICE_H

#include "device/device.h"
#include "kernels/kernels.h"
#include "userkernel/compiler/user_program.h"

typedef struct qn__user_device {
    qn__kernel_job job; /* the functions in it are the caller's */
    qn__text text[2];
    qn__kernel_total total[QN__USER_PARTS];
    qn__text total_text[2][QN__USER_PARTS];
    qn__kernel_array array[QN__KERNEL_ARRAYS];
    uint32_t of[QN__KERNEL_ARRAYS]; /* the array of a call (user_program.h) that each of them is */
    uint64_t numbers[QN__USER_DIMENSIONS * (QN__USER_PARTS + 1) + 2];
} qn__user_device;

/* Writes the program for a language of devices. */
void qn__user_device_write(const qn__user_source *source, qn__language language, qn__text *out);

/* Writes the programs of a kernel, and lists its arrays. `source` must live as long. On success
 * qn__user_device_release frees it; *out must not move. QN_MEMORY. */
qn_status qn__user_device_make(const qn__user_source *source, qn__user_device *out, qn_error *err);
/* Sets the arrays, scalars and lengths. */
void qn__user_device_bind(const qn__user_source *source, const qn__user_call *call,
                          qn__user_device *device);
/* Also of one that failed, and of zeros. */
void qn__user_device_release(qn__user_device *device);

#endif
