/* The merges of a byte-pair encoding: which two tokens become one, and in which order. Start with
 * {0}. */
#ifndef QN_DATA_TOKENS_MODELS_MERGES_H
#define QN_DATA_TOKENS_MODELS_MERGES_H

#include "data/tokens/models/token_ids.h"
#include <stddef.h>

typedef struct qn__merge {
    uint32_t left, right, made;
} qn__merge;

/* A pair in a hash table with open addressing. */
typedef struct qn__merge_slot {
    uint64_t pair; /* left and right; QN__PAIR_NONE: free */
    uint32_t rank, made;
} qn__merge_slot;

#define QN__PAIR_NONE UINT64_MAX

typedef struct qn__merges {
    qn__merge *merge; /* by rank */
    uint32_t count;
    qn__merge_slot *slot;
    uint32_t slots; /* a power of two */
} qn__merges;

/* Makes the table for `count` merges, which `merge`, of qn__alloc, has in the order of their rank
 * and which belong to *merges from now on. *twice is the rank of a pair that an earlier merge has,
 * or `count`. Fails with QN_MEMORY. */
qn_status qn__merges_make(qn__merges *merges, qn__merge *merge, uint32_t count, uint32_t *twice,
                          qn_error *err);
void qn__merges_release(qn__merges *merges);

/* The slot of a pair; NULL: it is not merged. */
static inline const qn__merge_slot *qn__merges_find(const qn__merges *merges, uint32_t left,
                                                    uint32_t right) {
    const uint64_t pair = (uint64_t)left << 32 | right;
    uint64_t hash = pair * 0x9E3779B97F4A7C15u;
    for (uint32_t at = (uint32_t)(hash >> 32) & (merges->slots - 1);;
         at = (at + 1) & (merges->slots - 1)) {
        const qn__merge_slot *slot = &merges->slot[at];
        if (slot->pair == pair)
            return slot;
        if (slot->pair == QN__PAIR_NONE)
            return NULL;
    }
}

/* What one thread needs for long words. */
typedef struct qn__merge_worker {
    void *place, *heap;
    size_t places, heaped; /* how many there is memory for */
} qn__merge_worker;
void qn__merge_worker_release(qn__merge_worker *worker);

/* Applies merges to `count` tokens: the pair of the lowest rank, the first of several, becomes one
 * token, until there is none. Returns how many are left; on failure 0 with QN_MEMORY in *status. */
size_t qn__merges_apply(const qn__merges *merges, qn__merge_worker *worker, uint32_t *token,
                        size_t count, qn_status *status, qn_error *err);

#endif
