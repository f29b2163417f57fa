/* A round: some columns as the grains of one host job. Cores compute them (column_job.c), and
 * threads that drive devices (column_take.c). */
#ifndef QN_STATISTICS_COLUMN_ROUND_H
#define QN_STATISTICS_COLUMN_ROUND_H

#include "statistics/column_job.h"
#include <stdatomic.h>

/* The columns of a round, chosen so that their words fit in memory. */
typedef struct qn__columns_round {
    const qn__column_job *job;
    const uint64_t *place; /* of each column's words, of all columns */
    uint32_t from;         /* the column of grain 0 */
    uint32_t tile;         /* columns that a thread takes out of the rows at a time */
    size_t stride;         /* of a column in memory */
    atomic_int wrong;      /* 1: a device gave a wrong sum */
    atomic_int short_of;   /* 1: a device's driver had not enough memory */
} qn__columns_round;

typedef struct qn__column_taker qn__column_taker;

/* For columns that a thread computes; zeros at first. */
typedef struct qn__column_scratch {
    float *values;
    qn__column_space buffer;
} qn__column_scratch;

/* The scratch of the host job. */
typedef struct qn__column_thread {
    qn__column_scratch scratch;
    qn__column_taker *taker; /* of a thread that drives a device */
} qn__column_thread;

/* Makes `columns` columns and the space. QN_MEMORY. Release it also then, and zeros. */
qn_status qn__column_scratch_make(const qn__columns_round *round, uint32_t columns,
                                  qn__column_scratch *out, qn_error *err);
void qn__column_scratch_release(qn__column_scratch *scratch);

/* Where the edges of a column go; NULL: no histograms are wanted. */
double *qn__column_edges(const qn__column_job *job, uint32_t column);

/* Counts the categories of a column from its values. */
void qn__column_count_categories(const qn__column_job *job, uint32_t column, const float *values);

/* Notes the sums of all values of a column of numbers, for pairs. */
void qn__column_note_sums(const qn__column_job *job, uint32_t column, const qn__moments *all);

/* Copies all that is known of a column to the words of the round, or back; and their number. */
void qn__column_put(const qn__columns_round *round, uint32_t column, int64_t *words);
void qn__column_fetch(const qn__columns_round *round, uint32_t column, const int64_t *words);
uint64_t qn__column_words(const qn__column_job *job, uint32_t column);

/* Sets the functions of the device's job, whose context is a round. */
void qn__column_taker_bind(qn__column_device *device);
void qn__column_taker_free(qn__column_taker *taker); /* accepts NULL */

#endif
