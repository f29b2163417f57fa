/* A user kernel as a job of a team: its grains are ranges of items, computed by all cores and
 * ranks. What it computes does not depend on how it is divided. */
#ifndef QN_JOB_USER_RUN_H
#define QN_JOB_USER_RUN_H

#include "job/user_program.h"
#include "job/user_sums.h"
#include "team/team.h"
#include <stdatomic.h>

typedef struct qn__user_job {
    const qn__user_source *source;
    qn__user_grain *grain;
    void *array[QN__USER_PARTS]; /* inputs and outputs; NULL of other parts */
    const void *scalar[QN__USER_PARTS];
    int64_t length[QN__USER_PARTS * QN__USER_DIMENSIONS];
    int64_t extent[QN__USER_DIMENSIONS]; /* the first ones are 1; their product is below 2^62 */
    int64_t items_of_grain;              /* 0: chosen by the number of items */
    const atomic_int *stop;              /* not 0: no further items are taken; NULL: never */
    int64_t iteration, iterations;       /* the number of this one, and how many there are */
    uint64_t seed;                       /* of random numbers */
    qn_cluster *cluster;                 /* that of the team; NULL: this process is alone */
    /* Optional: called a few times a second with the items that are computed, by the thread that
     * called qn__user_job_run. */
    void (*progress)(void *user, int64_t done);
    void *user;
    double pace; /* grains per second of all ranks, as measured by earlier runs; 0: unknown */
} qn__user_job;

int64_t qn__user_job_items(const qn__user_job *job);

/* Items of a grain, a multiple of 8. */
int64_t qn__user_job_grain(const qn__user_job *job);

/* Computes all items, with a team that was made without a program. Fills the outputs and, of the
 * other results, total[part], which was all zeros. Collective among ranks, which have equal jobs:
 * every rank gets everything. Fails with QN_NUMERIC, for the first item that is not possible: a NaN
 * in a result, an infinity in a sum, a division by zero, an index out of range; with QN_INTERRUPTED
 * after a stop, among ranks that of qn_cluster_stop; or as qn__team_run does. */
qn_status qn__user_job_run(qn__user_job *job, qn__team *team, qn__user_total *total, qn_error *err);

#endif
