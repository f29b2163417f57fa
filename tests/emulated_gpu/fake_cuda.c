/* A CUDA driver without a GPU: the entries that Quern uses, over the emulated kernels. */
#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

device_state devices[MOST_DEVICES];

static _Thread_local device_state *the_context;
static int initialised;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Bytes of a pattern round each piece of memory; the address sanitizer has its own. */
#if defined(__SANITIZE_ADDRESS__)
enum { FENCE = 0 };
#else
enum { FENCE = 256 };
#endif
enum { FENCE_BYTE = 0xd7, NEW_BYTE = 0xff };

device_state *current(void) { return the_context; }

static void die(const char *what) {
    fprintf(stderr, "fake CUDA: %s\n", what);
    abort();
}

void *host_of(device_state *device, CUdeviceptr address, size_t bytes) {
    char *data = (char *)(uintptr_t)(address - FAR);
    for (piece *p = device->memory; p; p = p->next)
        if (data >= p->data && data < p->data + p->bytes)
            return bytes <= (size_t)(p->data + p->bytes - data) ? data : NULL;
    return NULL;
}

static int is_pinned(const device_state *device, const void *data) {
    for (const piece *p = device->pinned; p; p = p->next)
        if ((const char *)data >= p->data && (const char *)data < p->data + p->bytes)
            return 1;
    return 0;
}

static void drain_all(device_state *d, const char *doing) {
    for (CUstream s = d->streams; s; s = s->next)
        if (!drain(s))
            die(doing);
}

/* ---- the library and its devices */

EXPORT CUresult cuInit(unsigned flags);
CUresult cuInit(unsigned flags) {
    initialised = flags == 0 && the_plan.init == 0 && the_plan.devices > 0;
    return the_plan.init ? the_plan.init : the_plan.devices < 1 ? NO_DEVICE : DONE;
}

EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version) {
    *version = the_plan.driver;
    return DONE;
}

/* The real NVRTC asks the driver for a table of its own making, and takes no for an answer. */
#ifndef QN_WITH_CUDA_H
EXPORT CUresult cuGetExportTable(const void **table, const void *name);
CUresult cuGetExportTable(const void **table, const void *name UNUSED) {
    *table = NULL;
    return NOT_FOUND;
}
#endif

EXPORT CUresult cuGetErrorName(CUresult result, const char **text);
EXPORT CUresult cuGetErrorString(CUresult result, const char **text);
static const struct {
    int result;
    const char *name, *text;
} errors[] = {
    {DONE, "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
};
CUresult cuGetErrorName(CUresult result, const char **text) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (errors[i].result == (int)result) {
            *text = errors[i].name;
            return DONE;
        }
    *text = NULL;
    return INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult result, const char **text) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
        if (errors[i].result == (int)result) {
            *text = errors[i].text;
            return DONE;
        }
    *text = NULL;
    return INVALID_VALUE;
}

EXPORT CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetCount(int *count) {
    *count = the_plan.devices;
    return initialised ? DONE : NOT_INITIALIZED;
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    if (ordinal < 0 || ordinal >= the_plan.devices)
        return INVALID_DEVICE;
    *device = ordinal + 100; /* a handle is not an ordinal */
    return DONE;
}

static device_state *device_of(CUdevice device) {
    const int ordinal = device - 100;
    if (ordinal < 0 || ordinal >= MOST_DEVICES)
        return NULL;
    devices[ordinal].ordinal = ordinal;
    return &devices[ordinal];
}

EXPORT CUresult cuDeviceGetName(char *name, int capacity, CUdevice device);
CUresult cuDeviceGetName(char *name, int capacity, CUdevice device) {
    snprintf(name, (size_t)capacity, "Emulated GPU %d", device - 100);
    return device_of(device) ? DONE : INVALID_DEVICE;
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    *bytes = (size_t)the_plan.memory << 20;
    return device_of(device) ? DONE : INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    switch ((int)attribute) {
    case 16: /* multiprocessors */
        *value = 4;
        break;
    case 20: /* compute mode */
        *value = the_plan.prohibited ? 2 : 0;
        break;
    case 38: /* bytes of the second level's cache */
        *value = 4 << 20;
        break;
    case 75:
        *value = the_plan.capability / 10;
        break;
    case 76:
        *value = the_plan.capability % 10;
        break;
    default:
        return INVALID_VALUE;
    }
    return device_of(device) ? DONE : INVALID_DEVICE;
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int capacity, CUdevice device);
CUresult cuDeviceGetPCIBusId(char *id, int capacity, CUdevice device) {
    snprintf(id, (size_t)capacity, "0000:%02x:00.0", (unsigned)(device - 100) + 0x1b);
    return device_of(device) ? DONE : INVALID_DEVICE;
}

