/* Of numbered pieces that threads of a pool take in ascending order, the failure of the first one
 * that failed: the same error on any number of threads. */
#ifndef QN_BASE_SYSTEM_FIRST_FAILURE_H
#define QN_BASE_SYSTEM_FIRST_FAILURE_H

#include "base/error.h"
#include <stdatomic.h>
#include <stdint.h>

typedef struct qn__first_failure {
    _Atomic uint64_t piece; /* the first that failed; UINT64_MAX: none has */
    int threads;
    struct qn__failure {
        uint64_t piece;
        qn_status status;
        qn_error err;
    } * of; /* each thread */
} qn__first_failure;

/* Nothing has failed. Fails with QN_MEMORY. */
qn_status qn__first_failure_begin(qn__first_failure *f, int threads, qn_error *err);

/* `thread` could not do `piece`: its last one, since what it would take next comes later. */
void qn__first_failure_note(qn__first_failure *f, int thread, uint64_t piece, qn_status status,
                            const qn_error *err);

/* What `piece` gives does not matter any more: an earlier one has failed. */
int qn__first_failure_before(const qn__first_failure *f, uint64_t piece);

/* After all threads: the first failure, or QN_OK. Releases what _begin took. */
qn_status qn__first_failure_end(qn__first_failure *f, qn_error *err);

#endif
