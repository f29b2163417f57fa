/* The stream: kernels, recordings, waiting with a timeout, and failures.
 *
 * CUDA's own waits have no limit. So the host polls events instead, at first without a pause and
 * then with longer ones. Operations are numbered in each lane. A *mark* is an event with the
 * numbers before it: when it is complete, so is all that these lanes had to do up to there, and the
 * device's clock between two marks gives the time in which it worked. */
#include "device/cuda/cuda_gpu.h"

#include "base/system/clock.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A wait polls for this long, then sleeps between polls: shortly at first, then longer. */
#define SPIN 200e-6
#define SHORT_WAIT 10e-3
enum { SHORT_SLEEP = 20000, LONG_SLEEP = 200000 }; /* nanoseconds */

enum { MOST_GROUPS = 65535 };

/* ---- failures */

static qn_status again(const qn__gpu *gpu, qn_error *err) {
    if (err)
        *err = gpu->error;
    return gpu->error.status;
}

/* The end of a remedy: other instructions to try, if integer instructions are in use. */
static const char *without_them(const qn__gpu *gpu) {
    return gpu->facts.matrix ? ", or take `compute.gpu_isa` dp4a"
           : gpu->products & QN_WITH_INTGEMM && !(gpu->products & QN_WITH_PLAIN)
               ? ", or take `compute.gpu_isa` plain"
               : "";
}

static qn_status keep(qn__gpu *gpu, qn_error *err) {
    gpu->failed = 1;
    return again(gpu, err);
}

qn_status qn__cuda_fail(qn__gpu *gpu, qn__cu_result result, qn_error *err, const char *doing) {
    char said[160];
    if (gpu->failed)
        return again(gpu, err);
    const int work = result >= QN__CU_FIRST_OF_WORK && result <= QN__CU_LAST_OF_WORK;
    qn__cuda_result_text(gpu->cu, result, said);
    gpu->faulted = work;
    qn__fail(&gpu->error, QN_DEVICE, "%s failed at %s: %s%s", gpu->facts.name, doing, said,
             work ? "; the fault lies in work begun before" : "");
    if (result == QN__CU_OUT_OF_MEMORY)
        qn__remedy(&gpu->error, QN_DEVICE,
                   "end other programs on that GPU (nvidia-smi lists them), or leave it out of "
                   "the devices");
    else
        qn__remedy(&gpu->error, QN_DEVICE,
                   "the system's log (dmesg, lines with NVRM or Xid) may have the reason; leave "
                   "the device "
                   "out if it happens again%s",
                   without_them(gpu));
    return keep(gpu, err);
}

static qn_status fell_silent(qn__gpu *gpu, qn_error *err) {
    gpu->silent = 1;
    if (gpu->failed)
        return again(gpu, err);
    qn__fail(&gpu->error, QN_DEVICE, "%s did not end its work within %g s and is given up",
             gpu->facts.name, gpu->limit);
    qn__remedy(&gpu->error, QN_DEVICE,
               "another program may keep it busy, or it hangs (dmesg, lines with NVRM or Xid); a "
               "longer time limit may help; leave the device out if it happens again%s",
               without_them(gpu));
    return keep(gpu, err);
}

qn_status qn__cuda_enter(qn__gpu *gpu, qn_error *err) {
    if (gpu->failed)
        return again(gpu, err);
    const qn__cu_result result = gpu->cu->context_set(gpu->context);
    return result == QN__CU_SUCCESS ? QN_OK
                                    : qn__cuda_fail(gpu, result, err, "the beginning of a call");
}

/* ---- waiting */

/* Polls until the result is not "not ready" or the limit is exceeded; then it returns "not
 * ready". */
static qn__cu_result wait_for(const qn__gpu *gpu, qn__cu_event *event, qn__cu_stream *stream) {
    qn__wait wait = qn__wait_begin();
    for (;;) {
        const qn__cu_result result =
            event ? gpu->cu->event_query(event) : gpu->cu->stream_query(stream);
        const double waited = qn__wait_seconds(&wait);
        if (result != QN__CU_NOT_READY || waited > gpu->limit)
            return result;
        if (waited > SPIN) {
            const long sleep = waited > SHORT_WAIT ? LONG_SLEEP : SHORT_SLEEP;
            nanosleep(&(struct timespec){.tv_nsec = sleep}, NULL);
        }
    }
}

/* Notes what is complete with a mark. Returns 1 if nothing else is under way. */
static int is_all(qn__gpu *gpu, const qn__cuda_mark *mark) {
    int all = 1;
    for (int i = 0; i < QN__GPU_LANES; ++i) {
        qn__cuda_lane *lane = &gpu->lane[i];
        if (mark->enqueued[i] > lane->complete)
            lane->complete = mark->enqueued[i];
        all &= lane->complete >= lane->last;
    }
    return all;
}

