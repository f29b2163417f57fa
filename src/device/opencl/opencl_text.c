/* Programs of other texts than the device's own: user kernels. */
#include "base/memory.h"
#include "device/opencl/opencl_gpu.h"

#include <stdio.h>

struct qn__gpu_program {
    qn__cl_program program;
    qn__cl_kernel kernel;
    uint32_t lanes;
    char name[32];
};

/* The program as the cache has it, or built from its text. */
static qn_status make_program(qn__gpu *gpu, const qn__gpu_text *text, qn__cl_program *out,
                              qn_error *err) {
    char options[QN__CL_OPTIONS], key[QN__CL_KEY], digest[65], note[256];
    void *binary = NULL;
    size_t bytes = 0;
    int32_t code = QN__CL_SUCCESS;
    const int keeps = !qn__cl_keeps_its_own(gpu->entry);
    qn__cl_options_of(gpu, text->doubles ? "-DQN_DOUBLE=1" : "-DQN_DOUBLE=0", options);
    qn__gpu_text_digest(text, digest);
    qn__cl_key_of(gpu->entry, digest, options, key);
    if (keeps)
        qn__gpu_text_load(key, &binary, &bytes, note);
    *out = qn__cl_program_from(gpu, binary, bytes);
    qn__free(binary);
    if (*out)
        return QN_OK;
    *out = gpu->cl->create_with_source(gpu->context, 1, (const char *[]){text->text}, NULL, &code);
    if (code != QN__CL_SUCCESS) {
        *out = NULL;
        return qn__cl_fail_build(gpu, NULL, code, "take the kernel", err);
    }
    code = gpu->cl->build_program(*out, 1, &gpu->entry->device, options, NULL, NULL);
    if (code != QN__CL_SUCCESS)
        return qn__cl_fail_build(gpu, *out, code, "build the kernel", err);
    if (keeps)
        qn__cl_keep(gpu, *out, key, qn__gpu_text_store);
    return QN_OK;
}

static qn_status make_kernel(qn__gpu *gpu, qn__gpu_program *p, qn_error *err) {
    int32_t code = QN__CL_SUCCESS;
    size_t most = p->lanes;
    p->kernel = gpu->cl->create_kernel(p->program, p->name, &code);
    if (code != QN__CL_SUCCESS) {
        p->kernel = NULL;
        return qn__cl_fail_build(gpu, p->program, code, "give the kernel", err);
    }
    if (gpu->cl->get_group_info(p->kernel, gpu->entry->device, QN__CL_KERNEL_WORK_GROUP_SIZE,
                                sizeof most, &most, NULL) != QN__CL_SUCCESS ||
        most >= p->lanes)
        return QN_OK;
    qn__fail(err, QN_UNSUPPORTED,
             "%s cannot be used: it runs the kernel in groups of at most %zu, and %u are needed",
             gpu->entry->label, most, (unsigned)p->lanes);
    return qn__remedy(err, QN_UNSUPPORTED, "leave it out of `compute.devices`");
}

qn_status qn__cl_text_build(qn__gpu *gpu, const qn__gpu_text *text, qn__gpu_program **out,
                            qn_error *err) {
    *out = NULL;
    qn_status status = qn__cl_usable(gpu, err);
    if (status == QN_OK && text->doubles && !gpu->entry->doubles) {
        qn__fail(err, QN_UNSUPPORTED,
                 "%s cannot be used: it has no double precision (cl_khr_fp64), and the kernel "
                 "computes in double",
                 gpu->entry->label);
        return qn__remedy(err, QN_UNSUPPORTED,
                          "leave it out of `compute.devices`, or write the kernel in float: 0.5f "
                          "is a float, 0.5 is a double");
    }
    qn__gpu_program *p = status == QN_OK ? qn__alloc(1, sizeof *p, err) : NULL;
    if (!p)
        return status == QN_OK ? QN_MEMORY : status;
    p->lanes = text->lanes;
    snprintf(p->name, sizeof p->name, "%s", text->kernel);
    status = make_program(gpu, text, &p->program, err);
    if (status == QN_OK)
        status = make_kernel(gpu, p, err);
    if (status != QN_OK) {
        qn__cl_text_drop(gpu, p);
        return status;
    }
    *out = p;
    return QN_OK;
}

void qn__cl_text_drop(qn__gpu *gpu, qn__gpu_program *p) {
    if (!p)
        return;
    if (p->kernel && gpu->health != QN__CL_HANGS)
        gpu->cl->release_kernel(p->kernel);
    if (p->program && gpu->health != QN__CL_HANGS)
        gpu->cl->release_program(p->program);
    qn__free(p);
}

static int32_t set_argument(const qn__gpu *gpu, const qn__gpu_program *p, uint32_t i,
                            const qn__gpu_argument *a) {
    const void *const value =
        a->kind == 'M' ? (const void *)&a->value.memory->handle : (const void *)&a->value;
    const size_t size = a->kind == 'M'   ? sizeof a->value.memory->handle
                        : a->kind == 'U' ? sizeof a->value.U
                                         : sizeof a->value.u;
    return gpu->cl->set_argument(p->kernel, i, size, value);
}

qn_status qn__cl_text_start(qn__gpu *gpu, const qn__gpu_program *p, uint32_t groups,
                            const qn__gpu_argument *arguments, uint32_t count, qn_error *err) {
    int32_t code = QN__CL_SUCCESS;
    const qn_status status = qn__cl_usable(gpu, err);
    const size_t local = p->lanes, global = groups * local;
    if (status != QN_OK || groups == 0)
        return status;
    for (uint32_t i = 0; code == QN__CL_SUCCESS && i < count; ++i)
        code = set_argument(gpu, p, i, &arguments[i]);
    if (code == QN__CL_SUCCESS)
        code = gpu->cl->enqueue_kernel(gpu->queue, p->kernel, 1, NULL, &global, &local, 0, NULL,
                                       gpu->window ? NULL : &gpu->window);
    if (code == QN__CL_SUCCESS)
        return QN_OK;
    return qn__cl_fail(gpu, code, "run the kernel", err);
}
