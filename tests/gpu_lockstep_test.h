/* A driver over that of a device which also runs each launch with the kernel text compiled as C
 * (tests/emulated_gpu), on a copy of the device's memory, and compares all memory of its arguments
 * afterwards. So a kernel that computes wrongly is named, not only the training in which it does.
 * New memory is filled with 0xff on both sides: NaNs, and integers of which somebody would notice.
 * Static functions, since this belongs to one test program. */
#ifndef QN_TESTS_GPU_LOCKSTEP_TEST_H
#define QN_TESTS_GPU_LOCKSTEP_TEST_H

#include "device/gpu/gpu.h"
#include "emulated_gpu/emulated_gpu.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKSTEP_ARGUMENTS = 24 };

typedef struct lockstep_memory {
    struct lockstep_memory *next;
    void *handle; /* the device's */
    unsigned char *host, *seen;
    size_t bytes;
} lockstep_memory;

static const qn__gpu_driver *lockstep_inner;
static qn__gpu_driver lockstep; /* filled by lockstep_begin */
static lockstep_memory *lockstep_memories;
static uint64_t lockstep_launches[QN__KERNELS], lockstep_wrong[QN__KERNELS]; /* launches */

static lockstep_memory *lockstep_find(const qn__gpu_memory *memory) {
    lockstep_memory *m = lockstep_memories;
    while (m && m->handle != memory->handle)
        m = m->next;
    if (!m) {
        fprintf(stderr, "a launch has memory that was not allocated\n");
        abort();
    }
    return m;
}

static qn_status lockstep_allocate(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err) {
    lockstep_memory *m = malloc(sizeof *m);
    const qn_status status = lockstep_inner->allocate(gpu, bytes, out, err);
    if (status != QN_OK || !m) {
        free(m);
        return m ? status : QN_MEMORY;
    }
    *m = (lockstep_memory){.next = lockstep_memories,
                           .handle = out->handle,
                           .host = malloc(bytes),
                           .seen = malloc(bytes),
                           .bytes = bytes};
    if (!m->host || !m->seen)
        abort(); /* out of memory in a test */
    memset(m->host, 0xff, bytes);
    lockstep_memories = m;
    return lockstep_inner->write(gpu, out, 0, m->host, bytes, err);
}

static void lockstep_release(qn__gpu *gpu, qn__gpu_memory *memory) {
    lockstep_memory **place = &lockstep_memories;
    while (memory->bytes && *place && (*place)->handle != memory->handle)
        place = &(*place)->next;
    if (memory->bytes && *place) {
        lockstep_memory *gone = *place;
        *place = gone->next;
        free(gone->host);
        free(gone->seen);
        free(gone);
    }
    lockstep_inner->release(gpu, memory);
}

static qn_status lockstep_write(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset,
                                const void *from, size_t bytes, qn_error *err) {
    memcpy(lockstep_find(to)->host + offset, from, bytes);
    return lockstep_inner->write(gpu, to, offset, from, bytes, err);
}

static qn_status lockstep_clear(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                                qn_error *err) {
    memset(lockstep_find(to)->host + offset, 0, bytes);
    return lockstep_inner->clear(gpu, to, offset, bytes, err);
}

static int lockstep_is_nan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

/* How many words of 32 bits differ, and the first of them. The payload of a NaN is left open. */
static size_t lockstep_differing(const lockstep_memory *m, size_t *first) {
    size_t found = 0;
    for (size_t i = 0; i + 4 <= m->bytes; i += 4) {
        uint32_t got, want;
        memcpy(&got, m->seen + i, 4);
        memcpy(&want, m->host + i, 4);
        if (got == want || (lockstep_is_nan(got) && lockstep_is_nan(want)))
            continue;
        if (found++ == 0)
            *first = i;
    }
    const size_t rest = m->bytes & ~(size_t)3;
    if (memcmp(m->seen + rest, m->host + rest, m->bytes - rest) != 0 && found++ == 0)
        *first = rest;
    return found;
}

