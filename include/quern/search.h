/* Cross validation of several settings: each is trained once without each fold of the data, and
 * tested on that fold. docs/exactness.md 2.11 describes the folds.
 *
 *     qn_search_options o;
 *     qn_search *s = NULL;
 *     uint32_t order[4];
 *     qn_search_options_init(&o);
 *     o.setting = settings;                 four of them, const qn_train_options *settings[4]
 *     o.settings = 4;
 *     qn_status status = qn_search_open(&o, data, &s, &err);
 *     if (status == QN_OK)
 *         status = qn_search_run(s, &err);
 *     if (status == QN_OK)
 *         status = qn_search_order(s, QN_SEARCH_LOSS, order, &err);     order[0] is the best
 *     qn_search_close(s);
 *
 * A run, one setting on one fold, is never divided: whole runs are shared among cores, devices and
 * ranks. The numbers do not depend on how they are shared. */
#ifndef QUERN_SEARCH_H
#define QUERN_SEARCH_H

#include <quern/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The metrics of a run; one that does not apply is NaN. */
typedef enum qn_search_metric {
    QN_SEARCH_ACCURACY, /* of classes, as are the next three */
    QN_SEARCH_F1,
    QN_SEARCH_AUC,
    QN_SEARCH_LOG_LOSS,
    QN_SEARCH_LOSS, /* the loss that the training minimises */
    QN_SEARCH_RMSE, /* of real labels, as are the next two */
    QN_SEARCH_MAE,
    QN_SEARCH_R2,
    QN_SEARCH_METRICS
} qn_search_metric;

/* "accuracy", "f1", "auc", "log_loss", "loss", "rmse", "mae", "r2"; NULL for another number. */
QN_API const char *qn_search_metric_name(qn_search_metric metric);

/* A run. */
typedef struct qn_search_result {
    size_t size;                      /* sizeof(qn_search_result) */
    int done;                         /* 0: not yet, and all else is 0 */
    uint64_t items;                   /* of the fold; 0: the numbers of the training left the range
                                         of float32, and all of `number` are NaN */
    double number[QN_SEARCH_METRICS]; /* on the fold, by qn_search_metric */
    char model[65];                   /* digest of the model; "" where `items` is 0 */
    double seconds;                   /* that the run took */
} qn_search_result;

/* The runs of a setting together. Sums are in the order of the folds. */
typedef struct qn_search_mean {
    size_t size;                         /* sizeof(qn_search_mean) */
    double mean[QN_SEARCH_METRICS];      /* NaN where a fold has no number */
    double deviation[QN_SEARCH_METRICS]; /* root of the mean squared difference from the mean */
} qn_search_mean;

/* After a run. */
typedef struct qn_search_event {
    size_t size;                    /* sizeof(qn_search_event) */
    uint32_t setting, fold;         /* of the run, from 0 */
    uint64_t done, runs;            /* runs that are done, and all runs of the search, or of its
                                       part */
    uint32_t rank;                  /* on which the run was computed */
    const qn_search_result *result; /* valid during the call only */
} qn_search_event;

/* Options of a search. Fill with qn_search_options_init, then change members. Everything they point
 * to must stay until qn_search_close. */
typedef struct qn_search_options {
    size_t size;                            /* sizeof(qn_search_options) */
    const qn_train_options *const *setting; /* `settings` pointers. Of each its recipe is used,
                                               without `valid_fraction`, which must be 0; `compute`,
                                               `user` and callbacks are not used, and it names no
                                               files */
    uint32_t settings;                      /* 1..10000 */
    uint32_t folds;                         /* 2..256; 5. The seed of the first setting decides
                                               them; classes are spread evenly among them */
    const char *const *name;                /* of each setting, for people who read the file of
                                               results; NULL: none */
    /* `threads` and `devices` are those of this process. `devices` NULL: the CPU; each core takes
     * whole runs, or several cores one, where there are fewer runs. A list: each entry takes whole
     * runs; for "cpu" each core does. With `cluster` the ranks take runs, too, each as it becomes
     * free. `shares` must be NULL. */
    qn_compute compute;
    const char *folder; /* for the results, in its file search.csv, made if missing: an interrupted
                           search continues from there. NULL: none */
    void *user;         /* passed to the callbacks */
    /* After each run, on one rank: the writer. From the thread that called qn_search_run. It may
     * call qn_search_stop. NULL: none */
    void (*on_run)(void *user, const qn_search_event *event);
    qn_note_fn on_note; /* messages for a user; NULL: none */
    /* Processes that do not know each other divide a search: each computes a part of the runs, from
     * 1 to `parts`. Run `fold` of `setting` belongs to part (setting * folds + fold) % parts + 1.
     * The results are in folder/part-1-of-4/search.csv. 0: this search computes all runs. */
    uint32_t part, parts;
    int merge; /* 1: qn_search_open takes the results of all parts in `folder`, and fails where one
                  is missing; the runs in search.csv are in the order of folds, then settings */
} qn_search_options;

/* Sets `size`, `folds` and the size in `compute`, and every other member to 0 or NULL. */
QN_API void qn_search_options_init(qn_search_options *options);

/* One thread at a time uses it; only qn_search_stop may be called from others. */
typedef struct qn_search qn_search;

/* Checks all settings on the data, which must stay until qn_search_close, and reads the results
 * that the folder has. On success *out is owned by the caller, for qn_search_close; after a failure
 * it is NULL, and the folder as before.
 *
 * Among ranks all call this together with the same settings and the same data. The writer reads the
 * folder, and all begin with what it found; if it dies, the next writer continues with its own
 * folder.
 *
 * Fails with QN_USAGE (an option; the remedy names the setting), QN_INPUT (the data does not suit;
 * a run is missing in the parts), QN_BUSY (another search uses the folder, or a part of it),
 * QN_MISMATCH (the folder holds another search, or the ranks differ), QN_FORMAT (its file was
 * changed; the message names the line), QN_IO, QN_CLUSTER or QN_MEMORY. */
