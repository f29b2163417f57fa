/* CUDA in the list of backends: its devices, and the worker of all GPUs over its driver. */
#include "device/cuda/cuda_table.h"

#include "device/cuda/cuda_gpu.h"
#include "device/cuda/cuda_nccl.h"

static qn_status open_worker(uint32_t index, const qn_compute *compute, const qn__program *program,
                             qn__worker **out, qn_error *err) {
    return qn__gpu_open(&qn__cuda_gpu_driver, index, compute, program, out, err);
}

static qn_status measure(uint32_t index, const qn_compute *compute, qn_device_rates *rates,
                         qn_error *err) {
    return qn__gpu_measure(&qn__cuda_gpu_driver, index, compute, rates, err);
}

static qn_status open_joint(qn__worker *const *workers, uint32_t count, qn__joint **out,
                            qn_error *err) {
    return qn__gpu_joint_open(workers, count, qn__cuda_nccl_always(), out, err);
}

const qn__device_table qn__cuda_device = {
    QN__GPU_ENTRIES,
    .name = "cuda",
    .about = "every CUDA device; cuda:0 is one",
    .vendor = "NVIDIA",
    .count = qn__cuda_count,
    .describe = qn__cuda_describe,
    .absence = qn__cuda_absence,
    .open = open_worker,
    .joint_open = open_joint,
    .joint_add = qn__gpu_joint_add,
    .joint_close = qn__gpu_joint_close,
    .measure = measure,
    .energy = qn__cuda_energy,
};
