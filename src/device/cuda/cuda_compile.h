/* Machine code of the kernels for one GPU: compiled by NVRTC, or loaded from the cache. */
#ifndef QN_DEVICE_CUDA_CUDA_COMPILE_H
#define QN_DEVICE_CUDA_CUDA_COMPILE_H

#include "device/gpu/gpu.h"
#include <stddef.h>
#include <stdint.h>

/* Whether NVRTC can be opened (once for the process, for a driver of that version); "" or the
 * reason why not, with a remedy. */
const char *qn__cuda_compiler_absence(int driver_version);

/* The program with `products` (QN_WITH_..., kernels/step.h) for compute capability `capability`
 * (90: 9.0) and a driver of that version, to be freed with qn__free; a NUL follows its `bytes`.
 * With `fresh` the cache is not read (the driver refused what it held). `device` names the device
 * in messages. QN_DEVICE when NVRTC is missing or fails, or does not support the device. */
qn_status qn__cuda_compile(int capability, int driver_version, uint32_t products, int fresh,
                           const char *device, void **image, size_t *bytes, qn_error *err);

/* The same for another text. */
qn_status qn__cuda_compile_text(int capability, int driver_version, const qn__gpu_text *text,
                                int fresh, const char *device, void **image, size_t *bytes,
                                qn_error *err);

#endif
