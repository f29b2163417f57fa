/* The command as one of several ranks: the options that say how they meet, and what they do
 * together. All of it works alone too, where it does nothing.
 *
 *     code = ranks_join(self, argc - 2, argv + 2);     finds the others; from here on errors are
 * held if (code < 0) code = options_read(...), check_flags(...)   each for itself code =
 * ranks_agree(code, items, count);          printed once, ended alike
 *     ... work together ...
 *     code = ranks_conclude(&err, write_files, user);  by one of those that are left
 *     return ranks_leave(code); */
#ifndef APP_RANKS_H
#define APP_RANKS_H

#include "options.h"
#include <quern/cluster.h>

typedef struct ranks_flags {
    const char *rendezvous, *key_file, *interface, *rank_timeout, *rendezvous_timeout;
    uint64_t ranks, rank;
    int alone;
    int data_from_rank0;
} ranks_flags;

/* Rows for the tables of those commands that run over ranks; their places are in a ranks_flags. */
extern const option ranks_options[];
#define RANKS_HEADING "Several processes (mpirun and srun need none of these)"

/* Reads these options out of all the words of a command line and meets the other ranks, unless help
 * is asked for. Returns -1, or an exit code after a message. */
int ranks_join(int argc, char **argv);

/* NULL when this process is alone. */
qn_cluster *ranks_cluster(void);
/* "rank 2 on host-b"; NULL when this process is alone. */
const char *ranks_name(void);
/* 1 when the rank with the lowest number reads the files for all. */
int ranks_data_from_first(void);
/* 1 when this process writes files and reports to the user. */
int ranks_is_writer(void);

/* Errors are held from now on, as after ranks_join. */
void ranks_hold(void);

/* All ranks together: continues (-1) where every `code` is -1 and all hold the same items, else the
 * writer rank prints one message, and all get the same exit code. `more` keeps errors held for
 * another agreement; 0: they are printed at once from now on. */
int ranks_agree(int code, const qn_agreement *item, uint32_t count, int more);

/* The end of a run: `last` is called by the writer rank and returns the exit code of all; it
 * is called by the next one if that rank dies before it is through. `err` is why the work that all
 * did together has failed (QN_OK in it: it did not): of it, a rank that had to leave says why. */
int ranks_conclude(const qn_error *err, int (*last)(void *user), void *user);

/* For `last`: a file could not be written, for which it returns the exit code. Why this rank had to
 * leave while it wrote (QN_CLUSTER) is said by ranks_conclude. */
int ranks_unwritten(const qn_error *err);

/* The same where all there is to do is to print `err`. */
int ranks_failed(const qn_error *err);

/* Leaves the run. Returns `code`. */
int ranks_leave(int code);

#endif
