/* What a training is made of: shared by its opening and its running, and by nobody else. */
#ifndef QN_RUN_TRAINER_STATE_H
#define QN_RUN_TRAINER_STATE_H

#include "job/train_job.h"
#include "run/checkpoint.h"
#include "run/record.h"
#include <quern/train.h>
#include <stdatomic.h>

/* No step: nothing was saved or scored yet. */
#define NO_STEP UINT64_MAX

struct qn_train {
    qn_train_options options; /* its texts are the caller's and may be gone */
    char *checkpoint_dir;     /* a copy, or NULL */
    qn__train_job job;
    const qn_data *valid, *test;
    qn__checkpoints *checkpoints;
    qn__record *record;
    qn__trace *trace;
    char *trace_path;    /* a copy, or NULL */
    uint32_t track;      /* of the job in the trace */
    double epoch_begun;  /* moment; 0: no epoch is under way */
    qn_error unrecorded; /* why the record or the trace is incomplete; status QN_OK: it is not */
    atomic_int stop;
    qn_status failed;          /* of the step that failed; the workers' state is undefined then */
    double opened, first_step; /* moments; 0: not yet */
    double seconds;            /* T, of all calls of qn_train_run together */
    double training;           /* seconds in steps, of this run and of this epoch */
    double epoch_training;
    double last_checkpoint, last_meter;
    double checkpoint_cost;            /* seconds that writing one takes; 0: not known yet */
    double recent_moment, recent_rate; /* for items_per_second */
    uint64_t recent_items;
    uint64_t items, epoch_items, steps, resumed_from;
    uint64_t saved_step;  /* that the last checkpoint is of, written or resumed from */
    uint64_t scored_step; /* after which the scores below were taken */
    qn_score train_score, valid_score, test_score;
    qn_rank_report *ranks; /* for the report */
    uint64_t *confusion;   /* of the test set, outputs x outputs; NULL without or with too many */
};

/* Says something to the caller's on_note. */
void qn__train_tell(const qn_train *train, const char *text);

/* Fails when a step did: there is no state then. */
qn_status qn__train_failed(const qn_train *train, qn_error *err);

/* Takes the scores of the parameters as they are, unless they are known. */
qn_status qn__train_score(qn_train *train, qn_error *err);

/* Where the state of the run stands, to be written as a checkpoint or filled from one. */
qn__snapshot qn__train_snapshot(qn_train *train);

#endif
