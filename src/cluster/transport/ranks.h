/* Sets of ranks. */
#ifndef QN_CLUSTER_TRANSPORT_RANKS_H
#define QN_CLUSTER_TRANSPORT_RANKS_H

#include <stdint.h>

enum { QN__MAX_RANKS = 1024 };

typedef struct qn__ranks {
    uint64_t word[QN__MAX_RANKS / 64];
} qn__ranks;

static inline int qn__ranks_has(const qn__ranks *set, uint32_t rank) {
    return (int)(set->word[rank / 64] >> rank % 64 & 1);
}

static inline void qn__ranks_add(qn__ranks *set, uint32_t rank) {
    set->word[rank / 64] |= UINT64_C(1) << rank % 64;
}

static inline void qn__ranks_drop(qn__ranks *set, uint32_t rank) {
    set->word[rank / 64] &= ~(UINT64_C(1) << rank % 64);
}

static inline uint32_t qn__ranks_count(const qn__ranks *set) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < QN__MAX_RANKS / 64; ++i)
        count += (uint32_t)__builtin_popcountll(set->word[i]);
    return count;
}

/* The lowest rank, or QN__MAX_RANKS for an empty set. */
static inline uint32_t qn__ranks_first(const qn__ranks *set) {
    for (uint32_t i = 0; i < QN__MAX_RANKS / 64; ++i)
        if (set->word[i])
            return i * 64 + (uint32_t)__builtin_ctzll(set->word[i]);
    return QN__MAX_RANKS;
}

#endif
