/* Declarations of the part of OpenCL 1.2 that Quern uses, so that building needs no OpenCL headers,
 * and the library that is opened at run time. Constants are those of the standard. */
#ifndef QN_DEVICE_OPENCL_OPENCL_API_H
#define QN_DEVICE_OPENCL_OPENCL_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct qn__cl_platform_object *qn__cl_platform;
typedef struct qn__cl_device_object *qn__cl_device;
typedef struct qn__cl_context_object *qn__cl_context;
typedef struct qn__cl_queue_object *qn__cl_queue;
typedef struct qn__cl_memory_object *qn__cl_memory;
typedef struct qn__cl_program_object *qn__cl_program;
typedef struct qn__cl_kernel_object *qn__cl_kernel;
typedef struct qn__cl_event_object *qn__cl_event;

enum {
    QN__CL_SUCCESS = 0,
    QN__CL_DEVICE_NOT_FOUND = -1,
    QN__CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    QN__CL_OUT_OF_HOST_MEMORY = -6,
    QN__CL_PLATFORM_NOT_FOUND = -1001,

    QN__CL_PLATFORM_VERSION = 0x0901,
    QN__CL_PLATFORM_NAME = 0x0902,

    QN__CL_DEVICE_TYPE = 0x1000,
    QN__CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    QN__CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    QN__CL_DEVICE_SINGLE_FP_CONFIG = 0x101B,
    QN__CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    QN__CL_DEVICE_ENDIAN_LITTLE = 0x1026,
    QN__CL_DEVICE_AVAILABLE = 0x1027,
    QN__CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    QN__CL_DEVICE_NAME = 0x102B,
    QN__CL_DRIVER_VERSION = 0x102D,
    QN__CL_DEVICE_PROFILE = 0x102E,
    QN__CL_DEVICE_VERSION = 0x102F,
    QN__CL_DEVICE_EXTENSIONS = 0x1030,
    QN__CL_DEVICE_PCI_BUS_INFO = 0x410F, /* cl_khr_pci_bus_info */

    QN__CL_TYPE_CPU = 2,
    QN__CL_TYPE_GPU = 4,
    QN__CL_TYPE_ACCELERATOR = 8,

    QN__CL_FP_DENORM = 1,
    QN__CL_FP_INF_NAN = 2,
    QN__CL_FP_ROUND_TO_NEAREST = 4,
    QN__CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 128,

    QN__CL_QUEUE_PROFILING_ENABLE = 2,
    QN__CL_MEM_READ_WRITE = 1,
    QN__CL_MEM_ALLOC_HOST_PTR = 16,
    QN__CL_MAP_READ = 1,
    QN__CL_MAP_WRITE = 2,

    QN__CL_PROGRAM_BINARY_SIZES = 0x1165,
    QN__CL_PROGRAM_BINARIES = 0x1166,
    QN__CL_PROGRAM_BUILD_LOG = 0x1183,
    QN__CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
    QN__CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,
    QN__CL_PROFILING_COMMAND_START = 0x1282,
    QN__CL_PROFILING_COMMAND_END = 0x1283
};