static void lockstep_complain(qn__kernel kernel, const uint32_t groups[3], uint32_t argument,
                              const lockstep_memory *m, size_t first, size_t words) {
    uint32_t got = 0, want = 0;
    const size_t size = m->bytes - first < 4 ? m->bytes - first : 4;
    memcpy(&got, m->seen + first, size);
    memcpy(&want, m->host + first, size);
    if (lockstep_wrong[kernel] == 0)
        printf("KERNEL %s is wrong: launch %llu of it, %u x %u x %u groups, argument %u: %zu of "
               "%zu words, the first at byte %zu is %08x instead of %08x\n",
               qn__kernel_shape_of(kernel)->name, (unsigned long long)lockstep_launches[kernel],
               groups[0], groups[1], groups[2], argument, words, m->bytes / 4, first, got, want);
    fflush(stdout);
}

/* Compares. The device goes on with the right numbers, so that each wrong kernel is found. */
static qn_status lockstep_compare(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                                  uint32_t argument, const qn__gpu_memory *memory, int *wrong,
                                  qn_error *err) {
    lockstep_memory *m = lockstep_find(memory);
    const qn_status status = qn__gpu_read(lockstep_inner, gpu, memory, 0, m->seen, m->bytes, err);
    size_t first = 0;
    if (status != QN_OK || memcmp(m->seen, m->host, m->bytes) == 0)
        return status;
    const size_t words = lockstep_differing(m, &first);
    if (words == 0) { /* NaNs of another payload */
        memcpy(m->host, m->seen, m->bytes);
        return QN_OK;
    }
    if (!*wrong)
        lockstep_complain(kernel, groups, argument, m, first, words);
    *wrong = 1;
    return lockstep_inner->write(gpu, memory, 0, m->host, m->bytes, err);
}

static qn_status lockstep_launch(qn__gpu *gpu, qn__kernel kernel, const uint32_t groups[3],
                                 const qn__gpu_argument *arguments, uint32_t count, qn_error *err) {
    const qn__kernel_shape *shape = qn__kernel_shape_of(kernel);
    void *place[LOCKSTEP_ARGUMENTS], *given[LOCKSTEP_ARGUMENTS];
    int wrong = 0;
    qn_status status = lockstep_inner->launch(gpu, kernel, groups, arguments, count, err);
    for (uint32_t i = 0; i < count; ++i) {
        const int is_memory = arguments[i].kind == 'M';
        place[i] = is_memory ? lockstep_find(arguments[i].value.memory)->host : NULL;
        given[i] = is_memory ? (void *)&place[i] : (void *)(uintptr_t)&arguments[i].value;
    }
    ++lockstep_launches[kernel];
    qn_emulated_launch(qn_emulated_find(shape->name), groups, shape->lanes[0] * shape->lanes[1],
                       given);
    for (uint32_t i = 0; status == QN_OK && i < count; ++i)
        if (arguments[i].kind == 'M')
            status =
                lockstep_compare(gpu, kernel, groups, i, arguments[i].value.memory, &wrong, err);
    lockstep_wrong[kernel] += wrong != 0;
    if (status != QN_OK)
        printf("KERNEL %s failed: launch %llu of it, %u x %u x %u groups: %s\n", shape->name,
               (unsigned long long)lockstep_launches[kernel], groups[0], groups[1], groups[2],
               err ? err->what : "");
    return status;
}

/* The driver `lockstep` over this one, without recordings. */
static void lockstep_begin(const qn__gpu_driver *inner) {
    lockstep_inner = inner;
    lockstep = *inner;
    lockstep.allocate = lockstep_allocate;
    lockstep.release = lockstep_release;
    lockstep.write = lockstep_write;
    lockstep.clear = lockstep_clear;
    lockstep.launch = lockstep_launch;
    lockstep.record = lockstep.recorded = NULL;
    lockstep.replay = NULL;
}

/* Says how often each kernel ran; the number of those that were wrong. */
static uint32_t lockstep_end(void) {
    uint32_t wrong = 0;
    for (int k = 0; k < QN__KERNELS; ++k) {
        if (lockstep_launches[k])
            printf("kernel %s: %llu launches, %llu wrong\n",
                   qn__kernel_shape_of((qn__kernel)k)->name,
                   (unsigned long long)lockstep_launches[k], (unsigned long long)lockstep_wrong[k]);
        wrong += lockstep_wrong[k] != 0;
        lockstep_launches[k] = lockstep_wrong[k] = 0;
    }
    return wrong;
}

#endif
