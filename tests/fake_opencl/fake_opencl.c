/* The functions of OpenCL that Quern calls, handed on to the real library but for the faults of the
 * plan. What a real device cannot be made to do is done here; what it computes is real. */
#include "device/opencl/opencl_api.h"
#include "fake_opencl_plan.h"
#include "kernels/step.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { COPY_HOST_POINTER = 1 << 5 };
enum { FAILURE = -5, NO_MEMORY = -4, INVALID_BINARY = -42, BUILD_FAILURE = -11 };

static void *real_library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_real(void) {
    const char *path = getenv("QN_REAL_OPENCL");
    real_library = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* A function of the real library; the program ends where there is none, since the test asked for
 * what only a real one can do. */
static void *real(const char *name) {
    pthread_once(&once, open_real);
    void *function = real_library ? dlsym(real_library, name) : NULL;
    if (!function) {
        fprintf(stderr, "fake OpenCL: QN_REAL_OPENCL names no library with %s\n", name);
        _exit(99);
    }
    return function;
}

/* Finds the real function of this name once, with the type of the member. */
#define REAL(name, member)                                                                         \
    static __typeof__(((qn__cl_api *)0)->member) call;                                             \
    if (!call) {                                                                                   \
        void *found = real(#name);                                                                 \
        memcpy(&call, &found, sizeof call);                                                        \
    }

/* The answer of an information function: a text or some bytes. */
static int32_t answer(const void *from, size_t bytes, size_t capacity, void *value, size_t *size) {
    if (size)
        *size = bytes;
    if (value && capacity < bytes)
        return -30;
    if (value)
        memcpy(value, from, bytes);
    return 0;
}

static int32_t answer_text(const char *text, size_t capacity, void *value, size_t *size) {
    return answer(text, strlen(text) + 1, capacity, value, size);
}

/* ---------------------------------------------------------------- what there is */

EXPORT int32_t clGetPlatformIDs(uint32_t capacity, qn__cl_platform *platforms, uint32_t *count) {
    if (fake_plan("platforms", 1) == 0)
        return QN__CL_PLATFORM_NOT_FOUND;
    if (fake_plan("devices", 1) == 0) { /* this needs no real one */
        *count = 1;
        platforms[0] = (qn__cl_platform)(void *)&real_library;
        return 0;
    }
    REAL(clGetPlatformIDs, get_platforms)
    return call(capacity, platforms, count);
}

EXPORT int32_t clGetPlatformInfo(qn__cl_platform platform, uint32_t name, size_t capacity,
                                 void *value, size_t *size) {
    if (name == QN__CL_PLATFORM_NAME && fake_plan("devices", 1) == 0)
        return answer_text("An empty platform", capacity, value, size);
    if (name == QN__CL_PLATFORM_NAME && fake_plan("nvidia", 0))
        return answer_text("NVIDIA CUDA", capacity, value, size);
    if (name == QN__CL_PLATFORM_NAME && fake_plan("binaries", 0))
        return answer_text("A platform with binaries", capacity, value, size);
    REAL(clGetPlatformInfo, get_platform_info)
    return call(platform, name, capacity, value, size);
}

EXPORT int32_t clGetDeviceIDs(qn__cl_platform platform, uint64_t types, uint32_t capacity,
                              qn__cl_device *devices, uint32_t *count) {
    if (fake_plan("devices", 1) == 0)
        return QN__CL_DEVICE_NOT_FOUND;
    REAL(clGetDeviceIDs, get_devices)
    return call(platform, types, capacity, devices, count);
}

static int32_t device_type(size_t capacity, void *value, size_t *size, uint64_t real_type) {
    uint64_t type = real_type;
    if (fake_plan("gpu", 0))
        type = QN__CL_TYPE_GPU;
    if (fake_plan("accelerator", 0))
        type = QN__CL_TYPE_ACCELERATOR;
    return answer(&type, sizeof type, capacity, value, size);
}

static int32_t device_floats(size_t capacity, void *value, size_t *size, uint64_t floats) {
    if (fake_plan("denormals", 1) == 0)
        floats &= ~(uint64_t)QN__CL_FP_DENORM;
    if (fake_plan("divide", 1) == 0)
        floats &= ~(uint64_t)QN__CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
    return answer(&floats, sizeof floats, capacity, value, size);
}

/* Yes or no, as OpenCL says it. */
static int32_t device_flag(const char *word, size_t capacity, void *value, size_t *size) {
    const uint32_t flag = fake_plan(word, 1) != 0;
    return answer(&flag, sizeof flag, capacity, value, size);
}

EXPORT int32_t clGetDeviceInfo(qn__cl_device device, uint32_t name, size_t capacity, void *value,
                               size_t *size) {
    REAL(clGetDeviceInfo, get_device_info)
    const long embedded = fake_plan("embedded", 0), memory = fake_plan("memory", 0);
    const uint64_t bytes = (uint64_t)memory << 20;
    uint64_t number = 0;
    switch (name) {
    case QN__CL_DEVICE_TYPE:
        call(device, name, sizeof number, &number, NULL);
        return device_type(capacity, value, size, number);
    case QN__CL_DEVICE_SINGLE_FP_CONFIG:
        call(device, name, sizeof number, &number, NULL);
        return device_floats(capacity, value, size, number);
    case QN__CL_DEVICE_AVAILABLE:
        return device_flag("available", capacity, value, size);
    case QN__CL_DEVICE_COMPILER_AVAILABLE:
        return device_flag("compiler", capacity, value, size);
    case QN__CL_DEVICE_ENDIAN_LITTLE:
        return device_flag("endian", capacity, value, size);
    case QN__CL_DEVICE_PROFILE:
        if (embedded)
            return answer_text("EMBEDDED_PROFILE", capacity, value, size);
        break;
    case QN__CL_DEVICE_EXTENSIONS:
        if (embedded)
            return answer_text(embedded == 2 ? "cles_khr_int64" : "", capacity, value, size);
        if (fake_plan("atomics", 1) == 0)
            return answer_text("cl_khr_fp64", capacity, value, size);
        if (fake_plan("dots", 0))
            return answer_text("cl_khr_int64_base_atomics cl_khr_integer_dot_product", capacity,
                               value, size);
        break;
    case QN__CL_DEVICE_VERSION:
        if (fake_plan("version", 12) == 11)
            return answer_text("OpenCL 1.1 of the fake", capacity, value, size);
        break;
    case QN__CL_DEVICE_GLOBAL_MEM_SIZE:
    case QN__CL_DEVICE_MAX_MEM_ALLOC_SIZE:
        if (memory)
            return answer(&bytes, sizeof bytes, capacity, value, size);
        break;
    default:
        break;
    }
    return call(device, name, capacity, value, size);
}

/* ---------------------------------------------------------------- contexts and memory */

/* Of dots=4: whether the last program was built with products of packed bytes, and whether a kernel
 * of it has failed in the last context. */
static atomic_int has_dots, broken;

static int fails_by_dots(void) {
    if (fake_plan("dots", 0) == 4 && atomic_load(&has_dots))
        atomic_store(&broken, 1);
    return atomic_load(&broken);
}

EXPORT qn__cl_context clCreateContext(const intptr_t *properties, uint32_t devices,
                                      const qn__cl_device *device,
                                      void (*notify)(const char *, const void *, size_t, void *),
                                      void *user, int32_t *code) {
    REAL(clCreateContext, create_context)
    const long failure = fake_plan("context", 0);
    atomic_store(&broken, 0);
    if (failure == 0)
        return call(properties, devices, device, notify, user, code);
    *code = (int32_t)-failure;
    return NULL;
}

EXPORT int32_t clReleaseContext(qn__cl_context context) {
    REAL(clReleaseContext, release_context)
    return call(context);
}

EXPORT qn__cl_queue clCreateCommandQueue(qn__cl_context context, qn__cl_device device,
                                         uint64_t properties, int32_t *code) {
    REAL(clCreateCommandQueue, create_queue)
    return call(context, device, properties, code);
}

EXPORT int32_t clReleaseCommandQueue(qn__cl_queue queue) {
    REAL(clReleaseCommandQueue, release_queue)
    return call(queue);
}

EXPORT qn__cl_memory clCreateBuffer(qn__cl_context context, uint64_t flags, size_t bytes,
                                    void *host, int32_t *code) {
    REAL(clCreateBuffer, create_buffer)
    if (fake_turn(FAKE_ALLOC)) {
        *code = NO_MEMORY;
        return NULL;
    }
    if (!fake_plan("fill", 0) || host)
        return call(context, flags, bytes, host, code);
    void *garbage = malloc(bytes); /* the real library copies it */
    if (garbage)
        memset(garbage, 0xff, bytes);
    const uint64_t copy = garbage ? COPY_HOST_POINTER : 0;
    const qn__cl_memory memory = call(context, flags | copy, bytes, garbage, code);
    free(garbage);
    return memory;
}

EXPORT int32_t clReleaseMemObject(qn__cl_memory memory) {
    REAL(clReleaseMemObject, release_memory)
    return call(memory);
}

/* ---------------------------------------------------------------- programs */

/* What a device with products of packed bytes computes. */
static const char sum_of_bytes[] =
    "(as_char4(a).s0 * as_char4(b).s0 + as_char4(a).s1 * as_char4(b).s1 + "
    "as_char4(a).s2 * as_char4(b).s2 + as_char4(a).s3 * as_char4(b).s3)";

/* The text with one piece of it replaced; the program ends when it has no such piece. */
static char *changed(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    char *copy = malloc(strlen(text) + strlen(to) + 1);
    if (!at || !copy) {
        fprintf(stderr, "fake OpenCL: the program has no \"%s\"\n", from);
        _exit(99);
    }
    const size_t before = (size_t)(at - text);
    memcpy(copy, text, before);
    strcpy(copy + before, to);
    strcat(copy, at + strlen(from));
    return copy;
}

EXPORT qn__cl_program clCreateProgramWithSource(qn__cl_context context, uint32_t texts,
                                                const char **text, const size_t *lengths,
                                                int32_t *code) {
    REAL(clCreateProgramWithSource, create_with_source)
    char *other = NULL;
    if (fake_plan("fma", 1) == 0)
        other = changed(*text, "qn_fma(a, b, c) fma(a, b, c)", "qn_fma(a, b, c) ((a) * (b) + (c))");
    if (fake_plan("totals", 1) == 0 && strstr(*text, "qn_user_totals("))
        other = changed(*text, "digit2 += ", "digit1 += ");
    if (fake_plan("pairs", 1) == 0 && strstr(*text, "qn_sum_products("))
        other = changed(*text, "(added < low)", "0u");
    if (fake_plan("columns", 1) == 0 && strstr(*text, "qn_sum_powers("))
        other = changed(*text, "(sum < low)", "0u");
    if (fake_plan("counts", 1) == 0 && strstr(*text, "qn_count_chunk("))
        other = changed(*text, "- 1u] <= own", "- 1u] < own");
    if (fake_plan("wrong", 0))
        other = changed(*text, "convert_float_rte(", "convert_float_rtz(");
    if (fake_plan("dots", 0) > 1)
        other = changed(*text, "dot_4x8packed_ss_int((qn_u32)(a), (qn_u32)(b))",
                        fake_plan("dots", 0) == 2 ? "(a) * (b)" : sum_of_bytes);
    const char *given = other ? other : *text;
    const qn__cl_program program = call(context, texts, &given, lengths, code);
    free(other);
    return program;
}

/* Binaries are this mark, the options, and the text: asking PoCL for its own would compile every
 * kernel. */
static const char mark[] = "fake binary";

enum { PROGRAM_SOURCE = 0x1164 };

static _Thread_local qn__cl_program from_binary;
static _Thread_local char its_options[512];

EXPORT qn__cl_program clCreateProgramWithBinary(qn__cl_context context, uint32_t devices,
                                                const qn__cl_device *device, const size_t *lengths,
                                                const unsigned char **binaries, int32_t *each,
                                                int32_t *code) {
    REAL(clCreateProgramWithSource, create_with_source)
    const char *binary = (const char *)binaries[0];
    (void)devices, (void)device;
    if (fake_plan("binary", 0) == 1 || lengths[0] < sizeof mark ||
        memcmp(binary, mark, sizeof mark) != 0) {
        *each = *code = INVALID_BINARY;
        return NULL;
    }
    snprintf(its_options, sizeof its_options, "%s", binary + sizeof mark);
    const char *text = binary + sizeof mark + strlen(its_options) + 1;
    *each = 0;
    from_binary = call(context, 1, &text, NULL, code);
    return from_binary;
}

/* A platform with binaries is asked for the kernels of one arithmetic, PoCL for those of all. Here
 * it builds what it is asked for elsewhere, and so finds the machine code in its own cache. */
static void want_all_products(char *options) {
    static const char word[] = "-DQN_PRODUCTS=";
    char *const number = strstr(options, word), rest[512];
    if (!number || !fake_plan("binaries", 0))
        return;
    snprintf(rest, sizeof rest, "%s", number + strcspn(number, " "));
    sprintf(number, "%s%u%s", word, QN_WITH_ALL | QN_WITH_LARGE | QN_WITH_PIXELS, rest);
}

EXPORT int32_t clBuildProgram(qn__cl_program program, uint32_t devices, const qn__cl_device *device,
                              const char *options, void (*notify)(qn__cl_program, void *),
                              void *user) {
    REAL(clBuildProgram, build_program)
    char more[1024];
    const int is_binary = program == from_binary;
    if (fake_plan("build", 0) || (fake_plan("source", 0) && !is_binary) ||
        (fake_plan("binary", 0) == 2 && is_binary))
        return BUILD_FAILURE;
    atomic_store(&has_dots, strstr(options, "-DQN_DOT=1") != NULL);
    if (!is_binary)
        snprintf(its_options, sizeof its_options, "%s", options);
    snprintf(more, sizeof more, "%s%s", its_options,
             fake_plan("flush", 0) ? " -cl-denorms-are-zero" : "");
    want_all_products(more);
    return call(program, devices, device, more, notify, user);
}

/* Writes the binary of a program and returns its length; only the length when `to` is NULL. */
static size_t make_binary(qn__cl_program program, char *to) {
    REAL(clGetProgramInfo, get_program_info)
    size_t text = 0;
    const size_t options = strlen(its_options) + 1;
    call(program, PROGRAM_SOURCE, 0, NULL, &text);
    if (to) {
        memcpy(to, mark, sizeof mark);
        memcpy(to + sizeof mark, its_options, options);
        call(program, PROGRAM_SOURCE, text, to + sizeof mark + options, NULL);
    }
    return sizeof mark + options + text;
}

EXPORT int32_t clGetProgramInfo(qn__cl_program program, uint32_t name, size_t capacity, void *value,
                                size_t *size) {
    if (name == QN__CL_PROGRAM_BINARY_SIZES) {
        const size_t bytes = make_binary(program, NULL);
        return answer(&bytes, sizeof bytes, capacity, value, size);
    }
    make_binary(program, *(char **)value);
    return 0;
}

EXPORT int32_t clGetProgramBuildInfo(qn__cl_program program, qn__cl_device device, uint32_t name,
                                     size_t capacity, void *value, size_t *size) {
    REAL(clGetProgramBuildInfo, get_build_info)
    if (fake_plan("build", 0) && name == QN__CL_PROGRAM_BUILD_LOG)
        return answer_text("\n  \nprogram:7:1: error: the fake dislikes this\n   qn_u64 x;\r\n   "
                           "^~~~\nanother line\n",
                           capacity, value, size);
    return call(program, device, name, capacity, value, size);
}

EXPORT int32_t clReleaseProgram(qn__cl_program program) {
    REAL(clReleaseProgram, release_program)
    return call(program);
}

EXPORT qn__cl_kernel clCreateKernel(qn__cl_program program, const char *name, int32_t *code) {
    REAL(clCreateKernel, create_kernel)
    if (!fake_plan("kernel", 0))
        return call(program, name, code);
    *code = -46;
    return NULL;
}

EXPORT int32_t clReleaseKernel(qn__cl_kernel kernel) {
    REAL(clReleaseKernel, release_kernel)
    return call(kernel);
}

EXPORT int32_t clSetKernelArg(qn__cl_kernel kernel, uint32_t index, size_t size,
                              const void *value) {
    REAL(clSetKernelArg, set_argument)
    return call(kernel, index, size, value);
}

EXPORT int32_t clGetKernelWorkGroupInfo(qn__cl_kernel kernel, qn__cl_device device, uint32_t name,
                                        size_t capacity, void *value, size_t *size) {
    REAL(clGetKernelWorkGroupInfo, get_group_info)
    const size_t groups = (size_t)fake_plan("groups", 0);
    if (groups && name == QN__CL_KERNEL_WORK_GROUP_SIZE)
        return answer(&groups, sizeof groups, capacity, value, size);
    return call(kernel, device, name, capacity, value, size);
}

/* ---------------------------------------------------------------- commands */

EXPORT int32_t clEnqueueNDRangeKernel(qn__cl_queue queue, qn__cl_kernel kernel, uint32_t dimensions,
                                      const size_t *offset, const size_t *global,
                                      const size_t *local, uint32_t waits, const qn__cl_event *wait,
                                      qn__cl_event *event) {
    REAL(clEnqueueNDRangeKernel, enqueue_kernel)
    if (fake_turn(FAKE_LAUNCH) || fake_since("remove") || fails_by_dots())
        return FAILURE;
    return call(queue, kernel, dimensions, offset, global, local, waits, wait, event);
}

EXPORT int32_t clEnqueueReadBuffer(qn__cl_queue queue, qn__cl_memory memory, uint32_t blocking,
                                   size_t offset, size_t bytes, void *to, uint32_t waits,
                                   const qn__cl_event *wait, qn__cl_event *event) {
    REAL(clEnqueueReadBuffer, enqueue_read)
    if (fake_turn(FAKE_READ) || fake_since("remove") || atomic_load(&broken))
        return FAILURE;
    return call(queue, memory, blocking, offset, bytes, to, waits, wait, event);
}

EXPORT int32_t clEnqueueWriteBuffer(qn__cl_queue queue, qn__cl_memory memory, uint32_t blocking,
                                    size_t offset, size_t bytes, const void *from, uint32_t waits,
                                    const qn__cl_event *wait, qn__cl_event *event) {
    REAL(clEnqueueWriteBuffer, enqueue_write)
    if (fake_turn(FAKE_WRITE) || fake_since("remove") || atomic_load(&broken))
        return FAILURE;
    return call(queue, memory, blocking, offset, bytes, from, waits, wait, event);
}

EXPORT int32_t clEnqueueFillBuffer(qn__cl_queue queue, qn__cl_memory memory, const void *pattern,
                                   size_t pattern_bytes, size_t offset, size_t bytes,
                                   uint32_t waits, const qn__cl_event *wait, qn__cl_event *event) {
    REAL(clEnqueueFillBuffer, enqueue_fill)
    return call(queue, memory, pattern, pattern_bytes, offset, bytes, waits, wait, event);
}

EXPORT void *clEnqueueMapBuffer(qn__cl_queue queue, qn__cl_memory memory, uint32_t blocking,
                                uint64_t flags, size_t offset, size_t bytes, uint32_t waits,
                                const qn__cl_event *wait, qn__cl_event *event, int32_t *code) {
    REAL(clEnqueueMapBuffer, enqueue_map)
    return call(queue, memory, blocking, flags, offset, bytes, waits, wait, event, code);
}

EXPORT int32_t clEnqueueUnmapMemObject(qn__cl_queue queue, qn__cl_memory memory, void *mapped,
                                       uint32_t waits, const qn__cl_event *wait,
                                       qn__cl_event *event) {
    REAL(clEnqueueUnmapMemObject, enqueue_unmap)
    return call(queue, memory, mapped, waits, wait, event);
}

EXPORT int32_t clEnqueueMarkerWithWaitList(qn__cl_queue queue, uint32_t waits,
                                           const qn__cl_event *wait, qn__cl_event *event) {
    REAL(clEnqueueMarkerWithWaitList, enqueue_marker)
    return call(queue, waits, wait, event);
}

EXPORT int32_t clEnqueueBarrierWithWaitList(qn__cl_queue queue, uint32_t waits,
                                            const qn__cl_event *wait, qn__cl_event *event) {
    REAL(clEnqueueBarrierWithWaitList, enqueue_barrier)
    return call(queue, waits, wait, event);
}

EXPORT int32_t clFlush(qn__cl_queue queue) {
    REAL(clFlush, flush)
    return fake_since("remove") ? -36 : call(queue);
}

EXPORT int32_t clGetEventInfo(qn__cl_event event, uint32_t name, size_t capacity, void *value,
                              size_t *size) {
    REAL(clGetEventInfo, get_event_info)
    const int32_t running = 1, failed = -14;
    if (name == QN__CL_EVENT_COMMAND_EXECUTION_STATUS && fake_since("hang"))
        return answer(&running, sizeof running, capacity, value, size);
    if (name == QN__CL_EVENT_COMMAND_EXECUTION_STATUS && fake_since("event"))
        return answer(&failed, sizeof failed, capacity, value, size);
    return call(event, name, capacity, value, size);
}

EXPORT int32_t clGetEventProfilingInfo(qn__cl_event event, uint32_t name, size_t capacity,
                                       void *value, size_t *size) {
    REAL(clGetEventProfilingInfo, get_profile)
    return call(event, name, capacity, value, size);
}

EXPORT int32_t clReleaseEvent(qn__cl_event event) {
    REAL(clReleaseEvent, release_event)
    return call(event);
}
