/* A training, the run of a kernel, or a search that another program starts: a batch system, a
 * cluster's operator, or a background process. `quern submit` makes one from a command line. */
#ifndef APP_JOB_H
#define APP_JOB_H

#include <stdint.h>
#include <stdio.h>

typedef struct job {
    const char *engine;  /* "local", "slurm", "kubernetes" */
    const char *name;    /* letters, digits, dots and dashes */
    const char *program; /* path of quern on the machine of the job */
    char **words; /* "train", "run" or "search" and its arguments, completed so that each start
                     continues from the last checkpoint */
    int count;
    int kernel;         /* 1: "run", whose checkpoint is a file and not a folder */
    const char *result; /* the file that is replaced at the end: model or recipe */
    const char *checkpoint;
    const char *directory; /* base of relative paths */
    const char *folder;    /* of a search, else NULL: --run-dir */
    uint64_t tasks;        /* of the array among which a search is divided */
    int serves, watches;   /* 1: "serve" or "watch", which do not end: a Deployment of Kubernetes */
    unsigned serve_port;
    int serve_tls; /* 1: that port speaks TLS */

    uint64_t ranks, cpus, gpus; /* cpus and gpus of each; 0: all, none */
    const char *launcher;       /* "srun", "mpirun", "none" */
    const char *hostfile;       /* local: mpirun's list of hosts, or NULL */
    unsigned port;              /* local, several ranks: port of the rendezvous address */

    const char *partition, *account, *time, *memory; /* NULL: the engine's default */
    const char *more;                                /* options of sbatch, unchanged */
    const char *image, *claim, *mount, *space;       /* Kubernetes; space: the namespace or NULL */
    const char *kind;             /* "mpijob"; "indexed", "jobset" and "trainjob" have a key */
    const char *key;              /* of ranks that meet by a name; NULL: they need none */
    const char *queue, *topology; /* of Kueue; a label of nodes that are near; NULL: not given */
} job;

/* The batch script for sbatch, the script that runs a local job, the manifest for kubectl. */
void job_write_slurm(const job *j, FILE *to);
void job_write_local(const job *j, FILE *to);
void job_write_kubernetes(const job *j, FILE *to);

/* The output of `write` as a text that the caller frees; NULL if out of memory. */
char *job_text(const job *j, void (*write)(const job *j, FILE *to));

#endif
