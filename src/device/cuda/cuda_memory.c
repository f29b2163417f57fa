/* Device memory, and copies between device and host. All copies use pinned memory: the host does
 * not wait for a copy to the device, and a copy to the host overlaps with reading the previous
 * one. Pinned memory for each direction has two halves:
 *
 *     to the device:  the host fills one half while the device reads the other
 *     to the host:    the device fills one half while the host reads the other */
#include "device/cuda/cuda_gpu.h"

#include "base/system/clock.h"
#include <string.h>

/* Pieces in the staging buffer begin at multiples of this many bytes. */
enum { ALIGN = 64 };

#define MIB 1048576.0

static qn__cu_address place(const qn__gpu_memory *memory, size_t offset) {
    return (uintptr_t)memory->handle + offset;
}

/* Lack of memory is not a failure of the device: it is returned but not kept. */
static qn_status out_of_memory(const qn__gpu *gpu, size_t bytes, qn_error *err) {
    size_t unused = 0, all = 0;
    if (gpu->cu->memory_info(&unused, &all) != QN__CU_SUCCESS)
        all = gpu->facts.memory;
    qn__fail(err, QN_DEVICE,
             "%s is out of memory: %.6g MiB were asked for, %.6g of its %.6g MiB are unused",
             gpu->facts.name, (double)bytes / MIB, (double)unused / MIB, (double)all / MIB);
    return qn__remedy(err, QN_DEVICE,
                      "end other programs on that GPU (nvidia-smi lists them), take smaller "
                      "batches, or leave it out of the devices");
}

qn_status qn__cuda_allocate(qn__gpu *gpu, size_t bytes, qn__gpu_memory *out, qn_error *err) {
    qn__cu_address address = 0;
    *out = (qn__gpu_memory){0};
    const qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK || bytes == 0)
        return status;
    const qn__cu_result result = gpu->cu->memory_allocate(&address, bytes);
    if (result == QN__CU_OUT_OF_MEMORY)
        return out_of_memory(gpu, bytes, err);
    if (result != QN__CU_SUCCESS)
        return qn__cuda_fail(gpu, result, err, "reserving memory");
    *out = (qn__gpu_memory){.handle = (void *)(uintptr_t)address, .bytes = bytes};
    return QN_OK;
}

void qn__cuda_release(qn__gpu *gpu, qn__gpu_memory *memory) {
    /* Freeing waits for the device, for ever if it hangs. */
    if (memory->bytes && !gpu->silent && gpu->cu->context_set(gpu->context) == QN__CU_SUCCESS &&
        (gpu->failed || qn__cuda_drain(gpu)))
        gpu->cu->memory_free((uintptr_t)memory->handle);
    *memory = (qn__gpu_memory){0};
}

/* Switches to the other half, once the device has copied it. The copies of the present one end with
 * a mark on their lane. */
static qn_status next_half(qn__gpu *gpu, qn_error *err) {
    qn__cuda_stage *up = &gpu->up;
    const qn__gpu_lane lane = gpu->chosen;
    qn_status status = qn__cuda_lane_choose(gpu, up->lane, err);
    if (status == QN_OK)
        status = qn__cuda_set(gpu, &up->mark[up->current], err);
    if (status == QN_OK)
        status = qn__cuda_lane_choose(gpu, lane, err);
    if (status != QN_OK)
        return status;
    up->marked[up->current] = 1;
    up->current ^= 1;
    up->used = 0;
    if (!up->marked[up->current])
        return QN_OK;
    up->marked[up->current] = 0;
    return qn__cuda_wait(gpu, &up->mark[up->current], err);
}

