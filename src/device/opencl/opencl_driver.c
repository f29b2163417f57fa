/* Opens, closes and drives an OpenCL device: the table of device/gpu/gpu.h. */
#include "base/memory.h"
#include "base/system/timeouts.h"
#include "device/notes.h"
#include "device/opencl/opencl_gpu.h"
#include "device/opencl/opencl_table.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- closing */

/* Devices that hang. Their drivers may still write to the staging memory, so it is never freed. */
static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER;
static qn__gpu *abandoned;

static void abandon(qn__gpu *gpu) {
    pthread_mutex_lock(&abandoned_lock);
    gpu->next_abandoned = abandoned;
    abandoned = gpu;
    pthread_mutex_unlock(&abandoned_lock);
}

static void drop_events(qn__gpu *gpu) {
    for (int i = 0; i < QN__CL_UP_PIECES; ++i)
        qn__cl_drop(gpu, &gpu->up[i].event);
    for (int i = 0; i < QN__CL_DOWN_PIECES; ++i) {
        qn__cl_drop(gpu, &gpu->down[i].event);
        qn__cl_drop(gpu, &gpu->down[i].window);
    }
    for (int i = 0; i < QN__GPU_SLOTS; ++i) {
        qn__cl_drop(gpu, &gpu->slot[i].event);
        qn__cl_drop(gpu, &gpu->slot[i].window);
    }
    qn__cl_drop(gpu, &gpu->window);
}

static void drop_staging(qn__gpu *gpu, qn__cl_staging *staging) {
    if (staging->host)
        gpu->cl->enqueue_unmap(gpu->queue, staging->memory, staging->host, 0, NULL, NULL);
    if (staging->memory)
        gpu->cl->release_memory(staging->memory);
}

/* Releasing a queue waits for its commands, for ever with some drivers. So this waits first, with
 * the time limit. */
static void drain(qn__gpu *gpu) {
    for (int i = 0; i < QN__GPU_LANES && gpu->health != QN__CL_HANGS; ++i) {
        qn__cl_event end = NULL;
        if (!gpu->lane[i] || gpu->cl->enqueue_marker(gpu->lane[i], 0, NULL, &end) != QN__CL_SUCCESS)
            continue;
        qn__cl_wait(gpu, end, "end", NULL);
        if (gpu->health != QN__CL_HANGS)
            qn__cl_drop(gpu, &end);
    }
}

static void close_gpu(qn__gpu *gpu) {
    if (!gpu)
        return;
    if (gpu->health != QN__CL_HANGS)
        drain(gpu);
    if (gpu->health == QN__CL_HANGS) {
        abandon(gpu);
        return;
    }
    drop_events(gpu);
    if (gpu->queue) {
        drop_staging(gpu, &gpu->up_memory);
        drop_staging(gpu, &gpu->down_memory);
    }
    for (int k = 0; k < QN__KERNELS; ++k)
        if (gpu->kernel[k])
            gpu->cl->release_kernel(gpu->kernel[k]);
    if (gpu->program)
        gpu->cl->release_program(gpu->program);
    for (int i = 0; i < QN__GPU_LANES; ++i)
        if (gpu->lane[i])
            gpu->cl->release_queue(gpu->lane[i]);
    if (gpu->context)
        gpu->cl->release_context(gpu->context);
    qn__free(gpu);
}

/* ---------------------------------------------------------------- opening */

static void state_facts(qn__gpu *gpu) {
    const qn__cl_entry *const e = gpu->entry;
    qn__gpu_facts *const f = &gpu->facts;
    snprintf(f->name, sizeof f->name, "%s", e->label);
    f->vectors = e->is_cpu;
    f->compute_units = e->info.cores > 0 ? (uint32_t)e->info.cores : 1;
    f->memory = e->info.memory;
    f->largest = e->largest;
    f->atomics = e->atomics;
    f->doubles = e->doubles;
    f->simulated = qn__cl_is_simulated(e);
}

static qn_status open_queue(qn__gpu *gpu, qn_error *err) {
    int32_t code = QN__CL_SUCCESS;
    gpu->context = gpu->cl->create_context(NULL, 1, &gpu->entry->device, NULL, NULL, &code);
    return code == QN__CL_SUCCESS ? qn__cl_lane_choose(gpu, QN__GPU_WORK, err)
                                  : qn__cl_fail(gpu, code, "open", err);
}

static qn_status build_and_test(qn__gpu *gpu, qn_error *err) {
    const qn_status status = qn__cl_build(gpu, err);
    return status == QN_OK ? qn__gpu_selftest(&qn__opencl_driver, gpu, err) : status;
}

