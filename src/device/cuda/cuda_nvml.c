/* NVML: the energy counter of a GPU, and the driver's version. Both are for reports, and their
 * absence is not a failure. */
#include "device/cuda/cuda_api.h"
#include "device/cuda/cuda_devices.h"
#include <pthread.h>

typedef struct nvml_device nvml_device;

static struct {
    int (*init)(void);
    int (*version)(char *text, unsigned capacity);
    int (*device)(const char *pci, nvml_device **device);
    int (*energy)(nvml_device *device, unsigned long long *millijoules);
} nvml;

static int usable;

static void open_nvml(void) {
    static const char *const names[] = {"libnvidia-ml.so.1", "libnvidia-ml.so", NULL};
    static const qn__cuda_symbol symbols[] = {
        {"nvmlInit_v2", 0, 0},
        {"nvmlSystemGetDriverVersion", sizeof(void *), 0},
        {"nvmlDeviceGetHandleByPciBusId_v2", 2 * sizeof(void *), 0},
        {"nvmlDeviceGetTotalEnergyConsumption", 3 * sizeof(void *), 0},
        {NULL, 0, 0},
    };
    char why[256];
    void *library = qn__cuda_library_open(names, NULL, why);
    usable = library && !qn__cuda_library_fill(library, symbols, &nvml) && nvml.init() == 0;
}

static int ready(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_nvml);
    return usable;
}

int qn__cuda_nvml_energy(const char *pci, double *joules) {
    nvml_device *device;
    unsigned long long millijoules;
    if (!ready() || nvml.device(pci, &device) != 0 || nvml.energy(device, &millijoules) != 0)
        return 0;
    *joules = (double)millijoules * 1e-3;
    return 1;
}

int qn__cuda_nvml_version(char *text, unsigned capacity) {
    return ready() && nvml.version(text, capacity) == 0;
}