qn_status qn__cuda_write(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, const void *from,
                         size_t bytes, qn_error *err) {
    const double begun = qn__now();
    const uint8_t *source = from;
    qn__cuda_stage *up = &gpu->up;
    qn_status status = qn__cuda_enter(gpu, err);
    gpu->traffic.bytes_up += bytes;
    if (status == QN_OK && up->used > 0 && up->lane != gpu->chosen)
        status = next_half(gpu, err);
    up->lane = gpu->chosen;
    while (status == QN_OK && bytes > 0) {
        if (up->used == QN__CUDA_STAGE && (status = next_half(gpu, err)) != QN_OK)
            break;
        const size_t capacity = QN__CUDA_STAGE - up->used,
                     piece = bytes < capacity ? bytes : capacity;
        uint8_t *staged = up->half[up->current] + up->used;
        memcpy(staged, source, piece);
        if ((status = qn__cuda_begin(gpu, err)) != QN_OK)
            break;
        const qn__cu_result result =
            gpu->cu->copy_up(place(to, offset), staged, piece, gpu->stream);
        if (result != QN__CU_SUCCESS)
            status = qn__cuda_fail(gpu, result, err, "a copy from the host");
        const size_t taken = (piece + ALIGN - 1) / ALIGN * ALIGN;
        up->used += taken;
        source += piece;
        offset += piece;
        bytes -= piece;
    }
    gpu->traffic.seconds_up += qn__now() - begun;
    return status;
}

qn_status qn__cuda_clear(qn__gpu *gpu, const qn__gpu_memory *to, size_t offset, size_t bytes,
                         qn_error *err) {
    qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK || bytes == 0 || (status = qn__cuda_begin(gpu, err)) != QN_OK)
        return status;
    const qn__cu_result result = gpu->cu->clear(place(to, offset), 0, bytes, gpu->stream);
    return result == QN__CU_SUCCESS ? QN_OK : qn__cuda_fail(gpu, result, err, "clearing memory");
}

/* Enqueues a copy to the host and a mark after it. */
static qn_status copy_down(qn__gpu *gpu, void *to, const qn__gpu_memory *from, size_t offset,
                           size_t bytes, qn__cuda_mark *mark, qn_error *err) {
    const qn_status status = qn__cuda_begin(gpu, err);
    if (status != QN_OK)
        return status;
    const qn__cu_result result = gpu->cu->copy_down(to, place(from, offset), bytes, gpu->stream);
    if (result != QN__CU_SUCCESS)
        return qn__cuda_fail(gpu, result, err, "a copy to the host");
    gpu->traffic.bytes_down += bytes;
    return qn__cuda_set(gpu, mark, err);
}

qn_status qn__cuda_ask(qn__gpu *gpu, const qn__gpu_memory *from, size_t offset, size_t bytes,
                       qn_error *err) {
    qn__cuda_stage *down = &gpu->down;
    const uint32_t half = down->asked % QN__GPU_ASKED;
    const qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK)
        return status;
    const qn__cu_result result = gpu->cu->event_record(down->begun[half], gpu->stream);
    if (result != QN__CU_SUCCESS)
        return qn__cuda_fail(gpu, result, err, "setting an event");
    down->bytes[half] = bytes;
    ++down->asked;
    return copy_down(gpu, down->half[half], from, offset, bytes, &down->mark[half], err);
}

qn_status qn__cuda_get(qn__gpu *gpu, const void **data, size_t *bytes, qn_error *err) {
    qn__cuda_stage *down = &gpu->down;
    const uint32_t half = down->taken % QN__GPU_ASKED;
    float milliseconds = 0;
    qn_status status = qn__cuda_enter(gpu, err);
    if (status == QN_OK)
        status = qn__cuda_wait(gpu, &down->mark[half], err);
    if (status != QN_OK)
        return status;
    if (gpu->cu->event_elapsed(&milliseconds, down->begun[half], down->mark[half].event) ==
        QN__CU_SUCCESS)
        gpu->traffic.seconds_down += (double)milliseconds * 1e-3;
    *data = down->half[half];
    *bytes = down->bytes[half];
    ++down->taken;
    return QN_OK;
}

qn_status qn__cuda_post(qn__gpu *gpu, const qn__gpu_memory *from, size_t bytes, uint32_t slot,
                        qn_error *err) {
    const qn_status status = qn__cuda_enter(gpu, err);
    if (status != QN_OK)
        return status;
    return copy_down(gpu, gpu->slots + (size_t)slot * QN__CUDA_WORDS, from, 0, bytes,
                     &gpu->slot[slot], err);
}

qn_status qn__cuda_fetch(qn__gpu *gpu, uint32_t slot, const void **words, qn_error *err) {
    qn_status status = qn__cuda_enter(gpu, err);
    if (status == QN_OK)
        status = qn__cuda_wait(gpu, &gpu->slot[slot], err);
    *words = gpu->slots + (size_t)slot * QN__CUDA_WORDS;
    return status;
}
