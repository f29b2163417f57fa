/* The memory that a training takes beside its data, before it is allocated. */
#ifndef QN_JOB_MEMORY_NEED_H
#define QN_JOB_MEMORY_NEED_H

#include "model/recipe/recipe.h"
#include "team/team.h"

/* Bytes of the host's memory. */
typedef struct qn__memory_need {
    uint64_t batch;      /* inputs, outputs and errors of a batch, or of a part of it */
    uint64_t parameters; /* weights and biases, optimiser's state, sums, copies, messages of sums */
    uint64_t shared;  /* the part of `parameters` that all ranks of this machine have in common */
    uint64_t program; /* the program and its libraries, without those of GPUs */
    uint64_t kept;    /* outputs of layers that do not train, of all items; 0: in a file */
    uint64_t all;     /* the sum of batch, parameters, program and kept */
    uint32_t untold;  /* number of members whose device does not report its memory */
    int parts;        /* qn_compute.parts that these numbers are for; 1: whole batches */
} qn__memory_need;

/* Ranks in all, and those of this machine. */
typedef struct qn__memory_ranks {
    uint32_t all, here;
} qn__memory_ranks;

/* What decides it. `members` as in qn__team_create. */
typedef struct qn__memory_job {
    const qn__recipe *recipe;
    uint64_t items; /* of the training data */
    const qn_compute *compute;
    const qn__member *members;
    uint32_t count;
    qn__memory_ranks ranks; /* all 0: those of compute->cluster */
} qn__memory_job;

/* What the job takes. Fails as qn__network_program and qn__members_of. */
qn_status qn__memory_need_of(const qn__memory_job *job, qn__memory_need *out, qn_error *err);

/* The same for the fewest parts with which all ranks on this machine need no more than `available`
 * bytes, unless compute->parts says how many. Fails with QN_MEMORY if there are none; the remedy
 * names parts, a smaller batch or fewer threads with which the training fits. */
qn_status qn__memory_need_check(const qn__memory_job *job, uint64_t available, qn__memory_need *out,
                                qn_error *err);

#endif
