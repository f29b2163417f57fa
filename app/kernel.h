/* Functions for user kernels that `quern run` and `quern replay` share. */
#ifndef APP_KERNEL_H
#define APP_KERNEL_H

#include "options.h"
#include <quern/kernel.h>

/* Splits "NAME=VALUE" of --`word` and hands both to `use`. Returns -1, or an exit code after a
 * message. */
typedef qn_status kernel_use(qn_kernel *kernel, const char *name, const char *value, qn_error *err);
int kernel_each(qn_kernel *kernel, const char *word, const text_list *list, kernel_use *use);

/* The results of the last run and its time, on stdout, `verbose` with what each device did; with
 * `json` as the event `kernel`. */
void kernel_print(const qn_kernel *kernel, int json, int verbose, const char *recipe);

/* 1: the file is the recipe of a kernel, or meant to be: JSON, or called .json. */
int kernel_is_recipe(const char *path);

/* quern replay for a recipe, by all ranks. `code`: -1, or that of an earlier error. Returns the
 * exit code. */
typedef struct kernel_replay {
    const char *recipe, *devices;
    uint64_t threads;
    const text_list *in, *in_parts, *allowed;
    int quiet, json;
} kernel_replay;
int kernel_replay_run(const kernel_replay *f, int code);

#endif
