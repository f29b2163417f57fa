/* Quantiles and histograms of the values of a group by counting passes. A pass counts the values
 * between up to QN__SEARCH_KEYS ascending keys (num/order.h). The first one settles the histogram.
 * Each narrows the keys between which the wanted ranks lie, until they are known. */
#ifndef QN_STATISTICS_COLUMN_SEARCH_H
#define QN_STATISTICS_COLUMN_SEARCH_H

#include "statistics/column_statistics.h"

enum { QN__SEARCH_KEYS = 2047, QN__SEARCH_QUANTILES = 64, QN__SEARCH_BINS = 1024 };

/* The search for the value with this rank: its key is from `low` to `high`. */
typedef struct qn__search_rank {
    uint64_t rank;
    uint32_t low, high;
} qn__search_rank;

typedef struct qn__column_search {
    uint64_t count;
    uint32_t ranks; /* two of each quantile: those on its sides */
    qn__search_rank rank[2 * QN__SEARCH_QUANTILES];
    const double *edges; /* of the histogram; NULL: it is settled */
    uint32_t bins;
    int bytes;     /* 1: all values are whole numbers from 0 to 255 */
    int unsettled; /* 1: passes are needed */
} qn__column_search;

/* 1: the number of quantiles and bins is small enough for passes. */
int qn__column_search_takes(const qn__column_task *task, int histograms, uint32_t most_bins);

/* Begins with the count and the extremes of a group. edges NULL: no histogram. */
void qn__column_search_begin(qn__column_search *search, const qn__column_task *task,
                             const qn__column_numbers *numbers, int bytes, const double *edges,
                             uint32_t bins);

/* The ascending keys of the next pass; returns their number. */
uint32_t qn__column_search_keys(const qn__column_search *search, uint32_t key[QN__SEARCH_KEYS]);

/* Takes what the pass counted: the values below key[0], those from key[0] to below key[1], and so
 * on. The histogram may be NULL if there are no edges. */
void qn__column_search_count(qn__column_search *search, const uint64_t counted[QN__SEARCH_KEYS + 1],
                             uint64_t *histogram);

/* The number of byte values, 0 to 255, whose key is below `key`. */
uint32_t qn__column_search_bytes(uint32_t key);

/* The quantiles of a search that needs no more passes. */
void qn__column_search_end(const qn__column_search *search, const qn__column_task *task,
                           qn__column_numbers *out);

#endif
