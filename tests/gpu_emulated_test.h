/* A driver over the kernel text compiled as C (tests/emulated_gpu), for tests of the worker: it
 * has as much memory as a test wants, refuses what does not fit the contract of gpu.h, and counts.
 * Static functions, since this belongs to one test program. */
#ifndef QN_TESTS_GPU_EMULATED_TEST_H
#define QN_TESTS_GPU_EMULATED_TEST_H

#include "base/memory.h"
#include "device/gpu/gpu.h"
#include "emulated_gpu/emulated_gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the next device is like; set by tests. */
typedef struct emulated_plan {
    uint64_t memory, largest;
    uint64_t refuse;  /* allocations of at least so many bytes fail although they fit; 0: none */
    uint64_t chunk;   /* bytes that are unfolded together */
    uint64_t fail_at; /* the call, counted from 1, at which the device fails for good; 0: never */
    uint32_t compute_units;
    int atomics, matrix;
} emulated_plan;

typedef struct emulated_counts {
    uint64_t launches, clears, writes, bytes_up, bytes_down, replays, recordings, allocated;
    uint64_t calls; /* of all kinds that can fail */
} emulated_counts;

static emulated_plan plan = {
    .memory = 1 << 30, .largest = 1 << 30, .compute_units = 8, .atomics = 1};
static emulated_counts counts;

typedef struct emulated_call {
    int kernel; /* -1: a clear */
    uint32_t groups[3], count;
    qn__gpu_argument argument[20];
    qn__gpu_memory memory[20];
    size_t offset, bytes;
} emulated_call;

enum { CALLS = 4096, RECORDINGS = 16 };

struct qn__gpu {
    qn__gpu_facts facts;
    unsigned char slot[QN__GPU_SLOTS][256];
    int posted[QN__GPU_SLOTS];
    emulated_call *call[RECORDINGS];
    uint32_t calls[RECORDINGS];
    int recording; /* -1: none */
    uint32_t asked, taken;
    const void *piece[QN__GPU_ASKED];
    size_t piece_bytes[QN__GPU_ASKED];
    uint32_t products;
};

static void broken(const char *what) {
    fprintf(stderr, "the driver was misused: %s\n", what);
    abort();
}

/* Every call begins here. */
static qn_status alive(const qn__gpu *gpu, qn_error *err) {
    ++counts.calls;
    if (plan.fail_at == 0 || counts.calls < plan.fail_at)
        return QN_OK;
    return qn__fail(err, QN_DEVICE, "%s fell off the bus", gpu->facts.name);
}

static qn_status emulated_open(uint32_t index, uint32_t products, const qn_compute *compute,
                               qn__gpu **out, qn_error *err) {
    (void)compute;
    *out = qn__alloc(1, sizeof **out, err);
    if (!*out)
        return QN_MEMORY;
    snprintf((*out)->facts.name, sizeof(*out)->facts.name, "emulated:%u", index);
    (*out)->facts.compute_units = plan.compute_units;
    (*out)->facts.memory = plan.memory;
    (*out)->facts.largest = plan.largest;
    (*out)->facts.atomics = plan.atomics;
    (*out)->facts.chunk = plan.chunk;
    (*out)->recording = -1;
    (*out)->products = products | (plan.matrix ? QN_WITH_MATRIX : QN_WITH_LARGE);
    (*out)->facts.matrix = plan.matrix;
    return QN_OK;
}

static void emulated_close(qn__gpu *gpu) {
    for (int i = 0; i < RECORDINGS; ++i)
        qn__free(gpu->call[i]);
    qn__free(gpu);
}

static const qn__gpu_facts *emulated_facts(const qn__gpu *gpu) { return &gpu->facts; }

