/* Records of runs (qn_train_options.run_dir) for other programs. docs/formats.md describes what is
 * written. */
#ifndef QUERN_RUNS_H
#define QUERN_RUNS_H

#include <quern/export.h>
#include <quern/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the metrics of each epoch as scalars of TensorBoard: an event file in `folder`, which is
 * made if it is missing. The step is the number of the epoch. Exporting the same run again replaces
 * the file.
 *
 * `run_dir` is the folder of a record, of a run in progress or a run that has ended, or a run in a
 * file of runs (qn_runs). Fails with QN_IO, QN_FORMAT (the record is damaged) or QN_MEMORY; an old
 * file is then as before. */
QN_API qn_status qn_run_write_tensorboard(const char *run_dir, const char *folder, qn_error *err);

/* Writes the run into `folder` in the layout of MLflow's file store, such as "mlruns": as a run of
 * the experiment `experiment` (NULL: "quern"), with a folder each for metrics, parameters (the keys
 * of the recipe), tags and artifacts (the two files of the record). `name` is the name of the run;
 * NULL: that of the folder `run_dir`. The same run gets the same identifier, so exporting it again
 * replaces what was written.
 *
 * Fails as qn_run_write_tensorboard does. After a failure some files may be written. */
QN_API qn_status qn_run_write_mlflow(const char *run_dir, const char *folder,
                                     const char *experiment, const char *name, qn_error *err);

/* A file of runs: what qn_train_options.runs wrote. Functions above, and qn_report_options.run,
 * take a run in it instead of a folder: "FILE:RUN", where RUN is its number, at least four digits
 * of its beginning, or its name. */
typedef struct qn_runs qn_runs;

/* A run. Texts are owned by the qn_runs, and "" where they are not known; numbers are NaN then. */
typedef struct qn_run_info {
    size_t size;                                          /* sizeof(qn_run_info) */
    const char *id;                                       /* its number: 12 hexadecimal digits */
    const char *name;                                     /* by its user */
    const char *state, *started, *ended, *host, *command; /* as in run.json */
    const char *data, *model; /* digests of the training data and of the model */
    const char *scored;       /* the set of the scores: "test", "valid" or "train" */
    uint64_t epochs;          /* that have ended */
    double seconds, accuracy, loss, rmse, r2;
} qn_run_info;

/* Reads the runs of a file, the oldest first. On success *out is owned by the caller, for
 * qn_runs_close; after a failure it is NULL. Fails with QN_UNSUPPORTED (no libsqlite3.so.0, or
 * libpq.so.5), QN_FORMAT (another kind of file), QN_IO or QN_MEMORY. One thread at a time uses it.
 */
QN_API qn_status qn_runs_open(const char *path, qn_runs **out, qn_error *err);
/* The number of runs; 0 for NULL. */
QN_API uint64_t qn_runs_count(const qn_runs *runs);
/* Fills *info, whose size is set before. Fails with QN_USAGE for an index that is too large. */
QN_API qn_status qn_runs_get(const qn_runs *runs, uint64_t index, qn_run_info *info, qn_error *err);
/* The index of the run with this number, beginning of a number, or name. Fails with QN_INPUT where
 * none or several are meant. */
QN_API qn_status qn_runs_find(const qn_runs *runs, const char *run, uint64_t *index, qn_error *err);
/* Key number `n`, from 0, of the recipe of a run, and its value as text. Only keys whose values are
 * texts or numbers are counted. NULL after the last, and when the record cannot be read. Owned by
 * the qn_runs. */
QN_API const char *qn_runs_key(qn_runs *runs, uint64_t index, uint32_t n);
QN_API const char *qn_runs_value(qn_runs *runs, uint64_t index, uint32_t n);
/* Closes the file. Accepts NULL. */
QN_API void qn_runs_close(qn_runs *runs);

#ifdef __cplusplus
}
#endif
#endif
