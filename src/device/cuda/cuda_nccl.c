/* Sums of several devices by NCCL. Its communicators do not block: a call may return while it is in
 * progress, and the host asks for the end, no longer than a limit. After a failure they are
 * aborted, which ends their kernels, so the devices can be used as before. */
#include "device/cuda/cuda_nccl.h"

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/float_state.h"
#include "device/cuda/cuda_gpu.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Numbers of nccl.h. */
enum { SUCCESS = 0, IN_PROGRESS = 7, INT64 = 4, SUM = 0, OLDEST = 21400 };
#define CONFIG_MAGIC 0xcafebeefu

/* A wait polls for this long, then sleeps between polls. */
#define SPIN 200e-6
enum { SLEEP = 20000 }; /* nanoseconds */

typedef struct nccl_communicator nccl_communicator;

typedef struct unique_id {
    char bytes[128];
} unique_id;

/* The first members of NCCL's configuration; `size` says that the others are missing, and `version`
 * that they have their defaults. */
typedef struct configuration {
    size_t size;
    unsigned magic, version;
    int blocking;
} configuration;

typedef struct nccl_functions {
    int (*version)(int *version);
    const char *(*error_string)(int result);
    int (*make_id)(unique_id *id);
    int (*init)(nccl_communicator **out, int ranks, unique_id id, int rank, configuration *config);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *from, void *to, size_t count, int type, int operation,
                      nccl_communicator *communicator, qn__cu_stream *stream);
    int (*async_error)(nccl_communicator *communicator, int *result);
    int (*abort)(nccl_communicator *communicator);
} nccl_functions;

static nccl_functions nccl;
static int nccl_version;
static char reason[300]; /* why it cannot be used; "": it can */

#define PLACE(member) offsetof(nccl_functions, member)
static const qn__cuda_symbol symbols[] = {
    {"ncclGetVersion", PLACE(version), 0},     {"ncclGetErrorString", PLACE(error_string), 0},
    {"ncclGetUniqueId", PLACE(make_id), 0},    {"ncclCommInitRankConfig", PLACE(init), 0},
    {"ncclGroupStart", PLACE(group_start), 0}, {"ncclGroupEnd", PLACE(group_end), 0},
    {"ncclAllReduce", PLACE(all_reduce), 0},   {"ncclCommGetAsyncError", PLACE(async_error), 0},
    {"ncclCommAbort", PLACE(abort), 0},        {NULL, 0, 0},
};

struct qn__gpu_joint {
    uint32_t count;
    int failed;
    double limit; /* of a wait, in seconds */
    qn__gpu *gpu[QN__CUDA_DEVICES];
    nccl_communicator *communicator[QN__CUDA_DEVICES];
    qn__cuda_mark mark[QN__CUDA_DEVICES];
};

/* ---- the library */

static const char *wish(void) {
    const char *text = getenv("QUERN_NCCL");
    return text ? text : "";
}

int qn__cuda_nccl_always(void) { return strcmp(wish(), "always") == 0; }

static void open_library(void) {
    const int named = *wish() && !qn__cuda_nccl_always();
    const char *const names[] = {named ? wish() : "libnccl.so.2", NULL};
    char why[256];
    void *library = qn__cuda_library_open(names, NULL, why);
    if (!library) {
        snprintf(reason, sizeof reason, "NCCL cannot be opened: %s", why);
        return;
    }
    const char *missing = qn__cuda_library_fill(library, symbols, &nccl);
    if (missing)
        snprintf(reason, sizeof reason, "NCCL has no function %s: it is older than 2.14", missing);
    else if (nccl.version(&nccl_version) != SUCCESS || nccl_version < OLDEST)
        snprintf(reason, sizeof reason, "NCCL is older than 2.14");
}

static qn_status find_library(qn_error *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (strcmp(wish(), "off") == 0)
        return qn__fail(err, QN_UNSUPPORTED, "QUERN_NCCL is off");
    pthread_once(&once, open_library);
    if (!reason[0])
        return QN_OK;
    /* Where the user asks for it, its absence is told. */
    return qn__fail(err, *wish() ? QN_DEVICE : QN_UNSUPPORTED, "%s", reason);
}

