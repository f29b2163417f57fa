/* Opening and closing a CUDA device. */
#include "device/cuda/cuda_gpu.h"

#include "base/memory.h"
#include "device/cuda/cuda_compile.h"
#include "device/notes.h"
#include <stdio.h>
#include <string.h>

#define USUAL_LIMIT 60.0

/* Compute capabilities from which on there are such instructions for bytes. */
enum { DP4A = 61, MMA = 75 };

static qn_status check(qn__gpu *gpu, qn__cu_result result, const char *doing, qn_error *err) {
    return result == QN__CU_SUCCESS ? QN_OK : qn__cuda_fail(gpu, result, err, doing);
}

static qn_status make_mark(qn__gpu *gpu, qn__cuda_mark *mark, qn_error *err) {
    return check(gpu, gpu->cu->event_create(&mark->event, 0), "making an event", err);
}

static qn_status make_stage(qn__gpu *gpu, qn__cuda_stage *stage, qn_error *err) {
    void *half = NULL;
    qn_status status = QN_OK;
    for (int i = 0; status == QN_OK && i < 2; ++i) {
        status = check(gpu, gpu->cu->host_allocate(&half, QN__CUDA_STAGE, 0),
                       "pinning memory of the host", err);
        if (status == QN_OK) {
            stage->half[i] = half;
            status = make_mark(gpu, &stage->mark[i], err);
        }
    }
    return status;
}

/* Context, stream, events and pinned memory. */
static qn_status make_queue(qn__gpu *gpu, qn_error *err) {
    const qn__cuda_driver *cu = gpu->cu;
    void *slots = NULL;
    qn_status status = check(gpu, cu->context_retain(&gpu->context, gpu->device->device),
                             "making its context (is it busy, or full?)", err);
    if (status != QN_OK || (status = qn__cuda_enter(gpu, err)) != QN_OK)
        return status;
    if ((status = check(gpu, cu->stream_create(&gpu->stream, QN__CU_STREAM_NON_BLOCKING),
                        "making a stream", err)) != QN_OK ||
        (status = check(gpu, cu->event_create(&gpu->begun, 0), "making an event", err)) != QN_OK ||
        (status = check(gpu, cu->event_create(&gpu->copying, 0), "making an event", err)) !=
            QN_OK ||
        (status = make_stage(gpu, &gpu->up, err)) != QN_OK ||
        (status = make_stage(gpu, &gpu->down, err)) != QN_OK ||
        (status = check(gpu, cu->host_allocate(&slots, (size_t)QN__CUDA_WORDS * QN__GPU_SLOTS, 0),
                        "pinning memory of the host", err)) != QN_OK)
        return status;
    gpu->slots = slots;
    for (int i = 0; status == QN_OK && i < QN__GPU_SLOTS; ++i)
        status = make_mark(gpu, &gpu->slot[i], err);
    return status;
}

/* Results with which a driver refuses an image that another driver may take. */
static int refuses_image(qn__cu_result result) {
    return result == QN__CU_INVALID_IMAGE || result == QN__CU_NO_BINARY_FOR_GPU ||
           result == QN__CU_INVALID_PTX || result == QN__CU_UNSUPPORTED_PTX_VERSION;
}

/* Says so. Nothing of it stays with the device, which may take another program: qn__cuda_fail,
 * after which every call fails, is for what is no refusal. */
static qn_status refuse_image(const qn__gpu *gpu, qn__cu_result result, const char *doing,
                              qn_error *err) {
    char said[160];
    qn__cuda_result_text(gpu->cu, result, said);
    qn__fail(err, QN_DEVICE, "%s failed at %s: %s", gpu->facts.name, doing, said);
    return qn__remedy(err, QN_DEVICE,
                      "update NVIDIA's driver, or install NVRTC of the CUDA version that "
                      "nvidia-smi shows");
}

/* The program of the device: kept from the last opening, from the cache, or compiled; one from the
 * cache that the driver refuses is compiled anew. *refused: 1 when it is the program that is not
 * taken, by the compiler or by the driver. The device's lock is held. */
static qn_status load_module(qn__gpu *gpu, int *refused, qn_error *err) {
    const qn__cuda_device_entry *d = gpu->device;
    qn__cuda_image *image = &gpu->device->image[gpu->products];
    qn__cu_result result = QN__CU_INVALID_IMAGE;
    for (int fresh = 0; fresh < 2; ++fresh) {
        if (!image->code) {
            const qn_status status =
                qn__cuda_compile(d->capability, gpu->cu->version, gpu->products, fresh,
                                 gpu->facts.name, &image->code, &image->bytes, err);
            if (status != QN_OK) {
                *refused = status == QN_DEVICE && !qn__cuda_compiler_absence(gpu->cu->version)[0];
                return status;
            }
        }
        result = gpu->cu->module_load(&gpu->module, image->code, 0, NULL, NULL);
        if (result == QN__CU_SUCCESS)
            return QN_OK;
        qn__free(image->code);
        image->code = NULL;
        if (!refuses_image(result))
            break;
    }
    static const char doing[] = "loading the compiled kernels";
    *refused = refuses_image(result);
    return *refused ? refuse_image(gpu, result, doing, err)
                    : qn__cuda_fail(gpu, result, err, doing);
}

