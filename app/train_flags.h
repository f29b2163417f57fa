/* The values of the options of `quern train`, and their table. */
#ifndef APP_TRAIN_FLAGS_H
#define APP_TRAIN_FLAGS_H

#include "compute.h"
#include "options.h"
#include "ranks.h"
#include "sources.h"
#include <quern/train.h>

typedef struct train_flags {
    source_flags from;
    qn_train_options recipe; /* its members before `compute`, and those after the callbacks that
                                belong to the recipe */
    const char *init_from, *predictions;
    compute_flags compute;
    ranks_flags ranks;
    const char *trace, *checkpoint, *checkpoint_every, *run_dir, *report, *plots, *runs, *run_name,
        *out;
    int resume, quiet, verbose, json;
} train_flags;

extern const option train_options[];

/* No flag is set, and the recipe has the library's defaults. */
train_flags train_flags_default(void);

/* The number with which the text of a field's default begins, which is the default for images. */
uint64_t train_options_number(const char *field);

/* Refuses options without effect, which need another option. Returns -1, or the exit code after a
 * message. */
int train_options_check(const train_flags *flags, const arguments *given);

/* Sets *options to the recipe of the flags, which began as its defaults. */
void train_fill_recipe(const train_flags *flags, const sources *from, qn_train_options *options);

/* Checks the files that train reads and writes (paths.h), including `hostfile` (or NULL). `writes`:
 * 1 if this process will write them. Returns -1, or the exit code after a message. */
int train_check_paths(const train_flags *flags, const char *hostfile, int writes);

#endif
