/* Records of runs (qn_train_options.run_dir) for other programs. docs/formats.md describes what is
 * written. */
#ifndef QUERN_RUNS_H
#define QUERN_RUNS_H

#include <quern/export.h>
#include <quern/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the metrics of each epoch as scalars of TensorBoard: an event file in `folder`, which is
 * made if it is missing. The step is the number of the epoch. Exporting the same run again replaces
 * the file.
 *
 * `run_dir` is the folder of a record, of a run that goes on or has ended. Fails with QN_IO,
 * QN_FORMAT (the record is damaged) or QN_MEMORY; an old file is then as before. */
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

#ifdef __cplusplus
}
#endif
#endif
