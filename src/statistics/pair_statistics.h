/* Covariance and correlation of all pairs of columns. */
#ifndef QN_STATISTICS_PAIR_STATISTICS_H
#define QN_STATISTICS_PAIR_STATISTICS_H

#include "data/parts/parts.h"
#include "num/exact_sum.h"
#include "team/team.h"

/* What is known of the columns: `missing[k]` is not 0 where column k lacks a value; the sums of its
 * values and of their squares. */
typedef struct qn__pairs {
    const qn_data *data;
    const qn_parts *parts; /* of which `data` is this rank's; NULL: it is the whole */
    const uint8_t *missing;
    const qn__exact_sum *first, *second;
    int devices; /* 1: the team has devices that compute kernels */
    int threads; /* of this process */
} qn__pairs;

/* Fills two matrices of columns x columns, on every rank. `team` is NULL where there are parts:
 * then each rank adds up its rows, and the sums are added; fails as qn__parts_add. Else fails as
 * qn__team_run does, or with QN_UNSUPPORTED after a wrong sum by a device. */
qn_status qn__pairs_describe(const qn__pairs *pairs, qn__team *team, double *covariance,
                             double *correlation, qn_error *err);

#endif
