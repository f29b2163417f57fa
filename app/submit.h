/* `quern submit`: its options, and a job that is made from them and a command line. */
#ifndef APP_SUBMIT_H
#define APP_SUBMIT_H

#include "job.h"
#include "run_job.h"
#include "secret.h"
#include "train_flags.h"

typedef struct submit_flags {
    int slurm, kubernetes, local, dry_run, json;
    const char *name, *program, *launcher, *hostfile;
    uint64_t ranks, cpus, gpus, array;
    const char *memory, *time, *partition, *account, *sbatch;
    const char *image, *claim, *mount, *space, *kind, *queue, *topology;
} submit_flags;

/* Data collected while a job is prepared. */
typedef struct making {
    job j;
    train_flags train;
    run_job run;
    char name[48], program[4096], directory[4096], checkpoint[4096], key[SECRET_MADE];
    char **words;
} making;

/* Checks the words of the command that shall be submitted, and sets what follows from them in `m`:
 * the words of the job, its result and its checkpoint. Returns -1, or an exit code after a message.
 */
int submit_words(const submit_flags *f, char **words, int count, making *m);

#endif
