#include "data/table/table_space.h"
#include "base/files/cache_file.h"
#include "base/memory.h"
#include "base/system/available.h"
#include <stdio.h>
#include <string.h>

/* Smaller tables never need a file; asking how much memory there is takes longer. */
#define LEAST ((uint64_t)4 << 20)

static qn_status make_in_memory(qn_data *data, qn_error *err) {
    data->memory = qn__alloc(data->items, qn__data_stride(data), err);
    data->values = data->memory;
    return data->memory ? QN_OK : QN_MEMORY;
}

static qn_status make_in_file(qn_data *data, uint64_t bytes, qn_error *err) {
    const qn__table_space *buffer = data->buffer;
    const uint64_t all = buffer->before + bytes + 2 * QN__DATA_MARGIN;
    qn__mapped_file *file;
    const qn_status status = qn__cache_file_make(buffer->entry, all, &file, err);
    if (status != QN_OK)
        return status;
    data->release = qn__mapped_file_close;
    data->memory = file;
    data->values = qn__mapped_file_bytes(file) + buffer->before;
    data->in_file = file;
    return QN_OK;
}

/* "1.5 GiB" */
static const char *show(uint64_t bytes, char text[24]) {
    const int large = bytes >= (uint64_t)1 << 30;
    snprintf(text, 24, "%.1f %s", (double)bytes * (large ? 0x1p-30 : 0x1p-20),
             large ? "GiB" : "MiB");
    return text;
}

/* `why` there is no file; "": the user wants none. */
static qn_status refuse(const qn_data *data, uint64_t bytes, uint64_t available, const char *why,
                        qn_error *err) {
    char needed[24], left[24];
    qn__fail(
        err, QN_MEMORY,
        "the table of %llu items with %u features takes %s, and %s of memory are available%s%.200s",
        (unsigned long long)data->items, data->features, show(bytes, needed), show(available, left),
        *why ? "; it cannot be kept in a file: " : "", why);
    qn__at(err, "%s", data->buffer->path);
    return qn__remedy(err, QN_MEMORY,
                      *why
                          ? "name a folder with space by QUERN_CACHE, or use a machine with more "
                            "memory"
                          : "leave `data.no_cache` out, so that the table is kept in a file of the "
                            "cache folder, or use a machine with more memory");
}

static void release_space(qn_data *data) {
    if (data->release)
        data->release(data->memory);
    data->release = qn__free; /* also without memory: what else is read belongs to a table */
    data->memory = NULL;
    data->values = NULL;
    data->in_file = NULL;
}

/* What may be used without a file; see the head of table_space.h. */
static uint64_t memory_for(const qn__table_space *buffer, uint64_t available) {
    return available / 2 / (buffer->ranks ? buffer->ranks : 1);
}

qn_status qn__table_space_make(qn_data *data, qn_error *err) {
    const qn__table_space *buffer = data->buffer;
    uint64_t bytes;
    release_space(data);
    if (!buffer || __builtin_mul_overflow(data->items, (uint64_t)qn__data_stride(data), &bytes) ||
        bytes > SIZE_MAX / 4)
        return make_in_memory(data, err);
    const uint64_t available = bytes < LEAST ? UINT64_MAX : qn__available_memory();
    const uint64_t few = memory_for(buffer, available);
    if (bytes <= few && make_in_memory(data, NULL) == QN_OK)
        return QN_OK;
    qn_error why = {.what = ""};
    if (!buffer->no_file && make_in_file(data, bytes, &why) == QN_OK)
        return QN_OK;
    if (bytes <= few)
        return refuse(data, bytes, qn__available_memory(), buffer->no_file ? "" : why.what, err);
    if (bytes <= (buffer->ranks ? available / 3 * 2 : available))
        return make_in_memory(data, err);
    return refuse(data, bytes, available, buffer->no_file ? "" : why.what, err);
}

int qn__table_space_borrow(qn_data *data, int file, const struct stat *seen, uint64_t begin) {
    const uint32_t size = qn__element_of(data->type)->size;
    qn__mapped_file *mapped;
    uint64_t bytes, end;
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || !data->buffer || file < 0 || begin % size ||
        __builtin_mul_overflow(data->items, (uint64_t)qn__data_stride(data), &bytes) ||
        __builtin_add_overflow(bytes, begin, &end) || end > SIZE_MAX / 4 || bytes < LEAST ||
        bytes <= memory_for(data->buffer, qn__available_memory()) ||
        qn__mapped_file_borrow(file, seen, data->buffer->path, (size_t)end, &mapped, NULL) != QN_OK)
        return 0;
    release_space(data);
    data->release = qn__mapped_file_close;
    data->memory = mapped;
    data->values = qn__mapped_file_bytes(mapped) + begin;
    data->in_file = mapped;
    return 1;
}

/* A file that is there becomes longer; the values may move. */
static qn_status grow_file(qn_data *data, uint64_t bytes, qn_error *err) {
    const uint64_t before = data->buffer->before, all = before + bytes + 2 * QN__DATA_MARGIN;
    const qn_status status = qn__mapped_file_grow(data->memory, (size_t)all, err);
    data->values = qn__mapped_file_bytes(data->memory) + before;
    return status;
}

qn_status qn__table_space_grow(qn_data *data, uint64_t kept, qn_error *err) {
    qn_data old = *data;
    uint64_t bytes;
    if (__builtin_mul_overflow(data->items, (uint64_t)qn__data_stride(data), &bytes) ||
        bytes > SIZE_MAX / 4)
        return qn__fail_memory(err, data->items, qn__data_stride(data));
    if (data->in_file)
        return grow_file(data, bytes, err);
    data->release = NULL; /* the values stay until they are copied */
    const qn_status status = qn__table_space_make(data, err);
    if (status != QN_OK) {
        old.items = data->items;
        *data = old;
        return status;
    }
    if (kept > 0)
        memcpy(qn__table_space_values(data), old.values, (size_t)kept * qn__data_stride(data));
    if (old.release)
        old.release(old.memory);
    return QN_OK;
}

void qn__table_space_wrote(const qn_data *data, uint64_t items) {
    if (data->in_file)
        qn__mapped_file_wrote(data->memory,
                              (size_t)data->buffer->before + (size_t)items * qn__data_stride(data));
}

qn_status qn__table_space_widen(qn_data *data, uint64_t items, qn_error *err) {
    const qn_data narrow = *data;
    const size_t count = (size_t)items * data->features;
    data->release = NULL; /* the bytes stay until they are copied */
    data->type = QN_F32;
    const qn_status status = qn__table_space_make(data, err);
    float *to = qn__table_space_values(data);
    for (size_t i = 0; status == QN_OK && i < count; i++)
        to[i] = narrow.values[i];
    narrow.release(narrow.memory);
    return status;
}
