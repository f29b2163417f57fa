/* The program of a CUDA device: its source, and whether it can be used. */
#include "device/cuda/cuda_gpu.h"

#include "base/memory.h"
#include "device/cuda/cuda_compile.h"
#include <stdio.h>
#include <string.h>

int qn__cuda_refuses_image(qn__cu_result result) {
    return result == QN__CU_INVALID_IMAGE || result == QN__CU_NO_BINARY_FOR_GPU ||
           result == QN__CU_INVALID_PTX || result == QN__CU_UNSUPPORTED_PTX_VERSION;
}

/* The device keeps no state of it. qn__cuda_fail, after which every call fails, is for other
 * failures. */
qn_status qn__cuda_refuse_image(const qn__gpu *gpu, qn__cu_result result, const char *doing,
                                qn_error *err) {
    char said[160];
    qn__cuda_result_text(gpu->cu, result, said);
    qn__fail(err, QN_DEVICE, "%s failed at %s: %s", gpu->facts.name, doing, said);
    return qn__remedy(err, QN_DEVICE,
                      "update NVIDIA's driver, or install NVRTC of the CUDA version that "
                      "nvidia-smi shows");
}

/* The program of the device: kept from the last opening, from the cache, or compiled. If the driver
 * refuses the cached program, it is compiled again. *refused: 1 when the compiler or the driver
 * refuses the program. The caller holds the device's lock. */
static qn_status load_module(qn__gpu *gpu, int *refused, qn_error *err) {
    const qn__cuda_device_entry *d = gpu->device;
    qn__cuda_image *image = &gpu->device->image[gpu->products];
    qn__cu_result result = QN__CU_INVALID_IMAGE;
    for (int fresh = 0; fresh < 2; ++fresh) {
        if (!image->code) {
            const qn_status status =
                qn__cuda_compile(d->capability, gpu->cu->version, gpu->products, fresh,
                                 gpu->facts.name, &image->code, &image->bytes, err);
            if (status != QN_OK) {
                *refused = status == QN_DEVICE && !qn__cuda_compiler_absence(gpu->cu->version)[0];
                return status;
            }
        }
        result = gpu->cu->module_load(&gpu->module, image->code, 0, NULL, NULL);
        if (result == QN__CU_SUCCESS)
            return QN_OK;
        qn__free(image->code);
        image->code = NULL;
        if (!qn__cuda_refuses_image(result))
            break;
    }
    static const char doing[] = "loading the compiled kernels";
    *refused = qn__cuda_refuses_image(result);
    return *refused ? qn__cuda_refuse_image(gpu, result, doing, err)
                    : qn__cuda_fail(gpu, result, err, doing);
}

/* The driver may load kernels lazily, that is here. */
static qn_status find_kernels(qn__gpu *gpu, int *refused, qn_error *err) {
    char doing[96];
    for (int k = 0; k < QN__KERNELS; ++k) {
        const qn__kernel_shape *shape = qn__kernel_shape_of((qn__kernel)k);
        if (!qn__kernel_belongs((qn__kernel)k, QN__CUDA_C, gpu->products))
            continue;
        const qn__cu_result result =
            gpu->cu->module_function(&gpu->kernel[k], gpu->module, shape->name);
        if (result != QN__CU_SUCCESS) {
            snprintf(doing, sizeof doing, "finding the kernel %s", shape->name);
            *refused = result == QN__CU_NOT_FOUND || qn__cuda_refuses_image(result);
            return *refused ? qn__cuda_refuse_image(gpu, result, doing, err)
                            : qn__cuda_fail(gpu, result, err, doing);
        }
    }
    return QN_OK;
}

static qn_status test(const qn__gpu_driver *driver, qn__gpu *gpu, qn_error *err) {
    const qn_status status = qn__gpu_selftest(driver, gpu, err);
    return status == QN_OK && (gpu->products & QN_WITH_INTGEMM)
               ? qn__gpu_selftest_products(driver, gpu, gpu->products, err)
               : status;
}

qn_status qn__cuda_make_program(const qn__gpu_driver *driver, qn__gpu *gpu, int *refused,
                                qn_error *err) {
    qn__cuda_image *image = &gpu->device->image[gpu->products];
    qn_status status = load_module(gpu, refused, err);
    if (status == QN_OK)
        status = find_kernels(gpu, refused, err);
    if (status != QN_OK || image->tested)
        return status;
    status = test(driver, gpu, err);
    *refused = status == QN_UNSUPPORTED; /* only a failed self-test refuses the program */
    image->tested = status == QN_OK;
    return status;
}

void qn__cuda_drop_program(qn__gpu *gpu) {
    if (gpu->module)
        gpu->cu->module_unload(gpu->module);
    gpu->module = NULL;
    memset(gpu->kernel, 0, sizeof gpu->kernel);
}
