/* Programs of other texts than the device's own: user kernels. A text that the compiler refuses is
 * the kernel's fault, not the device's, which continues. */
#include "base/memory.h"
#include "device/cuda/cuda_compile.h"
#include "device/cuda/cuda_gpu.h"

struct qn__gpu_program {
    qn__cu_module *module;
    qn__cu_function *kernel;
    uint32_t lanes;
};

/* A text that NVRTC refuses is not a failure of the device. */
static qn_status compile(const qn__gpu *gpu, const qn__gpu_text *text, int fresh, void **image,
                         qn_error *err) {
    size_t bytes = 0;
    const qn_status status = qn__cuda_compile_text(gpu->device->capability, gpu->cu->version, text,
                                                   fresh, gpu->facts.name, image, &bytes, err);
    return status == QN_DEVICE ? QN_UNSUPPORTED : status;
}

/* If the driver refuses the cached program, it is compiled again. */
static qn_status load(qn__gpu *gpu, const qn__gpu_text *text, qn__gpu_program *p, qn_error *err) {
    static const char doing[] = "loading the compiled kernel";
    qn__cu_result result = QN__CU_INVALID_IMAGE;
    for (int fresh = 0; fresh < 2 && qn__cuda_refuses_image(result); ++fresh) {
        void *image = NULL;
        const qn_status status = compile(gpu, text, fresh, &image, err);
        if (status != QN_OK)
            return status;
        result = gpu->cu->module_load(&p->module, image, 0, NULL, NULL);
        qn__free(image);
    }
    if (result == QN__CU_SUCCESS)
        result = gpu->cu->module_function(&p->kernel, p->module, text->kernel);
    else
        p->module = NULL;
    if (result == QN__CU_SUCCESS)
        return QN_OK;
    return qn__cuda_refuses_image(result) ? qn__cuda_refuse_image(gpu, result, doing, err)
                                          : qn__cuda_fail(gpu, result, err, doing);
}

qn_status qn__cuda_text_build(qn__gpu *gpu, const qn__gpu_text *text, qn__gpu_program **out,
                              qn_error *err) {
    *out = NULL;
    qn_status status = qn__cuda_enter(gpu, err);
    qn__gpu_program *p = status == QN_OK ? qn__alloc(1, sizeof *p, err) : NULL;
    if (!p)
        return status == QN_OK ? QN_MEMORY : status;
    p->lanes = text->lanes;
    status = load(gpu, text, p, err);
    if (status != QN_OK) {
        qn__cuda_text_drop(gpu, p);
        return status;
    }
    *out = p;
    return QN_OK;
}

/* Unloading waits for the device, for ever if it hangs. */
void qn__cuda_text_drop(qn__gpu *gpu, qn__gpu_program *p) {
    if (!p)
        return;
    if (p->module && !gpu->silent && gpu->cu->context_set(gpu->context) == QN__CU_SUCCESS &&
        (gpu->failed || qn__cuda_drain(gpu)))
        gpu->cu->module_unload(p->module);
    qn__free(p);
}

qn_status qn__cuda_text_start(qn__gpu *gpu, const qn__gpu_program *p, uint32_t groups,
                              const qn__gpu_argument *arguments, uint32_t count, qn_error *err) {
    const qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK || groups == 0)
        return status;
    return qn__cuda_start(gpu, p->kernel, (const uint32_t[]){groups, 1, 1},
                          (const uint32_t[]){p->lanes, 1}, arguments,
                          count < QN__CUDA_ARGUMENTS ? count : QN__CUDA_ARGUMENTS,
                          "the start of the kernel", err);
}
