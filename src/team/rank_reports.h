/* What the ranks of a run and their workers did: each describes itself, and all get everything. */
#ifndef QN_TEAM_RANK_REPORTS_H
#define QN_TEAM_RANK_REPORTS_H

#include "team/team.h"
#include "team/together.h"

/* Start with {0}. Pointers are valid until the next exchange. */
typedef struct qn__rank_reports {
    uint32_t ranks, workers;
    qn_rank_report *rank;           /* of each rank */
    const qn_rank_report **rank_at; /* pointers to these, as callers get them */
    qn_worker_report *worker;       /* of all ranks, rank after rank */
    const qn_worker_report **worker_at;
    uint64_t repeated;     /* steps of all ranks that were computed again */
    uint64_t joined_after; /* the step after which this rank joined; 0: it began with the run */
    qn__parts parts;       /* the memory that busy shares point to */
} qn__rank_reports;

/* Describes this rank and its workers, `seconds` after the start of the run, of which it waited
 * `waiting` for others. The workers belong to the team until its next report. */
const qn_worker_report *qn__rank_describe(qn_cluster *cluster, qn__team *team, double seconds,
                                          double waiting, qn_rank_report *rank);

/* Makes the space for the reports of so many ranks, so that a long run cannot fail for it at its
 * end.
 */
qn_status qn__rank_reports_reserve(qn__rank_reports *all, uint32_t ranks, qn_error *err);

/* Exchanges the reports of all ranks. Collective. Of a lost rank only number, host and `lost` are
 * filled. */
qn_status qn__rank_reports_exchange(qn__rank_reports *all, qn_cluster *cluster, qn__team *team,
                                    double seconds, double waiting, qn_error *err);
void qn__rank_reports_release(qn__rank_reports *all);

#endif
