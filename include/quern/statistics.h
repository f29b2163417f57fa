/* Statistics of the columns of a data set: counts, moments, extremes, quantiles, histograms,
 * covariance and correlation.
 *
 * Every number is computed exactly from the float32 values, or from the exact ones where
 * qn_data_whole or qn_data_real has them, and rounded once to the nearest double
 * (docs/exactness.md, section 18). Dates count as days since 1970-01-01, with their times as a
 * fraction of a day. The result does not depend on the order of the items, or on the number of
 * threads and ranks. A missing value is counted and left out. Weights of items are not used.
 *
 * Columns are the features, from 0, then the real labels where the data has them. Classes are those
 * of the labels, from 0; QN_ALL_CLASSES means all items. A number that is not defined is NaN, such
 * as the mean of no values. */
#ifndef QUERN_STATISTICS_H
#define QUERN_STATISTICS_H

#include <quern/data.h>
#include <quern/device.h>
#include <quern/parts.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_statistics qn_statistics;

#define QN_ALL_CLASSES UINT32_MAX

/* What to compute. Fill with qn_statistics_options_init, then change members. Read during the call
 * only. */
typedef struct qn_statistics_options {
    size_t size;     /* sizeof(qn_statistics_options) */
    int threads;     /* at most 4096; 0: every core the process may use */
    int by_class;    /* 1: also of each class */
    int histograms;  /* 1: also histograms */
    int correlation; /* 1: also covariance and correlation */
    /* `quantile_count` numbers from 0 to 1; those between are at least 2^-24. NULL: 0.25, 0.5 and
     * 0.75. */
    const double *quantiles;
    uint32_t quantile_count; /* at most 1,000 */
    uint32_t bins; /* of a histogram, at most 1,000,000; 0: 1 + the logarithm of the number of
                      values to base 2, rounded up */
    /* Ranks, devices, and the CPU's threads where `threads` is 0; NULL: the defaults, in this
     * process alone. GPUs compute columns of numbers, and the sums of covariances. With "auto" they
     * do where the table has 2^31 values or more, or all pairs of columns need 2^34 products or
     * more. The CPU of this process computes all else, also if it is not in the list. */
    const qn_compute *compute;
    /* Called during the call with messages for a user: a device that was lost, or that could not be
     * used; NULL: none. */
    qn_note_fn on_note;
    void *user;
} qn_statistics_options;

/* Sets `size`, and every other member to 0 or NULL, its default. */
QN_API void qn_statistics_options_init(qn_statistics_options *options);

/* Computes the statistics of a data set. `options` may be NULL: the defaults. Beside the data it
 * needs memory for 16 columns of float32 at a time, or four for each thread. For GPUs the table is
 * copied where it is a part of another, has real labels, or is `by_class` is 1.
 *
 * With options->compute->cluster it is collective: all ranks call it with the same data and
 * options, each computes some columns, and each gets all results. A rank that dies is replaced by
 * the others.
 *
 * On success *out is owned by the caller, for qn_statistics_free; `data` may be closed before.
 * Fails with QN_USAGE (options; `by_class` without classes, or with more than 65,536 of them;
 * `correlation` with more than 4,096 columns), QN_UNSUPPORTED (devices), QN_MEMORY, among ranks
 * also as qn_cluster_agree does, with QN_CLUSTER (this rank has to leave) or QN_DEVICE (this rank's
 * devices are lost). */
QN_API qn_status qn_statistics_make(const qn_data *data, const qn_statistics_options *options,
                                    qn_statistics **out, qn_error *err);

/* The same of data in parts; all ranks of its cluster call this together, and each gets the results
 * of the whole. Devices and ranks of options->compute do not count: each rank computes sums and
 * counts of its items with its cores, and these are added. Needs memory for 16 columns of this
 * rank's items. Fails also with QN_UNSUPPORTED (more than 64 quantiles or 1,024 bins), and with
 * QN_IO where a rank has died: its part is missing. */
QN_API qn_status qn_statistics_of_parts(const qn_parts *parts, const qn_statistics_options *options,
                                        qn_statistics **out, qn_error *err);

/* Frees the statistics and all that its functions returned. Accepts NULL. */
QN_API void qn_statistics_free(qn_statistics *statistics);

/* Number of columns: features, and 1 more for real labels. 0 for NULL. */
QN_API uint32_t qn_statistics_columns(const qn_statistics *statistics);

/* One column, of all items or of those of a class. Of a column of categories only `count` and
 * `missing` are numbers. */
typedef struct qn_column_statistics {
    size_t size;    /* sizeof(qn_column_statistics) */
    uint64_t count; /* values that are not missing */
    uint64_t missing;
    double sum, mean;
    double variance;             /* divided by count - 1 */
    double deviation;            /* its root */
    double population_deviation; /* the same, divided by count */
    double skewness;             /* adjusted for small samples: G1, as pandas computes it */
    double minimum, maximum;
} qn_column_statistics;

/* Fills *out, whose `size` is set. Fails with QN_USAGE where there is no such column or class. */
QN_API qn_status qn_statistics_column(const qn_statistics *statistics, uint32_t column,
                                      uint32_t class_index, qn_column_statistics *out,
                                      qn_error *err);

/* The following functions return NULL for an index that is too large, for numbers that were not
 * computed, and for a column of another kind. The arrays are owned by the
 * statistics. */

/* `quantile_count` numbers, in the order of the options: with h = q * (count - 1), the value of
 * rank floor(h), and the part h - floor(h) of the way to the next one. Columns of numbers. */
QN_API const double *qn_statistics_quantiles(const qn_statistics *statistics, uint32_t column,
                                             uint32_t class_index);
/* A statistic of a column of dates that is itself a date. */
typedef enum qn_statistic {
    QN_STATISTIC_MEAN,
    QN_STATISTIC_MINIMUM,
    QN_STATISTIC_MAXIMUM,
    QN_STATISTIC_QUANTILE,
    QN_STATISTIC_EDGE /* of a histogram, which all classes have in common */
} qn_statistic;
/* Writes a statistic of a column of dates as a date, in the form of qn_data_date. It has a time
 * where the column has times, or where the number of days is not whole. `index` is that of the
 * quantile or of the edge, else 0. "" where the column holds no dates, and where that number does
 * not exist. `text` has `size` bytes; 40 are always enough. */
QN_API void qn_statistics_date(const qn_statistics *statistics, uint32_t column,
                               uint32_t class_index, qn_statistic which, uint32_t index, char *text,
                               size_t size);
/* How many values each category has: qn_data_categories numbers. Columns of categories. */
QN_API const uint64_t *qn_statistics_categories(const qn_statistics *statistics, uint32_t column,
                                                uint32_t class_index);
/* *bins + 1 edges of a histogram, ascending from the minimum to the maximum at equal distances. The
 * classes have the same edges. One bin where all values are equal. `bins` may be NULL. */
QN_API const double *qn_statistics_edges(const qn_statistics *statistics, uint32_t column,
                                         uint32_t *bins);
/* How many values each bin has: those from its lower edge to below its upper one; the last bin
 * includes the maximum. */
QN_API const uint64_t *qn_statistics_histogram(const qn_statistics *statistics, uint32_t column,
                                               uint32_t class_index);
/* Matrices of columns x columns, of all items. Each number is of the items that have both values.
 * Rows and columns of categories are NaN. Divided by their number - 1; Pearson's correlation. */
QN_API const double *qn_statistics_covariance(const qn_statistics *statistics);
QN_API const double *qn_statistics_correlation(const qn_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
