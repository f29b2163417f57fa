/* What ranks tell each other about their parts. */
#include "base/argument.h"
#include "base/memory.h"
#include "base/system/float_state.h"
#include "cluster/agreement.h"
#include "data/parts/parts.h"
#include <string.h>

qn_status qn__parts_fail(const qn_parts *parts, qn_status status, qn_error *err) {
    if (parts->cluster)
        qn__cluster_fail(parts->cluster, err);
    return status;
}

static qn_status tell_death(const qn_parts *parts, uint32_t rank, qn_error *err) {
    qn__fail(err, QN_IO, "%s has ended, and its part of the data is missing",
             qn_cluster_name(parts->cluster, rank));
    qn__at_of(err, parts->name[rank]);
    return qn__remedy(err, QN_IO, "start all ranks again");
}

/* `there`: a byte or word of each rank, `stride` bytes apart, which is 0 if it has died. */
static qn_status check_there(const qn_parts *parts, const void *there, uint64_t stride,
                             qn_error *err) {
    uint32_t lost = parts->ranks;
    for (uint32_t r = parts->ranks; r-- > 0;)
        if (parts->gone[r] != QN__PART_SETTLED && ((const uint8_t *)there)[r * stride] == 0) {
            parts->gone[r] = QN__PART_LOST;
            lost = r;
        }
    return lost < parts->ranks ? tell_death(parts, lost, err) : QN_OK;
}

qn_status qn__parts_gather_each(const qn_parts *parts, const void *own, uint64_t bytes, void *all,
                                qn_error *err) {
    if (!parts->cluster) {
        memcpy(all, own, bytes);
        return QN_OK;
    }
    qn_status status = qn__cluster_gather(parts->cluster, own, bytes, all, err);
    return status == QN_OK ? check_there(parts, all, bytes, err) : status;
}

qn_status qn__parts_differ(const qn_parts *parts, qn_error *err) {
    qn__fail(err, QN_MISMATCH, "the part of this rank is not the one that it had in the run");
    qn__at_of(err, parts->name[parts->rank]);
    return qn__remedy(err, QN_MISMATCH, "start the rank with the same files or table");
}

/* Bytes of a rank that travel at once. */
enum { SLICE = 1 << 18 };

typedef struct slice {
    uint8_t present[8]; /* not 0 */
    uint8_t bytes[SLICE];
} slice;

static uint64_t bytes_of(const qn_parts *parts, uint32_t rank, uint64_t each) {
    return (parts->first[rank + 1] - parts->first[rank]) * each;
}

/* Bytes of a rank from `at` on that are in one slice. */
static size_t piece(const qn_parts *parts, uint32_t rank, uint64_t each, uint64_t at) {
    const uint64_t bytes = bytes_of(parts, rank, each), left = bytes > at ? bytes - at : 0;
    return (size_t)(left < SLICE ? left : SLICE);
}

static qn_status gather_slices(const qn_parts *parts, const uint8_t *own, uint64_t each,
                               slice *mine, slice *slices, uint8_t *all, qn_error *err) {
    uint64_t most = 0;
    qn_status status = QN_OK;
    for (uint32_t r = 0; r < parts->ranks; r++)
        most = bytes_of(parts, r, each) > most ? bytes_of(parts, r, each) : most;
    mine->present[0] = 1;
    for (uint64_t at = 0; at < most && status == QN_OK; at += SLICE) {
        const size_t size = piece(parts, parts->rank, each, at);
        if (size > 0)
            memcpy(mine->bytes, own + at, size);
        status = qn__parts_gather_each(parts, mine, sizeof *mine, slices, err);
        for (uint32_t r = 0; r < parts->ranks && status == QN_OK; r++)
            if (piece(parts, r, each, at) > 0)
                memcpy(all + parts->first[r] * each + at, slices[r].bytes,
                       piece(parts, r, each, at));
    }
    return status;
}

qn_status qn__parts_gather_items(const qn_parts *parts, const void *own, uint64_t each, void *all,
                                 qn_error *err) {
    slice *mine = qn__alloc(1, sizeof *mine, err);
    slice *slices = mine ? qn__alloc(parts->ranks, sizeof *slices, err) : NULL;
    const qn_status status = slices ? gather_slices(parts, own, each, mine, slices, all, err)
                                    : qn__parts_fail(parts, QN_MEMORY, err);
    qn__free(mine);
    qn__free(slices);
    return status;
}

