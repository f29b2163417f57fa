/* The state of a thread that drives a device: the tile of columns that it computes. Their sums come
 * first (column_take.c), then the passes that count for quantiles and histograms (column_passes.c).
 */
#ifndef QN_STATISTICS_COLUMN_TAKER_H
#define QN_STATISTICS_COLUMN_TAKER_H

#include "base/system/threads.h"
#include "statistics/column_round.h"
#include "statistics/column_search.h"

struct qn__column_taker {
    uint32_t first, columns;                                      /* the tile */
    qn__column_total all[QN__COLUMN_TILE], part[QN__COLUMN_TILE]; /* all groups; that at hand */
    qn__pool *pool;
    qn__column_scratch *thread; /* of each thread of the pool */
    int threads;
    int passing, checked; /* passing 1: more passes follow; checked 1: a count was compared with
                             that of the host */
    qn__column_search *search;             /* of each column and group of the tile */
    uint32_t *keys;                        /* of each item of a pass */
    uint64_t capacity;                     /* items that `keys` has */
    uint64_t counted[QN__SEARCH_KEYS + 1]; /* of the target at hand */
};

static inline qn__column_search *qn__column_search_of(const qn__columns_round *r,
                                                      const qn__column_taker *t, uint32_t column,
                                                      uint32_t group) {
    return &t->search[(size_t)(column - t->first) * r->job->task->groups + group];
}

/* Begins the passes of the tile, whose sums and extremes are known. 0: no memory. */
int qn__column_passes_begin(const qn__columns_round *round, qn__column_taker *taker);
/* The items of the next pass. 0: none is needed. -1: no memory. */
int qn__column_passes_next(const qn__columns_round *round, qn__column_taker *taker,
                           qn__kernel_span *out);
/* Takes an item of a pass. `left`: the words of this item and of those after it in its launch. 0:
 * it is wrong. */
int qn__column_passes_take(const qn__columns_round *round, qn__column_taker *taker, uint64_t item,
                           const uint64_t *words);
/* The quantiles of a column, after all passes. */
void qn__column_passes_end(const qn__columns_round *round, const qn__column_taker *taker,
                           uint32_t column);

#endif
