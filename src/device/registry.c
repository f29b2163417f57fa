/* The list of backends, and the public functions about their devices. */
#include "base/argument.h"
#include "base/sized.h"
#include "base/system/float_state.h"
#include "device/cpu/worker/cpu_table.h"
#include "device/cuda/cuda_table.h"
#include "device/device.h"
#include "device/notes.h"
#include "device/opencl/opencl_table.h"
#include <string.h>

/* The first NULL is the place of qn__devices_extra. */
const qn__device_table *qn__devices[] = {&qn__cpu_device, &qn__cuda_device, &qn__opencl_device,
                                         NULL, NULL};

void qn__devices_extra(const qn__device_table *device) {
    qn__devices[sizeof qn__devices / sizeof *qn__devices - 2] = device;
}

const qn__device_table *qn__device_find(const char *name) {
    for (int i = 0; qn__devices[i]; ++i)
        if (qn__devices[i]->version == QN__DEVICE_VERSION &&
            strcmp(qn__devices[i]->name, name) == 0)
            return qn__devices[i];
    return NULL;
}

const qn__device_table *qn__device_driving(const char *platform, const char *kind) {
    qn_device_info info = {.size = sizeof(qn_device_info)};
    for (int i = 0; qn__devices[i] && strcmp(qn__devices[i]->name, kind) != 0; ++i) {
        const qn__device_table *other = qn__devices[i];
        if (!other->vendor || !strstr(platform, other->vendor))
            continue;
        for (uint32_t d = 0; d < other->count(); ++d)
            if (other->describe(d, &info, NULL) == QN_OK && !info.refused)
                return other;
    }
    return NULL;
}

qn__device_word qn__device_kind(uint32_t index) {
    uint32_t kinds = 0;
    while (qn__devices[kinds])
        ++kinds;
    if (index == 0)
        return (qn__device_word){"auto", "the CPU and every GPU that makes the job faster"};
    return index <= kinds
               ? (qn__device_word){qn__devices[index - 1]->name, qn__devices[index - 1]->about}
               : (qn__device_word){NULL, NULL};
}

qn__device_word qn__device_instructions(int host, uint32_t index) {
    for (int i = 0; qn__devices[i]; ++i)
        if (qn__devices[i]->host == host && qn__devices[i]->instructions)
            return qn__devices[i]->instructions(index);
    return (qn__device_word){NULL, NULL};
}

/* The backend, and the index within it, of device `index` of all; NULL when there is none. */
static const qn__device_table *locate(uint32_t *index) {
    for (int i = 0; qn__devices[i]; ++i) {
        const uint32_t own = qn__devices[i]->count();
        if (*index < own)
            return qn__devices[i];
        *index -= own;
    }
    return NULL;
}

static qn_status no_device(uint32_t index, qn_error *err) {
    qn__fail(err, QN_USAGE, "there is no device %u", index);
    return qn__remedy(err, QN_USAGE, "this machine has %u, counted from 0", qn_device_count());
}

uint32_t qn_device_count(void) {
    QN__OWN_FLOATS;
    uint32_t devices = 0;
    for (int i = 0; qn__devices[i]; ++i)
        devices += qn__devices[i]->count();
    return devices;
}

qn_status qn_device_get(uint32_t index, qn_device_info *info, qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(info, err);
    const qn__sized *what = QN__SIZED("info", qn_device_info);
    qn_device_info found = {.size = sizeof found};
    uint32_t own = index;
    qn_status status = qn__sized_check(what, info, err);
    const qn__device_table *device = status == QN_OK ? locate(&own) : NULL;
    if (status == QN_OK)
        status = device ? device->describe(own, &found, err) : no_device(index, err);
    if (status == QN_OK)
        qn__sized_give(what, &found, info, info->size);
    return status;
}

static qn_status measure(uint32_t index, const qn_compute *compute, qn_device_rates *rates,
                         qn_error *err) {
    uint32_t own = index;
    const qn__device_table *device = locate(&own);
    if (!device)
        return no_device(index, err);
    if (!device->measure) {
        qn__fail(err, QN_UNSUPPORTED, "devices of the kind %s cannot be measured", device->name);
        return qn__remedy(err, QN_UNSUPPORTED, "measure a training instead");
    }
    return device->measure(own, compute, rates, err);
}

qn_status qn_device_measure(uint32_t index, const qn_compute *compute, qn_device_rates *rates,
                            qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(rates, err);
    const qn__sized *what = QN__SIZED("rates", qn_device_rates);
    qn_compute own = {.size = sizeof own};
    qn_device_rates found = {.size = sizeof found};
    qn_status status = qn__sized_check(what, rates, err);
    if (status == QN_OK && compute)
        status = qn__sized_take(QN__SIZED("compute", qn_compute), compute, &own, err);
    if (status == QN_OK)
        status = measure(index, &own, &found, err);
    if (status == QN_OK)
        qn__sized_give(what, &found, rates, rates->size);
    return status;
}

const char *qn_device_absence(const char *kind) {
    QN__OWN_FLOATS;
    const qn__device_table *device = kind ? qn__device_find(kind) : NULL;
    if (!device)
        return "this build of Quern has no such kind of device";
    return device->absence ? device->absence() : "";
}

int qn_device_note(char *text, size_t capacity) {
    QN__OWN_FLOATS;
    return text && capacity > 0 ? qn__device_told(text, capacity) : 0;
}
