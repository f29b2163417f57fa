/* Statistics of one column, of all items and of each class. */
#ifndef QN_STATISTICS_COLUMN_STATISTICS_H
#define QN_STATISTICS_COLUMN_STATISTICS_H

#include "num/moments.h"
#include "num/order.h"
#include <quern/statistics.h>

/* The numbers of a column and a class. Arrays belong to the qn_statistics. */
typedef struct qn__column_numbers {
    uint64_t count, missing;
    qn__moments_results moments;
    double minimum, maximum;
    int64_t first, last;  /* of dates: the moments of both */
    double *quantiles;    /* of a column of numbers; else NULL */
    uint64_t *categories; /* of a column of categories; else NULL */
    uint64_t *histogram;  /* `bins` numbers; NULL: not asked */
} qn__column_numbers;

/* What is the same for all columns. */
typedef struct qn__column_task {
    const double *quantiles;
    uint32_t quantile_count;
    uint32_t groups;        /* 1, or 1 + the number of classes; group 0: all items */
    const uint64_t *starts; /* of each class among the items of a column, `groups` numbers; NULL
                               with one group */
} qn__column_task;

/* What a thread needs. */
typedef struct qn__column_space {
    qn__order *order;
    qn__moments all, part; /* `all`: afterwards the sums of the column */
} qn__column_space;

/* A column of numbers: fills `out`, one for each group, and where there are histograms the
 * `*bins` + 1 edges. Where *bins is 0 it is chosen; it becomes 1 when all values are equal, and 0
 * when all are missing. The values, class after class, are changed: the missing ones are taken out.
 * None is -0. */
void qn__column_describe(const qn__column_task *task, float *values, uint64_t items,
                         qn__column_space *buffer, qn__column_numbers *out, double *edges,
                         uint32_t *bins);

/* The two parts of qn__column_describe, for a column whose sums are known. This one sets all
 * numbers of a group but extremes, quantiles and histograms: */
void qn__column_set_sums(const qn__column_task *task, uint32_t group, uint64_t items,
                         qn__moments *sums, qn__column_numbers *out);
/* Extremes, quantiles and histograms of all groups; values, edges and bins as above. */
void qn__column_places(const qn__column_task *task, float *values, uint64_t items,
                       qn__column_space *buffer, qn__column_numbers *out, double *edges,
                       uint32_t *bins);

/* A column of categories: how many values each has. */
void qn__column_tally(const qn__column_task *task, const float *values, uint64_t items,
                      uint32_t categories, qn__column_numbers *out);

#endif
