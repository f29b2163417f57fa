#include "team/together.h"

#include "base/memory.h"
#include <string.h>

/* Bytes of all ranks in one reduction, and the minimum and maximum of each. */
enum { ROUND_BYTES = 1 << 22, LEAST_BYTES = 1 << 12, MOST_BYTES = 1 << 28 };

qn_status qn__by_writer(qn_cluster *c, qn_status (*write)(void *context, qn_error *err),
                        void *context, qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(c);
    uint64_t *written;
    if (ranks < 2)
        return write(context, err);
    if (!(written = qn__alloc(2 * (size_t)ranks, sizeof *written, err)))
        return QN_MEMORY;
    qn_status status = QN_OK, own = QN_OK;
    for (int done = 0; !done && status == QN_OK;) {
        uint64_t wrote = 0;
        if (qn_cluster_is_writer(c)) {
            own = write(context, err);
            if (own == QN_DEVICE)
                break; /* the next rank writes, once this rank has left */
            wrote = 1;
        }
        status = qn__cluster_gather(c, &wrote, sizeof wrote, written, own == QN_OK ? err : NULL);
        for (uint32_t r = 0; r < ranks; ++r)
            done |= written[r] != 0;
    }
    /* A rank that leaves now would invalidate a reduction that others have not finished, and the
     * next rank would write again: so all wait until all know. */
    if (status == QN_OK && own != QN_DEVICE)
        status = qn__cluster_gather(c, written, sizeof *written, written + ranks,
                                    own == QN_OK ? err : NULL);
    qn__free(written);
    return own != QN_OK ? own : status;
}

qn__owner qn__owner_of(qn_cluster *cluster) {
    if (!cluster)
        return (qn__owner){.id = 0};
    return (qn__owner){qn__cluster_id(cluster), qn__cluster_may_write, cluster};
}

/* The announcement of a rank's part. */
typedef struct announced {
    uint64_t size, digest;
} announced;

/* FNV-1a, of 64 bits. */
static uint64_t digest_of(const unsigned char *bytes, uint64_t size) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint64_t i = 0; i < size; ++i)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Allocates the announced parts of all ranks. */
static qn_status reserve(qn__parts *parts, announced *told, uint64_t *most, qn_error *err) {
    uint64_t sum = 0, at = 0;
    *most = 0;
    for (uint32_t r = 0; r < parts->ranks; ++r) {
        if (told[r].size > MOST_BYTES)
            told[r].size = 0; /* an implausible size */
        *most = told[r].size > *most ? told[r].size : *most;
        sum += (told[r].size + 7) / 8 * 8;
    }
    if (!(parts->all = qn__alloc(sum, 1, err)))
        return QN_MEMORY;
    for (uint32_t r = 0; r < parts->ranks; ++r) {
        parts->part[r].size = told[r].size;
        parts->part[r].bytes = told[r].size ? parts->all + at : NULL;
        at += (told[r].size + 7) / 8 * 8;
    }
    return QN_OK;
}

/* `count` bytes of each rank, from `first` on. */
static qn_status gather_slice(qn_cluster *c, const unsigned char *own, uint64_t size,
                              uint64_t first, uint64_t count, unsigned char *buffer,
                              qn__parts *parts, qn_error *err) {
    unsigned char *mine = buffer + parts->ranks * count;
    const uint64_t here = first < size ? (size - first < count ? size - first : count) : 0;
    memset(mine, 0, count);
    if (here > 0)
        memcpy(mine, own + first, here);
    const qn_status status = qn__cluster_gather(c, mine, count, buffer, err);
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; ++r) {
        const uint64_t all = parts->part[r].size;
        if (first < all)
            memcpy(parts->part[r].bytes + first, buffer + r * count,
                   all - first < count ? all - first : count);
    }
    return status;
}

static qn_status gather_all(qn_cluster *c, const void *own, uint64_t size, uint64_t most,
                            qn__parts *parts, qn_error *err) {
    uint64_t count = ROUND_BYTES / parts->ranks;
    count = (count < LEAST_BYTES ? LEAST_BYTES : count) / 8 * 8;
    count = most < count ? (most + 7) / 8 * 8 : count;
    unsigned char *buffer = qn__alloc(parts->ranks + 1, count, err);
    qn_status status = buffer ? QN_OK : QN_MEMORY;
    for (uint64_t first = 0; first < most && status == QN_OK; first += count)
        status = gather_slice(c, own, size, first, count, buffer, parts, err);
    qn__free(buffer);
    return status;
}

qn_status qn__parts_gather(qn_cluster *c, const void *own, uint64_t size, qn__parts *parts,
                           qn_error *err) {
    uint64_t most = 0;
    *parts = (qn__parts){.ranks = qn_cluster_ranks(c)};
    announced *told = qn__alloc(parts->ranks, sizeof *told, err);
    parts->part = told ? qn__alloc(parts->ranks, sizeof *parts->part, err) : NULL;
    qn_status status = parts->part ? QN_OK : QN_MEMORY;
    const announced mine = {size, digest_of(own, size)};
    if (status == QN_OK && parts->ranks > 1)
        status = qn__cluster_gather(c, &mine, sizeof mine, told, err);
    else if (status == QN_OK)
        told[0] = mine;
    if (status == QN_OK)
        status = reserve(parts, told, &most, err);
    if (status == QN_OK && parts->ranks > 1)
        status = gather_all(c, own, size, most, parts, err);
    else if (status == QN_OK && parts->part[0].bytes)
        memcpy(parts->part[0].bytes, own, size);
    /* Parts of a rank that was lost meanwhile may be missing. */
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; ++r)
        if (parts->part[r].bytes &&
            digest_of(parts->part[r].bytes, parts->part[r].size) != told[r].digest) {
            parts->part[r].bytes = NULL;
            parts->part[r].size = 0;
        }
    qn__free(told);
    return status;
}

void qn__parts_release(qn__parts *parts) {
    qn__free(parts->part);
    qn__free(parts->all);
    *parts = (qn__parts){0};
}
