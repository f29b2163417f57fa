/* The memory that a training takes beside its data, before it is allocated. */
#ifndef QN_JOB_MEMORY_NEED_H
#define QN_JOB_MEMORY_NEED_H

#include "model/recipe.h"
#include "team/team.h"

/* Bytes of the host's memory. */
typedef struct qn__memory_need {
    uint64_t batch;      /* inputs, outputs and errors of a batch */
    uint64_t parameters; /* weights and biases, optimiser's state, sums, copies */
    uint64_t program;    /* the program and its libraries, without those of GPUs */
    uint64_t all;        /* the sum */
} qn__memory_need;

/* What `program` takes on the members of a team; `members` as in qn__team_create. `best`: 1 when
 * the parameters of the best epoch are kept. Fails as qn__members_of. */
qn_status qn__memory_need_of(const qn__program *program, int best, const qn_compute *compute,
                             const qn__member *members, uint32_t count, qn__memory_need *out,
                             qn_error *err);

/* The same, and fails with QN_MEMORY when the machine has less than all ranks on it need; the
 * remedy names a smaller batch where one fits. */
qn_status qn__memory_need_check(const qn__program *program, int best, const qn_compute *compute,
                                const qn__member *members, uint32_t count, qn__memory_need *out,
                                qn_error *err);

#endif
