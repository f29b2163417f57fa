/* How a command computes: the options that say it, shared by all commands that do. */
#ifndef APP_COMPUTE_H
#define APP_COMPUTE_H

#include "options.h"
#include <quern/device.h>

typedef struct compute_flags {
    uint64_t threads;
    const char *isa, *gpu_isa, *devices, *shares, *timeout;
} compute_flags;

/* Rows for the tables of those commands; their places are in a compute_flags. */
extern const option compute_options[];        /* that users need */
extern const option compute_expert_options[]; /* for experiments and faults */

/* What the flags say, as the library takes it; its texts are theirs. */
qn_compute compute_of(const compute_flags *flags);

/* Checks the flags. Returns -1, or an exit code after a message. */
int compute_check(const compute_flags *flags);

#endif
