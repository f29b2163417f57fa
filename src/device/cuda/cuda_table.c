/* CUDA in the list of backends: its devices, and the worker of all GPUs over its driver. */
#include "device/cuda/cuda_table.h"

#include "device/cuda/cuda_gpu.h"

static qn_status open_worker(uint32_t index, const qn_compute *compute, const qn__program *program,
                             qn__worker **out, qn_error *err) {
    return qn__gpu_open(&qn__cuda_gpu_driver, index, compute, program, out, err);
}

static qn_status measure(uint32_t index, const qn_compute *compute, qn_device_rates *rates,
                         qn_error *err) {
    return qn__gpu_measure(&qn__cuda_gpu_driver, index, compute, rates, err);
}

const qn__device_table qn__cuda_device = {
    .version = QN__DEVICE_VERSION,
    .name = "cuda",
    .about = "every CUDA device; cuda:0 is one",
    .vendor = "NVIDIA",
    .check = qn__gpu_check,
    .instructions = qn__gpu_isa_word,
    .jobs = QN__GPU_JOBS,
    .count = qn__cuda_count,
    .describe = qn__cuda_describe,
    .supports = qn__gpu_supports,
    .absence = qn__cuda_absence,
    .open = open_worker,
    .close = qn__gpu_close,
    .prepare = qn__gpu_prepare,
    .load = qn__gpu_load,
    .save = qn__gpu_save,
    .run = qn__gpu_run,
    .collect = qn__gpu_collect,
    .update = qn__gpu_update,
    .train_step = qn__gpu_train_step,
    .flush = qn__gpu_flush,
    .busy = qn__gpu_busy,
    .traffic = qn__gpu_traffic,
    .measure = measure,
    .energy = qn__cuda_energy,
};
