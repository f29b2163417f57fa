/* Models that `quern fit` makes, in other commands. */
#ifndef APP_FITTED_H
#define APP_FITTED_H

#include "compute.h"
#include <quern/fit.h>

/* 1 for a model that quern fit makes. */
int fitted_is(const qn_model *model);

/* Repeats the fit of a model by its recipe and compares the files, for `quern replay`. `data` may
 * be NULL after a message. Returns the exit code. */
typedef struct fitted_replay {
    const char *path, *out; /* the model's file; where to write the new one, or NULL */
    int quiet, json;
    const compute_flags *compute;
} fitted_replay;
int fitted_replay_run(const fitted_replay *r, const qn_model *model, const qn_data *data);

#endif