static qn_status emulated_allocate(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (bytes == 0 || counts.allocated + bytes > gpu->facts.memory || bytes > gpu->facts.largest ||
        (plan.refuse && bytes >= plan.refuse))
        return qn__fail(err, QN_DEVICE, "%s: out of memory", gpu->facts.name);
    out->handle = malloc(bytes);
    if (!out->handle)
        return qn__fail_memory(err, bytes, 1);
    memset(out->handle, 0xff, bytes); /* NaNs and huge integers, should anybody rely on it */
    out->bytes = bytes;
    counts.allocated += bytes;
    return QN_OK;
}

static void emulated_release(qn__gpu *gpu, qn__gpu_memory *memory) {
    (void)gpu;
    counts.allocated -= memory->bytes;
    free(memory->handle);
    *memory = (qn__gpu_memory){0};
}

static char *inside(const qn__gpu_memory *memory, size_t offset, size_t bytes) {
    if (bytes == 0 || offset > memory->bytes || bytes > memory->bytes - offset)
        broken("a copy leaves its memory");
    return (char *)memory->handle + offset;
}

static qn_status emulated_write(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset,
                                const void *from, size_t bytes, qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (gpu->recording >= 0)
        broken("a write is recorded");
    memcpy(inside(to, offset, bytes), from, bytes);
    counts.bytes_up += bytes;
    ++counts.writes;
    return QN_OK;
}

static emulated_call *recorded_call(qn__gpu *gpu) {
    const int r = gpu->recording;
    if (gpu->calls[r] == CALLS)
        broken("a recording is too long");
    return &gpu->call[r][gpu->calls[r]++];
}

static qn_status emulated_clear(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                                qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    inside(to, offset, bytes);
    if (gpu->recording >= 0) {
        *recorded_call(gpu) =
            (emulated_call){.kernel = -1, .memory = {*to}, .offset = offset, .bytes = bytes};
        return QN_OK;
    }
    memset(inside(to, offset, bytes), 0, bytes);
    ++counts.clears;
    return QN_OK;
}

static qn_status emulated_ask(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, size_t bytes,
                              qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (gpu->recording >= 0)
        broken("a read is recorded");
    if (gpu->asked - gpu->taken == QN__GPU_ASKED || bytes > QN__GPU_PIECE)
        broken("too much is asked for");
    gpu->piece[gpu->asked % QN__GPU_ASKED] = inside(from, offset, bytes);
    gpu->piece_bytes[gpu->asked++ % QN__GPU_ASKED] = bytes;
    return QN_OK;
}

static qn_status emulated_get(qn__gpu *gpu, const void **data, size_t *bytes, qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (gpu->asked == gpu->taken)
        broken("nothing was asked for");
    *data = gpu->piece[gpu->taken % QN__GPU_ASKED];
    *bytes = gpu->piece_bytes[gpu->taken++ % QN__GPU_ASKED];
    counts.bytes_down += *bytes;
    return QN_OK;
}

static qn_status emulated_post(qn__gpu *gpu, const qn__gpu_memory *from, size_t bytes,
                               uint32_t slot, qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (slot >= QN__GPU_SLOTS || bytes > sizeof gpu->slot[0] || gpu->posted[slot])
        broken("a post takes a slot that is not free");
    memcpy(gpu->slot[slot], inside(from, 0, bytes), bytes);
    gpu->posted[slot] = 1;
    counts.bytes_down += bytes;
    return QN_OK;
}

static qn_status emulated_fetch(qn__gpu *gpu, uint32_t slot, const void **words, qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (slot >= QN__GPU_SLOTS || !gpu->posted[slot])
        broken("a fetch of what was not posted");
    gpu->posted[slot] = 0;
    *words = gpu->slot[slot];
    return QN_OK;
}

static void run_call(const emulated_call *c) {
    const qn__kernel_shape *shape = qn__kernel_shape_of((qn__kernel)c->kernel);
    const qn_emulated_kernel *kernel = qn_emulated_find(shape->name);
    void *arguments[20];
    for (uint32_t i = 0; i < c->count; ++i)
        arguments[i] = c->argument[i].kind == 'M' ? (void *)(uintptr_t)&c->memory[i].handle
                                                  : (void *)(uintptr_t)&c->argument[i].value;
    qn_emulated_launch(kernel, c->groups, shape->lanes[0] * shape->lanes[1], arguments);
    ++counts.launches;
}

