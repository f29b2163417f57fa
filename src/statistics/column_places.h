/* The positions of quantiles and the edges of histograms. Two algorithms find the values: by order
 * statistics (column_statistics.c), and by counting passes of a device (column_search.c). */
#ifndef QN_STATISTICS_COLUMN_PLACES_H
#define QN_STATISTICS_COLUMN_PLACES_H

#include <stdint.h>

/* h = q * (count - 1) as a rank and a part / 2^bits. */
typedef struct qn__quantile_place {
    uint64_t rank;
    uint64_t part[2];
    int bits;
} qn__quantile_place;

/* q from 0 to 1, count > 0. */
qn__quantile_place qn__quantile_place_of(double q, uint64_t count);

/* The least float that is not below an edge, so that values can be compared with it. */
float qn__column_at_least(double edge);

/* The *bins + 1 edges between two values; *bins becomes 1 where they are equal. */
void qn__column_set_edges(float least, float greatest, double *edges, uint32_t *bins);

/* Bins of a histogram of `count` values, where the user did not say. */
uint32_t qn__column_bins(uint64_t count);

#endif
