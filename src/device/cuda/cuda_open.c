/* Opens and closes a CUDA device.
 *
 * A failed kernel destroys its context with all that is in it. So programs are tried from the
 * fastest kind of integer instructions to the plainest, each in a context that may be lost:
 *
 *     matrix instructions  -> fails ->  dot products of bytes  -> fails ->  plain integers
 *
 * Where other code of the process uses the primary context, a new program is tried in a context of
 * its own (docs/devices.md). A device that hangs is abandoned: releasing what it uses would wait
 * for it. */
#include "device/cuda/cuda_gpu.h"

#include "base/memory.h"
#include "base/system/timeouts.h"
#include "device/cuda/cuda_nccl.h"
#include "device/notes.h"
#include <stdio.h>

/* The lowest compute capabilities that have these instructions for bytes. */
enum { DP4A = 61, MMA = 75 };

static qn_status check(qn__gpu *gpu, qn__cu_result result, const char *doing, qn_error *err) {
    return result == QN__CU_SUCCESS ? QN_OK : qn__cuda_fail(gpu, result, err, doing);
}

static qn_status make_event(qn__gpu *gpu, qn__cu_event **event, qn_error *err) {
    return check(gpu, gpu->cu->event_create(event, 0), "making an event", err);
}

static qn_status make_stage(qn__gpu *gpu, qn__cuda_stage *stage, qn_error *err) {
    void *half = NULL;
    qn_status status = QN_OK;
    for (int i = 0; status == QN_OK && i < 2; ++i) {
        status = check(gpu, gpu->cu->host_allocate(&half, QN__CUDA_STAGE, 0),
                       "pinning memory of the host", err);
        if (status == QN_OK) {
            stage->half[i] = half;
            status = make_event(gpu, &stage->mark[i].event, err);
        }
        if (status == QN_OK)
            status = make_event(gpu, &stage->begun[i], err);
    }
    return status;
}

static qn_status make_context(qn__gpu *gpu, qn_error *err) {
    const qn__cu_device device = gpu->device->device;
    const qn__cu_result result = gpu->own ? gpu->cu->context_create(&gpu->context, 0, device)
                                          : gpu->cu->context_retain(&gpu->context, device);
    return check(gpu, result, "making its context (is it busy, or full?)", err);
}

/* Context, stream of the work, events and pinned memory. */
static qn_status make_queue(qn__gpu *gpu, qn_error *err) {
    const qn__cuda_driver *cu = gpu->cu;
    void *slots = NULL;
    qn_status status = make_context(gpu, err);
    if (status != QN_OK || (status = qn__cuda_enter(gpu, err)) != QN_OK)
        return status;
    if ((status = qn__cuda_lane_choose(gpu, QN__GPU_WORK, err)) != QN_OK ||
        (status = make_event(gpu, &gpu->begun, err)) != QN_OK ||
        (status = make_event(gpu, &gpu->passed, err)) != QN_OK ||
        (status = make_stage(gpu, &gpu->up, err)) != QN_OK ||
        (status = make_stage(gpu, &gpu->down, err)) != QN_OK ||
        (status = check(gpu, cu->host_allocate(&slots, (size_t)QN__CUDA_WORDS * QN__GPU_SLOTS, 0),
                        "pinning memory of the host", err)) != QN_OK)
        return status;
    gpu->slots = slots;
    for (int i = 0; status == QN_OK && i < QN__GPU_SLOTS; ++i)
        status = make_event(gpu, &gpu->slot[i].event, err);
    return status;
}

/* ---- instructions for integer products */

/* The state of an opening: the request, and the instructions tried so far. */
typedef struct opening {
    qn__cuda_device_entry *device;
    uint32_t index, products;
    double limit;
    qn__gpu_isa isa;             /* being tried now */
    qn_error said[QN__GPU_ISAS]; /* why each of those tried before was refused */
} opening;

/* How an attempt ended. */
typedef enum ending {
    OPENED,
    FAULTED, /* a kernel failed: other instructions may work, in another context */
    SILENT,  /* the device hangs; nothing more can be tried */
    FAILED
} ending;