/* ---- contexts */

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    device_state *d = device_of(device);
    if (!initialised || !d)
        return INVALID_DEVICE;
    if (the_plan.retain && d->ordinal == the_plan.on)
        return the_plan.retain;
    pthread_mutex_lock(&lock);
    ++d->retained;
    pthread_mutex_unlock(&lock);
    *context = d;
    return DONE;
}

static void free_pieces(piece **list) {
    while (*list) {
        piece *next = (*list)->next;
        free((*list)->data - FENCE);
        free(*list);
        *list = next;
    }
}

/* The end of a context, its failure included. */
static void empty(device_state *d) {
    if (d->hung)
        die("a context was released on a device that hangs: this call would not return");
    if (!d->sticky && (d->memory || d->pinned))
        die("a context was left with memory in it");
    if (!the_plan.stuck)
        d->sticky = DONE;
    free_pieces(&d->memory);
    free_pieces(&d->pinned);
    while (d->streams) {
        CUstream s = d->streams;
        d->streams = s->next;
        drop_ops(s->first);
        free(s);
    }
    d->used = 0;
}

/* The last one out resets the device. */
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    device_state *d = device_of(device);
    if (!d || d->retained < 1)
        return INVALID_CONTEXT;
    pthread_mutex_lock(&lock);
    if (--d->retained == 0)
        empty(d);
    pthread_mutex_unlock(&lock);
    return DONE;
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active);
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    const device_state *d = device_of(device);
    *flags = 0;
    *active = d && d->retained > 0;
    return d ? DONE : INVALID_DEVICE;
}

