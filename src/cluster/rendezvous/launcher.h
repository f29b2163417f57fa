/* What started this process, read off the environment alone. */
#ifndef QN_CLUSTER_RENDEZVOUS_LAUNCHER_H
#define QN_CLUSTER_RENDEZVOUS_LAUNCHER_H

#include "base/error.h"
#include <stdint.h>

typedef enum qn__launcher_kind {
    QN__LAUNCHED_ALONE,
    QN__LAUNCHED_OPEN_MPI,
    QN__LAUNCHED_MPICH, /* or another of its descent */
    QN__LAUNCHED_SLURM  /* srun itself */
} qn__launcher_kind;

typedef struct qn__launcher {
    qn__launcher_kind kind;
    char name[64];        /* "mpirun (Open MPI 5.0.11)"; empty: nothing started it */
    uint32_t ranks, rank; /* ranks 0: it does not say */
    int major;            /* of the launcher's version; 0: it does not say */
    const char *evidence; /* the variable that tells */
} qn__launcher;

/* QN_USAGE when the environment is malformed, QN_CLUSTER when it speaks of a launcher that is not
 * there: variables that were copied, or left by a job that has ended. */
qn_status qn__launcher_find(qn__launcher *launcher, qn_error *err);

#endif
