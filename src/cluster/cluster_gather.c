/* Collectives built on reductions: gather, broadcast from the first rank, shared memory. */
#include "cluster/cluster_state.h"

#include <string.h>

/* Words of one reduction of a broadcast: large enough that few are needed. */
enum { COPIED_WORDS = 1 << 20 };

static uint64_t words_for(uint64_t bytes) { return bytes / 8 + (bytes % 8 != 0); }

qn_status qn__cluster_gather(qn_cluster *c, const void *own, uint64_t bytes, void *all,
                             qn_error *err) {
    const uint32_t ranks = qn_cluster_ranks(c), rank = qn_cluster_rank(c);
    const uint64_t each = words_for(bytes);
    if (ranks == 1) {
        memcpy(all, own, bytes);
        return QN_OK;
    }
    if (each > UINT64_MAX / 16 / ranks)
        return qn__fail_memory(err, bytes, ranks);
    const int64_t *total;
    int more;
    qn_status status = qn__reduction_begin(
        c, &(qn__reduction){.kind = QN__REDUCTION_OTHER, .words = each * ranks, .chunks = 0}, err);
    if (status != QN_OK)
        return status;
    int64_t *part = qn__reduction_part(c);
    memset(part, 0, each * ranks * sizeof *part);
    memcpy(part + each * rank, own, bytes);
    do
        status = qn__reduction_finish(c, 0, &more, &total, err);
    while (status == QN_OK && more);
    for (uint32_t r = 0; r < ranks && status == QN_OK; ++r)
        memcpy((char *)all + bytes * r, total + each * r, bytes);
    return status;
}

/* One reduction of a broadcast. The words come from the rank that is the lowest when the reduction
 * begins; its first word identifies it, and is 0 if that rank has died. */
static qn_status copy_words(qn_cluster *c, unsigned char *memory, uint64_t bytes, uint32_t *from,
                            qn_error *err) {
    const uint64_t words = words_for(bytes);
    const int64_t *total;
    int more;
    qn_status status = qn__reduction_begin(
        c, &(qn__reduction){.kind = QN__REDUCTION_OTHER, .words = 1 + words, .chunks = 0}, err);
    if (status != QN_OK)
        return status;
    int64_t *part = qn__reduction_part(c);
    memset(part, 0, (1 + words) * sizeof *part);
    if (qn__cluster_is_first(c)) {
        part[0] = 1 + (int64_t)qn_cluster_rank(c);
        memcpy(part + 1, memory, bytes);
    }
    do
        status = qn__reduction_finish(c, 0, &more, &total, err);
    while (status == QN_OK && more);
    if (status != QN_OK)
        return status;
    *from = (uint32_t)total[0];
    if (*from > 0 && *from != 1 + qn_cluster_rank(c))
        memcpy(memory, total + 1, bytes);
    return QN_OK;
}

qn_status qn__cluster_from_first(qn_cluster *c, void *memory, uint64_t bytes, qn_error *err) {
    const uint64_t most = COPIED_WORDS * sizeof(int64_t);
    uint32_t source = 0;
    if (qn_cluster_ranks(c) == 1)
        return QN_OK;
    for (uint64_t at = 0; at < bytes;) {
        const uint64_t n = bytes - at < most ? bytes - at : most;
        uint32_t from;
        const qn_status status = copy_words(c, (unsigned char *)memory + at, n, &from, err);
        if (status != QN_OK)
            return status;
        /* Another rank is the lowest now: all bytes must come from that one. */
        if (from == 0 || (source && from != source)) {
            source = 0;
            at = 0;
        } else {
            source = from;
            at += n;
        }
    }
    return QN_OK;
}

qn_status qn__cluster_common(qn_cluster *c, uint64_t bytes, void **memory, int *first,
                             qn_error *err) {
    qn__reducer *r = c->reducer;
    const qn_status status = qn__cluster_check_process(c, err);
    if (status != QN_OK)
        return status;
    pthread_mutex_lock(&r->lock);
    *memory = qn__common_heap(r->common, bytes, err);
    *first = 1;
    for (uint32_t i = 0; i < r->rank; ++i)
        if (qn__ranks_has(&r->group.members, i) && r->place.machine[i] == r->place.machine[r->rank])
            *first = 0;
    pthread_mutex_unlock(&r->lock);
    return *memory ? QN_OK : QN_MEMORY;
}
