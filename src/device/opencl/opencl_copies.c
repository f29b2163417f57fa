/* Memory of an OpenCL device, and copies to and from it. The device never copies from or to the
 * caller's own memory: a device that hangs and later continues would write to memory that may have
 * been freed. */
#include "device/opencl/opencl_gpu.h"

#include "base/system/clock.h"
#include <string.h>

static qn__cl_memory memory_of(const qn__gpu_memory *memory) { return memory->handle; }

qn_status qn__cl_allocate(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err) {
    int32_t code = QN__CL_SUCCESS;
    *out = (qn__gpu_memory){0};
    qn_status status = qn__cl_usable(gpu, err);
    if (status != QN_OK || bytes == 0)
        return status;
    const qn__cl_memory memory =
        gpu->cl->create_buffer(gpu->context, QN__CL_MEM_READ_WRITE, bytes, NULL, &code);
    if (code == QN__CL_SUCCESS) {
        *out = (qn__gpu_memory){.handle = memory, .bytes = bytes};
        return QN_OK;
    }
    qn__fail(err, QN_DEVICE, "%s has no space for %zu more bytes: %s", gpu->entry->label, bytes,
             qn__cl_error_name(code));
    return qn__remedy(err, QN_DEVICE, "%s", qn__cl_error_remedy(code));
}

void qn__cl_release(qn__gpu *gpu, qn__gpu_memory *memory) {
    if (memory->bytes > 0 && gpu->health != QN__CL_HANGS)
        gpu->cl->release_memory(memory_of(memory));
    *memory = (qn__gpu_memory){0};
    memset(gpu->set, 0, sizeof gpu->set);
}

/* ---------------------------------------------------------------- staging */

/* Maps pinned memory once, until close, without a call that could block. */
static qn_status map(qn__gpu *gpu, qn__cl_staging *staging, size_t bytes, qn_error *err) {
    static const char doing[] = "make memory for copies";
    int32_t code = QN__CL_SUCCESS;
    qn__cl_event event = NULL;
    staging->memory = gpu->cl->create_buffer(
        gpu->context, QN__CL_MEM_READ_WRITE | QN__CL_MEM_ALLOC_HOST_PTR, bytes, NULL, &code);
    if (code != QN__CL_SUCCESS) {
        staging->memory = NULL;
        return qn__cl_fail(gpu, code, doing, err);
    }
    staging->host =
        gpu->cl->enqueue_map(gpu->queue, staging->memory, 0, QN__CL_MAP_READ | QN__CL_MAP_WRITE, 0,
                             bytes, 0, NULL, &event, &code);
    if (code != QN__CL_SUCCESS) {
        staging->host = NULL;
        return qn__cl_fail(gpu, code, doing, err);
    }
    const qn_status status = qn__cl_wait(gpu, event, doing, err);
    qn__cl_drop(gpu, &event);
    return status;
}

qn_status qn__cl_stage(qn__gpu *gpu, qn_error *err) {
    const size_t up = (size_t)QN__CL_UP_PIECES * QN__CL_UP_BYTES,
                 down = (size_t)QN__CL_DOWN_PIECES * QN__CL_DOWN_BYTES;
    qn_status status = map(gpu, &gpu->up_memory, up, err);
    if (status == QN_OK)
        status = map(gpu, &gpu->down_memory, down + (size_t)QN__GPU_SLOTS * QN__CL_SLOT, err);
    if (status != QN_OK)
        return status;
    char *host = gpu->up_memory.host;
    for (int i = 0; i < QN__CL_UP_PIECES; ++i, host += QN__CL_UP_BYTES)
        gpu->up[i].host = host;
    host = gpu->down_memory.host;
    for (int i = 0; i < QN__CL_DOWN_PIECES; ++i, host += QN__CL_DOWN_BYTES)
        gpu->down[i].host = host;
    for (int i = 0; i < QN__GPU_SLOTS; ++i, host += QN__CL_SLOT)
        gpu->slot[i].host = host;
    return QN_OK;
}

