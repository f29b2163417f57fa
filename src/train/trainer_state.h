/* The state of a training, shared by the trainer files only. */
#ifndef QN_TRAIN_TRAINER_STATE_H
#define QN_TRAIN_TRAINER_STATE_H

#include "job/memory_need.h"
#include "job/train_job.h"
#include "predict/evaluate.h"
#include "train/train_sets.h"
#include "report/record/record.h"
#include "report/record/store.h"
#include "team/queue.h"
#include "team/rank_reports.h"
#include "team/together.h"
#include "train/checkpoint.h"
#include "train/trainer.h"
#include <quern/train.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

/* In place of a step's number: nothing was saved or scored yet. */
#define NO_STEP UINT64_MAX

/* The report of a rank at the end of an epoch. */
typedef struct qn__last_report {
    uint64_t items, steps;
    double items_per_second, busy, waiting;
} qn__last_report;

/* The best epoch so far, by its validation loss; epoch 0: none. */
typedef struct qn__best {
    uint32_t epoch;   /* from 1 */
    int64_t loss;     /* the sum of docs/exactness.md 7.4 */
    float *parameter; /* after that epoch; NULL where they are not kept */
    int in_place;     /* 1: the best parameters are in the job's state, and `parameter` has the last
                         ones */
} qn__best;

/* What the evaluation of a set needs and gives. */
typedef struct qn__judged_set {
    float *output;             /* items x outputs; NULL: real labels, no set or too many */
    uint64_t step;             /* after which these were computed; NO_STEP: none yet */
    qn_evaluation *evaluation; /* of the last report */
} qn__judged_set;

/* Validation losses since the training was opened: how many, the lowest, and means over the last
 * fifth of the epochs and the fifth before it. */
typedef struct qn__watch {
    uint32_t epochs, best_epoch;
    double best, last, before;
} qn__watch;

/* The sets of items. */
typedef struct qn__train_data {
    qn__train_sets given;        /* the caller's, or made from them */
    const qn_data *valid, *test; /* their inputs */
    qn__prepared own[2];         /* made of the caller's sets: validation, test */
    qn__comparison real[2];      /* of these two, where labels are real */
    qn__judged_set judged[2];    /* of these two */
} qn__train_data;

/* Checkpoints. Texts are copies. */
typedef struct qn__train_saved {
    char *dir; /* or NULL */
    qn__checkpoints *folder;
    uint64_t step;   /* of the last one, written or resumed from */
    double last;     /* time */
    double cost;     /* seconds that writing one takes; 0: unknown */
    int passed_over; /* the last due one failed, which was reported */
} qn__train_saved;

/* The folder of the run, and its page. Texts are copies, or NULL. */
typedef struct qn__train_record {
    char *dir, *command_line;
    qn__record *folder;
    qn__record *story; /* the same in memory, for a page; NULL: none is wanted */
    char *page, *plots;
    time_t wall;         /* time of the start */
    qn_error incomplete; /* why the record or the trace is so; QN_OK: it is complete */
} qn__train_record;

/* The file of runs. */
typedef struct qn__train_runs {
    char *path;      /* a copy; NULL: none, or given up */
    qn__store store; /* on the writer */
    char *name;      /* of the run there */
    char id[QN__STORE_ID + 1];
    double last; /* time of the last writing */
    int failed;  /* it could not be written, which was reported */
} qn__train_runs;

typedef struct qn__train_trace {
    qn__trace *events;
    char *path;         /* a copy, or NULL */
    uint32_t track;     /* of the job */
    double epoch_begun; /* time; 0: between epochs */
} qn__train_trace;

/* Times in seconds. */
typedef struct qn__train_clock {
    double opened, first_step; /* times; 0: not yet */
    double seconds;            /* T, of all calls of qn_train_run */
    double run_begun;          /* time; 0: no call under way */
    double waited, waiting_at; /* spent waiting for other ranks: before this call, and as reported
                                  by the cluster when it began */
    double training;           /* in steps, of this run and of this epoch */
    double epoch_training;
    double last_meter;
} qn__train_clock;

/* For items_per_second of the last second or so. */
typedef struct qn__train_recent {
    double training, rate; /* clock.training when the interval began */
    uint64_t items;
    int known; /* `rate` is of a full interval */
} qn__train_recent;

typedef struct qn__train_done {
    uint64_t items, epoch_items, steps, resumed_from;
} qn__train_done;

typedef struct qn__train_scores {
    uint64_t step; /* after which the others were computed */
    qn_score train, valid, test;
    int64_t valid_loss;  /* of `valid`, as its sum */
    uint64_t *confusion; /* of the test set, classes x classes; NULL without one, with too many
                            classes or with real labels */
} qn__train_scores;

