/* The file of runs that commands read, and the runs that they name. */
#ifndef APP_RUNS_H
#define APP_RUNS_H

#include "options.h"
#include <quern/runs.h>

/* --runs, for the tables of commands. */
#define RUNS_OPTION(member_place)                                                                  \
    {                                                                                              \
        .name = "runs", .kind = OPTION_TEXT, .place = (member_place), .value = "FILE",             \
        .help = "file or server of runs (quern train --runs FILE)",                                \
        .fallback = "QUERN_RUNS of the environment"                                                \
    }

/* The file: `given`, else that of the environment, else NULL. */
const char *runs_file(const char *given);

/* Opens it; *out is for qn_runs_close. Returns -1, or an exit code after a message. */
int runs_open(const char *given, qn_runs **out);

/* The name of a run for the library: a folder unchanged, or "FILE:RUN" for a run in the file.
 * `place` holds `size` bytes. Returns -1, or an exit code after a message. */
int runs_place(const char *given, const char *run, char *place, size_t size);

/* Fills *info. Returns -1, or an exit code after a message. */
int runs_info(const qn_runs *runs, uint64_t index, qn_run_info *info);

/* The run that the user names. Returns -1, or an exit code after a message. */
int runs_find(const qn_runs *runs, const char *run, uint64_t *index);

/* Whether the recipe of the run can be read: -1, or an exit code after a message. */
int runs_check(qn_runs *runs, uint64_t index, const qn_run_info *info);

/* "98.10 %" of a classifier, "RMSE 1.5" of real labels, else "". */
enum { RUNS_SCORE = 48 };
const char *runs_score(const qn_run_info *info, char text[RUNS_SCORE]);

/* The fields of a JSON object that has begun. */
void runs_fields(const qn_run_info *info);

#endif