static void name_products(qn__gpu *gpu) {
    gpu->facts.integers = !(gpu->products & QN_WITH_INTGEMM) ? NULL
                          : gpu->dots                        ? "cl_khr_integer_dot_product"
                                                             : "plain";
}

/* Whether the device may work without its products of packed bytes. A failing kernel can cause any
 * failure except lack of memory. */
static int may_be_the_dots(const qn__gpu *gpu) {
    return gpu->dots && gpu->health == QN__CL_FAILED &&
           gpu->failure != QN__CL_MEM_OBJECT_ALLOCATION_FAILURE &&
           gpu->failure != QN__CL_OUT_OF_HOST_MEMORY;
}

/* A program that is refused is tried again without optional instructions. */
static qn_status make_program(qn__gpu *gpu, qn_error *err) {
    qn_error said = {0};
    name_products(gpu);
    qn_status status = build_and_test(gpu, &said);
    if (status == QN_UNSUPPORTED && gpu->dots) {
        gpu->dotless = said;
        qn__cl_drop_program(gpu);
        gpu->dots = 0;
        name_products(gpu);
        status = build_and_test(gpu, &said);
    }
    if (err && status != QN_OK)
        *err = said;
    return status;
}

/* Opens the device once; *gpu is closed on failure. *again: 1 when it may work without dots, in
 * another context. */
static qn_status attempt(qn__gpu *gpu, int *again, qn_error *err) {
    qn_status status = open_queue(gpu, err);
    *again = 0;
    if (status == QN_OK)
        status = qn__cl_stage(gpu, err);
    if (status == QN_OK && gpu->products) {
        status = make_program(gpu, err);
        *again = status == QN_DEVICE && may_be_the_dots(gpu);
    }
    if (status != QN_OK)
        close_gpu(gpu);
    return status;
}

static void tell_dotless(const qn__gpu *gpu) {
    char note[384];
    snprintf(note, sizeof note, "%s goes on without cl_khr_integer_dot_product: %.160s",
             gpu->entry->label, gpu->dotless.what);
    if (gpu->dotless.status != QN_OK)
        qn__device_tell(note);
}

static qn_status open_gpu(uint32_t index, uint32_t products, const qn_compute *compute,
                          qn__gpu **out, qn_error *err) {
    const qn__cl_api *cl;
    const qn__cl_entry *const entry = qn__cl_entry_at(index, &cl);
    qn_error dotless = {0}, unwanted;
    *out = NULL;
    err = err ? err : &unwanted;
    if (!entry)
        return qn__fail(err, QN_DEVICE, "there is no device opencl:%u", index);
    if (entry->info.refused) {
        qn__fail(err, QN_UNSUPPORTED, "%s cannot be used: %s", entry->label, entry->info.reason);
        return qn__remedy(err, QN_UNSUPPORTED, "leave it out of `compute.devices`");
    }
    products = products ? qn__cl_products(entry, products) : 0;
    int dots = entry->dots && (products & QN_WITH_INTGEMM) != 0 &&
               qn__gpu_best_isa(compute) < QN__GPU_PLAIN;
    for (int again = 1; again; dots = 0) {
        qn__gpu *const gpu = qn__alloc(1, sizeof *gpu, err);
        if (!gpu)
            return QN_MEMORY;
        gpu->cl = cl;
        gpu->entry = entry;
        gpu->dots = dots;
        gpu->dotless = dotless;
        gpu->products = products;
        gpu->timeout =
            compute && compute->device_timeout > 0.0 ? compute->device_timeout : QN__DEVICE_TIMEOUT;
        state_facts(gpu);
        if (attempt(gpu, &again, err) == QN_OK) {
            tell_dotless(gpu);
            gpu->traffic = (qn__traffic){0};
            gpu->busy = 0.0;
            *out = gpu;
            return QN_OK;
        }
        dotless = *err;
    }
    return err->status;
}

/* ---------------------------------------------------------------- launching */

/* Sets an argument whose value has changed. */
static int32_t set_argument(qn__gpu *gpu, qn__kernel kernel, uint32_t i,
                            const qn__gpu_argument *argument) {
    uint64_t value = 0;
    size_t size = sizeof(uint32_t);
    switch (argument->kind) {
    case 'M':
        size = sizeof argument->value.memory->handle;
        memcpy(&value, &argument->value.memory->handle, size);
        break;
    case 'U':
        size = sizeof argument->value.U;
        memcpy(&value, &argument->value.U, size);
        break;
    case 'f':
        memcpy(&value, &argument->value.f, size);
        break;
    default:
        memcpy(&value, &argument->value.u, size);
    }
    if (gpu->set[kernel][i].is_set && gpu->set[kernel][i].value == value)
        return QN__CL_SUCCESS;
    gpu->set[kernel][i].value = value;
    gpu->set[kernel][i].is_set = 1;
    return gpu->cl->set_argument(gpu->kernel[kernel], i, size, &value);
}