static qn_status fail(qn__gpu_joint *joint, int result, const char *doing, qn_error *err) {
    joint->failed = 1;
    qn__fail(err, QN_DEVICE, "NCCL %d.%d.%d failed at %s: %s", nccl_version / 10000,
             nccl_version / 100 % 100, nccl_version % 100, doing, nccl.error_string(result));
    return qn__remedy(err, QN_DEVICE, "NCCL_DEBUG=WARN shows more; QUERN_NCCL=off leaves NCCL out");
}

static qn_status fall_silent(qn__gpu_joint *joint, const char *doing, qn_error *err) {
    joint->failed = 1;
    return qn__fail(err, QN_DEVICE, "NCCL did not end %s within %g s", doing, joint->limit);
}

/* ---- waiting */

static void pause_after(double waited) {
    if (waited > SPIN)
        nanosleep(&(struct timespec){.tv_nsec = SLEEP}, NULL);
}

static int state_of(nccl_communicator *communicator) {
    int result = SUCCESS;
    const int asked = nccl.async_error(communicator, &result);
    return asked == SUCCESS ? result : asked;
}

/* Waits until no communicator has a call in progress. */
static qn_status settle(qn__gpu_joint *joint, int result, const char *doing, qn_error *err) {
    qn__wait wait = qn__wait_begin();
    if (result != SUCCESS && result != IN_PROGRESS)
        return fail(joint, result, doing, err);
    for (uint32_t i = 0; i < joint->count;) {
        result = state_of(joint->communicator[i]);
        if (result == SUCCESS) {
            ++i;
            continue;
        }
        if (result != IN_PROGRESS)
            return fail(joint, result, doing, err);
        const double waited = qn__wait_seconds(&wait);
        if (waited > joint->limit)
            return fall_silent(joint, doing, err);
        pause_after(waited);
    }
    return QN_OK;
}

/* Waits for what is enqueued on the device. */
static qn_status await(qn__gpu_joint *joint, uint32_t i, qn_error *err) {
    static const char doing[] = "adding up sums";
    qn__gpu *gpu = joint->gpu[i];
    qn__wait wait = qn__wait_begin();
    qn_status status = qn__cuda_enter(gpu, err);
    while (status == QN_OK) {
        const qn__cu_result found = gpu->cu->event_query(joint->mark[i].event);
        if (found != QN__CU_NOT_READY)
            break;
        const int result = state_of(joint->communicator[i]);
        const double waited = qn__wait_seconds(&wait);
        if (result != SUCCESS && result != IN_PROGRESS)
            return fail(joint, result, doing, err);
        if (waited > joint->limit)
            return fall_silent(joint, doing, err);
        pause_after(waited);
    }
    if (status == QN_OK)
        status = qn__cuda_wait(gpu, &joint->mark[i], err);
    joint->failed |= status != QN_OK;
    return status;
}

/* ---- the entries */

static qn_status connect_all(qn__gpu_joint *joint, qn_error *err) {
    configuration config = {sizeof config, CONFIG_MAGIC, OLDEST, 0};
    unique_id id;
    qn_status status = QN_OK;
    int result = nccl.make_id(&id);
    if (result == SUCCESS)
        result = nccl.group_start();
    if (result != SUCCESS)
        return fail(joint, result, "its start", err);
    for (uint32_t i = 0; i < joint->count && result == SUCCESS && status == QN_OK; ++i) {
        status = qn__cuda_enter(joint->gpu[i], err);
        if (status == QN_OK)
            result = nccl.init(&joint->communicator[i], (int)joint->count, id, (int)i, &config);
        if (result == IN_PROGRESS)
            result = SUCCESS;
    }
    const int ended = nccl.group_end();
    if (status != QN_OK)
        return status;
    return settle(joint, result == SUCCESS ? ended : result, "its start", err);
}

