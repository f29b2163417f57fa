/* Opens libraries, among them the CUDA driver. */
#include "base/system/float_state.h"
#include "device/cuda/cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The oldest driver: stream capture in its present form, and NVRTC with machine code output. */
enum { OLDEST_DRIVER = 11000 };

static qn__cuda_driver the_driver;
static int usable;
static char reason[512];

void *qn__cuda_library_open(const char *const *names, const char **found, char *why) {
    for (; *names; ++names) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        qn__float_state_set();
        if (library) {
            if (found)
                *found = *names;
            return library;
        }
        const char *said = dlerror();
        snprintf(why, 256, "%s", said ? said : *names);
    }
    return NULL;
}

const char *qn__cuda_library_fill(void *library, const qn__cuda_symbol *symbols, void *functions) {
    const char *missing = NULL;
    for (; symbols->name; ++symbols) {
        void *function = dlsym(library, symbols->name);
        if (!function && !symbols->optional && !missing)
            missing = symbols->name;
        memcpy((char *)functions + symbols->place, &function, sizeof function);
    }
    return missing;
}

#define PLACE(member) offsetof(qn__cuda_driver, member)

/* The suffixes are the versions of the functions: 64-bit sizes (v2) and CUDA 11. */
static const qn__cuda_symbol symbols[] = {
    {"cuInit", PLACE(init), 0},
    {"cuDriverGetVersion", PLACE(driver_version), 0},
    {"cuGetErrorName", PLACE(error_name), 0},
    {"cuGetErrorString", PLACE(error_string), 0},
    {"cuDeviceGetCount", PLACE(device_count), 0},
    {"cuDeviceGet", PLACE(device_get), 0},
    {"cuDeviceGetName", PLACE(device_name), 0},
    {"cuDeviceTotalMem_v2", PLACE(device_memory), 0},
    {"cuDeviceGetAttribute", PLACE(device_attribute), 0},
    {"cuDeviceGetPCIBusId", PLACE(device_pci_id), 0},
    {"cuDevicePrimaryCtxRetain", PLACE(context_retain), 0},
    {"cuDevicePrimaryCtxRelease_v2", PLACE(context_release), 0},
    {"cuCtxSetCurrent", PLACE(context_set), 0},
    {"cuDevicePrimaryCtxGetState", PLACE(context_state), 1},
    {"cuCtxCreate_v2", PLACE(context_create), 1},
    {"cuCtxDestroy_v2", PLACE(context_destroy), 1},
    {"cuMemGetInfo_v2", PLACE(memory_info), 0},
    {"cuMemAlloc_v2", PLACE(memory_allocate), 0},
    {"cuMemFree_v2", PLACE(memory_free), 0},
    {"cuMemHostAlloc", PLACE(host_allocate), 0},
    {"cuMemFreeHost", PLACE(host_free), 0},
    {"cuMemcpyHtoDAsync_v2", PLACE(copy_up), 0},
    {"cuMemcpyDtoHAsync_v2", PLACE(copy_down), 0},
    {"cuMemsetD8Async", PLACE(clear), 0},
    {"cuStreamCreate", PLACE(stream_create), 0},
    {"cuStreamDestroy_v2", PLACE(stream_destroy), 0},
    {"cuStreamQuery", PLACE(stream_query), 0},
    {"cuStreamWaitEvent", PLACE(stream_wait), 0},
    {"cuStreamBeginCapture_v2", PLACE(stream_begin_capture), 0},
    {"cuStreamEndCapture", PLACE(stream_end_capture), 0},
    {"cuEventCreate", PLACE(event_create), 0},
    {"cuEventDestroy_v2", PLACE(event_destroy), 0},
    {"cuEventRecord", PLACE(event_record), 0},
    {"cuEventQuery", PLACE(event_query), 0},
    {"cuEventElapsedTime", PLACE(event_elapsed), 0},
    {"cuModuleLoadDataEx", PLACE(module_load), 0},
    {"cuModuleUnload", PLACE(module_unload), 0},
    {"cuModuleGetFunction", PLACE(module_function), 0},
    {"cuLaunchKernel", PLACE(launch), 0},
    {"cuGraphInstantiateWithFlags", PLACE(graph_ready), 1},
    {"cuGraphInstantiate_v2", PLACE(graph_ready_old), 1},
    {"cuGraphLaunch", PLACE(graph_launch), 0},
    {"cuGraphExecDestroy", PLACE(graph_exec_destroy), 0},
    {"cuGraphDestroy", PLACE(graph_destroy), 0},
    {NULL, 0, 0},
};

