/* Training.
 *
 *     qn_train_options o;
 *     qn_train_options_init(&o);
 *     o.model = "dense 500 tanh; dense 10 softmax";
 *     qn_train *t;
 *     qn_model *m;
 *     if (qn_train_open(&o, data, NULL, NULL, &t, &err) == QN_OK && qn_train_run(t, &err) == QN_OK
 * && qn_train_model(t, &m, &err) == QN_OK) qn_model_save(m, "digits.safetensors", &err);
 */
#ifndef QUERN_TRAIN_H
#define QUERN_TRAIN_H

#include <quern/cluster.h>
#include <quern/data.h>
#include <quern/defaults.h>
#include <quern/device.h>
#include <quern/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qn_train qn_train;

/* Loss and accuracy over a set. `loss` is NaN and `items` 0 where there was none. */
typedef struct qn_score {
    uint64_t items;
    uint64_t correct;
    double loss; /* mean over the items */
} qn_score;

/* After a step. Loss and accuracy are those of the step's batch, before its update. */
typedef struct qn_step_event {
    size_t size;
    uint32_t epoch, epochs;  /* from 0 */
    uint64_t step, steps;    /* of the whole run, steps done and in all */
    uint64_t items_done;     /* of this epoch */
    double items_per_second; /* over the last moments */
    double seconds_left;     /* an estimate for the whole run */
    double loss;             /* mean over the epoch so far */
} qn_step_event;

typedef struct qn_epoch_event {
    size_t size;
    uint32_t epoch, epochs; /* epochs done, and in all */
    double seconds;         /* of the training of this epoch, without validation */
    double items_per_second;
    double learning_rate; /* of the last step */
    qn_score train;       /* running: each batch before its update */
    qn_score valid, test; /* items 0 where there is no such set */
    /* 1 on the one rank that reports this epoch to the user, 0 on all others; every rank is called
     * once. If that rank fails after the call and before the others know of it, the next one is
     * called with 1 too: an epoch may be reported twice, and is never omitted. */
    int reports;
} qn_epoch_event;

/* With compute.cluster the ranks of a run train one model together. Every rank calls qn_train_open,
 * qn_train_run and qn_train_report_get in this order, with the same recipe and the same data. Each
 * has the whole state, so any may fail: the others do its part and continue. Callbacks run on all
 * ranks. The writer (qn_cluster_is_writer) writes the files: checkpoints, records, the trace. When
 * the writer fails, the next one continues them. The writer looks for a checkpoint, and all ranks
 * start from what it found.
 *
 * A failure of one rank is returned on all ranks, with two exceptions: QN_DEVICE (the rank has no
 * worker left) and QN_CLUSTER (it has to leave). Such a rank calls qn_cluster_leave and writes
 * nothing. */

/* What to train and how. All that stands before `compute` is the recipe; what follows is the run.
 * Numbers are checked by qn_train_open; floats are the nearest float32 to what the user wrote.
 * Each text and each callback may be NULL: the default. */
typedef struct qn_train_options {
    size_t size;           /* sizeof(qn_train_options) */
    const char *model;     /* "dense 500 tanh; dense 10 softmax"; NULL: qn_default_model of the
                              classes of the data */
    const char *arith;     /* of matrix products: "f32"; "i7", "i14", "i21": exact integers */
    const char *loss;      /* "cross-entropy", "mse" */
    const char *optimizer; /* "sgd", "momentum", "adam", "adamw"; NULL: "momentum" when
                              `momentum` is set and not 0, else "sgd" */
    const char *init;      /* "auto", "glorot", "he", "lecun" */
    const char *scale;     /* "none", "unit", "fraction", "standard"; NULL: by the type of the data
                              and by `arith` */
    const char *schedule;  /* "constant", "step", "cosine" */
    float learning_rate;   /* QN_BY_OPTIMIZER: the default of the optimiser */
    float momentum;        /* of "momentum"; QN_BY_OPTIMIZER: the same */
    float beta1, beta2, epsilon, weight_decay;
    uint32_t lr_step;     /* schedule "step": epochs between two cuts */
    float lr_gamma;       /* schedule "step": factor of a cut */
    uint32_t warmup;      /* steps */
    float valid_fraction; /* 0: no split */
    uint32_t batch, grain, epochs;
    uint64_t seed;
    uint32_t gradient_scale; /* gradients are summed as integers of 2^-gradient_scale */

    qn_compute compute;
    const char *checkpoint_dir; /* NULL: none */
    double checkpoint_seconds;  /* 0: not by time */
    uint64_t checkpoint_steps;  /* 0: not by steps */
    double checkpoint_part;     /* as often as takes at most this part of the time, by what writing
                                   one was measured to take: 0.01; 0: not by its cost */
    int resume;                 /* 1: continue from the last whole checkpoint, if there is one */
    const char *run_dir;        /* folder that keeps metrics and a record of the run; NULL: none */
    const char *command_line;   /* for that record: how the run was started; NULL: unknown */
    const char *trace;          /* file for a trace of the run (Chrome, Perfetto), written whenever
                                   qn_train_run returns; NULL: none */

    /* Callbacks run on the thread that called qn_train_run, in the library's floating-point state
     * (docs/exactness.md 1.8). What they change in it has no effect and ends with the callback. */
    void *user; /* handed to the callbacks */
    void (*on_step)(void *user, const qn_step_event *event);
    void (*on_epoch)(void *user, const qn_epoch_event *event);
    qn_note_fn on_note;
} qn_train_options;

