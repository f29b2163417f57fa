/* The program of an OpenCL device: from the cache if it was built before, otherwise from the kernel
 * text. */
#include "base/memory.h"
#include "device/opencl/opencl_gpu.h"

#include <stdio.h>
#include <string.h>

enum { LOG = 1 << 16 };

void qn__cl_options_of(const qn__gpu *gpu, const char *more, char options[QN__CL_OPTIONS]) {
    const qn__cl_entry *const e = gpu->entry;
    snprintf(options, QN__CL_OPTIONS, "%s %s%s%s%s", qn__kernel_options(QN__OPENCL_C), more,
             qn__cl_is_simulated(e) ? " -O1 -disable-llvm-passes -DQN_SIMULATED=1" : "",
             e->correct_divide ? " -cl-fp32-correctly-rounded-divide-sqrt -DQN_CORRECT_DIVIDE=1"
                               : "",
             e->atomics ? " -DQN_ATOMICS64=1" : "");
}

void qn__cl_key_of(const qn__cl_entry *e, const char *digest, const char *options,
                   char key[QN__CL_KEY]) {
    snprintf(key, QN__CL_KEY,
             "opencl program 1\ntext %s\noptions %s\nplatform %s, %s\ndevice %s, %s\ndriver %s\n",
             digest, options, e->info.platform, e->base_version, e->info.name, e->version,
             e->info.driver);
}

static void options_of(const qn__gpu *gpu, char options[QN__CL_OPTIONS]) {
    char own[96];
    snprintf(own, sizeof own, "-DQN_PRODUCTS=%u%s%s", gpu->products, gpu->dots ? " -DQN_DOT=1" : "",
             gpu->entry->is_cpu ? " -DQN_VECTORS=1" : "");
    qn__cl_options_of(gpu, own, options);
}

void qn__cl_drop_program(qn__gpu *gpu) {
    for (int k = 0; k < QN__KERNELS; ++k)
        if (gpu->kernel[k])
            gpu->cl->release_kernel(gpu->kernel[k]);
    memset(gpu->kernel, 0, sizeof gpu->kernel);
    memset(gpu->set, 0, sizeof gpu->set);
    if (gpu->program)
        gpu->cl->release_program(gpu->program);
    gpu->program = NULL;
}

/* Creates the kernels of a built program. On failure returns the code, and the name of the first
 * kernel that cannot be created. */
static int32_t make_kernels(qn__gpu *gpu, const char **name) {
    for (int k = 0; k < QN__KERNELS; ++k) {
        const qn__kernel_shape *const shape = qn__kernel_shape_of((qn__kernel)k);
        int32_t code = QN__CL_SUCCESS;
        if ((shape->opencl_only && !gpu->entry->is_cpu) ||
            !qn__kernel_belongs((qn__kernel)k, QN__OPENCL_C, gpu->products))
            continue;
        *name = shape->name;
        gpu->kernel[k] = gpu->cl->create_kernel(gpu->program, shape->name, &code);
        if (code != QN__CL_SUCCESS) {
            gpu->kernel[k] = NULL;
            return code;
        }
    }
    return QN__CL_SUCCESS;
}

qn__cl_program qn__cl_program_from(const qn__gpu *gpu, const void *binary, size_t bytes) {
    const qn__cl_api *const cl = gpu->cl;
    const unsigned char *const from = binary;
    int32_t each = QN__CL_SUCCESS, code = QN__CL_SUCCESS;
    if (bytes == 0)
        return NULL;
    const qn__cl_program program =
        cl->create_with_binary(gpu->context, 1, &gpu->entry->device, &bytes,
                               (const unsigned char **)(uintptr_t)&from, &each, &code);
    if (code != QN__CL_SUCCESS)
        return NULL;
    code = each;
    if (code == QN__CL_SUCCESS)
        code = cl->build_program(program, 1, &gpu->entry->device, "", NULL, NULL);
    if (code == QN__CL_SUCCESS)
        return program;
    cl->release_program(program);
    return NULL;
}

/* Whether the cache's program can be used; otherwise nothing is kept of it. */
static int take_cached(qn__gpu *gpu, const char *key) {
    char note[256];
    const char *name;
    void *binary;
    size_t bytes;
    qn__gpu_cache_load(key, &binary, &bytes, note);
    gpu->program = qn__cl_program_from(gpu, binary, bytes);
    qn__free(binary);
    if (gpu->program && make_kernels(gpu, &name) != QN__CL_SUCCESS)
        qn__cl_drop_program(gpu);
    return gpu->program != NULL;
}

/* PoCL compiles a kernel at its first launch and has its own cache. Getting the program's binary
 * would compile every kernel, for half a minute. */
int qn__cl_keeps_its_own(const qn__cl_entry *e) {
    return strcmp(e->info.platform, "Portable Computing Language") == 0;
}

/* Oclgrind runs what clang makes of a text. It knows too few of clang's functions to run what is
 * not optimised at all. */
int qn__cl_is_simulated(const qn__cl_entry *e) { return strcmp(e->info.platform, "Oclgrind") == 0; }