void qn__cuda_result_text(const qn__cuda_driver *driver, qn__cu_result result, char *text) {
    const char *name = NULL, *said = NULL;
    driver->error_name(result, &name);
    driver->error_string(result, &said);
    if (!name)
        snprintf(text, 160, "error %d, which it has no name for", result);
    else
        snprintf(text, 160, "%s%s%s%s", name, said ? " (" : "", said ? said : "", said ? ")" : "");
}

/* Why an installed driver cannot be used; "" when it can. */
static void explain_start(qn__cu_result result, char *text, size_t capacity) {
    char said[160];
    text[0] = '\0';
    if (result == QN__CU_SUCCESS)
        return;
    if (result == QN__CU_NO_DEVICE) {
        snprintf(text, capacity,
                 "the CUDA driver is installed but sees no NVIDIA GPU; nvidia-smi lists what the "
                 "system has, and CUDA_VISIBLE_DEVICES may hide devices");
        return;
    }
    qn__cuda_result_text(&the_driver, result, said);
    if (result == QN__CU_SYSTEM_DRIVER_MISMATCH)
        snprintf(text, capacity,
                 "the CUDA library does not fit the kernel's NVIDIA driver: %s; start the machine "
                 "again after an update of the driver, or install both in one version",
                 said);
    else
        snprintf(text, capacity, "the CUDA driver does not start: %s; nvidia-smi may show more",
                 said);
}

static void open_driver(void) {
    static const char *const names[] = {"libcuda.so.1", NULL};
    char why[256];
    int devices = 0;
    void *library = qn__cuda_library_open(names, NULL, why);
    if (!library) {
        const int absent = strstr(why, "No such file") != NULL;
        snprintf(reason, sizeof reason,
                 "libcuda.so.1, the library of NVIDIA's driver, %s%s%s; a machine with an NVIDIA "
                 "GPU gets it with the driver, version 450 or later",
                 absent ? "is not there" : "cannot be opened (", absent ? "" : why,
                 absent ? "" : ")");
        return;
    }
    const char *missing = qn__cuda_library_fill(library, symbols, &the_driver);
    if (!missing && !the_driver.graph_ready && !the_driver.graph_ready_old)
        missing = "cuGraphInstantiateWithFlags";
    if (the_driver.driver_version && the_driver.driver_version(&the_driver.version) == 0 &&
        the_driver.version < OLDEST_DRIVER) {
        snprintf(reason, sizeof reason,
                 "NVIDIA's driver is too old: it knows CUDA %d.%d, and Quern needs 11.0; install "
                 "driver 450 or later",
                 the_driver.version / 1000, the_driver.version % 1000 / 10);
        return;
    }
    if (missing) {
        snprintf(reason, sizeof reason,
                 "libcuda.so.1 has no function %s, so it is too old or no CUDA driver; install "
                 "NVIDIA's driver 450 or later",
                 missing);
        return;
    }
    explain_start(the_driver.init(0), reason, sizeof reason);
    if (reason[0])
        return;
    qn__cu_result result = the_driver.device_count(&devices);
    explain_start(result == QN__CU_SUCCESS && devices < 1 ? QN__CU_NO_DEVICE : result, reason,
                  sizeof reason);
    usable = !reason[0];
}

const qn__cuda_driver *qn__cuda_driver_get(const char **why) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_driver);
    if (why)
        *why = reason;
    return usable ? &the_driver : NULL;
}