static qn_status launch(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                        const qn__gpu_argument *arguments, uint32_t count, qn_error *err) {
    const qn__kernel_shape *const shape = qn__kernel_shape_of(kernel);
    int32_t code = QN__CL_SUCCESS;
    const qn_status status = qn__cl_usable(gpu, err);
    if (status != QN_OK || groups[0] == 0 || groups[1] == 0 || groups[2] == 0)
        return status;
    if (!gpu->kernel[kernel] || count > QN__CL_ARGUMENTS)
        return qn__fail(err, QN_DEVICE, "%s has no kernel %s", gpu->entry->label, shape->name);
    for (uint32_t i = 0; code == QN__CL_SUCCESS && i < count; ++i)
        code = set_argument(gpu, kernel, i, &arguments[i]);
    const size_t local[3] = {shape->lanes[0], shape->lanes[1], 1},
                 global[3] = {groups[0] * local[0], groups[1] * local[1], groups[2]};
    if (code == QN__CL_SUCCESS)
        code = gpu->cl->enqueue_kernel(gpu->queue, gpu->kernel[kernel], 3, NULL, global, local, 0,
                                       NULL, gpu->window ? NULL : &gpu->window);
    if (code == QN__CL_SUCCESS)
        return QN_OK;
    char doing[64];
    snprintf(doing, sizeof doing, "run %s", shape->name);
    return qn__cl_fail(gpu, code, doing, err);
}

/* ---------------------------------------------------------------- lanes */

/* A lane is a queue of its own, made when it is first used. */
qn_status qn__cl_lane_choose(qn__gpu *gpu, qn__gpu_lane lane, qn_error *err) {
    int32_t code = QN__CL_SUCCESS;
    const qn_status status = qn__cl_usable(gpu, err);
    if (status != QN_OK)
        return status;
    if (!gpu->lane[lane])
        gpu->lane[lane] = gpu->cl->create_queue(gpu->context, gpu->entry->device,
                                                QN__CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != QN__CL_SUCCESS) {
        gpu->lane[lane] = NULL;
        return qn__cl_fail(gpu, code, "open", err);
    }
    gpu->queue = gpu->lane[lane];
    return QN_OK;
}

/* The standard asks that a command is submitted before another queue waits for it. */
qn_status qn__cl_follow(qn__gpu *gpu, qn__gpu_lane other, qn_error *err) {
    qn__cl_event passed = NULL;
    const qn_status status = qn__cl_usable(gpu, err);
    if (status != QN_OK || !gpu->lane[other] || gpu->lane[other] == gpu->queue)
        return status;
    int32_t code = gpu->cl->enqueue_marker(gpu->lane[other], 0, NULL, &passed);
    if (code == QN__CL_SUCCESS)
        code = gpu->cl->flush(gpu->lane[other]);
    if (code == QN__CL_SUCCESS)
        code = gpu->cl->enqueue_barrier(gpu->queue, 1, &passed, NULL);
    qn__cl_drop(gpu, &passed);
    return code == QN__CL_SUCCESS ? QN_OK : qn__cl_fail(gpu, code, "begin", err);
}

static qn_status flush(qn__gpu *gpu, qn_error *err) {
    const qn_status status = qn__cl_usable(gpu, err);
    const int32_t code = status == QN_OK ? gpu->cl->flush(gpu->queue) : QN__CL_SUCCESS;
    return code == QN__CL_SUCCESS ? status : qn__cl_fail(gpu, code, "begin", err);
}

static const qn__gpu_facts *facts(const qn__gpu *gpu) { return &gpu->facts; }
static void traffic(const qn__gpu *gpu, qn__traffic *out) { *out = gpu->traffic; }
static double busy(const qn__gpu *gpu) { return gpu->busy; }

const qn__gpu_driver qn__opencl_driver = {
    .language = QN__OPENCL_C,
    .open = open_gpu,
    .close = close_gpu,
    .facts = facts,
    .allocate = qn__cl_allocate,
    .release = qn__cl_release,
    .write = qn__cl_write,
    .clear = qn__cl_clear,
    .post = qn__cl_post,
    .fetch = qn__cl_fetch,
    .lane = qn__cl_lane_choose,
    .follow = qn__cl_follow,
    .ask = qn__cl_ask,
    .get = qn__cl_get,
    .launch = launch,
    .build = qn__cl_text_build,
    .drop = qn__cl_text_drop,
    .start = qn__cl_text_start,
    .flush = flush,
    .traffic = traffic,
    .busy = busy,
};
