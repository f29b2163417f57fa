/* Detects which launcher started this process, from the environment alone. */
#ifndef QN_CLUSTER_RENDEZVOUS_LAUNCHER_H
#define QN_CLUSTER_RENDEZVOUS_LAUNCHER_H

#include "base/error.h"
#include <stdint.h>

typedef enum qn__launcher_kind {
    QN__LAUNCHED_ALONE,
    QN__LAUNCHED_OPEN_MPI,
    QN__LAUNCHED_MPICH, /* or a derived library */
    QN__LAUNCHED_SLURM, /* srun itself */
    QN__LAUNCHED_TORCHRUN
} qn__launcher_kind;

typedef struct qn__launcher {
    qn__launcher_kind kind;
    char name[64];        /* "mpirun (Open MPI 5.0.11)"; empty: no launcher */
    uint32_t ranks, rank; /* ranks 0: not set */
    int major;            /* major version of the launcher; 0: unknown */
    const char *evidence; /* the variable that was found */
} qn__launcher;

/* QN_USAGE if the environment is malformed. QN_CLUSTER if it names a launcher that does not run:
 * the variables were copied, or left by a job that has ended. */
qn_status qn__launcher_find(qn__launcher *launcher, qn_error *err);

#endif
