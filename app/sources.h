/* The data sets of a command: those its options name, or the digits built into the program. */
#ifndef APP_SOURCES_H
#define APP_SOURCES_H

#include "options.h"
#include <quern/cluster.h>
#include <quern/data.h>

/* The embedded default: items 0.. of this seed to train on, the next ones to test with. */
enum { EMBEDDED_SEED = 1, EMBEDDED_TRAIN = 20000, EMBEDDED_TEST = 4000 };

/* What the options said; every text may be NULL. */
typedef struct source_flags {
    const char *data, *labels;
    const char *label; /* CSV: the column of labels, in every file */
    const char *test, *test_labels;
    const char *valid, *valid_labels; /* `valid`: a file or a fraction */
    int unlabelled;                   /* CSV: no column of labels (predict, data info) */
} source_flags;

/* Rows that the tables of several commands take in; their places are in a source_flags. */
extern const option source_label_options[];      /* --labels, --label */
extern const option source_unlabelled_options[]; /* --unlabelled */
extern const option source_test_options[];       /* --test, --test-labels */

typedef struct sources {
    qn_data *train, *valid, *test; /* NULL where there is none */
    float valid_fraction;          /* 0 unless --valid was one */
    int embedded;                  /* the digits built into the program were taken */
} sources;

/* What can be told before a file is opened: options that need one another. Returns -1, or an exit
 * code after a message. */
int sources_check(const source_flags *flags);

/* Among ranks all have to open the same sets, for the same command (`what`): fills SOURCES_AGREED
 * items. */
enum { SOURCES_AGREED = 5 };
void sources_agreed(const source_flags *flags, const char *what, qn_agreement *items);

/* Opens all that the flags name, with `threads` cores (0: all). After sources_check;
 * among ranks all together, errors being held (ranks.h), which ends here. Returns -1, or an exit
 * code after a message; then nothing is left open. */
int sources_open(const source_flags *flags, uint64_t threads, sources *out);
void sources_close(sources *from);

/* Opens one file with its labels, among ranks together. Returns -1 or an exit code after a message.
 */
int source_open(const char *path, const char *labels, const source_flags *flags, uint64_t threads,
                qn_data **out);

#endif
