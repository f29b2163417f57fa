/* quern model import of checkpoints of the package transformers. */
#ifndef QUERN_APP_PRETRAINED_H
#define QUERN_APP_PRETRAINED_H

#include <quern/import.h>

typedef struct pretrained_flags {
    const char *out;
    qn_pretrained_options how;
    int quiet, json;
} pretrained_flags;

/* Whether the files are such a checkpoint, of a network that is known or, with `type`, is said. */
int pretrained_is(const char *path, const qn_pretrained_options *how);

/* Imports it, and prints what it did. Returns an exit code. */
int pretrained_import(const char *path, const pretrained_flags *flags);

#endif