/* A driver may load no sooner than here. */
static qn_status find_kernels(qn__gpu *gpu, int *refused, qn_error *err) {
    char doing[96];
    for (int k = 0; k < QN__KERNELS; ++k) {
        const qn__kernel_shape *shape = qn__kernel_shape_of((qn__kernel)k);
        if (!qn__kernel_belongs((qn__kernel)k, QN__CUDA_C, gpu->products))
            continue;
        const qn__cu_result result =
            gpu->cu->module_function(&gpu->kernel[k], gpu->module, shape->name);
        if (result != QN__CU_SUCCESS) {
            snprintf(doing, sizeof doing, "finding the kernel %s", shape->name);
            *refused = result == QN__CU_NOT_FOUND || refuses_image(result);
            return *refused ? refuse_image(gpu, result, doing, err)
                            : qn__cuda_fail(gpu, result, err, doing);
        }
    }
    return QN_OK;
}

/* The program and, once for each device and program, its self-test. *refused: 1 when it is this
 * program that the device cannot use. */
static qn_status try_program(qn__gpu *gpu, int *refused, qn_error *err) {
    qn__cuda_image *image = &gpu->device->image[gpu->products];
    qn_status status = load_module(gpu, refused, err);
    if (status == QN_OK)
        status = find_kernels(gpu, refused, err);
    if (status != QN_OK || image->tested)
        return status;
    status = qn__gpu_selftest(&qn__cuda_gpu_driver, gpu, err);
    if (status == QN_OK && gpu->facts.matrix) {
        status = qn__gpu_selftest_products(&qn__cuda_gpu_driver, gpu, gpu->products, err);
        *refused = status == QN_UNSUPPORTED; /* its verdict; anything else is none */
    }
    image->tested = status == QN_OK;
    return status;
}

/* Products of integers by matrix instructions or without, as the device is known to do them. */
static void choose_products(qn__gpu *gpu) {
    const int has_them = gpu->device->capability >= MMA && !gpu->device->plain;
    gpu->facts.matrix = has_them && (gpu->products & QN_WITH_INTEGERS) != 0;
    gpu->products &= QN_WITH_ALL;
    gpu->products |= gpu->facts.matrix ? QN_WITH_MATRIX : QN_WITH_LARGE;
    gpu->facts.integers = !(gpu->products & QN_WITH_INTEGERS) ? NULL
                          : gpu->facts.matrix                 ? "mma.sync"
                          : gpu->device->capability >= DP4A   ? "dp4a"
                                                              : "plain";
}

/* Where a program with matrix instructions is what is refused, one without is tried. */
static qn_status try_both(qn__gpu *gpu, qn_error *err) {
    qn_error first = {0};
    char note[448];
    int refused = 0;
    choose_products(gpu);
    qn_status status = try_program(gpu, &refused, gpu->facts.matrix ? &first : err);
    if (status == QN_OK || !gpu->facts.matrix)
        return status;
    if (!refused) {
        if (err)
            *err = first;
        return status;
    }
    if (gpu->module)
        gpu->cu->module_unload(gpu->module);
    gpu->module = NULL;
    memset(gpu->kernel, 0, sizeof gpu->kernel);
    gpu->device->plain = 1;
    choose_products(gpu);
    status = try_program(gpu, &refused, err);
    snprintf(note, sizeof note, "%s goes on without matrix instructions for integers: %.200s",
             gpu->facts.name, first.what);
    if (status == QN_OK)
        qn__device_tell(note);
    else
        gpu->device->plain = 0;
    return status;
}

static qn_status make_program(qn__gpu *gpu, qn_error *err) {
    pthread_mutex_lock(&gpu->device->lock);
    const qn_status status = try_both(gpu, err);
    /* The self-test is not among what the device did for the job. */
    gpu->busy = gpu->busy_now = 0;
    gpu->traffic = (qn__traffic){0};
    pthread_mutex_unlock(&gpu->device->lock);
    return status;
}