static int is_before(const qn__cuda_mark *mark, uint64_t number) {
    int before = 1;
    for (int i = 0; i < QN__GPU_LANES; ++i)
        before &= mark->enqueued[i] <= number;
    return before;
}

/* A mark is complete: counts the work before it by the device's clock. */
static void count_work(qn__gpu *gpu, const qn__cuda_mark *mark) {
    float milliseconds = 0;
    const int all = is_all(gpu, mark);
    if (!gpu->working || is_before(mark, gpu->begun_at))
        return;
    if (gpu->cu->event_elapsed(&milliseconds, gpu->begun, mark->event) == QN__CU_SUCCESS &&
        (double)milliseconds * 1e-3 > gpu->busy_now)
        gpu->busy_now = (double)milliseconds * 1e-3;
    if (all) {
        gpu->working = 0;
        gpu->busy += gpu->busy_now;
        gpu->busy_now = 0;
    }
}

qn_status qn__cuda_begin(qn__gpu *gpu, qn_error *err) {
    if (gpu->capturing >= 0)
        return QN_OK;
    if (!gpu->working) {
        const qn__cu_result result = gpu->cu->event_record(gpu->begun, gpu->stream);
        if (result != QN__CU_SUCCESS)
            return qn__cuda_fail(gpu, result, err, "setting an event");
        gpu->working = 1;
        gpu->begun_at = gpu->enqueued;
    }
    gpu->lane[gpu->chosen].last = ++gpu->enqueued;
    return QN_OK;
}

qn_status qn__cuda_set(qn__gpu *gpu, qn__cuda_mark *mark, qn_error *err) {
    const qn__cuda_lane *lane = &gpu->lane[gpu->chosen];
    const qn__cu_result result = gpu->cu->event_record(mark->event, gpu->stream);
    memcpy(mark->enqueued, lane->follows, sizeof mark->enqueued);
    mark->enqueued[gpu->chosen] = lane->last;
    return result == QN__CU_SUCCESS ? QN_OK : qn__cuda_fail(gpu, result, err, "setting an event");
}

qn_status qn__cuda_wait(qn__gpu *gpu, const qn__cuda_mark *mark, qn_error *err) {
    const qn__cu_result result = wait_for(gpu, mark->event, NULL);
    if (result == QN__CU_NOT_READY)
        return fell_silent(gpu, err);
    if (result != QN__CU_SUCCESS)
        return qn__cuda_fail(gpu, result, err, "the end of its work");
    count_work(gpu, mark);
    return QN_OK;
}

int qn__cuda_drain(qn__gpu *gpu) {
    qn__cu_result result = QN__CU_SUCCESS;
    if (gpu->silent)
        return 0;
    for (int i = 0; i < QN__GPU_LANES && result == QN__CU_SUCCESS; ++i)
        if (gpu->lane[i].stream)
            result = wait_for(gpu, NULL, gpu->lane[i].stream);
    if (result == QN__CU_NOT_READY)
        fell_silent(gpu, NULL);
    else if (result != QN__CU_SUCCESS)
        qn__cuda_fail(gpu, result, NULL, "the end of its work");
    return result == QN__CU_SUCCESS;
}

/* ---- lanes */

qn_status qn__cuda_lane_choose(qn__gpu *gpu, qn__gpu_lane lane, qn_error *err) {
    qn__cuda_lane *l = &gpu->lane[lane];
    const qn_status status = qn__cuda_enter(gpu, err);
    if (status == QN_OK && !l->stream) {
        const qn__cu_result result = gpu->cu->stream_create(&l->stream, QN__CU_STREAM_NON_BLOCKING);
        if (result != QN__CU_SUCCESS)
            return qn__cuda_fail(gpu, result, err, "making a stream");
    }
    if (status == QN_OK) {
        gpu->stream = l->stream;
        gpu->chosen = lane;
    }
    return status;
}

/* A lane that waits for an event waits for what the event's lane has waited for. */
static void note_following(qn__gpu *gpu, qn__gpu_lane other) {
    qn__cuda_lane *lane = &gpu->lane[gpu->chosen];
    const qn__cuda_lane *first = &gpu->lane[other];
    for (int i = 0; i < QN__GPU_LANES; ++i)
        if (first->follows[i] > lane->follows[i])
            lane->follows[i] = first->follows[i];
    lane->follows[other] = first->last;
}

