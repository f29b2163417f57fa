/* What `quern predict` and `quern evaluate` share: both apply a model to data. */
#ifndef APP_PREDICT_H
#define APP_PREDICT_H

#include "command.h"
#include "compute.h"
#include "ranks.h"
#include "sources.h"

typedef struct predict_flags {
    source_flags from;
    compute_flags compute;
    ranks_flags ranks;
    const char *out;          /* "-": stdout */
    const char *named;        /* -o as it was given, where `out` is that of this rank; else NULL */
    const char *labels_named; /* --output-labels as it was given, likewise */
    const char *adapter;
    const char *layer, *pool;  /* of which the outputs are written; NULL: of the last one */
    const char *output_labels; /* with `layer`, the file of the labels; NULL: none */
    int outputs, quiet, json, verbose, flips, network_size, logprobs;
    uint32_t top; /* classes to write of each item; 0: one */
    int evaluate; /* 1: write no predictions */
} predict_flags;

/* Reads the rest of the command line into `flags`, then predicts. Returns the exit code. */
int predict_run(const command *self, int argc, char **argv, predict_flags *flags);

#endif