/* ---------------------------------------------------------------- up */

/* Waits until the device no longer reads the piece. */
static qn_status reclaim(qn__gpu *gpu, qn__cl_piece *piece, qn_error *err) {
    if (piece->event) {
        const qn_status status = qn__cl_wait(gpu, piece->event, "copy to the device", err);
        if (status != QN_OK)
            return status;
        if (piece->timed)
            gpu->traffic.seconds_up += qn__cl_seconds(gpu, piece->event, piece->event);
        qn__cl_drop(gpu, &piece->event);
    }
    piece->timed = 0;
    piece->used = 0;
    return QN_OK;
}

/* Finds a piece with space for `bytes` bytes. A piece with less space, or of another lane, is
 * closed by a marker, which is complete when all copies from the piece are. */
static qn_status find_space(qn__gpu *gpu, size_t bytes, qn__cl_piece **out, qn_error *err) {
    qn__cl_piece *piece = &gpu->up[gpu->up_now];
    *out = piece;
    if (!piece->event && QN__CL_UP_BYTES - piece->used >= bytes &&
        (piece->used == 0 || gpu->up_queue == gpu->queue))
        return QN_OK;
    if (!piece->event) {
        const int32_t code = gpu->cl->enqueue_marker(gpu->up_queue, 0, NULL, &piece->event);
        if (code != QN__CL_SUCCESS)
            return qn__cl_fail(gpu, code, "copy to the device", err);
    }
    gpu->up_now = (gpu->up_now + 1) % QN__CL_UP_PIECES;
    *out = &gpu->up[gpu->up_now];
    return reclaim(gpu, *out, err);
}

/* A copy of a full piece has its own event, which also gives its time; for small copies the time of
 * the call is counted. */
static qn_status write_piece(qn__gpu *gpu, qn__cl_memory to, size_t offset, const void *from,
                             size_t bytes, qn_error *err) {
    qn__cl_piece *piece;
    const qn_status status = find_space(gpu, bytes, &piece, err);
    if (status != QN_OK)
        return status;
    const int full = bytes == QN__CL_UP_BYTES;
    gpu->up_queue = gpu->queue;
    const double begun = qn__now();
    char *const staged = piece->host + piece->used;
    memcpy(staged, from, bytes);
    const int32_t code = gpu->cl->enqueue_write(gpu->queue, to, 0, offset, bytes, staged, 0, NULL,
                                                full ? &piece->event : NULL);
    if (code != QN__CL_SUCCESS)
        return qn__cl_fail(gpu, code, "copy to the device", err);
    piece->used += (bytes + 63) / 64 * 64;
    if (piece->used > QN__CL_UP_BYTES)
        piece->used = QN__CL_UP_BYTES;
    piece->timed = full;
    gpu->traffic.bytes_up += bytes;
    if (!full)
        gpu->traffic.seconds_up += qn__now() - begun;
    return QN_OK;
}

qn_status qn__cl_write(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, const void *from,
                       size_t bytes, qn_error *err) {
    qn_status status = qn__cl_usable(gpu, err);
    for (size_t done = 0; status == QN_OK && done < bytes;) {
        const size_t left = bytes - done, size = left < QN__CL_UP_BYTES ? left : QN__CL_UP_BYTES;
        status =
            write_piece(gpu, memory_of(to), offset + done, (const char *)from + done, size, err);
        done += size;
    }
    return status;
}

/* Oclgrind fills wrongly. */
static qn_status write_zeros(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                             qn_error *err) {
    static const char zeros[4096];
    qn_status status = QN_OK;
    for (size_t done = 0; status == QN_OK && done < bytes;) {
        const size_t size = bytes - done < sizeof zeros ? bytes - done : sizeof zeros;
        status = qn__cl_write(gpu, to, offset + done, zeros, size, err);
        done += size;
    }
    return status;
}

