/* Failures of an OpenCL device, and waiting for commands. clWaitForEvents has no time limit, so the
 * host asks for the state of an event until it is complete or the limit has passed. */
#include "base/system/clock.h"
#include "device/opencl/opencl_busy.h"
#include "device/opencl/opencl_gpu.h"

#include <time.h>

/* A waiting thread polls for this long, then sleeps between polls. On a CPU device it sleeps
 * immediately: the device needs the core. */
static const double spin_seconds = 100e-6;

qn_status qn__cl_fail(qn__gpu *gpu, int32_t code, const char *doing, qn_error *err) {
    if (gpu->health == QN__CL_WELL)
        gpu->health = QN__CL_FAILED;
    gpu->failure = code;
    qn__fail(err, QN_DEVICE, "%s failed to %s: %s", gpu->entry->label, doing,
             qn__cl_error_name(code));
    return qn__remedy(err, QN_DEVICE, "%s", qn__cl_error_remedy(code));
}

static qn_status fail_hanging(qn__gpu *gpu, const char *doing, qn_error *err) {
    gpu->health = QN__CL_HANGS;
    qn__fail(err, QN_DEVICE, "%s hangs: it was given %g seconds to %s", gpu->entry->label,
             gpu->timeout, doing);
    return qn__remedy(
        err, QN_DEVICE,
        "leave it out of `compute.devices`; if it only was slow, `compute.device_timeout` gives it "
        "more time");
}

qn_status qn__cl_usable(qn__gpu *gpu, qn_error *err) {
    if (gpu->health == QN__CL_WELL)
        return QN_OK;
    if (gpu->health == QN__CL_HANGS)
        return fail_hanging(gpu, "compute", err);
    return qn__cl_fail(gpu, gpu->failure, "compute", err);
}

/* Sleeps after the n-th poll, 20 microseconds at first, a millisecond at most. */
static void rest(uint32_t n) {
    const long most = 1000000, length = n < 8 ? 20000 : 20000L * (long)(n / 4);
    const struct timespec pause = {.tv_nsec = length < most ? length : most};
    nanosleep(&pause, NULL);
}

int32_t qn__cl_flush_all(const qn__gpu *gpu) {
    int32_t code = QN__CL_SUCCESS;
    for (int i = 0; i < QN__GPU_LANES && code == QN__CL_SUCCESS; ++i)
        if (gpu->lane[i])
            code = gpu->cl->flush(gpu->lane[i]);
    return code;
}

qn_status qn__cl_wait(qn__gpu *gpu, qn__cl_event event, const char *doing, qn_error *err) {
    qn__wait wait = qn__wait_begin();
    qn__busy busy = {.computed = qn__processor_seconds()};
    uint32_t rests = 0;
    int32_t code = qn__cl_flush_all(gpu);
    if (code != QN__CL_SUCCESS)
        return qn__cl_fail(gpu, code, doing, err);
    for (;;) {
        int32_t state = 0; /* 3 to 1: not complete; 0: complete; negative: an error */
        code = gpu->cl->get_event_info(event, QN__CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                                       &state, NULL);
        if (code != QN__CL_SUCCESS || state < 0)
            return qn__cl_fail(gpu, code != QN__CL_SUCCESS ? code : state, doing, err);
        if (state == 0)
            return QN_OK;
        const double waited = qn__wait_seconds(&wait);
        const double silent =
            gpu->facts.vectors ? qn__busy_silence(&busy, waited, qn__processor_seconds()) : waited;
        if (silent > gpu->timeout)
            return fail_hanging(gpu, doing, err);
        if (gpu->facts.vectors || waited > spin_seconds)
            rest(rests++);
    }
}

double qn__cl_seconds(const qn__gpu *gpu, qn__cl_event from, qn__cl_event to) {
    uint64_t start = 0, end = 0;
    if (gpu->cl->get_profile(from, QN__CL_PROFILING_COMMAND_START, sizeof start, &start, NULL) !=
            QN__CL_SUCCESS ||
        gpu->cl->get_profile(to, QN__CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) !=
            QN__CL_SUCCESS)
        return 0.0;
    return end > start ? (double)(end - start) * 1e-9 : 0.0;
}

void qn__cl_drop(const qn__gpu *gpu, qn__cl_event *event) {
    if (*event)
        gpu->cl->release_event(*event);
    *event = NULL;
}