/* Sets every member to its default: the recipe as docs/exactness.md 11.4 says, `compute` as zeros
 * say, no callbacks, no checkpoints, no files. qn_default_text writes the defaults as text. */
QN_API void qn_train_options_init(qn_train_options *options);

/* Fills the recipe part of `options` from a model's recipe, for a replay. Texts that `options`
 * points to afterwards belong to the model. Checks that the data's digest is the recipe's
 * (QN_MISMATCH names both). */
QN_API qn_status qn_train_options_from_model(const qn_model *model, const qn_data *data,
                                             qn_train_options *options, qn_error *err);

/* Checks all options and prepares the run; with options->resume it continues from the last complete
 * checkpoint. `train` must have labels. `valid` and `test` may be NULL: no such set. The three data
 * sets must outlive *out. Options and their texts are copied.
 *
 * On success *out is owned by the caller, for qn_train_close; after a failure it is NULL and no
 * file has changed. Fails with QN_USAGE (an option), QN_INPUT (labels), QN_MISMATCH (sets that do
 * not fit each other, a checkpoint of another recipe), QN_BUSY (another process holds the folder),
 * QN_FORMAT (a damaged checkpoint), QN_IO, QN_MEMORY, QN_UNSUPPORTED, QN_DEVICE or QN_CLUSTER. */
QN_API qn_status qn_train_open(const qn_train_options *options, const qn_data *train,
                               const qn_data *valid, const qn_data *test, qn_train **out,
                               qn_error *err);

/* Trains to the end, or until qn_train_stop. A stop gives QN_INTERRUPTED, after a checkpoint where
 * options->checkpoint_dir was given; a further call continues. QN_NUMERIC names the step at which a
 * loss or a gradient left the range of float32; after that no model and no checkpoint can be had.
 * QN_DEVICE: no worker is left. */
QN_API qn_status qn_train_run(qn_train *train, qn_error *err);

/* Asks the run to stop at the end of its step; among ranks all stop at the end of the same step.
 * May be called from a signal handler or another thread. Does not wait. */
QN_API void qn_train_stop(qn_train *train);

/* Writes a checkpoint into the folder `dir`, which is made when it does not exist. Not during
 * qn_train_run. After a failure the earlier checkpoints in the folder are as before. */
QN_API qn_status qn_train_checkpoint(qn_train *train, const char *dir, qn_error *err);

/* A copy of the model as it is; complete after qn_train_run returned QN_OK. *out is owned by the
 * caller, for qn_model_free, and may outlive `train`. */
QN_API qn_status qn_train_model(const qn_train *train, qn_model **out, qn_error *err);

/* Where qn_train_save has put the model. */
typedef struct qn_saved {
    size_t size;     /* sizeof(qn_saved) */
    uint32_t rank;   /* that wrote it */
    uint32_t place;  /* the index in `place` */
    char path[4096]; /* the file; of another name than place[i] where that was taken */
    char digest[65]; /* SHA-256 of the file */
    uint64_t parameters;
    qn_error why;      /* the first failure; status QN_OK: there was none */
    uint32_t why_rank; /* whose it is */
} qn_saved;

/* Writes the model file to the first of some places that takes it. place[0] is where it should be:
 * a file there is replaced. The others are tried in their order when that fails with QN_IO, and
 * nothing is overwritten there: a number is added to a name that is taken. Longer
 * paths than 4,000 bytes count as such a failure.
 *
 * Among ranks all call this together, with the same number of places. One rank of each host tries
 * each place, the lowest first, and the same answer comes back on all ranks. A rank asks all others
 * before it puts the file in its place. Fails with QN_IO on all ranks when no rank can write
 * anywhere (the message is saved->why); QN_CLUSTER or QN_DEVICE on a rank that has to
 * leave; QN_MEMORY. */
QN_API qn_status qn_train_save(qn_train *train, const char *const *place, uint32_t places,
                               qn_saved *saved, qn_error *err);

