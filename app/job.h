/* A training run that another one starts: a batch system, a cluster's operator, or a process in
 * the background. `quern submit` makes one out of a command line of `quern train`. */
#ifndef APP_JOB_H
#define APP_JOB_H

#include <stdint.h>
#include <stdio.h>

typedef struct job {
    const char *engine;  /* "local", "slurm", "kubernetes" */
    const char *name;    /* letters, digits, dots and dashes */
    const char *program; /* the command quern, as the job finds it */
    char **words;        /* "train" and its arguments, so completed that the run continues from its
                            last checkpoint whenever it is started again */
    int count;
    const char *model, *checkpoint; /* two of these arguments: what is written where */
    const char *directory;          /* where relative paths begin */

    uint64_t ranks, cpus, gpus; /* cpus and gpus of each; 0: all, none */
    const char *launcher;       /* "srun", "mpirun", "none" */
    const char *hostfile;       /* local: mpirun's list of hosts, or NULL */
    unsigned port;              /* local, several ranks: where they meet */

    const char *partition, *account, *time, *memory; /* NULL: as the engine has it */
    const char *more;                                /* options of sbatch, written as given */
    const char *image, *claim, *mount, *space;       /* Kubernetes; space: the namespace or NULL */
} job;

/* The batch script for sbatch, the script that runs a local job, the manifest for kubectl. */
void job_write_slurm(const job *j, FILE *to);
void job_write_local(const job *j, FILE *to);
void job_write_kubernetes(const job *j, FILE *to);

/* The text that `write` makes, the caller's to free; NULL when memory was short. */
char *job_text(const job *j, void (*write)(const job *j, FILE *to));

#endif
