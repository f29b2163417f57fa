/* Covariance and correlation of wide columns from their exact values (docs/exactness.md 18.5). */
#ifndef QN_STATISTICS_EXACT_PAIRS_H
#define QN_STATISTICS_EXACT_PAIRS_H

#include "statistics/pair_statistics.h"

/* Replaces the numbers of the pairs that have a wide column. Fails with QN_MEMORY. */
qn_status qn__exact_pairs(const qn__pairs *pairs, double *covariance, double *correlation,
                          qn_error *err);

#endif