qn_status qn__cuda_open(uint32_t index, uint32_t products, const qn_compute *compute, qn__gpu **out,
                        qn_error *err) {
    qn__cuda_device_entry *d = qn__cuda_device_get(index);
    *out = NULL;
    if (!d) {
        qn__fail(err, QN_DEVICE, "there is no CUDA device %u; this machine has %u", index,
                 qn__cuda_count());
        return qn__remedy(err, QN_DEVICE, "%s", qn__cuda_absence());
    }
    qn__gpu *gpu = qn__alloc(1, sizeof *gpu, err);
    if (!gpu)
        return QN_MEMORY;
    gpu->cu = qn__cuda_driver_get(NULL);
    gpu->device = d;
    gpu->products = products;
    gpu->capturing = -1;
    gpu->limit = compute && compute->device_timeout > 0 ? compute->device_timeout : USUAL_LIMIT;
    snprintf(gpu->facts.name, sizeof gpu->facts.name, "cuda:%u (%s)", index, d->name);
    gpu->facts.units = d->multiprocessors > 0 ? (uint32_t)d->multiprocessors : 1;
    gpu->facts.memory = gpu->facts.largest = d->memory;
    gpu->facts.atomics = 1;
    qn_status status = QN_OK;
    if (d->forbidden) {
        qn__fail(err, QN_DEVICE, "%s is closed to every process (compute mode \"prohibited\")",
                 gpu->facts.name);
        status = qn__remedy(err, QN_DEVICE, "nvidia-smi -c DEFAULT opens it");
    }
    if (status == QN_OK && (status = make_queue(gpu, err)) == QN_OK)
        status = make_program(gpu, err);
    if (status != QN_OK) {
        qn__cuda_close(gpu);
        return status;
    }
    *out = gpu;
    return QN_OK;
}

static void drop_mark(const qn__gpu *gpu, const qn__cuda_mark *mark) {
    if (mark->event)
        gpu->cu->event_destroy(mark->event);
}

static void drop_stage(const qn__gpu *gpu, const qn__cuda_stage *stage) {
    for (int i = 0; i < 2; ++i) {
        drop_mark(gpu, &stage->mark[i]);
        if (stage->half[i])
            gpu->cu->host_free(stage->half[i]);
    }
}

/* Gives everything back. On a failed device the calls fail too, and that is all. */
static void drop_queue(const qn__gpu *gpu) {
    const qn__cuda_driver *cu = gpu->cu;
    for (int i = 0; i < QN__CUDA_RECORDINGS; ++i)
        if (gpu->recording[i])
            cu->graph_exec_destroy(gpu->recording[i]);
    for (int i = 0; i < QN__GPU_SLOTS; ++i)
        drop_mark(gpu, &gpu->slot[i]);
    drop_stage(gpu, &gpu->up);
    drop_stage(gpu, &gpu->down);
    if (gpu->slots)
        cu->host_free(gpu->slots);
    if (gpu->begun)
        cu->event_destroy(gpu->begun);
    if (gpu->copying)
        cu->event_destroy(gpu->copying);
    if (gpu->module)
        cu->module_unload(gpu->module);
    if (gpu->stream)
        cu->stream_destroy(gpu->stream);
}

/* Devices that fell silent stay as they are until the process ends: they may still write to their
 * pinned memory, and most calls that would give something back would wait for them. */
static qn__gpu *given_up;
static pthread_mutex_t given_up_lock = PTHREAD_MUTEX_INITIALIZER;

static void give_up(qn__gpu *gpu) {
    pthread_mutex_lock(&given_up_lock);
    gpu->next = given_up;
    given_up = gpu;
    pthread_mutex_unlock(&given_up_lock);
}

void qn__cuda_close(qn__gpu *gpu) {
    if (!gpu)
        return;
    qn__cu_graph *graph = NULL;
    const int entered =
        gpu->context && !gpu->silent && gpu->cu->context_set(gpu->context) == QN__CU_SUCCESS;
    if (entered && gpu->capturing >= 0 &&
        gpu->cu->stream_end_capture(gpu->stream, &graph) == QN__CU_SUCCESS && graph)
        gpu->cu->graph_destroy(graph);
    if (entered && gpu->stream)
        qn__cuda_drain(gpu);
    if (gpu->silent) {
        give_up(gpu);
        return;
    }
    if (entered) {
        drop_queue(gpu);
        gpu->cu->context_set(NULL);
    }
    if (gpu->context)
        gpu->cu->context_release(gpu->device->device);
    qn__free(gpu);
}

static const qn__gpu_facts *facts(const qn__gpu *gpu) { return &gpu->facts; }

static void traffic(const qn__gpu *gpu, qn__traffic *out) { *out = gpu->traffic; }

static double busy(const qn__gpu *gpu) { return gpu->busy + gpu->busy_now; }

const qn__gpu_driver qn__cuda_gpu_driver = {
    .open = qn__cuda_open,
    .close = qn__cuda_close,
    .facts = facts,
    .allocate = qn__cuda_allocate,
    .release = qn__cuda_release,
    .write = qn__cuda_write,
    .clear = qn__cuda_clear,
    .read = qn__cuda_read,
    .post = qn__cuda_post,
    .fetch = qn__cuda_fetch,
    .launch = qn__cuda_launch,
    .flush = qn__cuda_flush,
    .record = qn__cuda_record,
    .recorded = qn__cuda_recorded,
    .replay = qn__cuda_replay,
    .traffic = traffic,
    .busy = busy,
};
