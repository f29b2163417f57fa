/* Sums of several workers, added up by their devices. Before they are used, the devices add up
 * known integers, and the time is compared with that of the copies which the host would need. */
#include "device/gpu/gpu_worker.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include <string.h>

/* The host must take so many times as long. The copies of one device in each direction count: those
 * of several devices share the host's memory, and the host adds the sums as well. */
#define GAIN 1.3

struct qn__joint {
    const qn__gpu_driver *driver;
    qn__gpu_joint *gpus;
    uint32_t count;
    uint64_t words;
    qn__worker **worker;
    const qn__gpu_memory **sums;
};

/* ---- the self-test */

/* Integers of all magnitudes, of which 64 can be added. */
static int64_t known(uint32_t worker, uint64_t place) {
    uint64_t bits = (place * 64 + worker + 1) * UINT64_C(0x9e3779b97f4a7c15);
    bits ^= bits >> 29;
    bits *= UINT64_C(0xbf58476d1ce4e5b9);
    return (int64_t)bits >> (6 + (bits & 31));
}

static int64_t known_sum(const qn__joint *joint, uint64_t place) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < joint->count; ++i)
        sum += known(i, place);
    return sum;
}

static qn_status send_known(const qn__joint *joint, uint64_t words, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < joint->count && status == QN_OK; ++i) {
        const qn__worker *w = joint->worker[i];
        int64_t *stage = (int64_t *)(void *)w->stage.memory;
        for (uint64_t p = 0; p < words; ++p)
            stage[p] = known(i, p);
        status =
            w->driver->write(w->gpu, joint->sums[i], 0, stage, (size_t)words * sizeof *stage, err);
    }
    return status;
}

static qn_status check_known(const qn__joint *joint, uint64_t words, qn_error *err) {
    for (uint32_t i = 0; i < joint->count; ++i) {
        const qn__worker *w = joint->worker[i];
        int64_t *stage = (int64_t *)(void *)w->stage.memory;
        const qn_status status = qn__gpu_read(w->driver, w->gpu, joint->sums[i], 0, stage,
                                              (size_t)words * sizeof *stage, err);
        if (status != QN_OK)
            return status;
        for (uint64_t p = 0; p < words; ++p)
            if (stage[p] != known_sum(joint, p))
                return qn__fail(err, QN_DEVICE, "%s has a wrong sum of known integers",
                                w->facts->name);
    }
    return QN_OK;
}

static qn_status test(const qn__joint *joint, qn_error *err) {
    const uint64_t most = joint->worker[0]->stage.bytes / sizeof(int64_t);
    const uint64_t words = joint->words < most ? joint->words : most;
    qn_status status = send_known(joint, words, err);
    if (status == QN_OK)
        status = joint->driver->joint_add(joint->gpus, joint->sums, words, err);
    return status == QN_OK ? check_known(joint, words, err) : status;
}

/* ---- the measurement */

/* Seconds of the copies of all words of one device to the host and back. */
static qn_status time_host(const qn__joint *joint, double *seconds, qn_error *err) {
    const qn__worker *w = joint->worker[0];
    const uint64_t bytes = joint->words * sizeof(int64_t);
    const double begun = qn__now();
    qn_status status = QN_OK;
    for (uint64_t at = 0, piece; at < bytes && status == QN_OK; at += piece) {
        piece = bytes - at < w->stage.bytes ? bytes - at : w->stage.bytes;
        status = qn__gpu_read(w->driver, w->gpu, joint->sums[0], (size_t)at, w->stage.memory,
                              (size_t)piece, err);
        if (status == QN_OK)
            status = w->driver->write(w->gpu, joint->sums[0], (size_t)at, w->stage.memory,
                                      (size_t)piece, err);
    }
    *seconds = qn__now() - begun;
    return status;
}

static qn_status measure(const qn__joint *joint, qn_error *err) {
    double host = 0;
    qn_status status = time_host(joint, &host, err);
    for (int warm = 0; warm < 2 && status == QN_OK; ++warm) {
        const double begun = qn__now();
        status = joint->driver->joint_add(joint->gpus, joint->sums, joint->words, err);
        if (status == QN_OK && warm && (qn__now() - begun) * GAIN > host)
            status = qn__fail(err, QN_UNSUPPORTED, "the host adds up these sums as fast");
    }
    return status;
}

/* ---- the entries */

static qn_status make(qn__joint *joint, qn__worker *const *workers, qn_error *err) {
    qn__gpu **gpu = qn__alloc(joint->count, sizeof *gpu, err);
    joint->worker = qn__alloc(joint->count, sizeof *joint->worker, err);
    joint->sums = qn__alloc(joint->count, sizeof *joint->sums, err);
    qn_status status = gpu && joint->worker && joint->sums ? QN_OK : QN_MEMORY;
    for (uint32_t i = 0; i < joint->count && status == QN_OK; ++i) {
        status = qn__gpu_need_canonical(workers[i], err);
        joint->worker[i] = workers[i];
        joint->sums[i] = &workers[i]->model.canonical;
        gpu[i] = workers[i]->gpu;
    }
    if (status == QN_OK)
        status = joint->driver->joint_open(gpu, joint->count, &joint->gpus, err);
    qn__free(gpu);
    return status;
}

qn_status qn__gpu_joint_open(qn__worker *const *workers, uint32_t count, int always,
                             qn__joint **out, qn_error *err) {
    *out = NULL;
    qn__joint *joint = qn__alloc(1, sizeof *joint, err);
    if (!joint)
        return QN_MEMORY;
    joint->driver = workers[0]->driver;
    joint->count = count;
    joint->words = qn__program_sums(workers[0]->program);
    qn_status status = make(joint, workers, err);
    if (status == QN_OK)
        status = test(joint, err);
    if (status == QN_OK && !always)
        status = measure(joint, err);
    if (status != QN_OK) {
        qn__gpu_joint_close(joint);
        return status;
    }
    *out = joint;
    return QN_OK;
}

/* Enqueues the worker's own sums in canonical order; without grains they are zeros. */
static qn_status put_sums(qn__worker *w, qn_error *err) {
    qn__gpu_pass pass = {.worker = w, .err = err};
    if (!w->model.sums_count)
        return w->driver->clear(w->gpu, &w->model.canonical, 0, w->model.canonical.bytes, err);
    qn__gpu_launch_sums(&pass, QN__K_SUMS_OUT);
    return pass.status;
}

qn_status qn__gpu_joint_add(qn__joint *joint, qn__tally *tally, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < joint->count && status == QN_OK; ++i)
        status = put_sums(joint->worker[i], err);
    if (status == QN_OK)
        status = joint->driver->joint_add(joint->gpus, joint->sums, joint->words, err);
    for (uint32_t i = 0; i < joint->count && status == QN_OK; ++i) {
        qn__worker *w = joint->worker[i];
        tally[i] = w->reports.tally;
        w->reports.tally = (qn__tally){0};
        w->model.sums_count = 0;
    }
    return status;
}

void qn__gpu_joint_close(qn__joint *joint) {
    if (!joint)
        return;
    joint->driver->joint_close(joint->gpus);
    qn__free(joint->worker);
    qn__free(joint->sums);
    qn__free(joint);
}
