/* Options that select devices and arithmetic, shared by all commands that compute. */
#ifndef APP_COMPUTE_H
#define APP_COMPUTE_H

#include "options.h"
#include <quern/device.h>

typedef struct compute_flags {
    uint64_t threads, parts;
    int recompute, cache_features;
    const char *isa, *gpu_isa, *devices, *shares, *timeout;
} compute_flags;

/* Rows for the tables of those commands; they fill a compute_flags. */
extern const option compute_options[];        /* for users */
extern const option compute_memory_options[]; /* of those that train */
extern const option compute_expert_options[]; /* for experiments and diagnosis */

/* The flags as the library's struct; it points to their texts. */
qn_compute compute_of(const compute_flags *flags);

/* Checks the flags. Returns -1, or an exit code after a message. */
int compute_check(const compute_flags *flags);

/* A loss that suits the network, for measurements, which do not depend on it. NULL: the default. */
const char *compute_loss(const char *model);

/* Prints notes on options that are not an error but make little sense on this machine. */
void compute_note(const qn_compute *compute);

#endif
