/* The command as one of several ranks: the options of the rendezvous, and the collective calls. All
 * of it also works, and does nothing, in a single process.
 *
 *     code = ranks_join(argc - 2, argv + 2, 0);           errors are held from here on
 *     if (code < 0)
 *         code = options_read(...), check_flags(...)     each rank for itself
 *     code = ranks_agree(code, items, count);            printed once, the same end on all ranks
 *     ... work together ...
 *     code = ranks_conclude(&err, write_files, user);    by one of the remaining ranks
 *     return ranks_leave(code); */
#ifndef APP_RANKS_H
#define APP_RANKS_H

#include "options.h"
#include <quern/cluster.h>

typedef struct ranks_flags {
    const char *rendezvous, *key_file, *interface, *transport, *rank_timeout, *rendezvous_timeout;
    uint64_t ranks, rank, min_ranks;
    int alone;
    int data_from_rank0;
} ranks_flags;

/* Rows for the tables of commands that run over ranks; they fill a ranks_flags. */
extern const option ranks_options[];
/* The rows without the first one, --data-from-rank0: of commands whose ranks read files on their
 * own. */
#define RANKS_OPTIONS_ALONE (ranks_options + 1)
#define RANKS_HEADING "Several processes (mpirun and srun need none of these)"

/* Parses these options among all the words of a command line and joins the other ranks, unless help
 * is requested. `late`: also in a run that has begun, as trainings can. Returns -1, or an exit code
 * after a message. */
int ranks_join(int argc, char **argv, int late);

/* The file of --key-file; NULL without it, and for the standard input. */
const char *ranks_key_path(const ranks_flags *flags);

/* NULL in a single process. */
qn_cluster *ranks_cluster(void);
/* "rank 2 on host-b"; NULL in a single process. */
const char *ranks_name(void);
/* Writes the notes of the library to stderr. */
void ranks_notes(void);
/* 1 if the rank with the lowest number reads the files for all. */
int ranks_data_from_first(void);
/* 1 when this process writes files and reports to the user. */
int ranks_is_writer(void);

/* Holds errors from now on, as after ranks_join. */
void ranks_hold(void);

/* Collective. Continues (-1) if every `code` is -1 and all have the same items. Otherwise the
 * writer rank prints one message, a rank that it names prints a line, and all get the same exit
 * code. `more` keeps errors held for another agreement; 0: they are printed at once from now on. */
int ranks_agree(int code, const qn_agreement *item, uint32_t count, int more);

/* The end of a run: `last` is called on the writer rank and returns the exit code of all; if that
 * rank dies meanwhile, the next one calls it. `err` is the error of the common work (QN_OK: none);
 * a rank that had to leave prints why. */
int ranks_conclude(const qn_error *err, int (*last)(void *user), void *user);

/* For `last`: returns the exit code of a file that could not be written. If this rank had to leave
 * while it wrote (QN_CLUSTER), ranks_conclude prints the reason. */
int ranks_unwritten(const qn_error *err);

/* The same if only `err` has to be printed. */
int ranks_failed(const qn_error *err);

/* Leaves the run. Returns `code`. */
int ranks_leave(int code);

#endif