static qn_status make_marks(qn__gpu_joint *joint, qn_error *err) {
    qn_status status = QN_OK;
    for (uint32_t i = 0; i < joint->count && status == QN_OK; ++i) {
        qn__gpu *gpu = joint->gpu[i];
        status = qn__cuda_enter(gpu, err);
        if (status != QN_OK)
            break;
        const qn__cu_result result = gpu->cu->event_create(&joint->mark[i].event, 0);
        if (result != QN__CU_SUCCESS)
            status = qn__cuda_fail(gpu, result, err, "making an event");
        joint->limit = gpu->limit / 2 < joint->limit ? gpu->limit / 2 : joint->limit;
    }
    return status;
}

qn_status qn__cuda_joint_open(qn__gpu *const *gpus, uint32_t count, qn__gpu_joint **out,
                              qn_error *err) {
    *out = NULL;
    qn_status status = find_library(err);
    if (status != QN_OK)
        return status;
    if (count > QN__CUDA_DEVICES)
        return qn__fail(err, QN_UNSUPPORTED, "%u devices are too many", count);
    qn__gpu_joint *joint = qn__alloc(1, sizeof *joint, err);
    if (!joint)
        return QN_MEMORY;
    joint->limit = gpus[0]->limit;
    joint->count = count;
    memcpy(joint->gpu, gpus, count * sizeof(qn__gpu *));
    status = make_marks(joint, err);
    if (status == QN_OK)
        status = connect_all(joint, err);
    qn__float_state_set(); /* the library may have changed it */
    if (status != QN_OK) {
        qn__cuda_joint_close(joint);
        return status;
    }
    *out = joint;
    return QN_OK;
}

/* Enqueues the sums of all devices. */
static qn_status enqueue(qn__gpu_joint *joint, const qn__gpu_memory *const *memory, uint64_t words,
                         qn_error *err) {
    qn_status status = QN_OK;
    int result = nccl.group_start();
    if (result != SUCCESS)
        return fail(joint, result, "adding up sums", err);
    for (uint32_t i = 0; i < joint->count && result == SUCCESS && status == QN_OK; ++i) {
        qn__gpu *gpu = joint->gpu[i];
        status = qn__cuda_enter(gpu, err);
        if (status == QN_OK)
            status = qn__cuda_begin(gpu, err);
        if (status == QN_OK)
            result = nccl.all_reduce(memory[i]->handle, memory[i]->handle, words, INT64, SUM,
                                     joint->communicator[i], gpu->lane[QN__GPU_WORK].stream);
        if (result == IN_PROGRESS)
            result = SUCCESS;
    }
    const int ended = nccl.group_end();
    return status == QN_OK
               ? settle(joint, result == SUCCESS ? ended : result, "adding up sums", err)
               : status;
}

qn_status qn__cuda_joint_add(qn__gpu_joint *joint, const qn__gpu_memory *const *memory,
                             uint64_t words, qn_error *err) {
    if (joint->failed)
        return qn__fail(err, QN_DEVICE, "NCCL has failed before");
    qn_status status = enqueue(joint, memory, words, err);
    for (uint32_t i = 0; i < joint->count && status == QN_OK; ++i) {
        status = qn__cuda_enter(joint->gpu[i], err);
        if (status == QN_OK)
            status = qn__cuda_set(joint->gpu[i], &joint->mark[i], err);
    }
    for (uint32_t i = 0; i < joint->count && status == QN_OK; ++i)
        status = await(joint, i, err);
    joint->failed |= status != QN_OK;
    return status;
}

void qn__cuda_joint_close(qn__gpu_joint *joint) {
    if (!joint)
        return;
    for (uint32_t i = 0; i < joint->count; ++i) {
        const qn__gpu *gpu = joint->gpu[i];
        const int entered = gpu->cu->context_set(gpu->context) == QN__CU_SUCCESS;
        if (joint->communicator[i])
            nccl.abort(joint->communicator[i]);
        if (entered && joint->mark[i].event)
            gpu->cu->event_destroy(joint->mark[i].event);
    }
    qn__float_state_set();
    qn__free(joint);
}