static qn_status emulated_do(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                             const qn__gpu_argument *arguments, uint32_t count, qn_error *err) {
    const qn__kernel_shape *shape = qn__kernel_shape_of(kernel);
    emulated_call c = {.kernel = (int)kernel, .count = count};
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    memcpy(c.groups, groups, sizeof c.groups);
    if (count != strlen(shape->arguments) || groups[0] == 0 || groups[1] == 0 || groups[2] == 0 ||
        !qn__kernel_belongs(kernel, QN__CUDA_C, gpu->products))
        broken(shape->name);
    for (uint32_t i = 0; i < count; ++i) {
        c.argument[i] = arguments[i];
        if (arguments[i].kind != shape->arguments[i])
            broken(shape->name);
        if (arguments[i].kind != 'M')
            continue;
        c.memory[i] = *arguments[i].value.memory;
        if (c.memory[i].bytes == 0)
            broken("an argument is not memory");
    }
    if (gpu->recording >= 0)
        *recorded_call(gpu) = c;
    else
        run_call(&c);
    return QN_OK;
}

static qn_status emulated_flush(qn__gpu *gpu, qn_error *err) { return alive(gpu, err); }

static qn_status emulated_record(qn__gpu *gpu, uint32_t number, qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (number >= RECORDINGS || gpu->recording >= 0)
        broken("a recording is begun twice");
    if (!gpu->call[number] && !(gpu->call[number] = qn__alloc(CALLS, sizeof(emulated_call), err)))
        return QN_MEMORY;
    gpu->recording = (int)number;
    gpu->calls[number] = 0;
    ++counts.recordings;
    return QN_OK;
}

static qn_status emulated_recorded(qn__gpu *gpu, uint32_t number, qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (gpu->recording != (int)number)
        broken("a recording ends that was not begun");
    gpu->recording = -1;
    return QN_OK;
}

static qn_status emulated_replay(qn__gpu *gpu, uint32_t number, qn_error *err) {
    if (alive(gpu, err) != QN_OK)
        return QN_DEVICE;
    if (number >= RECORDINGS || gpu->calls[number] == 0 || gpu->recording >= 0)
        broken("nothing is there to be replayed");
    for (uint32_t i = 0; i < gpu->calls[number]; ++i) {
        const emulated_call *c = &gpu->call[number][i];
        if (c->kernel < 0)
            memset(inside(&c->memory[0], c->offset, c->bytes), 0, c->bytes);
        else
            run_call(c);
    }
    ++counts.replays;
    return QN_OK;
}

static void emulated_traffic(const qn__gpu *gpu, qn__traffic *traffic) {
    (void)gpu;
    *traffic = (qn__traffic){.bytes_up = counts.bytes_up, .bytes_down = counts.bytes_down};
}

static double emulated_busy(const qn__gpu *gpu) {
    (void)gpu;
    return 0.5;
}

#define EMULATED_CALLS                                                                             \
    .open = emulated_open, .close = emulated_close, .facts = emulated_facts,                       \
    .allocate = emulated_allocate, .release = emulated_release, .write = emulated_write,           \
    .clear = emulated_clear, .ask = emulated_ask, .get = emulated_get, .post = emulated_post,      \
    .fetch = emulated_fetch, .launch = emulated_do, .flush = emulated_flush,                       \
    .traffic = emulated_traffic, .busy = emulated_busy

/* One that launches one by one, as OpenCL does, and one that records, as CUDA does. */
static const qn__gpu_driver one_by_one = {EMULATED_CALLS};
static const qn__gpu_driver recording = {EMULATED_CALLS, .record = emulated_record,
                                         .recorded = emulated_recorded, .replay = emulated_replay};

#endif