static int has_intgemm(const opening *o) { return (o->products & QN_WITH_INTGEMM) != 0; }

/* The best instructions that the device has and that have not failed. A program without integer
 * products has no choice, and its self-test must not depend on instructions that it does not
 * use. */
static void begin(opening *o, const qn_compute *compute) {
    const qn__cuda_device_entry *d = o->device;
    const qn__gpu_isa allowed = qn__gpu_best_isa(compute);
    o->isa = d->capability >= MMA    ? QN__GPU_MATRIX
             : d->capability >= DP4A ? QN__GPU_DOTS
                                     : QN__GPU_PLAIN;
    if (o->isa < d->isa)
        o->isa = d->isa;
    if (o->isa < allowed)
        o->isa = allowed;
    if (!has_intgemm(o) || o->isa > QN__GPU_PLAIN)
        o->isa = QN__GPU_PLAIN;
}

static uint32_t products_of(const opening *o) {
    static const uint32_t of_way[QN__GPU_ISAS] = {QN_WITH_MATRIX, QN_WITH_LARGE,
                                                  QN_WITH_LARGE | QN_WITH_PLAIN};
    return (o->products & (QN_WITH_ALL | QN_WITH_PIXELS)) | of_way[o->isa];
}

static void choose_products(const opening *o, qn__gpu *gpu) {
    static const char *const names[QN__GPU_ISAS] = {"mma.sync", "dp4a", "plain"};
    gpu->products = products_of(o);
    gpu->facts.matrix = o->isa == QN__GPU_MATRIX;
    gpu->facts.integers = has_intgemm(o) ? names[o->isa] : NULL;
}

/* Makes the device's program with the best instructions that are not refused. After a kernel has
 * failed the context cannot be used, so the next instructions are left to the next attempt. */
static qn_status make_program(opening *o, qn__gpu *gpu, qn_error *err) {
    if (!o->products)
        return QN_OK;
    for (;;) {
        qn_error *said = &o->said[o->isa];
        int refused = 0;
        choose_products(o, gpu);
        const qn_status status = qn__cuda_make_program(&qn__cuda_gpu_driver, gpu, &refused, said);
        if (status == QN_OK)
            return QN_OK;
        if (o->isa == QN__GPU_PLAIN || !(refused || gpu->faulted)) {
            if (err)
                *err = *said;
            return status;
        }
        ++o->isa;
        if (gpu->failed)
            return status;
        qn__cuda_drop_program(gpu);
    }
}

/* ---- opening */

static void describe(const opening *o, qn__gpu *gpu) {
    const qn__cuda_device_entry *d = o->device;
    gpu->cu = qn__cuda_driver_get(NULL);
    gpu->device = o->device;
    gpu->capturing = -1;
    gpu->limit = o->limit;
    snprintf(gpu->facts.name, sizeof gpu->facts.name, "cuda:%u (%s)", o->index, d->name);
    gpu->facts.compute_units = d->multiprocessors > 0 ? (uint32_t)d->multiprocessors : 1;
    gpu->facts.memory = gpu->facts.largest = d->memory;
    gpu->facts.atomics = 1;
    gpu->facts.doubles = 1;
}

/* Opens the device in its primary context or in one of its own. */
static ending attempt(opening *o, int own, qn__gpu **out, qn_error *err) {
    const qn__gpu_isa before = o->isa;
    qn__gpu *gpu = qn__alloc(1, sizeof *gpu, err);
    if (!gpu)
        return FAILED;
    describe(o, gpu);
    gpu->own = own;
    if (make_queue(gpu, err) == QN_OK && make_program(o, gpu, err) == QN_OK) {
        /* The self-test does not count as work for the job. */
        gpu->busy = gpu->busy_now = 0;
        gpu->traffic = (qn__traffic){0};
        *out = gpu;
        return OPENED;
    }
    const ending how = gpu->faulted && o->isa > before ? FAULTED : gpu->silent ? SILENT : FAILED;
    qn__cuda_close(gpu);
    return how;
}

