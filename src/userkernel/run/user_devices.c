#include "userkernel/run/user_devices.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "team/members.h"
#include "team/queue.h"
#include <stdio.h>
#include <string.h>

/* With "auto" GPUs take part in jobs of so many items, in all iterations: smaller ones are done
 * before a GPU is ready. */
#define MANY ((uint64_t)1 << 22)

static int is_automatic(const qn_compute *compute) {
    return !compute->devices || strcmp(compute->devices, "auto") == 0;
}

/* ------------------------------------------------------------------ code */

static qn_status compile(qn_kernel *k, qn_error *err) {
    const double begin = qn__now();
    if (k->compiled)
        return QN_OK;
    const qn_status status = qn__user_code_make(&k->source, &k->code, err);
    k->compiled = status == QN_OK;
    k->report.compile_seconds = qn__now() - begin;
    return status;
}

/* Without a C compiler the kernel runs on devices, if it may. */
static qn_status compile_for_host(qn_kernel *k, int devices, qn_error *err) {
    k->no_host = (qn_error){0};
    const qn_status status = compile(k, &k->no_host);
    if (status == QN_OK || (devices && status == QN_UNSUPPORTED && is_automatic(&k->compute)))
        return QN_OK;
    *err = k->no_host;
    return status;
}

static qn_status write_for_devices(qn_kernel *k, qn_error *err) {
    if (k->device)
        return QN_OK;
    k->device = qn__alloc(1, sizeof *k->device, err);
    const qn_status status =
        k->device ? qn__user_device_make(&k->source, k->device, err) : QN_MEMORY;
    if (status != QN_OK)
        qn__user_devices_free(k);
    return status;
}

void qn__user_devices_free(qn_kernel *k) {
    if (k->device)
        qn__user_device_release(k->device);
    qn__free(k->device);
    k->device = NULL;
}

/* ------------------------------------------------------------------ the choice */

static int is_small(const qn_kernel *k) {
    return (uint64_t)qn__user_job_items(&k->job) < MANY / k->iterations;
}

qn_status qn__user_devices_choose(qn_kernel *k, qn_error *err) {
    qn__member member[QN__MAX_WORKERS];
    uint32_t count = 0;
    int host = 0, devices = 0;
    if (is_automatic(&k->compute) && (is_small(k) || k->divided))
        k->compute.devices = "cpu";
    qn_status status = qn__members_of(&k->compute, member, QN__MAX_WORKERS, &count, err);
    for (uint32_t i = 0; i < count && status == QN_OK; i++) {
        host |= (member[i].device->jobs & qn__job_bit(QN__JOB_HOST)) != 0;
        devices |= (member[i].device->jobs & QN__JOB_KERNEL) != 0;
    }
    if (status == QN_OK && devices && k->divided) {
        qn__fail(err, QN_UNSUPPORTED, "only processors compute with arrays in parts");
        qn__at(err, "`compute.devices`");
        status = qn__remedy(err, QN_UNSUPPORTED, "leave the option out");
    }
    if (status == QN_OK && host)
        status = compile_for_host(k, devices, err);
    if (status == QN_OK && devices)
        status = write_for_devices(k, err);
    k->job.grain = k->compiled ? k->code.grain : NULL;
    k->job.device = devices ? k->device : NULL;
    /* Of the iterations between, a SCAN needs the arrays on the host. */
    if (status == QN_OK && devices)
        k->device->job.resident =
            count == 1 && !k->compute.cluster && k->iterations > 1 && !k->source.has_scan;
    return status;
}

/* ------------------------------------------------------------------ the team */

qn_status qn__user_team_open(qn_kernel *k, const qn_compute *compute, qn__team **out,
                             qn_error *err) {
    if (!k->job.device)
        return qn__team_create(NULL, compute, NULL, 0, out, err);
    qn__user_job_bind(&k->job);
    k->device->job.no_host = k->job.grain ? NULL : &k->no_host;
    return qn__team_create_for(&k->device->job, compute, out, err);
}

void qn__user_devices_report(qn_kernel *k, qn__team *team) {
    uint32_t count;
    double rate;
    size_t used = 0;
    const qn_worker_report *worker = qn__team_report(team, 1, &count, &rate);
    k->report.threads = 0;
    k->devices[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        const int host = strcmp(worker[i].name, "cpu") == 0;
        k->report.threads += host ? worker[i].cores : 0;
        if (used < sizeof k->devices && (worker[i].items > 0 || count == 1))
            used += (size_t)snprintf(k->devices + used, sizeof k->devices - used, "%s%s",
                                     used > 0 ? ", " : "", worker[i].name);
    }
    k->report.devices = k->devices;
}
