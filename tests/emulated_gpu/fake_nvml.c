/* An NVML whose devices draw 100 watts, all the time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void) { return 0; }

EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned capacity);
int nvmlSystemGetDriverVersion(char *text, unsigned capacity) {
    snprintf(text, capacity, "580.00.01");
    return 0;
}

EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device) {
    static char one;
    if (strncmp(pci, "0000:", 5) != 0)
        return 6;
    *device = &one;
    return 0;
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *millijoules =
        (unsigned long long)now.tv_sec * 100000 + (unsigned long long)now.tv_nsec / 10000;
    return device ? 0 : 2;
}
