/* A user kernel on the cores of one machine. All that divides the work among workers is in this
 * unit; what it computes does not depend on it. */
#ifndef QN_JOB_USER_RUN_H
#define QN_JOB_USER_RUN_H

#include "base/threads.h"
#include "job/user_program.h"
#include "job/user_sums.h"
#include <stdatomic.h>

typedef struct qn__user_job {
    const qn__user_source *source;
    qn__user_grain *grain;
    void *array[QN__USER_PARTS]; /* inputs and outputs; NULL of other parts */
    const void *scalar[QN__USER_PARTS];
    int64_t length[QN__USER_PARTS * QN__USER_DIMENSIONS];
    int64_t extent[QN__USER_DIMENSIONS]; /* the first ones are 1; their product is below 2^62 */
    int64_t items_of_grain;              /* 0: chosen by the number of items */
    const atomic_int *stop;              /* not 0: no further items are taken; NULL: never */
    int64_t iteration, iterations;       /* the number of this one, and how many there are */
    uint64_t seed;                       /* of random numbers */
} qn__user_job;

int64_t qn__user_job_items(const qn__user_job *job);

/* Computes all items. Fills the outputs and, of the other results, total[part], which was all
 * zeros. Fails with QN_NUMERIC, for the first item that is not possible: a NaN in a result, an
 * infinity in a sum, a division by zero, an index out of range; or QN_INTERRUPTED or QN_MEMORY. */
qn_status qn__user_job_run(const qn__user_job *job, qn__pool *pool, qn__user_total *total,
                           qn_error *err);

#endif
