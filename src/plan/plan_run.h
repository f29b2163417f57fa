/* A planned run: the ranks of a described team on the virtual clock, step by step; steps without
 * changes are skipped in blocks. */
#ifndef QN_PLAN_PLAN_RUN_H
#define QN_PLAN_PLAN_RUN_H

#include "plan/plan_team.h"
#include "team/virtual_ranks.h"

typedef struct qn__plan_job {
    double steps;   /* of the whole run; the last one may be a fraction */
    uint32_t units; /* grains of a step */
    uint32_t grain; /* items of a grain */
    uint64_t parameters;
    uint32_t slots; /* state arrays of the optimiser beside the parameters */
} qn__plan_job;

typedef struct qn__plan_run {
    qn__virtual_team *team;
    qn__virtual_worker *worker; /* of all ranks, one rank after another */
    double *base;               /* rates of the workers before any change */
    uint32_t *host;             /* of each rank, counted from 0 */
    uint32_t *place;            /* of each rank on its host, counted from 0 */
    const qn__plan_host **kind; /* of each rank */
    double *rate;               /* of each rank at the beginning, grains per second */
    double step;                /* seconds of a step, at the end */
    double seconds;             /* T */
} qn__plan_run;

/* Makes the ranks of `described`, with one more host of kind `more` (its number in the description;
 * UINT32_MAX: none) after all others, and simulates the job. `equal`: the same share for all ranks.
 * `described` must outlive the run. QN_USAGE for an invalid description, QN_CLUSTER if no rank is
 * left. After a failure nothing has to be released. */
qn_status qn__plan_run_make(const qn__plan_team *described, const qn__plan_job *job, uint32_t more,
                            int equal, qn__plan_run *run, qn_error *err);
void qn__plan_run_release(qn__plan_run *run);

/* A lower bound of the job's seconds: its items over the rates of all devices, with the described
 * changes and deaths. */
double qn__plan_bound(const qn__plan_team *described, const qn__plan_job *job);

/* Defaults: the speed of memory, and of messages within a machine. */
#define QN__PLAN_MEMORY 10e9
#define QN__PLAN_LOCAL 20e-6
#define QN__PLAN_MESSAGE 5e-6

#endif
