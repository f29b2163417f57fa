/* Chooses how many iterations of a kernel are computed at once, and how many rows a thread takes,
 * by measuring what is fastest. No result depends on it. */
#ifndef QN_USERKERNEL_RUN_USER_TUNE_H
#define QN_USERKERNEL_RUN_USER_TUNE_H

#include "userkernel/execution/user_job.h"

typedef struct qn__user_tune {
    int threads;    /* of this process; the number of ranks is that of the job */
    int64_t grain;  /* items, as the caller wants it; 0: chosen */
    int64_t best;   /* iterations at once that were fastest so far */
    double seconds; /* of one of them */
    double trial;   /* the least time of this trial */
    int runs;       /* of this trial */
    int misses;     /* trials since the best one */
    int settled;    /* 1: the search has ended */
} qn__user_tune;

/* Sets what the next run does: job->steps, at most `most`, and job->items_of_grain. */
void qn__user_tune_next(qn__user_tune *tune, qn__user_job *job, int64_t most);

/* Takes job->seconds of that run into account. */
void qn__user_tune_done(qn__user_tune *tune, qn__user_job *job);

/* Computes one iteration at a time from now on, because memory for several is short. */
void qn__user_tune_give_up(qn__user_tune *tune);

#endif