/* How the run went. Pointers are owned by the qn_train. */
typedef struct qn_worker_report {
    size_t size;
    uint32_t rank;           /* whose worker it is; 0 where one process did it all */
    char name[64];           /* "cpu", "cuda:0" */
    char device[128];        /* the device's own name */
    uint64_t grains;         /* computed in training */
    uint64_t items;          /* of these grains */
    uint64_t steps;          /* in which it took part */
    double items_per_second; /* measured */
    double busy;             /* share of T in which it computed, 0..1 */
    int lost;                /* 1: it failed during the run */
    char note[256];          /* why it was not used in steps, or how it failed; may be empty */
    uint64_t bytes_up, bytes_down;   /* sent to the device and fetched from it */
    double seconds_up, seconds_down; /* spent on that */
    double joules; /* that the whole device used in this run, others' use included; NaN: unknown */
    int cores;
    const double *core_busy; /* one share for each core */
} qn_worker_report;

/* What one rank did. Of a rank that was lost, `items_per_second`, `items`, `busy` and `waiting` are
 * what it said of itself at the end of the last epoch it saw, and the rest is zero. */
typedef struct qn_rank_report {
    size_t size;
    uint32_t rank;
    char host[64];
    int lost;
    uint32_t first_worker, workers;   /* which of qn_train_report.worker are its own */
    char worker_names[128];           /* "cpu, cuda:0" */
    uint64_t items;                   /* that its workers trained on */
    double items_per_second;          /* of all of them together, measured */
    double busy;                      /* share of T in which they computed, by their rates */
    double waiting;                   /* share of T in which it waited for other ranks */
    uint64_t bytes_out, bytes_in;     /* over the network, all told */
    uint64_t counted_out, counted_in; /* what steps and evaluations must send and receive, by count
                                       */
    uint64_t bytes_shared;            /* read from the memory of other ranks on its machine */
    uint32_t recoveries;              /* times that the ranks agreed anew on who is left */
    /* Seconds from the notice of a loss until the step that it hit, or the part of an evaluation,
     * was whole again, what had to be computed once more included; the longest. */
    double longest_recovery;
} qn_rank_report;

/* What integer arithmetic (docs/exactness.md 15) rounds away: shares, 0 to 1, of the values that
 * are not zero but become 0 as integers of their block; NaN where there are no such values. They
 * are taken from a few items at the end of the run and say how things stand; no result depends on
 * them.
 */
typedef struct qn_rounding {
    size_t size;
    int bits;       /* 7, 14 or 21; 0: float32, and all else is 0 */
    uint32_t items; /* looked at */
    /* In products forward and backward. */
    double inputs, activations, weights, errors;
    /* In the gradients of weights, where all items of a grain share their scales. */
    double grain_inputs, grain_activations, grain_errors;
} qn_rounding;

typedef struct qn_train_report {
    size_t size;    /* sizeof(qn_train_report) */
    double seconds; /* T: from the beginning of the first step to the end, validation included */
    double seconds_training;      /* steps alone */
    double bound;                 /* W/S: the training work over the summed rates of the workers of
                                     all ranks, each counted for the part of the steps that it took
                                     part in */
    double seconds_choosing;      /* of seconds_training: what finding out who should take part has
                                     cost beyond the steps of those who were chosen */
    uint64_t steps_repeated;      /* computed again after a worker was lost */
    double seconds_to_first_step; /* from qn_train_open to the first step */
    uint64_t items;               /* items trained on in this run */
    uint64_t steps;
    uint64_t resumed_from; /* step at which the run began */
    uint32_t workers;      /* of all ranks, in their order */
    const qn_worker_report *const *worker;
    uint32_t ranks; /* that the run was started with; 1 where one process did it all */
    const qn_rank_report *const *rank;
    qn_score train, valid, test; /* at the end; train: running, of the last epoch */
    uint32_t classes;
    /* classes x classes of the test set: [label][class]; NULL without one, or with more than 1024
     * classes. */
    const uint64_t *confusion;
    const qn_rounding *rounding;
} qn_train_report;

/* The workers of this rank: who they are from qn_train_open on, and what each did so far. Their
 * number in *count, which may be NULL. Belongs to the qn_train, until the next call with it. Not
 * while qn_train_run is at work. */
QN_API const qn_worker_report *const *qn_train_workers(qn_train *train, uint32_t *count);

/* Evaluates the sets, unless that was done after the last step, and reports. After qn_train_run. A
 * record in run_dir that could not be kept, or a trace that could not be written, is a failure only
 * here, and the report is complete even so. */
QN_API qn_status qn_train_report_get(qn_train *train, qn_train_report *report, qn_error *err);

/* Frees the run and what its reports point to, and gives its folders back. Accepts NULL. Not during
 * qn_train_run. */
QN_API void qn_train_close(qn_train *train);

#ifdef __cplusplus
}
#endif
#endif
