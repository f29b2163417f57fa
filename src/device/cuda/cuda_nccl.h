/* NCCL, opened at run time: several devices of this process add up their sums themselves. */
#ifndef QN_DEVICE_CUDA_CUDA_NCCL_H
#define QN_DEVICE_CUDA_CUDA_NCCL_H

#include "device/gpu/gpu.h"

/* The driver's entries (device/gpu/gpu.h). The environment variable QUERN_NCCL is `off`, `always`
 * or the library's file. */
qn_status qn__cuda_joint_open(qn__gpu *const *gpus, uint32_t count, qn__gpu_joint **out,
                              qn_error *err);
qn_status qn__cuda_joint_add(qn__gpu_joint *joint, const qn__gpu_memory *const *memory,
                             uint64_t words, qn_error *err);
void qn__cuda_joint_close(qn__gpu_joint *joint);

/* 1: QUERN_NCCL asks for NCCL even where it is not faster. */
int qn__cuda_nccl_always(void);

#endif
