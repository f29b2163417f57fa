/* Columns as the grains of a host job: each is described by itself, by one thread of one rank, and
 * its numbers are words that all ranks get. */
#ifndef QN_STATISTICS_COLUMN_JOB_H
#define QN_STATISTICS_COLUMN_JOB_H

#include "data/table/data.h"
#include "statistics/column_device.h"
#include "team/team.h"

/* What to compute, and the arrays of the results, which are the caller's. */
typedef struct qn__column_job {
    const qn_data *data;
    const qn__column_task *task;
    const uint64_t *order; /* the items ordered by class; NULL: in the order of the data */
    uint32_t columns;
    int threads;                 /* of this process; each has one column in memory at a time */
    qn__column_numbers *numbers; /* columns x task->groups, with their arrays */
    double *edges;               /* columns x (most_bins + 1); NULL: no histograms */
    uint32_t *bins;              /* of each column */
    uint32_t most_bins;
    uint32_t wanted_bins;          /* 0: chosen for each column */
    uint8_t *missing;              /* of each column: 1 where it lacks a value */
    qn__exact_sum *first, *second; /* sums of each column, for pairs; NULL: not wanted */
    qn__column_device *device;     /* NULL: no member of the team is a device with a kernel */
} qn__column_job;

/* Fills the results on every rank; the team is that of device->job. Fails as qn__team_run does,
 * with QN_MEMORY, or with QN_UNSUPPORTED after a wrong sum by a device. */
qn_status qn__columns_describe(qn__team *team, const qn__column_job *job, qn_error *err);

#endif
