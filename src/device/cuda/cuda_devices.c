/* Counting and describing CUDA devices. */
#include "device/cuda/cuda_devices.h"

#include "device/cuda/cuda_compile.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MODE_PROHIBITED = 2 };

static qn__cuda_device_entry devices[QN__CUDA_DEVICES];
static uint32_t known;

static int attribute(const qn__cuda_driver *cu, qn__cu_device device, int which) {
    int value = 0;
    return cu->device_attribute(&value, which, device) == QN__CU_SUCCESS ? value : 0;
}

static void look_at(const qn__cuda_driver *cu, int ordinal) {
    qn__cuda_device_entry *d = &devices[known];
    size_t memory = 0;
    if (cu->device_get(&d->device, ordinal) != QN__CU_SUCCESS)
        return;
    if (cu->device_name(d->name, (int)sizeof d->name, d->device) != QN__CU_SUCCESS)
        snprintf(d->name, sizeof d->name, "NVIDIA GPU");
    d->name[sizeof d->name - 1] = '\0';
    if (cu->device_pci_id(d->pci, (int)sizeof d->pci, d->device) != QN__CU_SUCCESS)
        d->pci[0] = '\0';
    if (cu->device_memory(&memory, d->device) == QN__CU_SUCCESS)
        d->memory = memory;
    d->capability = 10 * attribute(cu, d->device, QN__CU_CAPABILITY_MAJOR) +
                    attribute(cu, d->device, QN__CU_CAPABILITY_MINOR);
    d->multiprocessors = attribute(cu, d->device, QN__CU_MULTIPROCESSORS);
    d->cache = (uint64_t)attribute(cu, d->device, QN__CU_L2_CACHE);
    d->forbidden = attribute(cu, d->device, QN__CU_COMPUTE_MODE) == MODE_PROHIBITED;
    pthread_mutex_init(&d->lock, NULL);
    ++known;
}

static void look_for_devices(void) {
    const qn__cuda_driver *cu = qn__cuda_driver_get(NULL);
    int all = 0;
    if (!cu || cu->device_count(&all) != QN__CU_SUCCESS)
        return;
    for (int i = 0; i < all && known < QN__CUDA_DEVICES; ++i)
        look_at(cu, i);
}

uint32_t qn__cuda_count(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_devices);
    return known;
}

qn__cuda_device_entry *qn__cuda_device_get(uint32_t index) {
    return index < qn__cuda_count() ? &devices[index] : NULL;
}

const char *qn__cuda_absence(void) {
    const char *why;
    return qn__cuda_driver_get(&why) ? "" : why;
}

qn_status qn__cuda_describe(uint32_t index, qn_device_info *info, qn_error *err) {
    const qn__cuda_device_entry *d = qn__cuda_device_get(index);
    char version[80];
    if (!d)
        return qn__fail(err, QN_USAGE, "there is no CUDA device %u; this machine has %u", index,
                        qn__cuda_count());
    const int driver = qn__cuda_driver_get(NULL)->version;
    memset(info, 0, sizeof *info);
    snprintf(info->id, sizeof info->id, "cuda:%u", index);
    snprintf(info->kind, sizeof info->kind, "cuda");
    snprintf(info->type, sizeof info->type, "GPU");
    snprintf(info->name, sizeof info->name, "%s", d->name);
    snprintf(info->platform, sizeof info->platform, "compute capability %d.%d", d->capability / 10,
             d->capability % 10);
    if (qn__cuda_nvml_version(version, sizeof version))
        snprintf(info->driver, sizeof info->driver, "%s, CUDA %d.%d", version, driver / 1000,
                 driver % 1000 / 10);
    else
        snprintf(info->driver, sizeof info->driver, "CUDA %d.%d", driver / 1000,
                 driver % 1000 / 10);
    info->cores = d->multiprocessors;
    info->memory = d->memory;
    info->cache[1] = d->cache;
    const char *compiler = qn__cuda_compiler_absence(driver);
    if (d->forbidden)
        snprintf(info->reason, sizeof info->reason,
                 "its compute mode is \"prohibited\"; nvidia-smi -c DEFAULT opens it");
    else if (compiler[0])
        snprintf(info->reason, sizeof info->reason, "%s", compiler);
    info->refused = info->reason[0] != '\0';
    info->automatic = !info->refused;
    return QN_OK;
}

int qn__cuda_energy(uint32_t index, double *joules) {
    const qn__cuda_device_entry *d = qn__cuda_device_get(index);
    return d && d->pci[0] && qn__cuda_nvml_energy(d->pci, joules);
}