qn_status qn__parts_add(const qn_parts *parts, int64_t *words, uint64_t count, qn_error *err) {
    if (!parts->cluster)
        return QN_OK;
    const uint64_t all = parts->ranks + count; /* each rank first says that it is there */
    const int64_t *total;
    int more;
    qn_status status = qn__reduction_begin(
        parts->cluster, &(qn__reduction){.kind = QN__REDUCTION_OTHER, .words = all, .chunks = 0},
        err);
    if (status != QN_OK)
        return status;
    int64_t *part = qn__reduction_part(parts->cluster);
    memset(part, 0, parts->ranks * sizeof *part);
    part[parts->rank] = -1; /* no byte of it is 0 */
    memcpy(part + parts->ranks, words, count * sizeof *part);
    do
        status = qn__reduction_finish(parts->cluster, 0, &more, &total, err);
    while (status == QN_OK && more);
    if (status == QN_OK)
        status = check_there(parts, total, sizeof *total, err);
    if (status == QN_OK)
        memcpy(words, total + parts->ranks, count * sizeof *words);
    return status;
}

qn_status qn__parts_agree(const qn_parts *parts, qn_status status, qn_error *err) {
    if (!parts->cluster)
        return status;
    const qn_error own = status == QN_OK ? (qn_error){0} : *err;
    return qn__cluster_agree(parts->cluster, &own, NULL, 0, NULL, err);
}

qn_status qn__parts_gather_blobs(const qn_parts *parts, const void *own, uint64_t size,
                                 qn__parts_blobs *out, qn_error *err) {
    const uint64_t told[2] = {1, size};
    uint64_t *sizes = qn__alloc(parts->ranks, sizeof told, err);
    *out = (qn__parts_blobs){.size = qn__alloc(parts->ranks, sizeof *out->size, err)};
    qn_status status = sizes && out->size ? QN_OK : qn__parts_fail(parts, QN_MEMORY, err);
    if (status == QN_OK)
        status = qn__parts_gather_each(parts, told, sizeof told, sizes, err);
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; r++) {
        out->size[r] = sizes[2 * r + 1];
        out->each = out->size[r] + 1 > out->each ? out->size[r] + 1 : out->each;
    }
    qn__free(sizes);
    if (status == QN_OK && out->size[parts->rank] != size)
        size = 0; /* this rank joins, and the others have what it said before */
    uint8_t *mine = NULL;
    out->each = (out->each + 63) / 64 * 64; /* the last byte of each says that its rank is there */
    if (status == QN_OK) {
        mine = qn__alloc(out->each, 1, err);
        out->all = mine ? qn__alloc(parts->ranks, out->each, err) : NULL;
        status = out->all ? QN_OK : qn__parts_fail(parts, QN_MEMORY, err);
    }
    if (status == QN_OK) {
        memcpy(mine, own, size);
        mine[out->each - 1] = 1;
        status = parts->cluster ? qn__cluster_gather(parts->cluster, mine, out->each, out->all, err)
                                : QN_OK;
    }
    if (status == QN_OK && !parts->cluster)
        memcpy(out->all, mine, out->each);
    if (status == QN_OK)
        status = check_there(parts, out->all + out->each - 1, out->each, err);
    qn__free(mine);
    return status;
}

void qn__parts_blobs_release(qn__parts_blobs *blobs) {
    qn__free(blobs->all);
    qn__free(blobs->size);
}

qn_status qn_parts_gather(const qn_parts *parts, const void *own, size_t bytes, void *all,
                          qn_error *err) {
    QN__OWN_FLOATS;
    QN__NEED(parts, err);
    qn__parts_blobs blobs = {.all = NULL};
    qn_error unheard;
    err = err ? err : &unheard;
    qn_status status = QN_OK;
    if (!all || (!own && bytes > 0))
        status = qn__fail_memory(err, parts->ranks, bytes);
    status = qn__parts_agree(parts, status, err);
    if (status == QN_OK)
        status = qn__parts_gather_blobs(parts, own, bytes, &blobs, err);
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; r++)
        memcpy((uint8_t *)all + r * bytes, blobs.all + r * blobs.each, bytes);
    qn__parts_blobs_release(&blobs);
    return status;
}
