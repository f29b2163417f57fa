#include "data/table/growing.h"

#include "base/files/cache_file.h"
#include "base/memory.h"
#include "base/system/available.h"
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* Fewer bytes never need a file; asking how much memory there is takes longer. Bytes by which a
 * file grows. */
#define LEAST ((size_t)4 << 20)
#define STEP ((size_t)64 << 20)

static qn_status refuse(const qn_error *why, qn_error *err) {
    qn__fail(err, QN_MEMORY,
             "memory does not hold the data, and they cannot be kept in a file: %.200s", why->what);
    return qn__remedy(err, QN_MEMORY,
                      "name a folder with space by QUERN_CACHE, or use a machine with more memory");
}

static qn_status move_to_file(qn__growing *g, size_t capacity, qn_error *err) {
    qn_error why = {.what = ""};
    qn__mapped_file *file;
    if (qn__cache_file_make("", capacity + STEP, &file, &why) != QN_OK)
        return refuse(&why, err);
    if (g->size > 0)
        memcpy(qn__mapped_file_bytes(file), g->bytes, g->size);
    qn__free(g->bytes);
    g->file = file;
    g->bytes = qn__mapped_file_bytes(file);
    g->capacity = qn__mapped_file_size(file);
    qn__mapped_file_wrote(file, g->size);
    return QN_OK;
}

static qn_status move_to_memory(qn__growing *g, size_t capacity, qn_error *err) {
    uint8_t *larger = qn__alloc(capacity, 1, err);
    if (!larger)
        return QN_MEMORY;
    if (g->size > 0)
        memcpy(larger, g->bytes, g->size);
    qn__free(g->bytes);
    g->bytes = larger;
    g->capacity = capacity;
    return QN_OK;
}

static qn_status grow_file(qn__growing *g, size_t size, qn_error *err) {
    qn_error why = {.what = ""};
    if (qn__mapped_file_grow(g->file, size + STEP, &why) != QN_OK)
        return refuse(&why, err);
    g->bytes = qn__mapped_file_bytes(g->file);
    g->capacity = qn__mapped_file_size(g->file);
    return QN_OK;
}

qn_status qn__growing_reserve(qn__growing *g, size_t more, qn_error *err) {
    if (more <= g->capacity - g->size)
        return QN_OK;
    if (more > SIZE_MAX / 4 - g->size)
        return qn__fail_memory(err, more, 1);
    if (g->file)
        return grow_file(g, g->size + more, err);
    size_t capacity = g->capacity ? 2 * g->capacity : FIRST_CAPACITY;
    if (capacity - g->size < more)
        capacity = g->size + more;
    if ((capacity <= LEAST || capacity <= qn__available_memory() / 4) &&
        move_to_memory(g, capacity, NULL) == QN_OK)
        return QN_OK;
    return move_to_file(g, capacity, err);
}

qn_status qn__growing_add(qn__growing *g, const void *bytes, size_t size, qn_error *err) {
    const qn_status status = qn__growing_reserve(g, size, err);
    if (status != QN_OK)
        return status;
    if (size > 0)
        memcpy(g->bytes + g->size, bytes, size);
    g->size += size;
    if (g->file)
        qn__mapped_file_wrote(g->file, g->size);
    return QN_OK;
}

void qn__growing_release(qn__growing *g) {
    if (g->file)
        qn__mapped_file_close(g->file);
    else
        qn__free(g->bytes);
    *g = (qn__growing){0};
}