/* Who is told of each step (qn__train_each_step). */
typedef struct qn__train_each {
    qn__step_fn *take; /* NULL: nobody */
    void *user;
    qn__tally before; /* of the epoch before the step */
} qn__train_each;

typedef struct qn__giving qn__giving;

struct qn_train {
    pid_t process;            /* that opened it */
    atomic_int in_use;        /* 1: a call that runs or writes has not returned */
    qn_train_options options; /* its texts are the caller's and may be gone */
    char *isa;                /* a copy */
    qn_cluster *cluster;      /* NULL: no other ranks */
    qn__owner owner;          /* of the locks of its folders */
    qn__train_job job;
    qn__memory_need memory;   /* beside the data */
    atomic_int stop, hurries; /* hurries: qn__remote_hurry */
    qn__giving *giving;       /* NULL: no state is given or got */
    qn_status failed;         /* of the step that failed; the workers' state is then undefined */
    qn__best best;
    qn__watch watch;
    qn__train_data sets;
    qn__train_saved saved;
    qn__train_record record;
    qn__train_runs runs;
    qn__train_trace trace;
    qn__train_clock clock;
    qn__train_recent recent;
    qn__train_done done;
    qn__train_scores scores;
    qn__train_each each;
    struct {
        qn_rounding shares; /* bits 0: unknown */
        uint64_t step;      /* after which it was computed */
    } rounding;
    struct {
        qn__last_report *last;  /* of each rank */
        qn__rank_reports ranks; /* of all ranks */
        const qn_worker_report *own_worker_at[QN__MAX_WORKERS];
    } report;
};

/* trainer_watch.c: notes after the last epoch whether the validation losses suggest more epochs or
 * fewer. */
void qn__train_watch(qn_train *train, const qn_epoch_event *event);

/* trainer_start.c: notes what the model of `options->init_from` gives to the training. */
void qn__train_note_start(const qn_train *train, const qn_train_options *options);
/* Layers of a network of tokens that read positions which they should not. */
void qn__train_note_texts(const qn_train *train);

/* Calls the caller's on_note; and on_warning, where there is one. */
void qn__train_note(const qn_train *train, const char *text);
void qn__train_warn(const qn_train *train, const char *text);

/* trainer_use.c: 0 in a child of the process that opened the training: no thread of it is there.
 * The check fails then and names the public function. */
int qn__train_is_ours(const qn_train *train);
qn_status qn__train_check_process(const qn_train *train, const char *function, qn_error *err);

/* trainer_use.c: the same check, and QN_USAGE during another such call, as in a callback. After
 * QN_OK qn__train_leave ends the call; it returns `status`. */
qn_status qn__train_enter(qn_train *train, const char *function, qn_error *err);
qn_status qn__train_leave(qn_train *train, qn_status status);

/* Fails if a step failed: there is no state then. */
qn_status qn__train_failed(const qn_train *train, qn_error *err);

/* Computes the scores of the current parameters, unless they are known. */
qn_status qn__train_score(qn_train *train, qn_error *err);

/* trainer_evaluate.c: allocates and frees what the evaluations of the sets need; and makes those of
 * the current parameters, after qn__train_score. */
qn_status qn__train_judged_open(qn_train *train, qn_error *err);
void qn__train_judged_close(qn_train *train);
qn_status qn__train_evaluate(qn_train *train, qn_error *err);

/* 1 on the rank that writes files, and without other ranks. */
int qn__train_is_writer(const qn_train *train);

/* Reports `err` as the failure of all ranks, unless this rank leaves alone because it lost its
 * devices. Returns its status. */
qn_status qn__train_fail_all(qn_train *train, qn_status status, qn_error *err);

/* trainer_compare.c, collective: QN_MISMATCH on all ranks if their parameters or optimiser states
 * differ. Nothing may be written then. */
qn_status qn__train_compare(qn_train *train, qn_error *err);

/* trainer_save.c: before a step, notifies the other ranks that a checkpoint is due after it. */
void qn__train_request_save(qn_train *train, double now);

/* trainer_save.c: writes a checkpoint when one is due; the last one of a call of qn_train_run (by
 * qn__by_writer); and one when this rank has no worker left, which fills err's remedy. */
qn_status qn__train_save_if_due(qn_train *train, double now, qn_error *err);
qn_status qn__train_save_last(void *train, qn_error *err);
qn_status qn__train_keep_what_is_left(qn_train *train, qn_error *err);

/* Opens what only the writer rank holds, unless it is open: the folder of checkpoints, waiting
 * `seconds` for its previous holder, and the record. */
qn_status qn__train_take_folder(qn_train *train, double seconds, qn_error *err);
qn_status qn__train_take_record(qn_train *train, uint64_t epochs_done, qn_error *err);