/* The functions, in the order of the standard's text. */
typedef struct qn__cl_api {
    int32_t (*get_platforms)(uint32_t capacity, qn__cl_platform *platforms, uint32_t *count);
    int32_t (*get_platform_info)(qn__cl_platform platform, uint32_t name, size_t capacity,
                                 void *value, size_t *size);
    int32_t (*get_devices)(qn__cl_platform platform, uint64_t types, uint32_t capacity,
                           qn__cl_device *devices, uint32_t *count);
    int32_t (*get_device_info)(qn__cl_device device, uint32_t name, size_t capacity, void *value,
                               size_t *size);
    qn__cl_context (*create_context)(const intptr_t *properties, uint32_t devices,
                                     const qn__cl_device *device,
                                     void (*notify)(const char *, const void *, size_t, void *),
                                     void *user, int32_t *code);
    int32_t (*release_context)(qn__cl_context context);
    qn__cl_queue (*create_queue)(qn__cl_context context, qn__cl_device device, uint64_t properties,
                                 int32_t *code);
    int32_t (*release_queue)(qn__cl_queue queue);
    qn__cl_memory (*create_buffer)(qn__cl_context context, uint64_t flags, size_t bytes, void *host,
                                   int32_t *code);
    int32_t (*release_memory)(qn__cl_memory memory);
    qn__cl_program (*create_with_source)(qn__cl_context context, uint32_t texts, const char **text,
                                         const size_t *lengths, int32_t *code);
    qn__cl_program (*create_with_binary)(qn__cl_context context, uint32_t devices,
                                         const qn__cl_device *device, const size_t *lengths,
                                         const unsigned char **binaries, int32_t *each,
                                         int32_t *code);
    int32_t (*build_program)(qn__cl_program program, uint32_t devices, const qn__cl_device *device,
                             const char *options, void (*notify)(qn__cl_program, void *),
                             void *user);
    int32_t (*get_program_info)(qn__cl_program program, uint32_t name, size_t capacity, void *value,
                                size_t *size);
    int32_t (*get_build_info)(qn__cl_program program, qn__cl_device device, uint32_t name,
                              size_t capacity, void *value, size_t *size);
    int32_t (*release_program)(qn__cl_program program);
    qn__cl_kernel (*create_kernel)(qn__cl_program program, const char *name, int32_t *code);
    int32_t (*release_kernel)(qn__cl_kernel kernel);
    int32_t (*set_argument)(qn__cl_kernel kernel, uint32_t index, size_t size, const void *value);
    int32_t (*get_group_info)(qn__cl_kernel kernel, qn__cl_device device, uint32_t name,
                              size_t capacity, void *value, size_t *size);
    int32_t (*enqueue_kernel)(qn__cl_queue queue, qn__cl_kernel kernel, uint32_t dimensions,
                              const size_t *offset, const size_t *global, const size_t *local,
                              uint32_t waits, const qn__cl_event *wait, qn__cl_event *event);
    int32_t (*enqueue_read)(qn__cl_queue queue, qn__cl_memory memory, uint32_t blocking,
                            size_t offset, size_t bytes, void *to, uint32_t waits,
                            const qn__cl_event *wait, qn__cl_event *event);
    int32_t (*enqueue_write)(qn__cl_queue queue, qn__cl_memory memory, uint32_t blocking,
                             size_t offset, size_t bytes, const void *from, uint32_t waits,
                             const qn__cl_event *wait, qn__cl_event *event);
    int32_t (*enqueue_fill)(qn__cl_queue queue, qn__cl_memory memory, const void *pattern,
                            size_t pattern_bytes, size_t offset, size_t bytes, uint32_t waits,
                            const qn__cl_event *wait, qn__cl_event *event);
    void *(*enqueue_map)(qn__cl_queue queue, qn__cl_memory memory, uint32_t blocking,
                         uint64_t flags, size_t offset, size_t bytes, uint32_t waits,
                         const qn__cl_event *wait, qn__cl_event *event, int32_t *code);
    int32_t (*enqueue_unmap)(qn__cl_queue queue, qn__cl_memory memory, void *mapped, uint32_t waits,
                             const qn__cl_event *wait, qn__cl_event *event);
    int32_t (*enqueue_marker)(qn__cl_queue queue, uint32_t waits, const qn__cl_event *wait,
                              qn__cl_event *event);
    int32_t (*enqueue_barrier)(qn__cl_queue queue, uint32_t waits, const qn__cl_event *wait,
                               qn__cl_event *event);
    int32_t (*flush)(qn__cl_queue queue);
    int32_t (*get_event_info)(qn__cl_event event, uint32_t name, size_t capacity, void *value,
                              size_t *size);
    int32_t (*get_profile)(qn__cl_event event, uint32_t name, size_t capacity, void *value,
                           size_t *size);
    int32_t (*release_event)(qn__cl_event event);
} qn__cl_api;

/* Opens the library, once for the process, and finds its functions. NULL on failure; `why` is then
 * a sentence with a remedy, static. */
const qn__cl_api *qn__cl_load(const char **why);

/* "CL_OUT_OF_RESOURCES"; "error -1234" (in a thread-local buffer) for a code that the standard does
 * not name. */
const char *qn__cl_error_name(int32_t code);

/* What a user can do about it; "" where nothing is known. */
const char *qn__cl_error_remedy(int32_t code);

#endif