/* Contexts of a user's own, which becomes the calling thread's. */
EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device) {
    const device_state *d = device_of(device);
    CUcontext made = d && flags == 0 ? calloc(1, sizeof *made) : NULL;
    if (!made)
        return INVALID_VALUE;
    made->ordinal = d->ordinal;
    made->retained = 1;
    *context = the_context = made;
    return DONE;
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context);
CUresult cuCtxDestroy_v2(CUcontext context) {
    pthread_mutex_lock(&lock);
    empty(context);
    pthread_mutex_unlock(&lock);
    if (the_context == context)
        the_context = NULL;
    free(context);
    return DONE;
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSetCurrent(CUcontext context) {
    the_context = context;
    return DONE;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context);
CUresult cuCtxGetCurrent(CUcontext *context) {
    *context = the_context;
    return DONE;
}

/* What other libraries enqueue (fake_cublas.c) is done at once, so Quern's streams are all. */
EXPORT CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize(void) {
    BEGIN
    drain_all(d, "a device that hangs was waited for");
    END
}

/* ---- memory */

EXPORT CUresult cuMemGetInfo_v2(size_t *unused, size_t *all);
CUresult cuMemGetInfo_v2(size_t *unused, size_t *all) {
    BEGIN
    *all = (size_t)the_plan.memory << 20;
    *unused = *all - d->used;
    END
}

static char *add_piece(piece **list, size_t bytes) {
    piece *p = malloc(sizeof *p);
    const size_t rounded = (bytes + 255) / 256 * 256;
    void *memory = NULL;
    if (!p || posix_memalign(&memory, 256, (FENCE ? rounded : bytes) + 2 * (size_t)FENCE) != 0)
        abort();
    char *block = memory;
    memset(block, FENCE_BYTE, FENCE);
    memset(block + FENCE, NEW_BYTE, bytes);
    if (FENCE)
        memset(block + FENCE + bytes, FENCE_BYTE, rounded - bytes + FENCE);
    p->data = block + FENCE;
    p->bytes = bytes;
    p->next = *list;
    *list = p;
    return p->data;
}

static void check_fences(const piece *p) {
    if (!FENCE)
        return;
    for (int i = 1; i <= FENCE; ++i)
        if ((unsigned char)p->data[-i] != FENCE_BYTE ||
            (unsigned char)p->data[p->bytes + (size_t)i - 1] != FENCE_BYTE)
            die("a kernel wrote outside of a piece of memory");
}

static CUresult take_piece(piece **list, const void *data) {
    for (piece **at = list; *at; at = &(*at)->next)
        if ((*at)->data == data) {
            piece *p = *at;
            check_fences(p);
            *at = p->next;
            free(p->data - FENCE);
            free(p);
            return DONE;
        }
    return INVALID_VALUE;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    BEGIN
    const int allocs = ++devices[d->ordinal].allocs;
    if (bytes == 0)
        result = INVALID_VALUE;
    else if ((d->ordinal == the_plan.on && allocs == the_plan.alloc) ||
             bytes > ((size_t)the_plan.memory << 20) - d->used)
        result = OUT_OF_MEMORY;
    else {
        *address = (CUdeviceptr)(uintptr_t)add_piece(&d->memory, bytes) + FAR;
        d->used += bytes;
    }
    END
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemFree_v2(CUdeviceptr address) {
    BEGIN
    void *data = (void *)(uintptr_t)(address - FAR);
    drain_all(d, "memory was freed on a device that hangs: this call would not return");
    for (const piece *p = d->memory; p; p = p->next)
        if (p->data == data)
            d->used -= p->bytes;
    result = take_piece(&d->memory, data);
    END
}

EXPORT CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    BEGIN
    if (flags != 0 || bytes == 0)
        result = INVALID_VALUE;
    else
        *memory = add_piece(&d->pinned, bytes);
    END
}

EXPORT CUresult cuMemFreeHost(void *memory);
CUresult cuMemFreeHost(void *memory) {
    BEGIN
    drain_all(d, "pinned memory was freed on a device that hangs");
    result = take_piece(&d->pinned, memory);
    END
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes,
                                     CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    BEGIN
    void *place = host_of(d, to, bytes);
    if (!place || stream->device != d)
        result = INVALID_VALUE;
    else if (!is_pinned(d, from))
        die("a copy from memory that is not pinned");
    else
        result = enqueue(stream, &(op){.kind = OP_UP, .to = place, .from = from, .bytes = bytes});
    END
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    BEGIN
    const void *place = host_of(d, from, bytes);
    if (!place || stream->device != d)
        result = INVALID_VALUE;
    else if (!is_pinned(d, to))
        die("a copy to memory that is not pinned");
    else
        result = enqueue(stream, &(op){.kind = OP_DOWN, .to = to, .from = place, .bytes = bytes});
    END
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
    BEGIN
    void *place = host_of(d, to, bytes);
    if (!place || stream->device != d)
        result = INVALID_VALUE;
    else
        result =
            enqueue(stream, &(op){.kind = OP_CLEAR, .to = place, .byte = value, .bytes = bytes});
    END
}

/* ---- streams and events */

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    BEGIN
    CUstream s = calloc(1, sizeof *s);
    if (!s || flags != 1)
        die("a stream that is not of the kind that Quern asks for");
    s->device = d;
    s->last = &s->first;
    s->next = d->streams;
    d->streams = s;
    *stream = s;
    END
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream) {
    BEGIN
    drain_all(d, "a stream was destroyed on a device that hangs");
    for (CUstream *at = &d->streams; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            free(stream);
            break;
        }
    END
}

EXPORT CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamQuery(CUstream stream) {
    BEGIN
    result = query(stream, NULL);
    END
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventCreate(CUevent *event, unsigned flags) {
    BEGIN
    CUevent e = calloc(1, sizeof *e);
    if (!e || flags != 0)
        die("an event that is not of the kind that Quern asks for");
    e->device = d;
    *event = e;
    END
}

EXPORT CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventDestroy_v2(CUevent event) {
    pthread_mutex_lock(&lock);
    for (CUstream s = event->device->streams; s; s = s->next)
        for (op *o = s->first; o; o = o->next)
            if (o->event == event)
                o->event = NULL;
    free(event);
    pthread_mutex_unlock(&lock);
    return DONE;
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecord(CUevent event, CUstream stream) {
    BEGIN
    event->stream = stream;
    ++event->serial;
    op work = {.kind = OP_EVENT, .event = event};
    work.value[0] = event->serial;
    result = enqueue(stream, &work);
    END
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    BEGIN
    op work = {.kind = OP_WAIT, .event = event};
    work.value[0] = event->serial;
    result = flags != 0 || stream->device != d ? INVALID_VALUE
             : event->serial == 0              ? DONE
                                               : enqueue(stream, &work);
    END
}

EXPORT CUresult cuEventQuery(CUevent event);
CUresult cuEventQuery(CUevent event) {
    BEGIN
    if (event->stream)
        result = query(event->stream, event);
    END
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to);
CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
    BEGIN
    if (!from->serial || !to->serial)
        result = INVALID_HANDLE;
    else if (from->reached_serial < from->serial || to->reached_serial < to->serial)
        result = NOT_READY;
    else
        *milliseconds = (float)((to->when - from->when) * 1e3);
    END
}