qn_status qn__cuda_follow(qn__gpu *gpu, qn__gpu_lane other, qn_error *err) {
    const qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK || !gpu->lane[other].stream || other == gpu->chosen)
        return status;
    qn__cu_result result = gpu->cu->event_record(gpu->passed, gpu->lane[other].stream);
    if (result == QN__CU_SUCCESS)
        result = gpu->cu->stream_wait(gpu->stream, gpu->passed, 0);
    if (result != QN__CU_SUCCESS)
        return qn__cuda_fail(gpu, result, err, "setting an event");
    note_following(gpu, other);
    return QN_OK;
}

/* ---- work */

qn_status qn__cuda_start(qn__gpu *gpu, qn__cu_function *kernel, const uint32_t groups[3],
                         const uint32_t lanes[2], const qn__gpu_argument *arguments, uint32_t count,
                         const char *doing, qn_error *err) {
    qn__cu_address address[QN__CUDA_ARGUMENTS];
    void *value[QN__CUDA_ARGUMENTS];
    const qn_status status = qn__cuda_begin(gpu, err);
    if (status != QN_OK)
        return status;
    for (uint32_t i = 0; i < count; ++i) {
        const qn__gpu_argument *a = &arguments[i];
        if (a->kind == 'M')
            address[i] = (uintptr_t)a->value.memory->handle;
        value[i] = a->kind == 'M' ? (void *)&address[i] : (void *)(uintptr_t)&a->value;
    }
    const qn__cu_result result = gpu->cu->launch(kernel, groups[0], groups[1], groups[2], lanes[0],
                                                 lanes[1], 1, 0, gpu->stream, value, NULL);
    return result == QN__CU_SUCCESS ? QN_OK : qn__cuda_fail(gpu, result, err, doing);
}

qn_status qn__cuda_launch(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                          const qn__gpu_argument *arguments, uint32_t count, qn_error *err) {
    const qn__kernel_shape *shape = qn__kernel_shape_of(kernel);
    char doing[96];
    const qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK || !groups[0] || !groups[1] || !groups[2])
        return status;
    if (count > QN__CUDA_ARGUMENTS || !gpu->kernel[kernel] || groups[0] > INT32_MAX ||
        groups[1] > MOST_GROUPS || groups[2] > MOST_GROUPS) {
        qn__fail(&gpu->error, QN_DEVICE, "%s cannot run the kernel %s over %u x %u x %u groups",
                 gpu->facts.name, shape->name, groups[0], groups[1], groups[2]);
        return keep(gpu, err);
    }
    snprintf(doing, sizeof doing, "the start of the kernel %s", shape->name);
    return qn__cuda_start(gpu, gpu->kernel[kernel], groups, shape->lanes, arguments, count, doing,
                          err);
}

/* A stream submits its work by itself. */
qn_status qn__cuda_flush(qn__gpu *gpu, qn_error *err) { return qn__cuda_enter(gpu, err); }

qn_status qn__cuda_record(qn__gpu *gpu, uint32_t number, qn_error *err) {
    const qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK)
        return status;
    const qn__cu_result result =
        gpu->cu->stream_begin_capture(gpu->stream, QN__CU_CAPTURE_THREAD_LOCAL);
    if (result != QN__CU_SUCCESS)
        return qn__cuda_fail(gpu, result, err, "the begin of a recording");
    gpu->capturing = (int)number;
    return QN_OK;
}

qn_status qn__cuda_recorded(qn__gpu *gpu, uint32_t number, qn_error *err) {
    const qn__cuda_driver *cu = gpu->cu;
    const qn_status status = qn__cuda_enter(gpu, err);
    qn__cu_graph *graph = NULL;
    qn__cu_graph_exec *exec = NULL;
    if (status != QN_OK)
        return status;
    gpu->capturing = -1;
    qn__cu_result result = cu->stream_end_capture(gpu->stream, &graph);
    if (result != QN__CU_SUCCESS)
        return qn__cuda_fail(gpu, result, err, "the end of a recording");
    result = cu->graph_ready ? cu->graph_ready(&exec, graph, 0)
                             : cu->graph_ready_old(&exec, graph, NULL, NULL, 0);
    cu->graph_destroy(graph);
    if (result != QN__CU_SUCCESS)
        return qn__cuda_fail(gpu, result, err, "making a recording ready");
    if (gpu->recording[number])
        cu->graph_exec_destroy(gpu->recording[number]);
    gpu->recording[number] = exec;
    return QN_OK;
}

qn_status qn__cuda_replay(qn__gpu *gpu, uint32_t number, qn_error *err) {
    qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK || (status = qn__cuda_begin(gpu, err)) != QN_OK)
        return status;
    const qn__cu_result result = gpu->cu->graph_launch(gpu->recording[number], gpu->stream);
    return result == QN__CU_SUCCESS ? QN_OK
                                    : qn__cuda_fail(gpu, result, err, "repeating a recording");
}