qn_status qn__cl_clear(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                       qn_error *err) {
    static const uint32_t zero = 0;
    const qn_status status = qn__cl_usable(gpu, err);
    if (status != QN_OK || bytes == 0)
        return status;
    if (gpu->facts.simulated)
        return write_zeros(gpu, to, offset, bytes, err);
    const size_t pattern = (offset | bytes) % sizeof zero == 0 ? sizeof zero : 1;
    const int32_t code = gpu->cl->enqueue_fill(gpu->queue, memory_of(to), &zero, pattern, offset,
                                               bytes, 0, NULL, NULL);
    return code == QN__CL_SUCCESS ? QN_OK : qn__cl_fail(gpu, code, "clear memory", err);
}

/* ---------------------------------------------------------------- down */

/* Enqueues a copy into a piece, and submits it to the device. */
static qn_status start_down(qn__gpu *gpu, qn__cl_piece *piece, qn__cl_memory from, size_t offset,
                            size_t bytes, qn_error *err) {
    int32_t code = gpu->cl->enqueue_read(gpu->queue, from, 0, offset, bytes, piece->host, 0, NULL,
                                         &piece->event);
    if (code != QN__CL_SUCCESS)
        piece->event = NULL;
    else
        code = gpu->cl->flush(gpu->queue);
    if (code != QN__CL_SUCCESS)
        return qn__cl_fail(gpu, code, "copy from the device", err);
    piece->bytes = bytes;
    piece->window = gpu->window;
    gpu->window = NULL;
    return QN_OK;
}

/* Waits for the copy of a piece, and updates the clocks. */
static qn_status end_down(qn__gpu *gpu, qn__cl_piece *piece, qn_error *err) {
    const qn_status status = qn__cl_wait(gpu, piece->event, "compute or copy", err);
    if (status != QN_OK)
        return status;
    gpu->traffic.bytes_down += piece->bytes;
    gpu->traffic.seconds_down += qn__cl_seconds(gpu, piece->event, piece->event);
    if (piece->window)
        gpu->busy += qn__cl_seconds(gpu, piece->window, piece->event);
    qn__cl_drop(gpu, &piece->window);
    qn__cl_drop(gpu, &piece->event);
    return QN_OK;
}

qn_status qn__cl_ask(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, size_t bytes,
                     qn_error *err) {
    const qn_status status = qn__cl_usable(gpu, err);
    return status == QN_OK ? start_down(gpu, &gpu->down[gpu->asked++ % QN__CL_DOWN_PIECES],
                                        memory_of(from), offset, bytes, err)
                           : status;
}

qn_status qn__cl_get(qn__gpu *gpu, const void **data, size_t *bytes, qn_error *err) {
    qn__cl_piece *const piece = &gpu->down[gpu->taken % QN__CL_DOWN_PIECES];
    qn_status status = qn__cl_usable(gpu, err);
    if (status == QN_OK)
        status = end_down(gpu, piece, err);
    if (status != QN_OK)
        return status;
    ++gpu->taken;
    *data = piece->host;
    *bytes = piece->bytes;
    return QN_OK;
}

qn_status qn__cl_post(qn__gpu *gpu, const qn__gpu_memory *from, size_t bytes, uint32_t slot,
                      qn_error *err) {
    qn_status status = qn__cl_usable(gpu, err);
    if (status == QN_OK && gpu->slot[slot].event) /* the previous post was not fetched */
        status = end_down(gpu, &gpu->slot[slot], err);
    return status == QN_OK ? start_down(gpu, &gpu->slot[slot], memory_of(from), 0, bytes, err)
                           : status;
}

qn_status qn__cl_fetch(qn__gpu *gpu, uint32_t slot, const void **words, qn_error *err) {
    qn_status status = qn__cl_usable(gpu, err);
    if (status == QN_OK && gpu->slot[slot].event)
        status = end_down(gpu, &gpu->slot[slot], err);
    *words = gpu->slot[slot].host;
    return status;
}