QN_API qn_status qn_search_open(const qn_search_options *options, const qn_data *data,
                                qn_search **out, qn_error *err);

/* Computes all runs that are not done. Among ranks all call this together, and each has all results
 * afterwards. If a rank dies, another one computes its run.
 *
 * A training whose numbers leave the range of float32 is a result. Any other failure of a run ends
 * the search: QN_DEVICE on one rank alone when others are left, which continue; else the same
 * failure on all ranks. QN_INTERRUPTED after qn_search_stop: the results so far are kept, and it
 * may be called again. QN_IO: a result cannot be written. QN_CLUSTER: this rank has to leave. */
QN_API qn_status qn_search_run(qn_search *search, qn_error *err);

/* Asks qn_search_run to return; the runs in progress end after their step and are lost. Among
 * ranks it ends on all. Does not wait. Safe in a signal handler and in another thread. */
QN_API void qn_search_stop(qn_search *search);

/* The number of runs that are done; 0 for NULL. */
QN_API uint64_t qn_search_done(const qn_search *search);

/* Fills *result, whose size is set before. Fails with QN_USAGE: there is no such run. */
QN_API qn_status qn_search_get(const qn_search *search, uint32_t setting, uint32_t fold,
                               qn_search_result *result, qn_error *err);

/* Fills *mean, whose size is set before. Fails with QN_USAGE: there is no such setting, or not all
 * of its runs are done. */
QN_API qn_status qn_search_mean_get(const qn_search *search, uint32_t setting, qn_search_mean *mean,
                                    qn_error *err);

/* Fills `setting`, which has space for all, the best first: by the mean of the metric, of equal
 * ones by the loss, then in their order; NaN is the worst. Fails with QN_USAGE for an unknown
 * metric or a run that is not done. QN_MEMORY. */
QN_API qn_status qn_search_order(const qn_search *search, qn_search_metric metric,
                                 uint32_t *setting, qn_error *err);

/* Frees the search and releases its folder. Accepts NULL. Not during qn_search_run. */
QN_API void qn_search_close(qn_search *search);

/* ---------------------------------------------------------------- the range of learning rates
 *
 * One short training in which the rate grows by the same factor after every step, from `low` to
 * `high` (Smith 2017). It ends where the loss diverges. docs/exactness.md 24.35 says how the
 * numbers follow from the losses. */

/* Why it ended. */
typedef enum qn_lr_end {
    QN_LR_END_HIGH,      /* the highest rate was reached */
    QN_LR_END_DIVERGED,  /* the smoothed loss was more than four times the lowest one */
    QN_LR_END_NOT_FINITE /* numbers left the range of float32 */
} qn_lr_end;

/* What to try. Fill with qn_lr_range_options_init, then change members. */
typedef struct qn_lr_range_options {
    size_t size;                   /* sizeof(qn_lr_range_options) */
    const qn_train_options *train; /* its recipe, `init_from` and `compute` are used: devices and
                                      ranks share the steps of the one training. Rates, `schedule`,
                                      `warmup`, `stages`, `epochs`, `keep` and `patience` are those
                                      of the range; no files; all items train */
    float low, high;               /* rates, above 0; 1e-6 and 10 */
    uint32_t steps;                /* from low to high, 10 to 100000; 100 */
    const char *folder; /* for the files lr-range.csv and lr-range.svg, made if missing; NULL: none.
                           Where the first is there, the same range must give the same bytes: it is
                           the record of a replay */
} qn_lr_range_options;

/* Sets `size` and the defaults, every other member to 0 or NULL. */
QN_API void qn_lr_range_options_init(qn_lr_range_options *options);

/* Steps at the beginning that suggest nothing: their losses are too noisy
 * (docs/exactness.md 24.35). */
enum { QN_LR_SETTLING = 10 };

/* What was found. */
typedef struct qn_lr_range {
    size_t size;            /* sizeof(qn_lr_range) */
    uint32_t points;        /* steps that were done, at least 1 */
    uint32_t lowest;        /* the step with the lowest smoothed loss, of those after the first
                               QN_LR_SETTLING where there are some */
    uint32_t steepest;      /* the step before it where the smoothed loss falls most */
    float suggestion;       /* the rate of `steepest`; 0: the loss did not fall */
    float cautious;         /* a tenth of the rate of `lowest` */
    qn_lr_end end;          /* why it ended */
    const float *rate;      /* of each step, `points` */
    const double *loss;     /* of each step's items, before its update */
    const double *smoothed; /* the same with less noise */
    const char *csv, *svg;  /* the contents of both files */
    const char *recipe;     /* of the training, as JSON */
    int identical;          /* on the rank that writes, 1: the folder had the same record */
} qn_lr_range;

/* Tries the rates on the training items. On success *out is owned by the caller, for
 * qn_lr_range_free. Among ranks all call this together; one of them writes the files.
 *
 * A loss that diverges or leaves the range of float32 is a result, after the first step. Fails as
 * qn_train_open and qn_train_run do, with QN_USAGE (a range; an optimiser without a rate), and with
 * QN_MISMATCH (the folder has a record of another range, which stays). */
QN_API qn_status qn_lr_range_find(const qn_lr_range_options *options, const qn_data *data,
                                  qn_lr_range **out, qn_error *err);

/* Accepts NULL. */
QN_API void qn_lr_range_free(qn_lr_range *range);

#ifdef __cplusplus
}
#endif
#endif