uint32_t qn__cl_products(const qn__cl_entry *entry, uint32_t products) {
    const uint32_t all = QN_WITH_ALL | QN_WITH_PIXELS;
    return (qn__cl_keeps_its_own(entry) ? all : products) | QN_WITH_LARGE;
}

/* A failure here is ignored: the next run builds the program again. */
void qn__cl_keep(const qn__gpu *gpu, qn__cl_program program, const char *key,
                 void (*store)(const char *key, const void *program, size_t bytes, char *note)) {
    char note[256] = "";
    size_t bytes = 0;
    if (gpu->cl->get_program_info(program, QN__CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes,
                                  NULL) != QN__CL_SUCCESS ||
        bytes == 0)
        return;
    unsigned char *binary = qn__alloc(bytes, 1, NULL);
    if (binary && gpu->cl->get_program_info(program, QN__CL_PROGRAM_BINARIES, sizeof binary,
                                            &binary, NULL) == QN__CL_SUCCESS)
        store(key, binary, bytes, note);
    qn__free(binary);
}

/* The first lines of a text that are not empty, joined to one line. */
static void first_lines(const char *text, char *to, size_t capacity) {
    size_t used = 0;
    int lines = 0;
    to[0] = '\0';
    while (*text && lines < 3 && used + 1 < capacity) {
        const size_t length = strcspn(text, "\r\n");
        if (strspn(text, " \t") < length) {
            used += (size_t)snprintf(to + used, capacity - used, "%s%.*s", lines ? " / " : "",
                                     (int)length, text);
            ++lines;
        }
        text += length;
        text += strspn(text, "\r\n");
    }
}

qn_status qn__cl_fail_build(const qn__gpu *gpu, qn__cl_program program, int32_t code,
                            const char *doing, qn_error *err) {
    char lines[300] = "";
    char *const log = qn__alloc(1, LOG, NULL);
    if (log && program &&
        gpu->cl->get_build_info(program, gpu->entry->device, QN__CL_PROGRAM_BUILD_LOG, LOG - 1, log,
                                NULL) == QN__CL_SUCCESS)
        first_lines(log, lines, sizeof lines);
    qn__free(log);
    qn__fail(err, QN_UNSUPPORTED, "%s cannot be used: its compiler failed to %s: %s%s%s",
             gpu->entry->label, doing, qn__cl_error_name(code), lines[0] ? ": " : "", lines);
    return qn__remedy(err, QN_UNSUPPORTED, "%s", qn__cl_error_remedy(-11));
}

static qn_status fail_build(qn__gpu *gpu, int32_t code, const char *doing, qn_error *err) {
    const qn_status status = qn__cl_fail_build(gpu, gpu->program, code, doing, err);
    qn__cl_drop_program(gpu);
    return status;
}

/* A device is refused if its work-groups are smaller than a kernel requires. */
static qn_status check_groups(qn__gpu *gpu, qn_error *err) {
    for (int k = 0; k < QN__KERNELS; ++k) {
        const qn__kernel_shape *const shape = qn__kernel_shape_of((qn__kernel)k);
        const size_t lanes = (size_t)shape->lanes[0] * shape->lanes[1];
        size_t most = lanes;
        if (!gpu->kernel[k] ||
            gpu->cl->get_group_info(gpu->kernel[k], gpu->entry->device,
                                    QN__CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                                    NULL) != QN__CL_SUCCESS ||
            most >= lanes)
            continue;
        qn__fail(err, QN_UNSUPPORTED,
                 "%s cannot be used: it runs %s in groups of at most %zu, and %zu are needed",
                 gpu->entry->label, shape->name, most, lanes);
        return qn__remedy(err, QN_UNSUPPORTED, "leave it out of `compute.devices`");
    }
    return QN_OK;
}

qn_status qn__cl_build(qn__gpu *gpu, qn_error *err) {
    char options[QN__CL_OPTIONS], key[QN__CL_KEY];
    const char *text = qn__kernel_text(QN__OPENCL_C), *name = "";
    int32_t code = QN__CL_SUCCESS;
    options_of(gpu, options);
    qn__cl_key_of(gpu->entry, qn__kernel_digest(QN__OPENCL_C), options, key);
    if (!qn__cl_keeps_its_own(gpu->entry) && take_cached(gpu, key))
        return check_groups(gpu, err);
    gpu->program = gpu->cl->create_with_source(gpu->context, 1, &text, NULL, &code);
    if (code != QN__CL_SUCCESS) {
        gpu->program = NULL;
        return fail_build(gpu, code, "take the kernels", err);
    }
    code = gpu->cl->build_program(gpu->program, 1, &gpu->entry->device, options, NULL, NULL);
    if (code != QN__CL_SUCCESS)
        return fail_build(gpu, code, "build the kernels", err);
    code = make_kernels(gpu, &name);
    if (code != QN__CL_SUCCESS) {
        char doing[64];
        snprintf(doing, sizeof doing, "give the kernel %s", name);
        return fail_build(gpu, code, doing, err);
    }
    if (!qn__cl_keeps_its_own(gpu->entry))
        qn__cl_keep(gpu, gpu->program, key, qn__gpu_cache_store);
    return check_groups(gpu, err);
}
