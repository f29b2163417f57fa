/* Opens the OpenCL library; the names of its errors. */
#include "base/system/float_state.h"
#include "device/opencl/opencl_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const struct entry {
    const char *name;
    size_t place;
} entries[] = {
#define ENTRY(name, member)                                                                        \
    { name, offsetof(qn__cl_api, member) }
    ENTRY("clGetPlatformIDs", get_platforms),
    ENTRY("clGetPlatformInfo", get_platform_info),
    ENTRY("clGetDeviceIDs", get_devices),
    ENTRY("clGetDeviceInfo", get_device_info),
    ENTRY("clCreateContext", create_context),
    ENTRY("clReleaseContext", release_context),
    ENTRY("clCreateCommandQueue", create_queue),
    ENTRY("clReleaseCommandQueue", release_queue),
    ENTRY("clCreateBuffer", create_buffer),
    ENTRY("clReleaseMemObject", release_memory),
    ENTRY("clCreateProgramWithSource", create_with_source),
    ENTRY("clCreateProgramWithBinary", create_with_binary),
    ENTRY("clBuildProgram", build_program),
    ENTRY("clGetProgramInfo", get_program_info),
    ENTRY("clGetProgramBuildInfo", get_build_info),
    ENTRY("clReleaseProgram", release_program),
    ENTRY("clCreateKernel", create_kernel),
    ENTRY("clReleaseKernel", release_kernel),
    ENTRY("clSetKernelArg", set_argument),
    ENTRY("clGetKernelWorkGroupInfo", get_group_info),
    ENTRY("clEnqueueNDRangeKernel", enqueue_kernel),
    ENTRY("clEnqueueReadBuffer", enqueue_read),
    ENTRY("clEnqueueWriteBuffer", enqueue_write),
    ENTRY("clEnqueueFillBuffer", enqueue_fill),
    ENTRY("clEnqueueMapBuffer", enqueue_map),
    ENTRY("clEnqueueUnmapMemObject", enqueue_unmap),
    ENTRY("clEnqueueMarkerWithWaitList", enqueue_marker),
    ENTRY("clEnqueueBarrierWithWaitList", enqueue_barrier),
    ENTRY("clFlush", flush),
    ENTRY("clGetEventInfo", get_event_info),
    ENTRY("clGetEventProfilingInfo", get_profile),
    ENTRY("clReleaseEvent", release_event),
#undef ENTRY
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static qn__cl_api api;
static int loaded;
static char reason[400];

static void *open_library(void) {
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
    char first[200] = "";
    for (int i = 0; i < 2; ++i) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        const char *error = library ? NULL : dlerror();
        qn__float_state_set();
        if (library)
            return library;
        if (i == 0)
            snprintf(first, sizeof first, "%s", error ? error : "no reason was given");
    }
    snprintf(reason, sizeof reason,
             "there is no OpenCL library (%s): install the package ocl-icd-libopencl1, and the "
             "driver of the GPU's vendor, or pocl-opencl-icd for processors",
             first);
    return NULL;
}

static void load(void) {
    void *const library = open_library();
    if (!library)
        return;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; ++i) {
        void *function = dlsym(library, entries[i].name);
        if (!function) {
            snprintf(reason, sizeof reason,
                     "the OpenCL library here has no %s, so it is older than OpenCL 1.2: install "
                     "the package ocl-icd-libopencl1",
                     entries[i].name);
            return;
        }
        memcpy((char *)&api + entries[i].place, &function, sizeof function);
    }
    loaded = 1;
}

const qn__cl_api *qn__cl_load(const char **why) {
    pthread_once(&once, load);
    *why = reason;
    return loaded ? &api : NULL;
}

/* ---------------------------------------------------------------- errors */

static const struct error {
    int32_t code;
    const char *name;
} errors[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-12, "CL_MAP_FAILURE"},
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-15, "CL_COMPILE_PROGRAM_FAILURE"},
    {-16, "CL_LINKER_NOT_AVAILABLE"},
    {-17, "CL_LINK_PROGRAM_FAILURE"},
    {-30, "CL_INVALID_VALUE"},
    {-31, "CL_INVALID_DEVICE_TYPE"},
    {-32, "CL_INVALID_PLATFORM"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-35, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-37, "CL_INVALID_HOST_PTR"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-47, "CL_INVALID_KERNEL_DEFINITION"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-53, "CL_INVALID_WORK_DIMENSION"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-56, "CL_INVALID_GLOBAL_OFFSET"},
    {-57, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

const char *qn__cl_error_name(int32_t code) {
    static _Thread_local char other[32];
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (errors[i].code == code)
            return errors[i].name;
    snprintf(other, sizeof other, "error %d", (int)code);
    return other;
}

const char *qn__cl_error_remedy(int32_t code) {
    switch (code) {
    case -2:
        return "another program may hold it, or it is switched off; try again, or leave it out of "
               "`compute.devices`";
    case -4:
    case -5:
    case -6:
        return "its memory may be full: end other programs that use it, take a smaller batch, or "
               "leave it out of `compute.devices`";
    case -3:
    case -11:
    case -15:
    case -16:
    case -17:
        return "install its driver's OpenCL compiler or a newer driver, or leave it out of "
               "`compute.devices`";
    default:
        return "the system's log may have details; leave it out of `compute.devices`, or update "
               "its "
               "driver";
    }
}