/* Whether other code of this process already uses the device's primary context: a kernel that fails
 * in it would invalidate their data. */
static int is_shared(const qn__cuda_device_entry *d) {
    const qn__cuda_driver *cu = qn__cuda_driver_get(NULL);
    unsigned flags;
    int active = 0;
    return cu->context_state && cu->context_create && cu->context_destroy &&
           cu->context_state(d->device, &flags, &active) == QN__CU_SUCCESS && active;
}

/* A program that was never tried here is tried in a context of its own if others use the primary
 * one. Other failures there, such as of creating a second context, do not count against the primary
 * context. */
static ending attempt_safely(opening *o, qn__gpu **out, qn_error *err) {
    const qn__cuda_image *image = &o->device->image[products_of(o)];
    if (o->products && !image->tested && is_shared(o->device)) {
        const ending how = attempt(o, 1, out, err);
        if (how == FAULTED || how == SILENT)
            return how;
        if (how == OPENED)
            qn__cuda_close(*out);
        *out = NULL;
    }
    return attempt(o, 0, out, err);
}

/* The last instructions failed after others whose kernels had failed, or could not be tried. */
static void complain(const opening *o, qn__gpu_isa last, qn_error *err) {
    static const char *const isa[QN__GPU_ISAS] = {"auto", "dp4a", "plain"};
    if (o->said[last].status != QN_OK) {
        qn__remedy(err, err->status,
                   "its kernels had failed with faster instructions as well: leave the device out, "
                   "and look for a fault of it or of its driver (dmesg, lines with NVRM or Xid)");
        return;
    }
    *err = o->said[last - 1];
    qn__remedy(err, QN_DEVICE,
               "CUDA gives this process no context on that GPU in which something else can be "
               "tried; start it again with `compute.gpu_isa` %s",
               isa[last]);
}

static void tell(const opening *o, const qn__gpu *gpu, qn__gpu_isa first) {
    static const char *const what[QN__GPU_PLAIN] = {"matrix instructions", "dp4a"};
    char note[512];
    for (qn__gpu_isa isa = first; isa < o->isa && isa < QN__GPU_PLAIN; ++isa) {
        const qn_error *said = &o->said[isa];
        snprintf(note, sizeof note, "%s goes on without %s for integers: %.180s%s%.60s%s",
                 gpu->facts.name, what[isa], said->what, said->where[0] ? " (" : "", said->where,
                 said->where[0] ? ")" : "");
        qn__device_tell(note);
    }
}

/* The caller holds the device's lock. */
static qn_status open_best(opening *o, qn__gpu **out, qn_error *err) {
    const qn__gpu_isa first = o->isa;
    qn__gpu_isa before;
    qn_error unwanted;
    ending how;
    err = err ? err : &unwanted;
    do {
        before = o->isa;
        how = attempt_safely(o, out, err);
    } while (how == FAULTED);
    if (how == OPENED) {
        if (o->isa > first)
            o->device->isa = o->isa;
        tell(o, *out, first);
        return QN_OK;
    }
    *out = NULL;
    if (before > first)
        complain(o, before, err);
    return err->status;
}

qn_status qn__cuda_open(uint32_t index, uint32_t products, const qn_compute *compute, qn__gpu **out,
                        qn_error *err) {
    qn__cuda_device_entry *d = qn__cuda_device_get(index);
    opening o = {.device = d, .index = index, .products = products};
    *out = NULL;
    if (!d) {
        qn__fail(err, QN_DEVICE, "there is no CUDA device %u; this machine has %u", index,
                 qn__cuda_count());
        return qn__remedy(err, QN_DEVICE, "%s", qn__cuda_absence());
    }
    if (d->forbidden) {
        qn__fail(err, QN_DEVICE,
                 "cuda:%u (%s) is closed to every process (compute mode "
                 "\"prohibited\")",
                 index, d->name);
        return qn__remedy(err, QN_DEVICE, "nvidia-smi -c DEFAULT opens it");
    }
    o.limit = compute && compute->device_timeout > 0 ? compute->device_timeout : QN__DEVICE_TIMEOUT;
    pthread_mutex_lock(&d->lock);
    begin(&o, compute);
    const qn_status status = open_best(&o, out, err);
    pthread_mutex_unlock(&d->lock);
    return status;
}

