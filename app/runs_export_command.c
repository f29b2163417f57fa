/* quern runs export: the record of a run for TensorBoard or MLflow. */

#include "command.h"
#include "message.h"
#include "runs.h"
#include "shared_rows.h"
#include <quern/runs.h>
#include <stdio.h>
#include <string.h>

typedef struct runs_flags {
    const char *format, *out, *experiment, *name, *runs;
    int quiet;
} runs_flags;

#define AT(member) .place = offsetof(runs_flags, member)

static const option runs_options[] = {
    {.heading = "Options",
     ROW_TEXT("format", format, "NAME",
              "tensorboard (an event file with the scalars of each epoch) or mlflow (a run in the "
              "layout of its file store); required")},
    {ROW_OUTPUT(
        out, "DIR",
        "folder to write into, which is made if it is missing: the log folder of TensorBoard, "
        "or MLflow's mlruns; required")},
    {ROW_TEXT("experiment", experiment, "NAME", "mlflow: the experiment that the run belongs to"),
     .fallback = "quern"},
    {ROW_TEXT("name", name, "NAME", "mlflow: the name of the run"),
     .fallback = "the name of its folder"},
    RUNS_OPTION(offsetof(runs_flags, runs)),
    {ROW_QUIET(quiet)},
    {.name = NULL}};

static int is_mlflow(const runs_flags *f) { return strcmp(f->format, "mlflow") == 0; }

static int check_flags(const runs_flags *f) {
    if (!f->format)
        return message_usage("add --format tensorboard or --format mlflow",
                             "--format NAME is required");
    if (!is_mlflow(f) && strcmp(f->format, "tensorboard") != 0)
        return message_usage("there are: tensorboard, mlflow", "unknown format \"%.60s\"",
                             f->format);
    if (!f->out)
        return message_usage(is_mlflow(f) ? "add -o mlruns" : "add -o logs/NAME",
                             "-o DIR is required");
    if (!is_mlflow(f) && (f->experiment || f->name))
        return message_usage("TensorBoard names a run by its folder: leave them out",
                             "--experiment and --name are for --format mlflow");
    return -1;
}

static int run(const command *self, int argc, char **argv) {
    runs_flags f = {.format = NULL};
    arguments given;
    qn_error err;
    int code = options_read(self, argc - 3, argv + 3, &f, &given);
    if (code >= 0)
        return code;
    message_setup(self->name, f.quiet, 0);
    code = check_flags(&f);
    if (code >= 0)
        return code;
    char folder[4200];
    code = runs_place(f.runs, given.operand[0], folder, sizeof folder);
    if (code >= 0)
        return code;
    const qn_status status = is_mlflow(&f)
                                 ? qn_run_write_mlflow(folder, f.out, f.experiment, f.name, &err)
                                 : qn_run_write_tensorboard(folder, f.out, &err);
    if (status != QN_OK)
        return message_error(&err);
    if (!f.quiet)
        printf("%s is in %s for %s\n", folder, f.out, is_mlflow(&f) ? "MLflow" : "TensorBoard");
    return EXIT_DONE;
}

const command runs_export_command = {
    .name = "runs export",
    .summary = "write the record of a run for TensorBoard or MLflow",
    .usage = "quern runs export RUN --format tensorboard|mlflow -o DIR",
    .about =
        "RUN is the folder of a record (quern train --run-dir DIR), of a run that has ended or "
        "still runs; with --runs FILE also the identifier or the name of a run there. Exporting it "
        "again replaces what was written.",
    .operand = "RUN",
    .options = runs_options,
    .examples = "quern runs export run1 --format tensorboard -o logs/run1\n"
                "quern runs export run1 --format mlflow -o mlruns --experiment digits",
    .run = run};
