/* Exact sums of all ranks. Of a sum's limbs most are 0: numbers of a table have similar sizes. */
#include "base/memory.h"
#include "data/parts/parts.h"
#include <string.h>

enum { AT_ONCE = 1 << 13 };

/* Limbs of some sums that are not 0 on some rank; `there` says that the rank is. */
typedef struct span {
    uint32_t there, first, end;
} span;

static qn_status agree_on_span(const qn_parts *parts, qn__exact_sum *const *sum, uint64_t count,
                               span *each, span *out, qn_error *err) {
    span own = {.there = 1};
    for (uint64_t i = 0; i < count; i++)
        qn__exact_limbs(sum[i], &own.first, &own.end);
    const qn_status status = qn__parts_gather_each(parts, &own, sizeof own, each, err);
    *out = own;
    for (uint32_t r = 0; r < parts->ranks && status == QN_OK; r++) {
        if (each[r].first == each[r].end)
            continue;
        const int none = out->first == out->end;
        out->first = none || each[r].first < out->first ? each[r].first : out->first;
        out->end = none || each[r].end > out->end ? each[r].end : out->end;
    }
    return status;
}

static qn_status add_some(const qn_parts *parts, qn__exact_sum *const *sum, uint64_t count,
                          span *each, int64_t *words, qn_error *err) {
    span of;
    qn_status status = agree_on_span(parts, sum, count, each, &of, err);
    const uint64_t limbs = of.end - of.first;
    for (uint64_t i = 0; i < count; i++)
        memcpy(words + i * limbs, sum[i]->limb + of.first, limbs * sizeof *words);
    if (status == QN_OK && limbs > 0)
        status = qn__parts_add(parts, words, count * limbs, err);
    for (uint64_t i = 0; status == QN_OK && i < count; i++) {
        memcpy(sum[i]->limb + of.first, words + i * limbs, limbs * sizeof *words);
        sum[i]->pending = parts->ranks;
    }
    return status;
}

qn_status qn__parts_add_sums(const qn_parts *parts, qn__exact_sum *const *sum, uint64_t count,
                             qn_error *err) {
    const uint64_t most = count < AT_ONCE ? count : AT_ONCE;
    if (!parts->cluster)
        return QN_OK;
    span *each = qn__alloc(parts->ranks, sizeof *each, err);
    int64_t *words = qn__alloc(most, sizeof sum[0]->limb, err);
    qn_status status = QN_OK;
    if (!each || !words)
        status = qn__parts_fail(parts, QN_MEMORY, err);
    for (uint64_t i = 0; each && words && status == QN_OK && i < count; i += most)
        status = add_some(parts, sum + i, count - i < most ? count - i : most, each, words, err);
    qn__free(each);
    qn__free(words);
    return status;
}