/* ---- closing */

static void drop_event(const qn__gpu *gpu, qn__cu_event *event) {
    if (event)
        gpu->cu->event_destroy(event);
}

static void drop_stage(const qn__gpu *gpu, const qn__cuda_stage *stage) {
    for (int i = 0; i < 2; ++i) {
        drop_event(gpu, stage->mark[i].event);
        drop_event(gpu, stage->begun[i]);
        if (stage->half[i])
            gpu->cu->host_free(stage->half[i]);
    }
}

/* Releases everything. On a failed device the calls fail too, which is ignored. */
static void drop_queue(const qn__gpu *gpu) {
    const qn__cuda_driver *cu = gpu->cu;
    for (int i = 0; i < QN__CUDA_RECORDINGS; ++i)
        if (gpu->recording[i])
            cu->graph_exec_destroy(gpu->recording[i]);
    for (int i = 0; i < QN__GPU_SLOTS; ++i)
        drop_event(gpu, gpu->slot[i].event);
    drop_stage(gpu, &gpu->up);
    drop_stage(gpu, &gpu->down);
    if (gpu->slots)
        cu->host_free(gpu->slots);
    drop_event(gpu, gpu->begun);
    drop_event(gpu, gpu->passed);
    if (gpu->module)
        cu->module_unload(gpu->module);
    for (int i = 0; i < QN__GPU_LANES; ++i)
        if (gpu->lane[i].stream)
            cu->stream_destroy(gpu->lane[i].stream);
}

/* Devices that hang are kept until the process ends: they may still write to their pinned memory,
 * and most calls that release something would wait for them. */
static qn__gpu *abandoned;
static pthread_mutex_t abandoned_lock = PTHREAD_MUTEX_INITIALIZER;

static void abandon(qn__gpu *gpu) {
    pthread_mutex_lock(&abandoned_lock);
    gpu->next = abandoned;
    abandoned = gpu;
    pthread_mutex_unlock(&abandoned_lock);
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
        abandon(gpu);
        return;
    }
    if (entered) {
        drop_queue(gpu);
        gpu->cu->context_set(NULL);
    }
    if (gpu->context && gpu->own)
        gpu->cu->context_destroy(gpu->context);
    else if (gpu->context)
        gpu->cu->context_release(gpu->device->device);
    qn__free(gpu);
}

static const qn__gpu_facts *facts(const qn__gpu *gpu) { return &gpu->facts; }

static void traffic(const qn__gpu *gpu, qn__traffic *out) { *out = gpu->traffic; }

static double busy(const qn__gpu *gpu) { return gpu->busy + gpu->busy_now; }

const qn__gpu_driver qn__cuda_gpu_driver = {
    .language = QN__CUDA_C,
    .open = qn__cuda_open,
    .close = qn__cuda_close,
    .facts = facts,
    .allocate = qn__cuda_allocate,
    .release = qn__cuda_release,
    .write = qn__cuda_write,
    .clear = qn__cuda_clear,
    .post = qn__cuda_post,
    .fetch = qn__cuda_fetch,
    .lane = qn__cuda_lane_choose,
    .follow = qn__cuda_follow,
    .ask = qn__cuda_ask,
    .get = qn__cuda_get,
    .launch = qn__cuda_launch,
    .build = qn__cuda_text_build,
    .drop = qn__cuda_text_drop,
    .start = qn__cuda_text_start,
    .flush = qn__cuda_flush,
    .record = qn__cuda_record,
    .recorded = qn__cuda_recorded,
    .replay = qn__cuda_replay,
    .joint_open = qn__cuda_joint_open,
    .joint_add = qn__cuda_joint_add,
    .joint_close = qn__cuda_joint_close,
    .traffic = traffic,
    .busy = busy,
};