/* 1 if the record should be written: it is complete so far, or only its folder was busy. */
int qn__train_may_record(const qn_train *train);

/* Takes the status of an attempt to write the record; `why` is its error. Returns 1 if the record
 * is incomplete from now on: a failure that is neither known already, nor that of a rank that is
 * not the writer any more, which the next reduction reports. */
int qn__train_recorded(qn_train *train, qn_status status, const qn_error *why);

/* trainer_open.c: the facts of the start for a record. */
qn__record_start qn__train_facts(const qn_train *train);

/* trainer_page.c: begins to keep what a page needs, and writes it, and the run in the file of
 * runs, from a complete report. */
qn_status qn__train_open_page(qn_train *train, const qn_train_options *options, qn_error *err);
qn_status qn__train_write_page(qn_train *train, const qn_train_report *report, qn_error *err);

/* trainer_store.c: begins the run in the file of runs, and writes it again; a failure is a note.
 * `state` as in run.json. */
qn_status qn__train_open_store(qn_train *train, const qn_train_options *options, qn_error *err);
void qn__train_store(qn_train *train, const qn_train_report *report, const char *digest,
                     const char *state);
void qn__train_store_epoch(qn_train *train);
/* Notes in the folder of checkpoints which run in the file of runs they belong to, if there is one.
 */
void qn__train_store_mark(const qn_train *train, const char *dir, qn__checkpoints *folder);

/* trainer_report.c: seconds that this rank has waited for others; and the reports of all ranks,
 * kept in case one is lost. */
double qn__train_waiting(const qn_train *train);
qn_status qn__train_say(qn_train *train, qn_error *err);

/* trainer_epoch.c, collective: calls on_epoch, on one rank. */
qn_status qn__train_report_epoch(qn_train *train, const qn_epoch_event *event, qn_error *err);

/* trainer_trace.c: writes the trace of all ranks (`together`), or of this one. */
void qn__train_write_trace(qn_train *train, int together);

/* Records what the job did since `begun`. */
void qn__train_span(qn_train *train, const char *name, double begun);

/* trainer_position.c: the state of the run as bytes, for ranks of one recipe. `known` 0: the sender
 * does not know it. */
size_t qn__train_position_bytes(const qn_train *train);
void qn__train_position_pack(const qn_train *train, int known, unsigned char *bytes);
int qn__train_position_known(const unsigned char *bytes);
void qn__train_position_unpack(qn_train *train, const unsigned char *bytes);
/* The same without the arrays of the state, in qn__train_position_head() bytes. `gives`: 1 + the
 * number of the rank that gives these to one that asks, or 0. */
size_t qn__train_position_head(void);
void qn__train_position_pack_head(const qn_train *train, int known, uint64_t gives,
                                  unsigned char *bytes);
uint64_t qn__train_position_gives(const unsigned char *bytes);
void qn__train_position_unpack_head(qn_train *train, const unsigned char *bytes);
/* Array i, of as many floats as the program has parameters; NULL after the last one. */
float *qn__train_position_array(const qn_train *train, int i);

/* trainer_giving.c: the arrays of the state, which a rank that joins gets while the others go on.
 * Begins to give them, those of now; QN_MEMORY. Begins to get them from rank `from`, which has said
 * so: the job follows the steps until they are here. Before the host's copy of the state changes:
 * keeps what is given. Ends it, where nothing is left to give (`all` 0) or in any case. */
qn_status qn__train_give(qn_train *train, qn_error *err);
qn_status qn__train_get(qn_train *train, uint32_t from, qn_error *err);
void qn__train_giving_keep(qn_train *train);
void qn__train_giving_end(qn_train *train, int all);

/* trainer_join.c: begins to let ranks in, where the job allows that; collective between two steps,
 * where a rank wants to join; and the same on that rank, before its first step. */
void qn__train_open_door(qn_train *train);
qn_status qn__train_let_in(qn_train *train, qn_error *err);
qn_status qn__train_come_in(qn_train *train, qn_error *err);

/* The state of the run, to be written as a checkpoint or filled from one. */
qn__snapshot qn__train_snapshot(qn_train *train);

/* trainer_best.c: allocates what the best epoch needs; after the state was loaded, ends a run that
 * had been stopped early; after an epoch with this validation loss, notes a better one and stops
 * the run where patience is at its end. */
qn_status qn__train_best_open(qn_train *train, qn_error *err);
void qn__train_best_resumed(qn_train *train);
qn_status qn__train_best_judge(qn_train *train, int64_t loss, qn_error *err);

/* After the last checkpoint of a complete run: makes the best parameters those of the workers. */
qn_status qn__train_best_use(qn_train *train, qn_error *err);
/* Exchanges the last parameters and the best ones on the host. */
void qn__train_best_swap(qn_train *train);

#endif
