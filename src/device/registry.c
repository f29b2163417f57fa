/* The backends, and the public view of the devices they find. */
#include "device/cpu/cpu_table.h"
#include "device/device.h"
#include "device/fake/fake.h"
#include <string.h>

const qn__device_table *const qn__devices[] = {&qn__cpu_device, &qn__fake_device, NULL};

const qn__device_table *qn__device_find(const char *name) {
    for (int i = 0; qn__devices[i]; ++i)
        if (qn__devices[i]->version == QN__DEVICE_VERSION &&
            strcmp(qn__devices[i]->name, name) == 0)
            return qn__devices[i];
    return NULL;
}

uint32_t qn_device_count(void) {
    uint32_t devices = 0;
    for (int i = 0; qn__devices[i]; ++i)
        devices += qn__devices[i]->count();
    return devices;
}

qn_status qn_device_get(uint32_t index, qn_device_info *info, qn_error *err) {
    uint32_t before = 0;
    for (int i = 0; qn__devices[i]; ++i) {
        const uint32_t own = qn__devices[i]->count();
        if (index - before < own)
            return qn__devices[i]->describe(index - before, info, err);
        before += own;
    }
    return qn__fail(err, QN_USAGE, "there is no device %u; this machine has %u", index, before);
}

qn_status qn_compute_check(const qn_compute *compute, qn_error *err) {
    return qn__cpu_check(compute, err);
}
